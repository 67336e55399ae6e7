"""What public functions check of a kernel."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from ..core.deadline import Deadline
from ..core.matrices import binary_data, check_kernel, warn_of_size
from ..core.memory import require_memory
from ..errors import DataError
from .kernel_matrix import KernelMatrix

_NEGATIVE_EIGENVALUE = 1e-9
"""Negative eigenvalues up to this, per sample and relative to the largest entry, pass as rounding:
float64 leaves some 1e-15, while the errors of float32, some 1e-7, are to be refused.
"""
_WITH_COPY = 1.5
"""Memory of a kernel and of its largest copy, of .7 of the samples, over that of the kernel."""
_ENTRIES_AT_ONCE = 1 << 23
"""Entries of a kernel that are computed before the clock is read again, a fraction of a second."""


def require_kernel_memory(n: int, size: int, remedy: str) -> None:
    """Raise DataError without memory for a kernel of n samples, `size` bytes an entry."""
    what = f"The kernel of {n:,} samples, with a copy of a part of it,"
    require_memory(_WITH_COPY * n * n * size, what, remedy)


def compute_kernel(
    kernel: Callable[[np.ndarray, np.ndarray], np.ndarray], Z: np.ndarray, deadline: Deadline
) -> np.ndarray | None:
    """The kernel (n, n) of Z (n, D), by rows from the diagonal on; None at the deadline."""
    n = len(Z)
    K, rows = np.empty((n, n)), max(_ENTRIES_AT_ONCE // n, 1)
    for start in range(0, n, rows):
        if start and deadline.passed:
            return None
        end = start + rows
        K[start:end, start:] = kernel(Z[start:end], Z[start:])
        K[start:, start:end] = K[start:end, start:].T
    return K


def validate_kernel(K: Any, y: Any) -> tuple[KernelMatrix, np.ndarray]:
    """Check that K is a kernel matrix (n, n) with labels y (n,), which are returned in {-1, +1}.
    Where K is symmetric but for rounding, the mean of it and its transpose is taken. Raises
    DataError for other shapes, NaN, an asymmetric matrix or a clearly negative eigenvalue.
    """
    data = binary_data(K, y, bias=False, name="K")
    warn_of_size(len(data), "A kernel problem")
    K = check_kernel(data.Z, len(data))
    matrix = KernelMatrix.of(K, exact=True)
    n, allowed = len(matrix.values), _NEGATIVE_EIGENVALUE * len(matrix.values)
    allowed *= float(np.abs(K).max()) / matrix.scale
    shifted = matrix.values.copy()
    shifted[np.diag_indices(n)] += allowed
    try:  # a tenth of the time that the eigenvalues take
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        smallest = float(np.linalg.eigvalsh(matrix.values)[0])
        if smallest < -allowed:
            raise DataError(
                f"K is not positive semidefinite (smallest eigenvalue {smallest * matrix.scale:.3g}"
                "). Compute it in float64, or add that to its diagonal."
            ) from None
    return matrix, data.y
