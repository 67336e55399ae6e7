"""MNIST from its IDX files, or from OpenML."""

import gzip
from pathlib import Path

import numpy as np
from torch import Tensor

from ..core.arguments import check_choice
from .selection import (
    FOLDER_VARIABLE,
    Split,
    check_content,
    explain_unreadable,
    folders,
    from_openml,
    select,
)

_PREFIX = {"train": "train", "test": "t10k"}
_SHA256 = {  # of the decoded values, the header of the file left out
    "train-images-idx3-ubyte": "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
    "train-labels-idx1-ubyte": "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
    "t10k-images-idx3-ubyte": "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
    "t10k-labels-idx1-ubyte": "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
}


def mnist(split: Split = "train", *, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """MNIST: 60,000 training and 10,000 test images of handwritten digits.

    Read from the four IDX files (plain or .gz) in $NETMARGIN_DATA/mnist or $NETMARGIN_DATA, else
    downloaded from OpenML; either way the decoded content is compared with the canonical checksum.

    Parameters
    ----------
    split, limit
        The set, and the size of a class-balanced subset, as for `digits`.

    Returns
    -------
    tuple of two Tensors
        X of shape (N, 1, 28, 28), float32 in [0, 1], and y of shape (N,), int64 in 0..9.

    Raises
    ------
    DataError
        If there are neither files nor a download, or files are damaged or foreign.
    ArgumentError
        If the split is unknown or the limit exceeds the number of images.

    Examples
    --------
    >>> from netmargin.datasets import mnist
    >>> X, y = mnist(limit=1000)          # doctest: +SKIP
    >>> mnist("validation")
    Traceback (most recent call last):
    netmargin.errors.ArgumentError: split must be "train" or "test"; got 'validation'

    Source: LeCun et al. 1998; trained on in Lyu and Li 2019, Appendix J.
    """
    prefix = _PREFIX[check_choice("split", split, _PREFIX)]
    images, labels = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
    pixels, y = _read_files(images, labels) or _load_from_openml(images, labels)
    return select(pixels.reshape(-1, 1, 28, 28), y, limit, scale=255)


def _read_files(*names: str) -> tuple[np.ndarray, ...] | None:
    """Contents of these files, all from one folder; None where no folder holds them all."""
    for folder in folders("mnist"):
        forms = [[folder / name, folder / f"{name}.gz"] for name in names]
        if all(found := [[path for path in form if path.exists()] for form in forms]):
            pairs = zip(found, names, strict=True)
            return tuple(_read_idx(path, _SHA256[name]) for (path, *_), name in pairs)
    return None


def _read_idx(path: Path, checksum: str) -> np.ndarray:
    """The array in an IDX file of unsigned bytes, plain or gzipped. Raises DataError."""
    with explain_unreadable(path, "an IDX file"):
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        magic = int(np.frombuffer(content, ">u4", 1)[0])
        # Unsigned bytes in one dimension (labels) or three (images); the last byte counts them.
        if magic not in (2049, 2051):
            raise ValueError(f"its magic number is {magic}, not 2049 or 2051")
        shape = np.frombuffer(content, ">u4", magic % 256, 4).tolist()
        values = np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
    check_content(values, checksum, str(path))
    return values


def _load_from_openml(images: str, labels: str) -> tuple[np.ndarray, np.ndarray]:
    advice = f"put {images}.gz and {labels}.gz into a folder and set {FOLDER_VARIABLE} to it"
    pixels, y = from_openml("mnist_784", 1, advice)
    # OpenML keeps all images in one table, the training images first.
    part = slice(0, 60000) if images.startswith("train") else slice(60000, 70000)
    pixels, y = pixels[part], y[part]
    check_content(pixels, _SHA256[images], "MNIST from OpenML")
    check_content(y, _SHA256[labels], "MNIST from OpenML")
    return pixels, y
