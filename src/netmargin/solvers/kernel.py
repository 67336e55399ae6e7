"""Hard max margin in a reproducing kernel space, without an intercept."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..core.arguments import check_flag, check_number
from ..core.deadline import Deadline
from ..core.matrices import binary_data, floor_to_powers, warn_of_size
from ..kernels import arc_cosine, ntk
from ..kernels.two_layer import bound_entry_errors
from ..result import Status
from .contradictions import Contradictions, recommended_cost
from .hard_kernel import HardMargin, KernelSolution, explain, keep_constant
from .kernel_engine import solve_kernel
from .kernel_matrix import KernelMatrix
from .kernel_problem import compute_kernel, require_kernel_memory, validate_kernel


def kernel_max_margin(
    K: Any, y: Any, *, tol: float = 1e-6, time_limit: float | None = None
) -> KernelSolution:
    """The function of norm 1 in the space of a kernel that has the largest margin.

    It is max over ||f|| <= 1 of min_n y_n f(x_n): a support vector machine without an intercept.
    Its dual, the minimum over probability weights p of sqrt(p' (yy' * K) p), is the proved upper
    bound. Ctrl-C returns a valid bracket, with `Status.INTERRUPTED`.

    Parameters
    ----------
    K : array_like of shape (n, n)
        Symmetric positive semidefinite kernel matrix; computations are in float64. Where rounding
        leaves it asymmetric, the mean of it and its transpose is what is solved and judged.
    y : array_like of shape (n,)
        Labels {-1, +1} or {0, 1}.
    tol : float, default 1e-6
        Relative gap between margin and upper bound up to which the status is OPTIMAL.
    time_limit : float, optional
        Seconds after which the best bracket so far is returned; a step of about a second for 1,500
        samples is finished. No limit by default.

    Returns
    -------
    KernelSolution
        Coefficients and dual weights (float64 of shape (n,)), the margin recomputed in float64, the
        proved upper bound, and a `note` that names samples which contradict each other.

    Raises
    ------
    DataError
        For other shapes, NaN, or a kernel with a clearly negative eigenvalue.
    ArgumentError
        For tol or time_limit out of range.

    Examples
    --------
    >>> from netmargin.solvers import kernel_max_margin
    >>> orthogonal = kernel_max_margin([[1.0, 0.0], [0.0, 1.0]], [1, -1])
    >>> round(orthogonal.margin, 9)  # 1 / sqrt(2)
    0.707106781

    Source: Chizat and Bach 2020, (5), for any kernel.
    """
    started, deadline = time.monotonic(), Deadline(time_limit)
    tol = check_number("tol", tol, above=0, below=1)
    matrix, y = validate_kernel(K, y)
    # Of a matrix that lost entries nothing is told: the identity has no contradictions.
    known = matrix.values if matrix.exact else np.eye(len(y))
    contradictions = Contradictions.in_kernel(known, y)
    (found,) = solve_kernel([HardMargin(matrix, y, tol, contradictions)], deadline=deadline)
    size = float(matrix.diagonal.mean()) * matrix.scale
    return _finish(found, started, contradictions, "kernel_soft_margin(K, y, C={C:g})", size)


def f2_max_margin(
    X: Any, y: Any, *, bias: bool = True, tol: float = 1e-6, time_limit: float | None = None
) -> KernelSolution:
    """The largest margin in the unit ball of F_2, of nets with fixed directions of all neurons.

    gamma_2 = max over ||f|| <= 1 in F_2 of min_n y_n f(x_n), where F_2 is the space of the kernel
    `kernels.arc_cosine`: two-layer ReLU nets whose directions are fixed and uniform on the sphere.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs; computations are in float64.
    y : array_like of shape (n,)
        Labels {-1, +1} or {0, 1}.
    bias : bool, default True
        Whether the neurons have a bias.
    tol, time_limit : optional
        As of `kernel_max_margin`.

    Returns
    -------
    KernelSolution
        As from `kernel_max_margin`; its `decision_function` takes kernels with the samples.

    Raises
    ------
    DataError
        For X or y of a wrong shape or kind, NaN, or one class only.
    ArgumentError
        For bias, tol or time_limit out of range.

    Examples
    --------
    >>> from netmargin.solvers import f2_max_margin
    >>> one = f2_max_margin([[1.0], [-1.0]], [1, -1], bias=False)  # k(1, 1) = 1 / 2, k(1, -1) = 0
    >>> round(one.margin, 9), one.certified
    (0.5, True)

    Source: Chizat and Bach 2020, (5), with the closed-form kernel `kernels.arc_cosine`.
    """
    bias = check_flag("bias", bias)
    formula = f"kernel_soft_margin(kernels.arc_cosine(X, bias={bias}), y, C={{C:g}})"
    kernel = partial(arc_cosine, bias=False)
    return _solve_homogeneous(kernel, X, y, bias, formula, tol, time_limit)


def ntk_max_margin(
    X: Any,
    y: Any,
    *,
    r_w: float = 1.0,
    r_u: float = 1.0,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> KernelSolution:
    """The largest margin in the unit ball of the tangent kernel space of a two-layer ReLU net.

    It is max over ||f|| <= 1 of min_n y_n f(x_n) in the space of the kernel `kernels.ntk`.

    Parameters
    ----------
    X, y : array_like
        Inputs (n, d) and labels (n,), as of `f2_max_margin`.
    r_w, r_u : float, default 1.0
        Initial scales of the second and of the first layer, finite.
    bias, tol, time_limit : optional
        As of `f2_max_margin`.

    Returns
    -------
    KernelSolution
        As from `kernel_max_margin`; its `decision_function` takes kernels with the samples.

    Raises
    ------
    DataError
        For X or y of a wrong shape or kind, NaN, or one class only.
    ArgumentError
        For any other argument out of range.

    Examples
    --------
    >>> from netmargin.solvers import ntk_max_margin
    >>> one = ntk_max_margin([[1.0], [-1.0]], [1, -1], bias=False)  # k(1, 1) = 1, k(1, -1) = 0
    >>> round(one.margin, 9), one.certified
    (0.707106781, True)

    Source: Wei et al. 2019, Section 2.
    """
    bias, r_w, r_u = check_flag("bias", bias), check_number("r_w", r_w), check_number("r_u", r_u)
    formula = (
        f"kernel_soft_margin(kernels.ntk(X, r_w={r_w:g}, r_u={r_u:g}, bias={bias}), y, C={{C:g}})"
    )
    kernel = partial(ntk, r_w=r_w, r_u=r_u, bias=False)
    return _solve_homogeneous(kernel, X, y, bias, formula, tol, time_limit)


def _solve_homogeneous(
    kernel: Callable[..., np.ndarray],
    X: Any,
    y: Any,
    bias: bool,
    formula: str,
    tol: float,
    time_limit: float | None,
) -> KernelSolution:
    """Solve for a kernel k(a x, b x') = a b k(x, x'); `formula` is the soft margin of a note."""
    started, deadline = time.monotonic(), Deadline(time_limit)
    tol = check_number("tol", tol, above=0, below=1)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "A kernel problem")
    contradictions = Contradictions.among(data, bias=bias, relu=True)
    found: KernelSolution | None = None
    # Contradictions are a proof at once; a large kernel takes minutes.
    if contradictions.weights is not None:
        found = keep_constant(0.0, Status.NOT_SEPARABLE, contradictions.weights)
    else:
        remedy = "Take fewer samples, or linear_max_margin(kernels.random_features(X, 1000), y)."
        require_kernel_memory(len(data), 8, remedy)
        size = float(floor_to_powers(data.size))  # squares of huge inputs overflow
        Z, error, ended = data.Z / size, bound_entry_errors(data.Z.shape[1]), Status.TIME_LIMIT
        try:
            K = compute_kernel(kernel, Z, deadline)
            if K is not None:
                # The square of a short sample may underflow: it keeps a length all the same, by
                # which the rounding of its outputs is bounded.
                least = np.where(data.Z.any(1), np.finfo(float).tiny, 0.0)
                np.fill_diagonal(K, np.maximum(np.diagonal(K), least))
                matrix = KernelMatrix.of(K, entry_error=error)
                problem = HardMargin(matrix, data.y, tol, contradictions, size)
                (found,) = solve_kernel([problem], deadline=deadline)
        except KeyboardInterrupt:  # before the kernel was there
            ended = Status.INTERRUPTED
        if found is None:
            # |f(x)| <= sqrt(k(x, x)) where |f| <= 1, and k(x, x) is a multiple of |x|^2.
            shortest = int(np.argmin((Z**2).sum(1)))
            K = kernel(Z[[shortest]], Z[[shortest]])
            alone = HardMargin(KernelMatrix.of(K, entry_error=error), np.ones(1), tol, size=size)
            upper = alone.judge(np.ones(1), K[0], ended, 0.0).upper_bound
            found = keep_constant(upper, ended, np.eye(1, len(Z), shortest)[0])
    mean = data.mean_square
    if found.status is Status.NOT_SEPARABLE:  # otherwise no remedy is needed
        one = np.eye(1, data.Z.shape[1])  # k(x, x) is a multiple of |x|^2
        mean *= float(kernel(one, one)[0, 0])
    return _finish(found, started, contradictions, formula, mean)


def _finish(
    found: KernelSolution, started: float, contradictions: Contradictions, soft: str, size: float
) -> KernelSolution:
    """Add the seconds, and where nothing separates the samples why, and a soft margin."""
    found = replace(found, seconds=time.monotonic() - started)
    remedy = f"For a soft margin: {soft.format(C=recommended_cost(size))}."
    return explain(found, contradictions, remedy)
