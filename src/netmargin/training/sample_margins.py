"""The margin of every sample after every epoch of a run: a .npy file, whose name ends in a digest
of the data, by which readers tell whose margins these are.
"""

import io
import os
from pathlib import Path

import numpy as np
from torch import Tensor

from ..core.arguments import check_flag
from ..core.files import write_atomically
from ..errors import ArgumentError, CheckpointError
from ..nets.arrays import Arrays

_NAME = "sample_margins-{}.npy"


class SampleMargins:
    """An array in a folder, float32, with one row of N margins for each row of a history."""

    def __init__(self, folder: Path, samples: int, data: str):
        self.path, self._samples, self._rows = Path(folder) / _NAME.format(data), samples, 0

    def start(self) -> None:
        """Begin an array without rows. Raises CheckpointError."""
        for other in self.path.parent.glob(_NAME.format("*")):
            other.unlink()
        write_atomically(self.path, self._header(0))
        self._rows = 0

    def append(self, q: Tensor) -> None:
        """Add the margins of an epoch, shape (N,). Raises CheckpointError."""
        row = q.detach().cpu().numpy().astype("<f4").tobytes()
        try:
            with open(self.path, "r+b") as file:
                # Behind the last whole row; the header counts it once it is there.
                file.seek(self._size(self._rows))
                file.write(row)
                file.truncate()
                file.seek(0)
                file.write(self._header(self._rows + 1))
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
            with open(self.path, "r+b") as file:
                file.write(self._header(rows))
            os.truncate(self.path, self._size(rows))
        except OSError as error:
            raise CheckpointError(
                f"Cannot go on with {self.path}: {error.strerror}. Margins are recorded from the"
                " first epoch on: start in a new folder, or without record_margins."
            ) from error
        self._rows = rows

    def _header(self, rows: int) -> bytes:
        """The header of numpy, which is of one length for any number of rows."""
        shape = {"descr": "<f4", "fortran_order": False, "shape": (rows, self._samples)}
        np.lib.format.write_array_header_1_0(header := io.BytesIO(), shape)
        return header.getvalue()

    def _size(self, rows: int) -> int:
        """The bytes of a file with so many rows."""
        return len(self._header(rows)) + rows * 4 * self._samples


def find_recorded(
    record_margins: bool, folder: object, data: object, argument: str
) -> Arrays | None:
    """The samples whose margins are to be recorded, or None where none are.

    argument : what the caller calls the folder. Raises ArgumentError where there is no folder, or
    the data, as they were opened, have no order.
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
    return any(Path(folder).glob(_NAME.format("*")))


def read_sample_margins(folder: Path) -> tuple[np.ndarray, str]:
    """The margins that a run has recorded, shape (rows, N), and the digest of its data.

    The first row is from before training. Raises CheckpointError.
    """
    path = next(Path(folder).glob(_NAME.format("*")), None)
    if path is None:
        raise CheckpointError(
            f"{folder} holds no margins of single samples ({_NAME.format('*')}). Record"
            ' them: nm.train(model, data, checkpoint_dir="runs/mine", record_margins=True), or in'
            ' a loop of your own nm.Watch(model, data, folder="runs/mine", record_margins=True).'
        )
    try:
        with open(path, "rb") as file:
            margins = np.lib.format.read_array(file, allow_pickle=False)
        if margins.ndim != 2 or margins.dtype != np.float32 or len(margins) < 2:
            raise ValueError(f"it holds {margins.dtype} of shape {margins.shape}")
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} is damaged or holds no margins of two epochs: {error}. Restore it, or train"
            " anew."
        ) from error
    return margins, path.stem.partition("-")[2]
