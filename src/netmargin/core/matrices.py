"""Data for the convex solvers, checked, in float64."""

import warnings
from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from .records import short_repr

MANY = 5_000


@dataclass(frozen=True)
class SolverData:
    """Inputs Z of shape (n, D), with a last column of ones where a bias is asked for, and labels y
    in {-1, +1}, or real targets.
    """

    Z: np.ndarray
    y: np.ndarray

    __repr__ = short_repr

    @property
    def size(self) -> float:
        """Largest absolute coordinate; dividing by it keeps squares from overflowing. 1 for
        all-zero inputs.
        """
        return float(np.abs(self.Z).max()) or 1.0

    @property
    def longest(self) -> float:
        """Largest Euclidean norm of a row of Z; 1 where all are zero."""
        return self.size * (float(np.linalg.norm(self.Z / self.size, axis=1).max()) or 1.0)

    def require_squares(self) -> None:
        """Raises DataError where squares of the inputs leave the range of float64."""
        if not 1e-150 < self.size < 1e150:
            raise DataError(
                f"Squares of inputs as large as {self.size:.0e} are beyond float64. Divide X by"
                f" {self.size:.0e}."
            )

    def directions(self, neurons) -> np.ndarray:
        """Given neurons as unit rows, shape (k, D); none for None. Raises DataError."""
        U = np.zeros((0, self.Z.shape[1])) if neurons is None else as_array(neurons, "neurons")
        if U.ndim != 2 or U.shape[1] != self.Z.shape[1]:
            raise DataError(
                f"neurons must have shape (k, {self.Z.shape[1]}), the bias included; got {U.shape}"
            )
        if not np.isfinite(U).all():
            raise DataError("neurons hold NaN or infinite values. Drop these rows.")
        norms = np.linalg.norm(U, axis=1, keepdims=True)
        return (U / np.where(norms > 0, norms, 1.0))[norms[:, 0] > 0]

    def __len__(self) -> int:
        return len(self.y)


def warn_of_size(n: int, problem: str) -> None:
    """Say before long work that it will be long."""
    if n > MANY:
        warnings.warn(
            f"{problem} with {n:,} samples may take many minutes and {8e-9 * n * n:.1f} GB or more:"
            " time grows like n^2 to n^3. Set time_limit, where there is one, or solve for a"
            " subset first.",
            UserWarning,
            stacklevel=3,
        )


def binary_data(X, y, *, bias: bool) -> SolverData:
    """Check and convert. Labels are {-1, +1} or {0, 1}. Raises DataError."""
    Z, y = _checked(X, y, bias)
    values = set(np.unique(y))
    if not (values <= {-1.0, 1.0} or values <= {0.0, 1.0}):
        shown = ", ".join(f"{v:g}" for v in sorted(values)[:6])
        raise DataError(
            f"Labels must be -1 and +1, or 0 and 1; found {shown}. For more classes use"
            " netmargin.estimators."
        )
    return SolverData(Z, np.where(y > 0, 1.0, -1.0))


def regression_data(X, y, *, bias: bool) -> SolverData:
    """Check and convert inputs with real targets y. Raises DataError."""
    return SolverData(*_checked(X, y, bias))


def evaluation_inputs(X, dimension: int, *, bias: bool) -> np.ndarray:
    """Inputs at which a solution is evaluated, shape (N, dimension), its last column ones where it
    has a bias. Raises DataError.
    """
    X = as_array(X, "X")
    if X.ndim != 2 or X.shape[1] != dimension - bias:
        raise DataError(
            f"X must have shape (N, {dimension - bias}), as the inputs that were fitted; got"
            f" {X.shape}"
        )
    return np.hstack([X, np.ones((len(X), 1))]) if bias else X


def kernel_values(K, coefficients: np.ndarray) -> np.ndarray:
    """sum_n coefficients_n k(x_n, .) at points whose kernel with the training samples is K, shape
    (N, n). Raises DataError.
    """
    K = as_array(K, "K")
    if K.ndim != 2 or K.shape[1] != len(coefficients):
        raise DataError(
            f"K must have shape (N, {len(coefficients)}), of N points with the training samples;"
            f" got {K.shape}"
        )
    return K @ coefficients


def _checked(X, y, bias: bool) -> tuple[np.ndarray, np.ndarray]:
    X = as_array(X, "X")
    y = as_array(y, "y").reshape(-1)
    if X.ndim != 2 or X.size == 0:
        raise DataError(
            f"X must have shape (n, d) with n and d at least 1; got {X.shape}. Flatten images with"
            " X.reshape(len(X), -1)."
        )
    if len(y) != len(X):
        raise DataError(
            f"X has {len(X)} samples but y has {len(y)} labels. Pass one label per sample."
        )
    if not np.isfinite(X).all():
        bad = np.flatnonzero(~np.isfinite(X).all(1))
        raise DataError(
            f"X holds NaN or infinite values in {len(bad)} samples, first sample {bad[0]}. Drop or"
            " impute them."
        )
    if not np.isfinite(y).all():
        raise DataError("y holds NaN or infinite labels. Drop these samples.")
    Z = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    return np.ascontiguousarray(Z), y


def as_array(values, name: str) -> np.ndarray:
    """float64, from arrays, nested lists and tensors. Raises DataError."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu().numpy()
        if np.iscomplexobj(values):
            raise TypeError("its numbers are complex")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} cannot be read as an array of numbers: {error}") from error
