"""Functions of least norm that take given values: the limit of weakly regularized regression."""

import time
from dataclasses import dataclass

import numpy as np

from ..core.arguments import check_choice, check_flag
from ..core.matrices import SolverData, evaluation_inputs, regression_data, warn_of_size
from ..core.records import short_repr
from ..errors import DataError
from ..kernels import arc_cosine
from ..result import Status
from .columns.attainability import Targets, find_targets
from .columns.least_norm import LeastNorm
from .columns.options import Options
from .progress import Progress
from .solution import ReLUMeasure

_INCONSISTENT = 1e-9
_REACHED = 1e-7
"""Residuals relative to the largest |y| that count as passing through the points: in float64 nearly
equal points leave no less. What a residual hides is seen where the norm falls below its proved
bound.
"""


@dataclass(frozen=True, kw_only=True)
class Interpolation:
    """f with f(x_n) = y_n and a small norm.

    norm : attained; inf where no such f exists (status NOT_ATTAINABLE), or where none was found to
        1e-7 of the largest |y| (the status says why).
    residual : max |f(x_n) - y_n|.
    lower_bound : proved by `dual`, which has dual . y = lower_bound and response at most 1 to every
        unit neuron (l1), or unit norm in the kernel (l2); where no f exists inf, and `dual` has
        responses of 0 but dual . y > 0.
    certified : norm and lower_bound agree within the tolerance, or no such f exists.
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
        """(norm - lower_bound) / norm; inf where no function was found though there may be one."""
        if not np.isfinite(self.norm):
            return 0.0 if self.lower_bound == np.inf else np.inf
        return (self.norm - self.lower_bound) / self.norm if self.norm > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class MeasureInterpolation(ReLUMeasure, Interpolation):
    """Of least variation norm.

    norm = sum_j |alpha_j| over f = sum_j alpha_j relu(u_j . x~), |u_j| = 1; the weights sum to
    twice that.
    """

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
        return (
            arc_cosine(
                evaluation_inputs(X, self.inputs.shape[1], bias=self.bias), self.inputs, bias=False
            )
            @ self.coefficients
        )


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

    norm="l1" : min sum_j |alpha_j| subject to sum_j alpha_j relu(u_j . x~_n) = y_n over any number
    of unit directions u_j, by column generation. Half the squared parameter norm of the two-layer
    net of any width that interpolates with the least norm. norm="l2" : the least norm in F_2, nets
    with fixed uniform directions, sqrt(y' K^{-1} y) with the arc-cosine kernel K.

    Parameters
    ----------
    X : (n, d) inputs.
    y : (n,) real values.
    norm : "l1" or "l2".
    bias : whether neurons have a bias, which makes x~ = (x, 1).
    tol : bounds the relative gap to the proved lower bound. For l1, the rounding of float64 sets
        the limit: about 1e-9, and more where points nearly coincide.
    time_limit, pricing, seed, progress : those of `f1_max_margin`; they concern l1.

    Returns
    -------
    A `MeasureInterpolation` or a `KernelInterpolation`. Where no function passes through the points
    (equal inputs with different values) its norm is inf, its status NOT_ATTAINABLE, and `dual`
    proves it. Where the bracket stays open, `certified` is False and `gap` says how far.

    Raises
    ------
    DataError : NaN, wrong shapes, or values beyond float64.
    ArgumentError : norm, tol, time_limit, pricing or a flag out of range.

    Examples
    --------
    >>> from netmargin.solvers import min_norm_interpolation
    >>> absolute = min_norm_interpolation([[-1.0], [2.0]], [1.0, 2.0], bias=False)      # relu(x) + relu(-x)
    >>> round(absolute.norm, 9), absolute.certified
    (2.0, True)

    Source: Wei et al. 2018, D.3 and D.4.
    """
    started = time.monotonic()
    check_choice("norm", norm, ("l1", "l2"))
    options = Options(tol, time_limit, pricing, seed)
    data = regression_data(X, y, bias=check_flag("bias", bias))
    check_flag("progress", progress)
    warn_of_size(len(data), "Interpolation")
    scaled, height = (
        data.Z / data.size / (data.longest / data.size),
        float(np.abs(data.y).max()) or 1.0,
    )
    targets = find_targets(scaled, data.y / height)
    if norm == "l2":
        return _least_kernel_norm(data, tol, bias, targets.contradiction, started)
    return _least_variation_norm(data, targets, options, bias, progress, started)


