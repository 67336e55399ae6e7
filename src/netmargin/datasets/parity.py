"""Parities on the corners of a cube, and the largest margin that any two-layer net has on them."""

import itertools
import math
from typing import Any

import numpy as np
from torch import Tensor

from ..core.arguments import check_flag, check_seed
from ..errors import ArgumentError
from .selection import as_pair, check_sizes

_MOST_LISTED = 16
"""Largest dimension of which all corners are listed: 65,536 of them, more than the solvers are made
for; every further dimension doubles them.
"""


def parity(
    d: int, k: int, n: int | None = None, *, seed: int = 0, marginal: Any = None
) -> tuple[Tensor, Tensor]:
    """The parity of the first k signs, on the corners {-1, +1}^d / sqrt(d) of a cube.

    y is the product of the signs of the first k coordinates; inputs have norm 1. The best margin
    over all corners is `parity_margin(d, k)`.

    Parameters
    ----------
    d, k : int
        Numbers of coordinates, and of those that count.
    n : int or None, default None
        Number of corners that are drawn, with replacement; all 2^d by default, for d <= 16.
    seed : int, default 0
        Seed of the draws.
    marginal : array, shape (2^d,), or None, default None
        Probabilities of the corners, in the order of `parity(d, k)`, by which they are drawn, for d
        <= 16; None draws all alike.

    Returns
    -------
    tuple of two Tensors
        X of shape (n, d), float64, and y of shape (n,), int64 in {-1, +1}.

    Raises
    ------
    ArgumentError
        If k exceeds d, all corners of d > 16 are asked for, `marginal` is no distribution on them,
        or another argument is out of range.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.parity(3, 2)
    >>> best = nm.solvers.f1_max_margin(X, y, bias=False).margin
    >>> abs(best - nm.datasets.parity_margin(3, 2)) < 1e-6
    True

    Source: "The ubiquity of 2-homogeneity" 2024, Example 4.1.
    """
    d, k = check_sizes(d=(d, 1), k=(k, 1))
    seed = check_seed(seed)
    listed = n is None or marginal is not None
    if k > d or (listed and d > _MOST_LISTED) or (n is None and marginal is not None):
        raise ArgumentError(
            "parity needs k <= d, n where there is a marginal, and for d >"
            f" {_MOST_LISTED}, which has 2^d corners, n and no marginal; got d = {d}, k = {k},"
            f" n = {n}"
        )
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=d))) if listed else np.empty(0)
    if n is not None:
        (count,), random = check_sizes(n=(n, 1)), np.random.default_rng(seed)
        if marginal is not None:
            signs = random.choice(signs, count, p=_check_marginal(marginal, d))
        else:
            signs = random.choice([-1.0, 1.0], (count, d))
    return as_pair(signs / math.sqrt(d), signs[:, :k].prod(1))


def _check_marginal(marginal: Any, d: int) -> np.ndarray:
    """The probabilities of the corners, summing to 1 to rounding. Raises ArgumentError."""
    try:
        found = np.asarray(marginal, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (2**d,) or not (found >= 0).all() or abs(found.sum() - 1) > 1e-6:
        raise ArgumentError(
            f"marginal must be probabilities of the {2**d} corners, which sum to 1; got shape"
            f" {found.shape} with sum {found.sum():.6g}"
        )
    return found / float(found.sum())


def parity_margin(d: int, k: int, *, bias: bool = False) -> float:
    """The largest q_min / ||theta||^2 of two-layer ReLU nets on all corners of `parity(d, k)`.

    Even k: C(k - 2, k / 2 - 1) / (2^k sqrt(k d)). Odd k >= 3 with bias: C(k - 1, (k - 1) / 2) /
    (2^{k + 1} sqrt(k d + 1)); without bias 0. k = 1: 1 / (4 sqrt d), with bias
    1 / (2 sqrt(d + 1)). From k = 2 on all behave like 0.2 / (k sqrt d): the 1 / (k sqrt d) of the
    paper, of the l1 norm over unit-norm features, is too large by 1.4 to 2.5.

    Attained by one neuron and its sign flips. That nothing is better is proved for k <= 2, and
    certified by the solver for small d.

    Parameters
    ----------
    d, k : int
        Numbers of coordinates, and of those that count.
    bias : bool, default False
        Whether the nets have a bias in the first layer; it is used for odd k only.

    Returns
    -------
    float
        The margin of the best net, of any width.

    Raises
    ------
    ArgumentError
        If k exceeds d, or an argument is out of range.

    Examples
    --------
    >>> from netmargin.datasets import parity_margin
    >>> round(parity_margin(3, 2), 6), parity_margin(3, 3)
    (0.102062, 0.0)

    Source: a correction of "The ubiquity of 2-homogeneity" 2024, Example 4.1. Beyond the papers.
    """
    d, k = check_sizes(d=(d, 1), k=(k, 1))
    bias = check_flag("bias", bias)
    if k > d:
        raise ArgumentError(f"parity needs k <= d; got d = {d}, k = {k}")
    if k == 1:
        return 1 / (2 * math.sqrt(d + 1)) if bias else 1 / (4 * math.sqrt(d))
    if k % 2 == 0:
        return float(math.comb(k - 2, k // 2 - 1) / (2**k * math.sqrt(k * d)))
    # relu(z) = z / 2 + |z| / 2: the odd part of a net without bias is linear, and no linear
    # function separates a parity of order 3 or more.
    return math.comb(k - 1, (k - 1) // 2) / (2 ** (k + 1) * math.sqrt(k * d + 1)) if bias else 0.0
