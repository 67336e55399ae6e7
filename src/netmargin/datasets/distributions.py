"""Distributions of the papers and a hard example: pairs (X, y), X float64 of shape (n, d), y int64
in {-1, +1}; the same seed gives the same samples. Arguments out of range raise ArgumentError.

Margins that are known are those of `solvers.f1_max_margin(X, y, bias=False)`, q_min / ||theta||^2
of the best two-layer ReLU net of any width, unless said otherwise.
"""

import numpy as np
from torch import Tensor

from ..core.arguments import check_seed
from .selection import as_pair, check_sizes


def clusters(n: int = 256, d: int = 15, *, k: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Disks with random labels in the first two of d coordinates, uniform noise in the others.

    The noise lies in [-1/2, 1/2]. The k x k disks have radius 1 / (3k - 1) and stand at steps of 3
    / (3k - 1) in [-1/2, 1/2]^2; samples are uniform on them (the reference script crowds their
    centres). Projected to the first two coordinates, classes stay 1 / (3k - 1) apart.

    Parameters
    ----------
    n, d, k : int, default 256, 15 and 3
        Numbers of samples, of coordinates (at least 2), and of disks along each of the first two.
    seed : int, default 0
        Seed of labels and samples.

    Returns
    -------
    tuple of two Tensors
        X of shape (n, d), float64, and y of shape (n,), int64 in {-1, +1}.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> from netmargin.datasets import clusters
    >>> X, y = clusters(100, 5)
    >>> X.shape, bool(X.abs().max() <= 0.5)
    (torch.Size([100, 5]), True)

    Source: Chizat and Bach 2020, Section 7.
    """
    n, d, k = check_sizes(n=(n, 1), d=(d, 2), k=(k, 1))
    random = np.random.default_rng(check_seed(seed))
    labels = random.choice([-1.0, 1.0], (k, k))
    disk = random.integers(k, size=(n, 2))
    # The root of a uniform number makes samples uniform in area rather than in radius.
    angle, radius = random.uniform(0, 2 * np.pi, n), np.sqrt(random.uniform(0, 1, n)) / (3 * k - 1)
    centre = -0.5 + 1 / (3 * k - 1) + 3 * disk / (3 * k - 1)
    plane = centre + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return as_pair(
        np.hstack([plane, random.uniform(-0.5, 0.5, (n, d - 2))]), labels[disk[:, 0], disk[:, 1]]
    )


def gaussian_xor(n: int, d: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The XOR of two signs, hidden among normal coordinates.

    (x_1, x_2) is uniform on (+-1, +-1), y = x_1 x_2, and the other coordinates are N(0, 1). Four
    neurons reach a margin of 1 / (4 sqrt 2), by |x_1 + x_2| - |x_1 - x_2| = 2 y, the best for d = 2
    and all four corners. The kernel margin F_2 falls with d.

    Parameters
    ----------
    n, d : int
        Numbers of samples and of coordinates, the latter at least 2.
    seed : int, default 0
        Seed of the samples.

    Returns
    -------
    tuple of two Tensors
        X of shape (n, d), float64, and y of shape (n,), int64 in {-1, +1}.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.gaussian_xor(40, 2)
    >>> abs(nm.solvers.f1_max_margin(X, y, bias=False).margin - 1 / (4 * 2**0.5)) < 1e-6
    True

    Source: Wei et al. 2018, Section 3.4 and Figure 1.
    """
    n, d = check_sizes(n=(n, 1), d=(d, 2))
    random = np.random.default_rng(check_seed(seed))
    corner = random.choice([-1.0, 1.0], (n, 2))
    return as_pair(np.hstack([corner, random.normal(size=(n, d - 2))]), corner.prod(1))


def hypercube(n: int, d: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two axes that tell the class, hidden among random signs: kernels need d^2 samples for it.

    (x_1, x_2, y) is (+-1, 0, +1) or (0, +-1, -1), each with probability 1/4; the other coordinates
    are uniform on {-1, +1}. Four neurons reach a margin of 1/8, by |x_1| - |x_2| = y, the best for
    d = 2 and all four points.

    Parameters
    ----------
    n, d, seed : int
        As for `gaussian_xor`.

    Returns
    -------
    tuple of two Tensors
        X of shape (n, d), float64, and y of shape (n,), int64 in {-1, +1}.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.hypercube(40, 2)
    >>> abs(nm.solvers.f1_max_margin(X, y, bias=False).margin - 1 / 8) < 1e-6
    True

    Source: Wei et al. 2019, (2.5).
    """
    n, d = check_sizes(n=(n, 1), d=(d, 2))
    random = np.random.default_rng(check_seed(seed))
    axis, sign = random.integers(2, size=n), random.choice([-1.0, 1.0], n)
    X = np.hstack([np.zeros((n, 2)), random.choice([-1.0, 1.0], (n, d - 2))])
    X[np.arange(n), axis] = sign
    return as_pair(X, 1.0 - 2.0 * axis)


def alternating(n: int) -> tuple[Tensor, Tensor]:
    """Points on a line at equal steps in [-1, 1], with alternating labels.

    The margin rests on every sample, and the best f has n - 2 kinks inside.

    Parameters
    ----------
    n : int
        Number of samples, at least 1.

    Returns
    -------
    tuple of two Tensors
        X of shape (n, 1), float64, and y of shape (n,), int64: +1, -1, +1, ...

    Raises
    ------
    ArgumentError
        If n is no whole number of at least 1.

    Examples
    --------
    >>> from netmargin.datasets import alternating
    >>> X, y = alternating(3)
    >>> X[:, 0].tolist(), y.tolist()
    ([-1.0, 0.0, 1.0], [1, -1, 1])

    Source: a hard case for solvers and flows. Beyond the papers.
    """
    (n,) = check_sizes(n=(n, 1))
    return as_pair(
        np.linspace(-1, 1, n)[:, None] if n > 1 else np.ones((1, 1)), 1.0 - 2.0 * (np.arange(n) % 2)
    )
