"""CIFAR-10 from its canonical files (binary or Python version), or from OpenML."""

import pickle
import tarfile
import warnings
from pathlib import Path

import numpy as np
from torch import Tensor

from ..core.arguments import check_count
from ..errors import ArgumentError, DataError
from .selection import (
    FOLDER_VARIABLE,
    Split,
    check_content,
    check_split,
    folders,
    from_openml,
    select,
)

_ARCHIVE, _BINARY, _PYTHON = "cifar-10-binary.tar.gz", "cifar-10-batches-bin", "cifar-10-batches-py"
_BATCHES = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
_RECORD, _PER_BATCH = 1 + 3 * 32 * 32, 10_000
"""Bytes of a record of the binary version, a label and the pixels, and records of one batch."""
_SHA256 = {  # of the records of the binary version
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}


def cifar10(split: Split = "train", *, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """CIFAR-10: 50,000 training and 10,000 test images in color, of ten classes.

    Read from cifar-10-binary.tar.gz, cifar-10-batches-bin or cifar-10-batches-py in
    $NETMARGIN_DATA/cifar10 or $NETMARGIN_DATA, else downloaded from OpenML. Where fewer than five
    training batches are found, they are used (with a warning) if `limit` fits. The first training
    batch and the test batch are compared with the canonical checksum.

    Parameters
    ----------
    split : "train" or "test", default "train"
        Which of the two sets is read.
    limit : int or None, default None
        Size of a class-balanced subset, the first images of each class; all images by default.

    Returns
    -------
    tuple of two Tensors
        X of shape (N, 3, 32, 32), float32 in [0, 1], and y of shape (N,), int64 in 0..9.

    Raises
    ------
    DataError
        If there are neither files nor a download, or files are damaged or foreign.
    ArgumentError
        If the split is unknown or the limit does not fit.

    Examples
    --------
    >>> from netmargin.datasets import cifar10
    >>> X, y = cifar10("test", limit=100)          # doctest: +SKIP
    >>> cifar10("validation")
    Traceback (most recent call last):
    netmargin.errors.ArgumentError: split must be "train" or "test"; got 'validation'

    Source: Krizhevsky 2009; trained on in Lyu and Li 2019, Appendix J, and Wei et al. 2018,
    Appendix F.
    """
    wanted = _BATCHES[check_split(split)]
    limit = check_count("limit", limit, optional=True)
    records = _read_files(wanted, limit)
    if records is None:
        records = _load_from_openml(wanted)
    return select(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0], limit, scale=255)


def _read_files(wanted: list[str], limit: int | None) -> np.ndarray | None:
    """Records of the first folder that holds any version of the files; None where none does."""
    for folder in folders("cifar10"):
        # Folders before the archive, which has to be unpacked at each call.
        for source, read in (
            (_BINARY, _read_binary),
            (_PYTHON, _read_python),
            (_ARCHIVE, _read_archive),
        ):
            if (folder / source).exists():
                found = read(folder / source, wanted)
                break
        else:
            continue
        if not found:
            raise DataError(f"{folder / source} holds none of {', '.join(wanted)}. Fetch it again.")
        # One batch of each split tells a foreign or re-encoded copy.
        for name in found.keys() & _SHA256.keys():
            check_content(found[name], _SHA256[name], f"{name} in {folder / source}")
        samples = _PER_BATCH * len(found)
        if len(found) < len(wanted):
            if limit is None or limit > samples:
                raise ArgumentError(
                    f"{folder / source} holds {len(found)} of {len(wanted)} training batches"
                    f" ({samples} images). Pass a limit of at most {samples}, or add the other"
                    " batches."
                )
            warnings.warn(
                f"using the {len(found)} of {len(wanted)} training batches found in"
                f" {folder / source}",
                stacklevel=3,
            )
        return np.concatenate(list(found.values()))
    return None


def _read_binary(folder: Path, wanted: list[str]) -> dict[str, np.ndarray]:
    return {
        n: _as_records(_read_bytes(folder / f"{n}.bin"), f"{folder / n}.bin")
        for n in wanted
        if (folder / f"{n}.bin").exists()
    }


def _read_python(folder: Path, wanted: list[str]) -> dict[str, np.ndarray]:
    found = {}
    for name in wanted:
        if (folder / name).exists():
            try:
                with open(folder / name, "rb") as file:
                    batch = _ArraysOnly(file, encoding="bytes").load()
                labels = np.array(batch[b"labels"], dtype=np.uint8)[:, None]
                joined = np.hstack([labels, np.asarray(batch[b"data"], dtype=np.uint8)])
            except (
                OSError,
                EOFError,
                KeyError,
                TypeError,
                ValueError,
                pickle.UnpicklingError,
            ) as error:
                raise DataError(
                    f"Cannot read {folder / name} as a CIFAR-10 batch: {error}. Fetch it again."
                ) from error
            # The same bytes as the binary version, so that one checksum serves both.
            found[name] = _as_records(joined.tobytes(), str(folder / name))
    return found


def _read_archive(path: Path, wanted: list[str]) -> dict[str, np.ndarray]:
    try:
        with tarfile.open(path) as archive:
            members = {
                Path(m.name).stem: archive.extractfile(m)
                for m in archive.getmembers()
                if m.isfile()
            }
            contents = {n: file.read() for n in wanted if (file := members.get(n)) is not None}
    except (OSError, EOFError, tarfile.TarError) as error:
        raise DataError(f"Cannot read {path}: {error}. Fetch it again.") from error
    return {name: _as_records(content, f"{name} in {path}") for name, content in contents.items()}


class _ArraysOnly(pickle.Unpickler):
    """An unpickler that builds numpy arrays and nothing else, since a pickle may run any code."""

    _ALLOWED = {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")} | {
        (f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")
    }

    def find_class(self, module: str, name: str):
        """Return a class that arrays are built with; raise UnpicklingError for any other."""
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not an array")
        return super().find_class(module, name)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}. Check its permissions.") from error


def _as_records(content: bytes, what: str) -> np.ndarray:
    """The bytes of one batch as rows of a label and its pixels; DataError for another size."""
    if len(content) != _RECORD * _PER_BATCH:
        raise DataError(
            f"{what} has {len(content)} bytes instead of {_RECORD * _PER_BATCH}: it is cut off or"
            " not CIFAR-10. Fetch it again."
        )
    return np.frombuffer(content, np.uint8).reshape(-1, _RECORD)


def _load_from_openml(wanted: list[str]) -> np.ndarray:
    advice = (
        f"put {_ARCHIVE} (or the unpacked {_BINARY}) into a folder and set {FOLDER_VARIABLE} to it"
    )
    pixels, y = from_openml("CIFAR_10", 1, advice)
    records = np.hstack([y[:, None], pixels])
    check_content(records[:_PER_BATCH], _SHA256["data_batch_1"], "CIFAR-10 from OpenML")
    check_content(records[-_PER_BATCH:], _SHA256["test_batch"], "CIFAR-10 from OpenML")
    # OpenML keeps all images in one table, the five training batches first.
    return records[-_PER_BATCH:] if wanted == _BATCHES["test"] else records[:-_PER_BATCH]
