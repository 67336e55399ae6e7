"""All classes as one problem, in which equal samples of one class are one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..core.deadline import Deadline
from ..core.matrices import SolverData
from ..result import Solution, Status
from ..solvers.contradictions import Contradictions
from ..solvers.joint_hard import JointMarginSolution, find_proof, solve_joint_hard
from ..solvers.joint_kernel import JointKernelSolution, solve_joint
from ..solvers.kernel_matrix import KernelMatrix

JointSolution = JointKernelSolution | JointMarginSolution


def solve_classes(
    make_matrix: Callable[[np.ndarray], KernelMatrix],
    data: SolverData,
    X: np.ndarray,
    caps: np.ndarray | None,
    *,
    bias: bool,
    tol: float,
    deadline: Deadline,
    start: np.ndarray | None,
) -> JointSolution:
    """Solve it for samples X (n, d) whose class numbers are the labels of `data`, hard where `caps`
    (n,) is None.

    A weight of 2 and two copies are the same problem to the last digit, as equal samples are one
    with the sum of their costs. `start` (n, k) are weights to begin with.
    """
    index = data.y.astype(int)
    _, first, group = np.unique(
        np.column_stack([X, index]), axis=0, return_index=True, return_inverse=True
    )
    group = group.reshape(-1)
    costs = np.ones(len(X)) if caps is None else caps
    merged = np.bincount(group, costs)
    begun = None
    if start is not None:
        begun = np.zeros((len(first), start.shape[1]))
        np.add.at(begun, group, start)
    matrix = make_matrix(X[first])
    found: JointSolution
    if caps is None:
        found = _solve_hard(matrix, data, first, group, bias, tol, deadline, begun)
    else:
        found = solve_joint(matrix, index[first], merged, tol=tol, deadline=deadline, start=begun)
    shares = costs / merged[group]
    return replace(
        found,
        dual=found.dual[group] * shares,
        coefficients=found.coefficients[group] * shares[:, None],
        weights=found.weights[group] * shares[:, None],
    )


def _solve_hard(
    matrix: KernelMatrix,
    data: SolverData,
    first: np.ndarray,
    group: np.ndarray,
    bias: bool,
    tol: float,
    deadline: Deadline,
    start: np.ndarray | None,
) -> JointMarginSolution:
    """The hard margin, with a note on samples that contradict each other; `first` (m,) are those
    that stand for all, and `group` (n,) who stands for each.
    """
    reason, proof = Contradictions.among(data, bias=bias), None
    labels = data.y.astype(int)[first]
    if reason.weights is not None:
        weights = np.bincount(group, reason.weights)
        proof = find_proof(weights, labels, group[reason.pairs])
    found = solve_joint_hard(
        matrix, labels, tol=tol, deadline=deadline, contradiction=proof, start=start
    )
    if found.margin > 0:
        return found
    named = np.zeros(len(group))
    named[first] = found.dual * (found.status is Status.NOT_SEPARABLE)
    return replace(found, note=reason.note(named, ""))


def find_joint_start(
    last: Solution,
    caps: np.ndarray | None,
    before: np.ndarray | None,
    shape: tuple[int, int],
) -> np.ndarray | None:
    """Weights (n, k) of the last fit, whose caps were `before`, those at its C moved to the new one
    `caps`; None where it was none of these problems, or one of another shape.
    """
    if not isinstance(last, JointSolution) or last.weights.shape != shape:
        return None
    if isinstance(last, JointMarginSolution):  # whose multipliers sum to 1 / margin^2
        return last.weights / last.upper_bound**2 if last.margin > 0 else 0 * last.weights
    if caps is None or before is None:
        return last.weights
    return last.weights * (caps / before)[:, None]
