"""The 1,797 handwritten 8x8 digits that come with scikit-learn."""

from functools import cache

import numpy as np
from torch import Tensor

from ..core.arguments import check_choice
from .selection import Split, select


def digits(split: Split = "train", *, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """Handwritten digits of 8x8 pixels, embedded: they need neither files nor a network.

    Every fifth sample is a test sample: 1,438 for training, 359 for testing.

    Parameters
    ----------
    split : "train" or "test", default "train"
        Which of the two sets is read.
    limit : int or None, default None
        Size of a class-balanced subset, the first samples of each class; all samples by default.

    Returns
    -------
    tuple of two Tensors
        X of shape (N, 64), float32 in [0, 1], and y of shape (N,), int64 in 0..9.

    Raises
    ------
    ArgumentError
        If the split is unknown or the limit exceeds the number of samples.

    Examples
    --------
    >>> from netmargin.datasets import digits
    >>> X, y = digits(limit=20)
    >>> X.shape, y.bincount().tolist()
    (torch.Size([20, 64]), [2, 2, 2, 2, 2, 2, 2, 2, 2, 2])

    Source: Alpaydin and Kaynak 1998, the test part, through scikit-learn. Beyond the papers.
    """
    pixels, labels = _read_once()
    # Every fifth rather than the last fifth: both sets hold samples from all over the file.
    test = np.arange(len(labels)) % 5 == 4
    chosen = test if check_choice("split", split, ("train", "test")) == "test" else ~test
    return select(pixels[chosen], labels[chosen], limit, scale=16)


@cache
def _read_once() -> tuple[np.ndarray, np.ndarray]:
    """All digits and labels; to read the compressed text takes 40 ms."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return pixels, labels
