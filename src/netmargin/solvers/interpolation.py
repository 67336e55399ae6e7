"""Functions of least norm that take given values: the limit of weakly regularized regression."""

import time
from dataclasses import dataclass

import numpy as np

from ..kernels import arc_cosine
from ..records import short_repr
from ..result import Bracket, Status
from .column_generation import Options, generate_columns
from .data import SolverData, evaluation_inputs, regression_data, warn_of_size
from .master import Rows
from .solution import ReLUMeasure

_INCONSISTENT = 1e-9
_EXACT = 1e-7
_NOTHING = 1e-12
_LARGE = 1e-3


@dataclass(frozen=True, kw_only=True)
class Interpolation:
    """f with f(x_n) = y_n and a small norm.

    norm : attained; inf where no such f exists, or none was found to 1e-7 of the largest |y| (status STALLED). residual : max |f(x_n) - y_n|.
    lower_bound : proved by `dual`, which has dual . y = lower_bound and response at most 1 to every unit neuron (l1), or unit norm in
    the kernel (l2); where norm is inf because no f exists, responses of 0 but dual . y > 0.
    """

    norm: float
    lower_bound: float
    residual: float
    certified: bool
    status: Status
    dual: np.ndarray
    seconds: float

    __repr__ = short_repr

    @property
    def gap(self) -> float:
        """(norm - lower_bound) / norm."""
        return Bracket(self.lower_bound, self.norm).gap if np.isfinite(self.norm) else 0.0


@dataclass(frozen=True, kw_only=True)
class MeasureInterpolation(ReLUMeasure, Interpolation):
    """Of least variation norm: norm = sum_j |alpha_j| over f = sum_j alpha_j relu(u_j . x~), |u_j| = 1; the weights sum to twice that."""

    __repr__ = short_repr


@dataclass(frozen=True, kw_only=True)
class KernelInterpolation(Interpolation):
    """Of least norm in F_2: f = sum_n coefficients_n k(x_n, .), k = `kernels.arc_cosine`."""

    coefficients: np.ndarray
    inputs: np.ndarray
    bias: bool

    __repr__ = short_repr

    def decision_function(self, X) -> np.ndarray:
        """f(x) for inputs of shape (N, d)."""
        return arc_cosine(evaluation_inputs(X, self.inputs.shape[1], bias=self.bias), self.inputs, bias=False) @ self.coefficients


