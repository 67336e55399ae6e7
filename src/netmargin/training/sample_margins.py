"""The margin of every sample after every epoch of a run: a .npy file, whose name ends in a digest
of the data, by which readers tell whose margins these are.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ..core.arguments import check_flag
from ..core.files import explain_unreadable, explain_unwritable, write_atomically
from ..errors import ArgumentError, CheckpointError
from ..nets.arrays import Arrays
from ..nets.shared import digest_of

_NAME = "sample_margins-{}.npy"


class SampleMargins:
    """An array in a folder, float32, with one row of N margins for each row of a history."""

    def __init__(self, folder: Path, data: Arrays) -> None:
        self.path = folder / _NAME.format(fingerprint(data))
        self._samples, self._rows, self._waiting = len(data), 0, b""

    def begin(self, rows: int) -> None:
        """Keep the first rows only; of none, begin an array. Raises CheckpointError."""
        self._rows, self._waiting = rows, b""
        if not rows:
            for other in self.path.parent.glob(_NAME.format("*")):
                other.unlink()
            write_atomically(self.path, self._header())
            return
        try:
            if self.path.stat().st_size < self._size():
                raise CheckpointError(
                    f"{self.path} is shorter than its checkpoint says. Start in a new folder."
                )
            with open(self.path, "r+b") as file:
                file.write(self._header())
                file.truncate(self._size())
        except OSError as error:
            raise CheckpointError(
                f"Cannot go on with {self.path}: {error.strerror}. Margins are recorded from the"
                " first epoch on: start in a new folder, or without record_margins."
            ) from error

    def append(self, q: Tensor) -> None:
        """Add the margins of an epoch, (N,), after what could not be written before."""
        self._waiting += q.detach().cpu().numpy().astype("<f4").tobytes()
        with explain_unwritable(self.path), open(self.path, "r+b") as file:
            file.seek(self._size())
            file.write(self._waiting)
            file.truncate()
            # The header counts a row once it is there.
            self._rows, self._waiting = self._rows + len(self._waiting) // (4 * self._samples), b""
            file.seek(0)
            file.write(self._header())

    def _header(self) -> bytes:
        """The header of numpy, which is of one length for any number of rows."""
        shape = {"descr": "<f4", "fortran_order": False, "shape": (self._rows, self._samples)}
        np.lib.format.write_array_header_1_0(header := io.BytesIO(), shape)
        return header.getvalue()

    def _size(self) -> int:
        """The bytes of a file with all rows so far."""
        return len(self._header()) + self._rows * 4 * self._samples


def fingerprint(data: Any) -> str:
    """A short digest of a data set in memory; iterables of batches are not read."""
    if not isinstance(data, Arrays):
        return type(data).__name__
    return digest_of(data.X, data.y, size=8).hex()


def sample_margins(
    record_margins: bool, folder: Path | None, data: object, argument: str
) -> SampleMargins | None:
    """The array for the margins of samples in the folder that `argument` names, or None."""
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
    return SampleMargins(folder, data)


def has_sample_margins(folder: Path) -> bool:
    """Whether a run has recorded the margins of single samples."""
    return any(Path(folder).glob(_NAME.format("*")))


def read_sample_margins(folder: Path) -> tuple[np.ndarray, str]:
    """The margins that a run recorded, (rows, N), first from before training; and a digest."""
    path = next(Path(folder).glob(_NAME.format("*")), None)
    if path is None:
        raise CheckpointError(
            f"{folder} holds no margins of single samples ({_NAME.format('*')}). Record"
            ' them: nm.train(model, data, checkpoint_dir="runs/mine", record_margins=True), or in'
            ' a loop of your own nm.Watch(model, data, folder="runs/mine", record_margins=True).'
        )
    with explain_unreadable(path, "holds no margins of two epochs", ValueError):
        with open(path, "rb") as file:
            margins = np.lib.format.read_array(file, allow_pickle=False)
        if margins.ndim != 2 or margins.dtype != np.float32 or len(margins) < 2:
            raise ValueError(f"it holds {margins.dtype} of shape {margins.shape}")
    return margins, path.stem.partition("-")[2]