def _least_variation_norm(
    data: SolverData, targets: Targets, options: Options, bias: bool, progress: bool, started: float
) -> MeasureInterpolation:
    y, height = data.y, float(np.abs(data.y).max())
    dual, atoms, alphas = np.zeros(len(y)), np.zeros((0, data.Z.shape[1])), np.zeros(0)
    norm, lower, status = 0.0, 0.0, Status.OPTIMAL
    if height > 0:
        scale = float(np.abs(targets.values).max(initial=0.0))
        unit = height / data.longest * scale  # norms are found in units of this
        if targets.contradiction is not None:
            dual, norm, lower, status = targets.contradiction, np.inf, np.inf, Status.NOT_ATTAINABLE
        elif not 0 < unit < np.inf:
            raise DataError(
                "The least norm is beyond float64. Divide y, or multiply X, by a power of 10."
            )
        else:
            with Progress(progress, "interpolation", "norm at least") as shown:
                run = LeastNorm(
                    targets.directions,
                    targets.values / scale,
                    options,
                    started + (np.inf if options.time_limit is None else options.time_limit),
                    lambda rounds, lower, norm: shown.show(rounds, unit * lower, unit * norm),
                )
                run.run()
            atoms, alphas, status = run.U, unit * run.alphas, run.status
            norm, lower = unit * run.norm, unit * run.lower
            lengths = np.linalg.norm(data.Z[targets.kept] / data.size, axis=1) * data.size
            dual[targets.kept] = run.dual / lengths
    measure = ReLUMeasure(
        atoms=np.column_stack([atoms, np.sign(alphas)]) / np.sqrt(2),
        weights=2 * np.abs(alphas),
        bias=False,
    )
    residual = float(np.abs(measure.decision_function(data.Z) - y).max())
    certified = status is Status.NOT_ATTAINABLE
    if not certified:
        # Below the proved bound only a function can be that does not quite pass through the points.
        reached = residual <= _REACHED * height and norm >= lower * (1 - options.tol)
        norm = norm if reached else np.inf
        lower = min(lower, norm)
        certified = bool(norm - lower <= options.tol * norm) if reached else False
        if status in (Status.OPTIMAL, Status.STALLED, Status.LOCALLY_OPTIMAL) and not certified:
            status = (
                Status.NOT_REACHED
                if not reached
                else status
                if status is not Status.OPTIMAL
                else Status.STALLED
            )
    return MeasureInterpolation(
        norm=norm,
        lower_bound=lower,
        residual=residual,
        certified=certified,
        status=Status.OPTIMAL if certified and status is not Status.NOT_ATTAINABLE else status,
        dual=dual,
        seconds=time.monotonic() - started,
        atoms=measure.atoms,
        weights=measure.weights,
        bias=bias,
    )


def _least_kernel_norm(
    data: SolverData, tol: float, bias: bool, contradiction: np.ndarray | None, started: float
) -> KernelInterpolation:
    data.require_squares()
    size, y, height = data.size, data.y, float(np.abs(data.y).max())
    K = arc_cosine(data.Z / size, bias=False)
    eigenvalues, vectors = np.linalg.eigh(K)
    kept = eigenvalues > len(y) * np.finfo(float).eps * eigenvalues[-1]
    coefficients = vectors[:, kept] @ (vectors[:, kept].T @ y / eigenvalues[kept])
    residual = float(np.abs(y - K @ coefficients).max())
    norm = float(np.sqrt(max(coefficients @ K @ coefficients, 0.0)))
    dual = coefficients / norm if norm > 0 else coefficients
    # y . dual <= |f| for every f through the points, as dual has unit norm
    lower, status = max(float(y @ dual), 0.0), Status.NOT_REACHED
    if contradiction is not None:
        dual, norm, lower, status = size * contradiction, np.inf, np.inf, Status.NOT_ATTAINABLE
    elif residual <= _INCONSISTENT * height:
        lower = min(lower, norm)
        status = Status.OPTIMAL if norm - lower <= tol * norm else Status.STALLED
    else:
        norm = np.inf
    return KernelInterpolation(
        norm=norm / size,
        lower_bound=lower / size,
        residual=residual,
        certified=status in (Status.OPTIMAL, Status.NOT_ATTAINABLE),
        status=status,
        dual=dual / size,
        seconds=time.monotonic() - started,
        coefficients=coefficients / size**2,
        inputs=data.Z,
        bias=bias,
    )