def min_norm_interpolation(
    X,
    y,
    *,
    norm: str = "l1",
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    seed: int = 0,
    progress: bool = False,
) -> MeasureInterpolation | KernelInterpolation:
    """The ReLU function of least norm through the points (x_n, y_n), y real.

    norm="l1" : min sum_j |alpha_j| subject to sum_j alpha_j relu(u_j . x~_n) = y_n over any number of unit directions u_j, by column generation. Half
    the squared parameter norm of the two-layer net of any width that interpolates with the least norm. norm="l2" : the least norm in F_2,
    nets with fixed uniform directions, sqrt(y' K^{-1} y) with the arc-cosine kernel K.

    X : (n, d); y : (n,) real. tol bounds the relative gap to the proved lower bound (for l1, 1e-8 and less is
    beyond the tolerances of the linear program); time_limit, pricing, seed and progress are those of
    `f1_max_margin` and concern l1. Where no function passes through the points (equal inputs with different values) norm is inf, and
    `dual` proves it. Raises DataError for NaN or wrong shapes.

    >>> from netmargin.solvers import min_norm_interpolation
    >>> absolute = min_norm_interpolation([[-1.0], [2.0]], [1.0, 2.0], bias=False)      # relu(x) + relu(-x)
    >>> round(absolute.norm, 9), absolute.certified
    (2.0, True)

    Source: Wei et al. 2018, D.3 and D.4.
    """
    if norm not in ("l1", "l2"):
        raise ValueError(f'norm must be "l1" or "l2"; got {norm!r}')
    data = regression_data(X, y, bias=bias)
    warn_of_size(len(data), "Interpolation")
    if norm == "l2":
        return _least_kernel_norm(data, tol, bias)
    height = float(np.abs(data.y).max())
    if height == 0:
        zero = np.zeros(len(data))
        atoms = np.zeros((0, data.Z.shape[1] + 1))
        return MeasureInterpolation(
            norm=0.0, lower_bound=0.0, residual=0.0, certified=True, status=Status.OPTIMAL, dual=zero, seconds=0.0,
            atoms=atoms, weights=np.zeros(0), bias=bias,
        )  # fmt: skip
    rows = Rows(np.ones(len(data)), data.y / height, equality=True)
    unit = data.longest / height  # |u . z| is at most `longest`: norms are in units of height / longest
    options = Options(tol, time_limit, pricing, seed)
    run = generate_columns(data, rows, options, None, progress, "interpolation: 1 / norm", unit=unit)
    best = run.problem
    used = np.flatnonzero(best.weights) if best.t > 0 else np.array([], dtype=int)
    # Rows that hold to the tolerance of the linear program are made to hold to rounding.
    alphas = best.weights[used] / best.t if best.t > 0 else best.weights[used]
    missing = rows.target - best.A[:, used] @ alphas
    correction = np.linalg.lstsq(best.A[:, used], missing, rcond=None)[0]
    if np.abs(missing - best.A[:, used] @ correction).max() < np.abs(missing).max():
        alphas = alphas + correction
    signs, alphas = best.s[used] * np.where(alphas >= 0, 1.0, -1.0), np.abs(alphas) / unit
    measure = ReLUMeasure(atoms=np.column_stack([best.U[used], signs]) / np.sqrt(2), weights=2 * alphas, bias=False)
    residual = float(np.abs(measure.decision_function(data.Z) - data.y).max())
    attained = float(alphas.sum()) if best.t > 0 and residual <= _EXACT * height else np.inf
    impossible = run.status is Status.NOT_SEPARABLE and run.upper <= _NOTHING
    lower = np.inf if impossible else 1 / (run.upper * unit)
    certified = bool(impossible or (np.isfinite(attained) and abs(attained - lower) <= tol * attained))
    status = run.status if certified or run.status not in (Status.OPTIMAL, Status.NOT_SEPARABLE) else Status.STALLED
    return MeasureInterpolation(
        norm=attained,
        lower_bound=float(lower),
        residual=residual,
        certified=certified,
        status=Status.NOT_ATTAINABLE if impossible else status,
        dual=run.dual / np.abs(run.dual).sum() if impossible else run.dual * lower / height,
        seconds=run.seconds,
        atoms=measure.atoms,
        weights=measure.weights,
        bias=bias,
    )


def _least_kernel_norm(data: SolverData, tol: float, bias: bool) -> KernelInterpolation:
    started = time.monotonic()
    data.require_squares()
    size, y, height = data.size, data.y, float(np.abs(data.y).max())
    K = arc_cosine(data.Z / size, bias=False)
    eigenvalues, vectors = np.linalg.eigh(K)
    kept = eigenvalues > len(y) * np.finfo(float).eps * eigenvalues[-1]
    coefficients = vectors[:, kept] @ (vectors[:, kept].T @ y / eigenvalues[kept])
    missing = y - K @ coefficients
    residual = float(np.abs(missing).max())
    norm = float(np.sqrt(max(coefficients @ K @ coefficients, 0.0)))
    dual = coefficients / norm if norm > 0 else coefficients
    lower, status = (
        max(float(y @ dual), 0.0),
        Status.STALLED,
    )  # y . dual <= |f| for every f through the points, as dual has unit norm
    if residual <= _INCONSISTENT * height:
        lower = min(lower, norm)
        status = Status.OPTIMAL if norm - lower <= tol * norm else Status.STALLED
    else:
        norm = np.inf
        # A large residual, orthogonal to every function of the space up to rounding, proves that no function takes these values.
        if residual > _LARGE * height and np.abs(K @ missing).max() <= _NOTHING * np.abs(K).max() * np.abs(missing).sum():
            dual, lower, status = size * missing / np.abs(missing).sum(), np.inf, Status.NOT_ATTAINABLE
    return KernelInterpolation(
        norm=norm / size,
        lower_bound=lower / size,
        residual=residual,
        certified=status is not Status.STALLED,
        status=status,
        dual=dual / size,
        seconds=time.monotonic() - started,
        coefficients=coefficients / size**2,
        inputs=data.Z,
        bias=bias,
    )
