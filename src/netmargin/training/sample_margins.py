"""The margin of every sample after every epoch of a run, in one small file."""

import json
import os
from pathlib import Path

import numpy as np
from torch import Tensor

from ..core.arguments import check_flag
from ..core.files import write_atomically
from ..errors import ArgumentError, CheckpointError
from ..nets.arrays import Arrays

FILE = "sample_margins.bin"
_MARK = b"netmargin sample margins 1\n"
_HEADER = 256
"""Bytes before the first row: a mark, and the number of samples and digest of the data as JSON."""
_LARGEST = 60_000.0
"""What the largest margin of an epoch is scaled to: float16 ends at 65,504."""


class SampleMargins:
    """The file of a run that holds one row of margins for each row of its history.

    A row is a float32 scale and N margins in float16, in units of that scale: 2 bytes for each
    sample, three digits of each margin, whatever their size.

    Parameters
    ----------
    folder : Path
        The folder of the run.
    samples : int
        N, the number of samples.
    data : str
        Digest of the data, by which readers tell whose margins these are.
    """

    def __init__(self, folder: Path, samples: int, data: str):
        self.path, self._samples, self._data = Path(folder) / FILE, samples, data
        self._rows = 0

    def start(self) -> None:
        """Begin an empty file. Raises CheckpointError."""
        about = json.dumps({"samples": self._samples, "data": self._data}).encode()
        write_atomically(self.path, (_MARK + about).ljust(_HEADER))
        self._rows = 0

    def append(self, q: Tensor) -> None:
        """Add the margins of an epoch, shape (N,). Raises CheckpointError."""
        values = q.detach().cpu().double().numpy()
        scale = np.float32(np.abs(values).max() / _LARGEST) or np.float32(1)
        row = (
            np.asarray(scale).tobytes() + (values / np.float64(scale)).astype(np.float16).tobytes()
        )
        try:
            with open(self.path, "r+b") as file:
                # Behind the last whole row: a write that failed may have left half a one.
                file.truncate(self._size(self._rows))
                file.seek(self._size(self._rows))
                file.write(row)
        except OSError as error:
            raise CheckpointError(
                f"Cannot write {self.path}: {error.strerror}. The last checkpoint is intact. Free"
                " some space, then start the same command again to go on."
            ) from error
        self._rows += 1

    def cut_back(self, rows: int) -> None:
        """Keep the first rows only. Raises CheckpointError where there are fewer."""
        try:
            if self.path.stat().st_size < self._size(rows):
                raise CheckpointError(
                    f"{self.path} is shorter than its checkpoint says. Restore it, or start in a"
                    " new folder."
                )
            os.truncate(self.path, self._size(rows))
        except OSError as error:
            raise CheckpointError(
                f"Cannot go on with {self.path}: {error.strerror}. Margins are recorded from the"
                " first epoch on: start in a new folder, or without record_margins."
            ) from error
        self._rows = rows

    def _size(self, rows: int) -> int:
        """The bytes of a file with so many rows."""
        return _HEADER + rows * (4 + 2 * self._samples)


def find_recorded(
    record_margins: bool, folder: object, data: object, argument: str
) -> Arrays | None:
    """The samples whose margins are to be recorded, or None where none are.

    Parameters
    ----------
    record_margins : bool
        What the caller asked for.
    folder : object
        The folder of the run; None where there is none.
    data : object
        The samples, opened: `Arrays` where they keep their order.
    argument : str
        What the caller calls the folder, for errors.

    Raises
    ------
    ArgumentError
        Margins are to be recorded and cannot be, for want of a folder or of an order.
    """
    if not check_flag("record_margins", record_margins):
        return None
    if folder is None:
        raise ArgumentError(
            "record_margins=True keeps margins in the folder of the run, and there is none. Give a"
            f' {argument}, such as "runs/mine".'
        )
    if not isinstance(data, Arrays):
        raise ArgumentError(
            "record_margins=True takes the data as a pair (X, y): batches may come in another order"
            " each epoch, and a margin would be another sample's."
        )
    return data


def has_sample_margins(folder: Path) -> bool:
    """Whether a run has recorded the margins of single samples."""
    return (Path(folder) / FILE).exists()


def read_sample_margins(folder: Path) -> tuple[np.ndarray, str]:
    """The margins that a run has recorded, and the digest of its data.

    Parameters
    ----------
    folder : Path
        The folder of the run.

    Returns
    -------
    tuple of ndarray, shape (epochs, N), float32, and str
        One row per accepted epoch, or per look of a watch; the first before training.

    Raises
    ------
    CheckpointError
        There is no such file, or it is damaged.
    """
    path = Path(folder) / FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(
            f"{folder} holds no margins of single samples ({path.name}: {error.strerror}). Record"
            ' them: nm.train(model, data, checkpoint_dir="runs/mine", record_margins=True), or in'
            ' a loop of your own nm.Watch(model, data, folder="runs/mine", record_margins=True).'
        ) from error
    try:
        if not content.startswith(_MARK):
            raise ValueError("it begins with other bytes")
        about = json.loads(content[len(_MARK) : _HEADER])
        samples, data = int(about["samples"]), str(about["data"])
        if samples < 1:
            raise ValueError(f"it says that there are {samples} samples")
        row = np.dtype([("scale", "<f4"), ("margins", "<f2", (samples,))])
        # A row that a killed run has begun is left out.
        whole = (len(content) - _HEADER) // row.itemsize
        if whole < 2:
            raise ValueError("it ends before the first epoch")
        rows = np.frombuffer(content, row, count=whole, offset=_HEADER)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path} is damaged or no file of margins: {error}. Restore it, or train anew."
        ) from error
    return rows["margins"].astype(np.float32) * rows["scale"][:, None], data
