"""Classifiers of the largest margin in the space of a kernel of ReLU nets."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_memory

from .. import kernels
from ..core.arguments import check_flag, check_number
from ..core.matrices import SolverData
from ..errors import Interrupted
from ..kernels.two_layer import bound_entry_errors
from ..result import MarginSolution
from ..solvers.contradictions import Contradictions, recommended_cost
from ..solvers.hard_kernel import HardMargin, KernelSolution, explain
from ..solvers.kernel_engine import solve_kernel
from ..solvers.kernel_matrix import KernelMatrix
from ..solvers.kernel_problem import require_kernel_memory
from ..solvers.soft_kernel import SoftMargin
from .classifier import MaxMarginClassifier

_DOUBLE_SAMPLES = 14_000
"""Samples up to which the kernel is kept in float64 (1.6 GB); beyond in float32, and what is
returned is judged by float64 rows that are computed anew.
"""
_ROWS_AT_ONCE = 1024
"""Rows of a kernel that are computed at once where it is not kept: 160 MB for 20,000 samples."""
_AT_CAP = 1 - 1e-9
"""Part of C from which a weight of the last fit counts as one at C, and goes to the new C."""


@dataclass(kw_only=True, eq=False, repr=False)
class ReLUKernelClassifier(MaxMarginClassifier):
    """The max-margin classifier of F_2, of nets with fixed uniform directions.

    The hard (C=None) or soft margin of `solvers.kernel_max_margin` and `kernel_soft_margin` with
    the kernel `kernels.arc_cosine`. Several classes are separated one against the rest.

    Parameters
    ----------
    C : float or None, default 1.0
        Cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC`; None for a hard margin.
    bias : bool, default True
        Whether neurons have a bias.
    class_weight : dict or "balanced", optional
        Factors of C by label, as in `sklearn.svm.SVC`; not for a hard margin, which has no C.
    tol : float, default 1e-3
        Relative gap to the proved bound up to which the status of a problem is OPTIMAL. Below 1e-3
        predictions hardly move.
    time_limit : float, optional
        Seconds after which the whole of `fit` ends with the best functions so far and a warning;
        each class gets an equal part of what is left. No limit by default.
    warm_start : bool, default False
        Whether `fit` begins with the weights of the last one, where it had as many samples and
        classes: for a path over C.
    memory : str, Path or joblib.Memory, optional
        Where kernel matrices are kept, so that a search over C computes them once for each fold.
    n_jobs : int, optional
        Threads that solve the problems of several classes; one by default, -1 for all cores.

    Attributes
    ----------
    solutions_ : list of solvers.SoftKernelSolution, or of solvers.KernelSolution for C=None
        The only problem of two classes, or one of each class against the rest.
    margin_, gap_ : float, or array of shape (C,)
        The least y f(x) over the norm of f, below 0 where a sample is on the wrong side of a soft
        margin; and the relative gap of the objective to its proved bound.
    support_ : array of int
        The samples with a dual weight in any problem: support vectors, on which scores rest.
    classes_ : array of shape (C,)
        The labels, in the order of the scores.

    Examples
    --------
    >>> from netmargin.estimators import ReLUKernelClassifier
    >>> classifier = ReLUKernelClassifier(C=None).fit([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> classifier.predict([[0.1], [2.0]]).tolist()
    [0, 1]

    Source: Chizat and Bach 2020, (5).
    """

    C: Any = 1.0
    bias: Any = True
    class_weight: Any = None
    tol: Any = 1e-3
    time_limit: Any = None
    warm_start: Any = False
    memory: Any = None
    n_jobs: Any = None

    def _solve(self, X: Any, index: Any, caps: Any, tol: Any, deadline: Any, before: Any) -> Any:
        check_flag("warm_start", self.warm_start)
        positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        labels = np.column_stack([np.where(index == k, 1.0, -1.0) for k in positive])
        try:
            matrix = self._make_matrix(X)
        except KeyboardInterrupt:
            raise Interrupted("fit was interrupted: the classifier is not fitted.") from None
        starts = self._find_starts(labels, caps, before)
        options = {"deadline": deadline, "starts": starts, "n_jobs": self.n_jobs}
        if caps is None:
            solutions = self._solve_hard(matrix, X, labels, tol, options)
        else:
            problems: list[Any] = [SoftMargin(matrix, y, caps, tol) for y in labels.T]
            solutions = solve_kernel(problems, **options)
        self._caps = caps
        coefficients = np.column_stack([s.coefficients for s in solutions])
        used = np.flatnonzero(coefficients.any(1))
        self.support_vectors_, self.dual_coef_ = X[used], coefficients[used]
        return solutions

    def _solve_hard(
        self,
        matrix: KernelMatrix,
        X: np.ndarray,
        labels: np.ndarray,
        tol: float,
        options: dict[str, Any],
    ) -> list[KernelSolution]:
        """The hard margins, with a note on samples that contradict each other."""
        Z = np.hstack([X, np.ones((len(X), 1))]) if self.bias else X
        # Labels of all classes at once: mostly there is nothing to find.
        classes = SolverData(Z, labels @ np.arange(1, labels.shape[1] + 1))
        found = Contradictions.among(classes, bias=self.bias)
        reasons = [found] * labels.shape[1]
        if len(found.pairs) or len(found.opposites):
            reasons = [
                Contradictions.among(SolverData(Z, y), bias=self.bias, relu=True) for y in labels.T
            ]
        problems = [HardMargin(matrix, y, tol, r) for y, r in zip(labels.T, reasons, strict=True)]
        solutions = solve_kernel(problems, **options)
        return [explain(s, r, "") for s, r in zip(solutions, reasons, strict=True)]

    def _find_starts(
        self, labels: np.ndarray, caps: np.ndarray | None, before: list[Any] | None
    ) -> np.ndarray | None:
        """Weights (n, k) of the last fit, those at its C moved to the new one; None without one."""
        shape = (len(before[0].dual), len(before)) if before else ()
        if not self.warm_start or not before or shape != labels.shape:
            return None
        old = np.inf if self._caps is None else _AT_CAP * self._caps
        starts = []
        for solution in before:
            a = solution.dual
            if isinstance(solution, MarginSolution):  # whose multipliers sum to 1 / margin^2
                a = a / solution.upper_bound**2 if solution.margin > 0 else 0 * a
            starts.append(a if caps is None else np.where(a >= old, caps, np.minimum(a, caps)))
        return np.column_stack(starts)

    def _make_matrix(self, X: np.ndarray) -> KernelMatrix:
        """The kernel of the samples, from the cache where there is one; its size is kept."""
        kernel, options = self._choose_kernel()
        folder = str(self.memory) if isinstance(self.memory, Path) else self.memory
        compute = check_memory(folder).cache(kernel)
        double, error = len(X) <= _DOUBLE_SAMPLES, bound_entry_errors(X.shape[1] + bool(self.bias))
        require_kernel_memory(
            len(X),
            8 if double else 4,
            "Fit fewer samples, or a linear classifier on netmargin.kernels.random_features, which"
            " need no kernel: see 'Random features' in docs/estimators.md.",
        )
        if double:
            matrix = KernelMatrix.of(compute(X, **options), entry_error=error)
        else:  # products in float64, by rows that are not kept
            matrix = KernelMatrix(
                compute(X, dtype=np.float32, **options),
                compute=lambda V: self._multiply(X, X, V),
                entry_error=error,
            )
        self._mean_size = float(matrix.diagonal.mean()) * matrix.scale
        return matrix

    def _compute_scores(self, X: Any) -> Any:
        return self._multiply(X, self.support_vectors_, self.dual_coef_)

    def _multiply(self, A: np.ndarray, B: np.ndarray, V: np.ndarray) -> np.ndarray:
        """The product of the kernel of A (N, d) and B (m, d) with V (m, k), in float64."""
        kernel, options = self._choose_kernel()
        product = np.zeros((len(A), V.shape[1]))
        for start in range(0, len(A), _ROWS_AT_ONCE) if len(B) else ():
            rows = slice(start, start + _ROWS_AT_ONCE)
            product[rows] = kernel(A[rows], B, **options) @ V
        return product

    def _recommend_cost(self, X: Any) -> Any:
        return recommended_cost(self._mean_size)

    def _choose_kernel(self) -> Any:
        """The kernel, as a function of `netmargin.kernels`, and its options."""
        return kernels.arc_cosine, {"bias": bool(self.bias)}


@dataclass(kw_only=True, eq=False, repr=False)
class NTKClassifier(ReLUKernelClassifier):
    """The max-margin classifier in the tangent kernel space of a two-layer ReLU net.

    Problems, attributes and all parameters but these two are those of `ReLUKernelClassifier`, such
    as C, with the kernel `kernels.ntk` instead.

    Parameters
    ----------
    r_w, r_u : float, default 1.0
        Initial scales of the second and first layer; r_w=0 leaves `ReLUKernelClassifier`.

    Examples
    --------
    >>> from netmargin.estimators import NTKClassifier
    >>> classifier = NTKClassifier(C=None).fit([[0.0], [1.0], [3.0]], [0, 1, 1])
    >>> classifier.predict([[0.1], [2.0]]).tolist()
    [0, 1]

    Source: Wei et al. 2019, Section 2.
    """

    r_w: Any = 1.0
    r_u: Any = 1.0

    def _choose_kernel(self) -> Any:
        r_w, r_u = check_number("r_w", self.r_w), check_number("r_u", self.r_u)
        return kernels.ntk, {"r_w": r_w, "r_u": r_u, "bias": bool(self.bias)}
