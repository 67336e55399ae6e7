"""CIFAR-10 from its canonical binary files, or from OpenML."""

import warnings

import numpy as np
from torch import Tensor

from ..core.arguments import check_choice, check_count, check_optional
from ..errors import ArgumentError, DataError
from .selection import (
    FOLDER_VARIABLE,
    Split,
    check_content,
    explain_unreadable,
    folders,
    from_openml,
    select,
)

_FOLDER = "cifar-10-batches-bin"
_BATCHES = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
_RECORD, _PER_BATCH = 1 + 3 * 32 * 32, 10_000
"""Bytes of a record of the binary version, a label and the pixels, and records of one batch."""
_SHA256 = {  # of the records of the binary version
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}


def cifar10(split: Split = "train", *, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """CIFAR-10: 50,000 training and 10,000 test images in color, of ten classes.

    Read from the folder cifar-10-batches-bin in $NETMARGIN_DATA/cifar10 or $NETMARGIN_DATA, else
    downloaded from OpenML. Where fewer than five training batches are found, they are used (with a
    warning) if `limit` fits. The first training batch and the test batch are compared with the
    canonical checksum.

    Parameters
    ----------
    split, limit
        The set, and the size of a class-balanced subset, as for `digits`.

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
    wanted = _BATCHES[check_choice("split", split, _BATCHES)]
    limit = check_optional(check_count, "limit", limit)
    records = _read_files(wanted, limit)
    if records is None:
        records = _load_from_openml(wanted)
    return select(records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0], limit, scale=255)


def _read_files(wanted: list[str], limit: int | None) -> np.ndarray | None:
    """Records of the first folder that holds the files; None where none does."""
    sources = (folder / _FOLDER for folder in folders("cifar10"))
    source = next((path for path in sources if path.exists()), None)
    if source is None:
        return None
    with explain_unreadable(source, "CIFAR-10"):
        paths = {name: source / f"{name}.bin" for name in wanted}
        contents = {name: path.read_bytes() for name, path in paths.items() if path.exists()}
    if not contents:
        raise DataError(f"{source} holds none of {', '.join(wanted)}. Fetch it again.")
    found = []
    for name, content in contents.items():
        if len(content) != _RECORD * _PER_BATCH:
            raise DataError(
                f"{name} in {source} has {len(content)} bytes instead of {_RECORD * _PER_BATCH}: it"
                " is cut off or not CIFAR-10. Fetch it again."
            )
        found.append(np.frombuffer(content, np.uint8).reshape(-1, _RECORD))
        if name in _SHA256:  # one batch of each split tells a foreign or re-encoded copy
            check_content(found[-1], _SHA256[name], f"{name} in {source}")
    if len(found) < len(wanted):
        which = f"{len(found)} of {len(wanted)} training batches"
        samples = _PER_BATCH * len(found)
        if limit is None or limit > samples:
            raise ArgumentError(
                f"{source} holds {which} ({samples} images). Pass a limit of at most {samples}, or"
                " add the other batches."
            )
        warnings.warn(f"using the {which} found in {source}", stacklevel=3)
    return np.concatenate(found)


def _load_from_openml(wanted: list[str]) -> np.ndarray:
    archive = "cifar-10-binary.tar.gz"
    advice = f"unpack {archive} into a folder and set {FOLDER_VARIABLE} to it"
    pixels, y = from_openml("CIFAR_10", 1, advice)
    records = np.hstack([y[:, None], pixels])
    check_content(records[:_PER_BATCH], _SHA256["data_batch_1"], "CIFAR-10 from OpenML")
    check_content(records[-_PER_BATCH:], _SHA256["test_batch"], "CIFAR-10 from OpenML")
    # OpenML keeps all images in one table, the five training batches first.
    return records[-_PER_BATCH:] if wanted == _BATCHES["test"] else records[:-_PER_BATCH]
