"""Kernels of two-layer ReLU nets in closed form and by random features."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.arguments import check_count, check_flag, check_number, check_seed
from ..core.matrices import EPS, Floats, split_lengths
from ..core.memory import require_memory
from ..errors import ArgumentError, DataError
from ..nets.arrays import as_inputs

_NEARLY_PARALLEL = 0.99
"""Cosine from which an angle is computed from its half: the arccos errs by that of the cosine over
sin t, here 7 times it, and the more exact formula takes the difference of the inputs, which is
slow: from .5 on an entry would be off by half as much.
"""
_SMALL_ANGLE = 0.25
"""Angles up to which sin t - t cos t, about t^3 / 3, is taken from its series: five terms leave
1e-15 of it there, and the difference loses a digit of sixteen.
"""
_BLOCK = 1 << 17
"""Entries that are computed at once: arrays of 1 MB stay in the cache of a core."""


def arc_cosine(X: Any, X2: Any = None, *, bias: bool = True, dtype: Any = np.float64) -> np.ndarray:
    """The kernel of the space F_2: k(x, x') = E_u relu(u . x) relu(u . x'), u on the unit sphere.

    u is uniform on the sphere of R^D, D the dimension of the inputs with the bias. The kernel
    equals |x| |x'| (sin t + (pi - t) cos t) / (2 pi D), t the angle between x and x'.

    Parameters
    ----------
    X, X2 : array_like, shapes (n, d) and (m, d)
        Inputs; X2 is X itself by default.
    bias : bool, default True
        Whether every input gets a last coordinate 1.
    dtype : {float64, float32}, default float64
        Type of the result, which is computed in float64: half the memory, 7 digits.

    Returns
    -------
    ndarray, shape (n, m), of the given dtype
        k(x, x') of each x in X and x' in X2.

    Raises
    ------
    DataError
        If inputs are not finite, have no columns, or differ in dimension.
    ArgumentError
        If `bias` is neither True nor False, or for another dtype.

    Examples
    --------
    >>> from netmargin.kernels import arc_cosine
    >>> 4 * arc_cosine([[1.0, 0.0], [0.0, 1.0]], bias=False)      # E relu(u_1)^2 is 1/4 here
    array([[1.        , 0.31830989],
           [0.31830989, 1.        ]])

    Source: Chizat and Bach 2020, (5); Wei et al. 2018, (3.8).
    """
    A, B = read_pair(X, X2, bias)
    return _compute_kernel(A, B, 1.0, 0.0, _check_dtype(dtype))


def ntk(
    X: Any,
    X2: Any = None,
    *,
    r_w: float = 1.0,
    r_u: float = 1.0,
    bias: bool = True,
    dtype: Any = np.float64,
) -> np.ndarray:
    """The tangent kernel of an infinitely wide two-layer ReLU net, sum_j w_j relu(u_j . x).

    Per unit it is r_u^2 E[relu(u . x) relu(u . x')] + r_w^2 x . x' P(both active), u uniform on the
    unit sphere. r_w = 0 leaves the kernel of the output layer only, r_u^2 `arc_cosine`.

    Parameters
    ----------
    X, X2 : array_like
        Inputs (n, d) and (m, d), as of `arc_cosine`.
    r_w, r_u : float, default 1.0
        Scales of the output and of the input weights at initialization.
    bias, dtype : optional
        As of `arc_cosine`.

    Returns
    -------
    ndarray, shape (n, m), of the given dtype
        The kernel of each x in X and x' in X2.

    Raises
    ------
    DataError, ArgumentError
        As of `arc_cosine`; also if a scale is no finite number.

    Examples
    --------
    >>> from netmargin.kernels import ntk
    >>> ntk([[1.0, 0.0], [0.0, 1.0]], bias=False).round(6)        # 1/4 + 1/2 on the diagonal
    array([[0.75    , 0.079577],
           [0.079577, 0.75    ]])

    Source: Wei et al. 2019, Section 2.
    """
    r_w, r_u = check_number("r_w", r_w), check_number("r_u", r_u)
    A, B = read_pair(X, X2, bias)
    return _compute_kernel(A, B, r_u**2, r_w**2, _check_dtype(dtype))


def random_features(X: Any, count: int, *, bias: bool = True, seed: int = 0) -> np.ndarray:
    """Features relu(u_j . x) / sqrt(count) at random unit directions u_j.

    features @ features.T estimates `arc_cosine`; a linear classifier on them is a two-layer net of
    which only the output layer is trained. One seed gives the directions for all inputs.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Inputs.
    count : int
        Number of directions.
    bias : bool, default True
        As of `arc_cosine`.
    seed : int, default 0
        Seed of the directions.

    Returns
    -------
    ndarray, shape (n, count), float64
        One row of features for each input.

    Raises
    ------
    DataError, ArgumentError
        If inputs are not finite or have no columns, or another argument is out of range.

    Examples
    --------
    >>> from netmargin.kernels import arc_cosine, random_features
    >>> features = random_features([[1.0, 2.0], [0.0, 1.0]], 200_000)
    >>> bool(abs(features @ features.T - arc_cosine([[1.0, 2.0], [0.0, 1.0]])).max() < 0.01)
    True

    Source: Chizat and Bach 2020, Section 5.
    """
    Z, count, seed = _read_inputs(X, bias), check_count("count", count), check_seed(seed)
    U = np.random.default_rng(seed).normal(size=(count, Z.shape[1]))
    # Normal vectors divided by their norms are uniform on the sphere.
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    return np.maximum(Z @ U.T, 0.0) / float(np.sqrt(count))


def bound_entry_errors(dimension: int) -> float:
    """Bound what entries of `arc_cosine` and `ntk` are off by, relative to the root of k(x, x)
    k(x', x'), for inputs of `dimension` D coordinates, that of the bias included.

    With eps = 2^-52: unit rows are off by (D / 2 + 2) eps / 2, and their computed cosines by (D +
    4) eps. As functions of the cosine sin t + (pi - t) cos t has slopes of at most pi, and (pi - t)
    cos t of pi + 1 / tan t in size, 10.2 up to `_NEARLY_PARALLEL`; beyond, the angle comes from
    |u - v|, is off by (.6 D + 3) eps, and the slope in it is 1.5. Elementary functions are off by 4
    units in the last place, 11 eps with the difference from pi. k(x, x) is pi in these units, the
    product of lengths is off by (D / 2 + 1) eps, and other factors by 4 eps: 3.75 D + 22 in all.
    """
    return 4 * (dimension + 8) * EPS


def read_pair(X: Any, X2: Any, bias: bool) -> tuple[Floats, Floats]:
    """Two sets of inputs of one dimension, with the bias coordinate where there is one."""
    A = _read_inputs(X, bias, "X")
    B = A if X2 is None else _read_inputs(X2, bias, "X2")
    if A.shape[1] != B.shape[1]:
        raise DataError(
            f"X has {A.shape[1] - bias} columns and X2 has {B.shape[1] - bias}. Both hold inputs of"
            " one dimension."
        )
    return A, B


def _read_inputs(X: Any, bias: bool, name: str = "X") -> Floats:
    """Finite inputs as float64 of shape (n, d), or (n, d + 1) with a last column of ones."""
    bias = check_flag("bias", bias)
    array = as_inputs(X, name).double().cpu().numpy()
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(
            f"{name} must have shape (n, d) with d at least 1; got {array.shape}. Flatten images:"
            " X.reshape(len(X), -1)."
        )
    return np.hstack([array, np.ones((len(array), 1))]) if bias else array


def _check_dtype(dtype: Any) -> np.dtype:
    """Return float64 or float32 as a dtype. Raises ArgumentError."""
    try:
        found: np.dtype | None = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ArgumentError(f"dtype must be float64 or float32; got {dtype!r}")
    return found


def _compute_kernel(
    A: Floats, B: Floats, first: float, second: float, dtype: np.dtype
) -> np.ndarray:
    """The kernel (n, m) of all rows of A and B: with t the angle of two rows, |a| |b| times
    (first (sin t + (pi - t) cos t) / D + second (pi - t) cos t) / (2 pi).
    """

    def combine(cosine: Floats, sine: Floats, angle: Floats) -> Floats:
        np.subtract(np.pi, angle, out=angle)
        angle *= cosine
        return first / float(A.shape[1]) * (sine + angle) + second * angle

    return compute_in_blocks(A, B, combine, 2 * np.pi, dtype)


def compute_in_blocks(
    A: Floats,
    B: Floats,
    combine: Callable[[Floats, Floats, Floats], Floats],
    unit: float,
    dtype: np.dtype,
) -> np.ndarray:
    """The products of lengths of rows over `unit`, times what `combine` makes of their angles."""
    require_memory(
        len(A) * len(B) * dtype.itemsize,
        f"A kernel of {len(A):,} and {len(B):,} samples",
        "Take fewer samples, or netmargin.kernels.random_features, which need no kernel.",
    )
    a, U = split_lengths(A)
    b, V = (a, U) if B is A else split_lengths(B)
    kernel = np.empty((len(A), len(B)), dtype)
    rows = max(_BLOCK // max(len(B), 1), 16)
    for start in range(0, len(A), rows):
        end, column = start + rows, start if B is A else 0  # only above the diagonal
        block = combine(*find_angles(U[start:end], V[column:]))
        block *= a[start:end, None] * (b[column:] / unit)
        kernel[start:end, column:] = block
        if B is A:
            kernel[column:, start:end] = block.T
    return kernel


def find_angles(U: Floats, V: Floats) -> tuple[Floats, Floats, Floats]:
    """Cosines, sines and angles (n, m) of unit rows U (n, D) and V (m, D); right ones to zeros."""
    # As exact as `bound_entry_errors` says.
    # |u - v| = 2 sin(t/2) is accurate near 0, where arccos is not, |u + v| = 2 cos(t/2) near pi.
    cosine = np.clip(U @ V.T, -1.0, 1.0)
    angle = np.arccos(cosine)
    sine = np.sqrt((1 - cosine) * (1 + cosine))
    i, j = np.divmod(np.flatnonzero(np.abs(cosine) > _NEARLY_PARALLEL), max(len(V), 1))
    side = np.sign(cosine[i, j])
    square = np.zeros(len(i))
    for u, v in zip(U.T, V.T, strict=True) if len(i) else ():
        apart = u[i] - side * v[j]
        square += apart * apart
    t = 2 * np.arcsin(0.5 * np.sqrt(square))
    sine[i, j], cosine[i, j] = np.sin(t), side * np.cos(t)
    angle[i, j] = np.where(side > 0, t, np.pi - t)
    return cosine, sine, angle


def next_angle(cosine: Floats, sine: Floats, angle: Floats) -> Floats:
    """The angle t' of two unit inputs after a layer: cos t' = (sin t + (pi - t) cos t) / pi."""
    # By 2 sin^2(t'/2) = 2 sin^2(t/2) - (sin t - t cos t) / pi, where nothing cancels near 0.
    square = angle * angle
    series = 1 - square / 54 * (1 - square / 88)
    series = angle * square / 3 * (1 - square / 10 * (1 - square / 28 * series))
    lag = np.where(angle < _SMALL_ANGLE, series, sine - angle * cosine)
    half: Floats = np.sqrt(np.maximum(np.sin(0.5 * angle) ** 2 - lag / (2 * np.pi), 0.0))
    return 2 * np.arcsin(half)
