"""Data of the convex solvers as checked float64 matrices, and blocks of them as one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import DataError
from .arguments import require_numbers
from .caller import warn_caller
from .saved_records import Record

Floats = NDArray[np.float64]
"""An array of float64, of any shape."""
EPS = 2.0**-52
"""Twice the relative rounding of float64, to cover the second order (Higham 2002, 3.1)."""
LEAST = 2.0**-1074
"""The least float64 above 0: what underflows is off by less."""
_MANY_SAMPLES = 5_000
"""Samples from which long work gets a warning: all pairs take 200 MB there, and solvers minutes."""
_SYMMETRY = 1e-9
"""Relative differences of a kernel and its transpose up to this pass as rounding: float64 leaves
some 1e-15, while the errors of float32, some 1e-7, are to be refused.
"""
_ABSOLUTE_SYMMETRY = 1e-12
"""The same for entries near 0, relative to the largest entry."""
_LARGEST_SIZE = 1e150
"""Inputs up to this size, and down to its inverse, have squares, and sums of them, in float64."""


@dataclass(frozen=True)
class SolverData(Record):
    """Checked inputs and labels, or targets, in float64."""

    Z: Floats  # (n, D), with a last column of ones where a bias was asked for
    y: Floats  # (n,): labels -1, +1, or real targets

    @property
    def size(self) -> float:
        """The largest absolute coordinate, or 1; divided by it squares do not overflow."""
        return float(np.abs(self.Z).max()) or 1.0

    @property
    def longest(self) -> float:
        """The largest Euclidean norm of a row of Z, or 1 if all are zero."""
        return float(split_lengths(self.Z)[0].max()) or 1.0

    @property
    def mean_square(self) -> float:
        """The mean squared norm of the rows of Z; what is beyond float64 is 0 or infinite."""
        return float(((self.Z / self.size) ** 2).sum(1).mean()) * self.size * self.size

    @property
    def scaled(self) -> Floats:
        """The rows of Z in units of the longest one."""
        return self.Z / self.size / (self.longest / self.size)

    def require_squares(self) -> None:
        """Raise DataError where squares of the inputs leave the range of float64."""
        if not 1 / _LARGEST_SIZE < self.size < _LARGEST_SIZE:
            raise DataError(
                f"Squares of inputs as large as {self.size:.0e} are beyond float64. Divide X by"
                f" {self.size:.0e}."
            )

    def directions(self, neurons: Any) -> Floats:
        """Return given neurons as unit rows, shape (k, D), without zero rows; none for None."""
        U = as_array(np.zeros((0, self.Z.shape[1])) if neurons is None else neurons, "neurons")
        if U.ndim != 2 or U.shape[1] != self.Z.shape[1]:
            raise DataError(
                f"neurons must have shape (k, {self.Z.shape[1]}), the bias included; got {U.shape}"
            )
        if not np.isfinite(U).all():
            raise DataError("neurons hold NaN or infinite values. Drop these rows.")
        lengths, units = split_lengths(U)
        # A neuron of zeros has no direction, and adds nothing to a function.
        return units[lengths > 0]

    def __len__(self) -> int:
        return len(self.y)


def warn_of_size(n: int, problem: str) -> None:
    """Warn before work on n samples that will be long; `problem` names it."""
    if n > _MANY_SAMPLES:
        warn_caller(
            f"{problem} with {n:,} samples may take many minutes and {8e-9 * n * n:.1f} GB or more."
            " Set time_limit, where there is one, or solve for a subset first."
        )


def binary_data(X: Any, y: Any, *, bias: bool, name: str = "X") -> SolverData:
    """Check and convert inputs, called `name`, and labels {-1, +1} or {0, 1}. Raises DataError."""
    Z, y = _check_pair(X, y, bias, name)
    # Either pair of values, or one value of either: a single class is a data set as well.
    values = set(np.unique(y))
    if not (values <= {-1.0, 1.0} or values <= {0.0, 1.0}):
        shown = ", ".join(f"{v:g}" for v in sorted(values)[:6])
        raise DataError(
            f"Labels must be -1 and +1, or 0 and 1; found {shown}. For more classes use"
            " netmargin.estimators."
        )
    return SolverData(Z, np.where(y > 0, 1.0, -1.0))


def regression_data(X: Any, y: Any, *, bias: bool) -> SolverData:
    """Check and convert inputs with real targets y. Raises DataError."""
    return SolverData(*_check_pair(X, y, bias))


def check_sample_weight(weights: Any, n: int, name: str = "sample_weight") -> Floats:
    """Return weights of n samples as float64, shape (n,), 1 each for None. Raises DataError."""
    if weights is None:
        return np.ones(n)
    array = as_array(weights, name)
    wrong = ~(np.isfinite(array) & (array >= 0))
    if array.shape != (n,) or wrong.any():
        found = f"shape {array.shape}" if array.shape != (n,) else f"{array[wrong][0]:g}"
        raise DataError(f"{name} must be {n} finite numbers >= 0, one per sample; got {found}")
    if not array.any():
        raise DataError(f"Every weight in {name} is zero: no sample is left.")
    return array


def evaluation_inputs(X: Any, dimension: int, *, bias: bool) -> Floats:
    """Checked inputs (N, dimension) of a solution, with a last column of ones for a bias."""
    Z = as_array(X, "X")
    if Z.ndim != 2 or Z.shape[1] != dimension - bias:
        raise DataError(
            f"X must have shape (N, {dimension - bias}), as the inputs that were fitted; got"
            f" {Z.shape}"
        )
    return np.hstack([Z, np.ones((len(Z), 1))]) if bias else Z


def split_lengths(A: np.ndarray) -> tuple[Floats, Floats]:
    """The lengths (n,) of the rows of A, and unit rows; rows of zeros stay zero."""
    # Powers of 2, which round nothing, keep the squares of tiny and huge rows within float64.
    powers = floor_to_powers(np.abs(A).max(axis=1, initial=0.0))
    A = A / powers[:, None]
    lengths = np.linalg.norm(A, axis=1)
    units = np.divide(A, lengths[:, None], out=np.zeros_like(A), where=lengths[:, None] > 0)
    return powers * lengths, units


def floor_to_powers(sizes: Any) -> Floats:
    """The powers of 2 up to sizes >= 0 (1/2 for 0); dividing by them rounds nothing."""
    return np.asarray(np.ldexp(1.0, np.frexp(sizes)[1] - 1))


def kernel_values(K: Any, coefficients: Floats) -> Floats:
    """The values sum_n coefficients_n k(x_n, .) at N points, with their kernel K (N, n)."""
    values = as_array(K, "K")
    if values.ndim != 2 or values.shape[1] != len(coefficients):
        raise DataError(
            f"K must have shape (N, {len(coefficients)}), of N points with the training samples;"
            f" got {values.shape}"
        )
    return values @ coefficients


def check_kernel(K: Floats, n: int) -> Floats:
    """The kernel matrix (n, n) of n samples, checked, without the asymmetry of rounding."""
    if K.shape != (n, n):
        raise DataError(f"K must be the ({n}, {n}) kernel matrix of {n} samples; got {K.shape}")
    if np.array_equal(K, K.T):  # rows and squares are those of one matrix
        return K
    apart = np.abs(K - K.T) - _SYMMETRY * np.abs(K.T)
    i, j = map(int, np.unravel_index(apart.argmax(), K.shape))
    if not apart[i, j] <= _ABSOLUTE_SYMMETRY * np.abs(K).max():
        raise DataError(
            f"K is not symmetric: K[{i}, {j}] is {K[i, j]:.9g}, and K[{j}, {i}] is {K[j, i]:.9g}."
            " Compute it in float64, or pass (K + K.T) / 2."
        )
    return K / 2 + K.T / 2


def _check_pair(X: Any, y: Any, bias: bool, name: str = "X") -> tuple[Floats, Floats]:
    """The inputs, with a column of ones for a bias, and the labels, all finite."""
    X = finite_rows(X, name)
    y = as_array(y, "y").reshape(-1)
    if len(y) != len(X):
        raise DataError(
            f"{name} has {len(X)} samples but y has {len(y)} labels. Pass one label per sample."
        )
    if not np.isfinite(y).all():
        raise DataError("y holds NaN or infinite labels. Drop these samples.")
    Z = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    return np.ascontiguousarray(Z), y


def finite_rows(X: Any, name: str = "X") -> Floats:
    """Finite samples as a float64 array of shape (n, d). Raises DataError."""
    rows = as_array(X, name)
    if rows.ndim != 2 or rows.size == 0:
        raise DataError(
            f"{name} must have shape (n, d) with n and d at least 1; got {rows.shape}. Flatten"
            f" images with {name}.reshape(len({name}), -1)."
        )
    if not np.isfinite(rows).all():
        bad = np.flatnonzero(~np.isfinite(rows).all(1))
        raise DataError(
            f"{name} holds NaN or infinite values in {len(bad)} of {len(rows)} samples,"
            f" first sample {bad[0]}. Drop or impute them."
        )
    return rows


def as_array(values: Any, name: str) -> Floats:
    """Return arrays, nested lists and tensors as a float64 array. Raises DataError."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu().numpy()
        array: np.ndarray = require_numbers(np.asarray(values), name)
        # Numpy would drop imaginary parts with no more than a warning.
        if np.iscomplexobj(array):
            raise TypeError("its numbers are complex")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} cannot be read as an array of numbers: {error}") from error


def stack_blocks(blocks: Iterable[np.ndarray]) -> sparse.csc_matrix:
    """The block-diagonal matrix of dense blocks, each of shape (rows, columns)."""
    # Given sparse arrays, as scipy 1.18 warns of dense ones here.
    return sparse.csc_matrix(sparse.block_diag([sparse.coo_array(block) for block in blocks]))
