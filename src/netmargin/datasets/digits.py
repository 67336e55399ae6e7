"""The 1,797 handwritten 8x8 digits that come with scikit-learn."""

import numpy as np
from torch import Tensor

from .selection import Split, check_split, select


def digits(split: Split = "train", *, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """Handwritten digits, X of shape (N, 64) in [0, 1], y in 0..9. Embedded: needs neither files
    nor a network.

    Every fifth sample is a test sample: 1,438 for training, 359 for testing.

    Examples
    --------
    >>> from netmargin.datasets import digits
    >>> X, y = digits(limit=20)
    >>> X.shape, y.bincount().tolist()
    (torch.Size([20, 64]), [2, 2, 2, 2, 2, 2, 2, 2, 2, 2])
    """
    from sklearn.datasets import load_digits

    data = load_digits()
    test = np.arange(len(data.target)) % 5 == 4
    chosen = test if check_split(split) == "test" else ~test
    return select(data.data[chosen], data.target[chosen], limit, scale=16)
