"""Functions of least norm that take given values: the limit of weakly regularized regression."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arguments import check_choice, check_flag
from ..core.matrices import (
    LEAST,
    SolverData,
    evaluation_inputs,
    floor_to_powers,
    kernel_values,
    regression_data,
    split_lengths,
    warn_of_size,
)
from ..errors import ArgumentError, DataError
from ..kernels import arc_cosine
from ..result import Bracket, Solution, Status, judge_bracket
from .attained import attained_residual
from .columns.attainability import Targets, find_targets
from .columns.engine import generate_columns
from .columns.least_norm import LeastNormProblem
from .columns.margin_problem import invert
from .columns.options import Options, read_options
from .contradictions import fold
from .hull import normalize_rows
from .kernel_interpolation import GOOD, fit_in_kernel, judge_in_kernel
from .neurons.activations import LINEAR, RELU
from .solution import ReLUMeasure, build_measure, describe_proof

_REACHED = 1e-7
"""Residuals up to which a function passes through the points, relative to the largest |y|: nearly
equal points leave no less. What that hides is seen where the norm falls below its proved bound.
"""
_BEYOND = "The least norm is beyond float64. Multiply y or X by a power of 10."
_LEAST_SCALE = 1e-290
"""The least size of values in units of lengths: below it products with it lose digits."""


@dataclass(frozen=True, kw_only=True)
class Interpolation(Solution):
    """A function f with f(x_n) = y_n and a small norm."""

    #: Of the function that is returned, which misses the values by `residual`; inf where no such f
    #: exists (status NOT_ATTAINABLE), or where none was found to 1e-7 of the largest |y|. That some
    #: f takes the very values with this norm is proved where `certified`.
    norm: float
    lower_bound: float  #: Of the least norm, proved by `dual`; inf where no such f exists
    residual: float  #: At least the largest |f(x_n) - y_n|, in units of y: rounding counts
    #: Whether norm and lower_bound agree within the tolerance, and it is proved that some f of a
    #: norm that agrees too takes the very values, or that no such f exists; False for a search that
    #: was interrupted
    certified: bool
    status: Status  #: As in `MarginSolution`, like `seconds`
    #: (n,): Weights with dual . y = lower_bound and response at most 1 to every unit neuron (l1),
    #: or norm 1 in the kernel (l2), to rounding; where no f exists, responses 0 but dual . y > 0.
    dual: np.ndarray
    seconds: float

    @property
    def bracket(self) -> Bracket:
        """[lower_bound, norm]: of the least norm where it is certified; else of functions which
        take the values to `residual`, open where none was found.
        """
        return Bracket(self.lower_bound, self.norm)


@dataclass(frozen=True, kw_only=True)
class MeasureInterpolation(ReLUMeasure, Interpolation):
    """A function of least variation norm through given points, as a measure of neurons.

    Its norm is sum_j |alpha_j| over f = sum_j alpha_j relu(u_j . x~), |u_j| = 1; the weights sum to
    twice that.
    """

    local_gap: float  #: As in `VariationNormSolution`
    lower_bound_from: str  #: How the lower bound was proved


@dataclass(frozen=True, kw_only=True)
class KernelInterpolation(Interpolation):
    """The function f = sum_n coefficients_n k(x_n, .) of least norm in F_2 through given points."""

    coefficients: np.ndarray  #: (n,): Those of the kernel k = `kernels.arc_cosine`
    inputs: np.ndarray  #: (n, D): The points x~_n, D = d + 1 with a bias
    bias: bool  #: Whether there is one

    def decision_function(self, X: Any) -> np.ndarray:
        """Values f(x), shape (N,), at inputs X of shape (N, d)."""
        Z = evaluation_inputs(X, self.inputs.shape[1], bias=self.bias)
        return kernel_values(arc_cosine(Z, self.inputs, bias=False), self.coefficients)


def min_norm_interpolation(
    X: Any,
    y: Any,
    *,
    norm: str = "l1",
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    seed: int = 0,
    progress: bool = False,
    n_jobs: int | None = None,
    activation: Any = "relu",
) -> MeasureInterpolation | KernelInterpolation:
    """The ReLU function of least norm through the points (x_n, y_n), y real.

    norm="l1" is min sum_j |alpha_j| subject to sum_j alpha_j relu(u_j . x~_n) = y_n over any number
    of unit directions u_j: half the squared parameter norm of the two-layer net of any width that
    interpolates with the least norm. norm="l2" is the least norm in F_2, of nets with fixed uniform
    directions, sqrt(y' K^{-1} y) with the arc-cosine kernel K.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs; computations are in float64.
    y : array_like of shape (n,)
        Real values.
    norm : {"l1", "l2"}
        The norm that is minimized.
    bias, tol, time_limit, pricing, seed, progress, n_jobs, activation
        As in `f1_max_margin`, but for "linear"; those from `time_limit` on are for l1. Rounding
        limits the gap of l1 to about 1e-9, and more where points nearly coincide.

    Returns
    -------
    MeasureInterpolation or KernelInterpolation
        The first for l1, the second for l2. Where no function passes through the points (equal
        inputs with different values) its norm is inf, its status NOT_ATTAINABLE, and `dual` (n,)
        proves it. Where the bracket stays open, `certified` is False and `gap` says how far.

    Raises
    ------
    DataError
        For NaN, wrong shapes, or values beyond float64.
    ArgumentError
        For norm, tol, time_limit, pricing, a flag or an activation out of range.

    Examples
    --------
    >>> from netmargin.solvers import min_norm_interpolation
    >>> absolute = min_norm_interpolation([[-1.0], [2.0]], [1.0, 2.0], bias=False)
    >>> round(absolute.norm, 9), absolute.certified  # relu(x) + relu(-x)
    (2.0, True)

    Source: Wei et al. 2018, D.3 and D.4.
    """
    started = time.monotonic()
    check_choice("norm", norm, ("l1", "l2"))
    options = read_options(tol, time_limit, pricing, seed, n_jobs, activation)
    phi = options.activation
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    if phi == LINEAR:
        raise ArgumentError("Linear functions of least norm are those of numpy.linalg.lstsq(X, y).")
    if phi != RELU and norm == "l2":
        raise ArgumentError('norm="l2" is for ReLU, whose kernel it is. Leave out activation.')
    data = fold(regression_data(X, y, bias=bias), phi.slope)
    warn_of_size(len(data), "Interpolation")
    targets = find_targets(data)
    if norm == "l2":
        return _least_kernel_norm(data, targets, options.tol, bias, started)
    return _least_variation_norm(data, targets, options, bias, progress, started)


def _least_variation_norm(
    data: SolverData, targets: Targets, options: Options, bias: bool, progress: bool, started: float
) -> MeasureInterpolation:
    """Solve for l1: rays by column generation, then a measure that is judged anew."""
    y, height = data.y, float(np.abs(data.y).max())
    dual, atoms, alphas = np.zeros(len(y)), np.zeros((0, data.Z.shape[1])), np.zeros(0)
    norm, lower, upper, ended, proof = 0.0, 0.0, 0.0, Status.OPTIMAL, "f = 0 takes the values"
    local_gap = 0.0
    if targets.contradiction is not None:
        dual, norm, lower, upper = targets.contradiction, np.inf, np.inf, np.inf
        proof = "a contradiction"
    elif height > 0:
        # Norms are found in units of this.
        scale = float(np.abs(targets.values).max(initial=0.0))
        if not _LEAST_SCALE < scale < np.inf:
            raise DataError(_BEYOND)
        problem = LeastNormProblem(targets.directions, targets.values / scale, options)
        ended = generate_columns(
            problem,
            progress=progress,
            title="interpolation",
            in_units=lambda bracket: invert(bracket, scale),
        ).status
        best = problem.restricted
        atoms, alphas = best.function
        norm, upper = scale * best.norm, np.inf
        lower = invert(problem.bracket, scale).lower
        if not lower < np.inf:
            raise DataError(_BEYOND)
        with np.errstate(over="ignore"):  # then the norm is inf, and the residual is none
            alphas = scale * alphas
        if Bracket(lower, norm).gap <= options.tol:
            rows, exponents = normalize_rows(data.Z[targets.kept])
            values = np.ldexp(y[targets.kept], -exponents).astype(np.longdouble) / scale
            try:
                # The division by a power of 2 rounds off at most the least float.
                upper = scale * best.bound_exactly(rows, values, LEAST / scale)
            except KeyboardInterrupt:
                ended = Status.INTERRUPTED
        dual[targets.kept] = problem.dual / problem.upper / split_lengths(data.Z[targets.kept])[0]
        local_gap, proof = problem.local_gap(), problem.proof
    measure = build_measure(atoms, np.sign(alphas), np.abs(alphas), options.activation, bias)
    residual = attained_residual(measure, data.Z, y)
    reached = residual <= _REACHED * height
    upper = upper if targets.exact else np.inf
    return MeasureInterpolation(
        **_judge(norm if reached else np.inf, lower, upper, options.tol, ended),
        **vars(measure),
        residual=residual,
        dual=dual,
        seconds=time.monotonic() - started,
        local_gap=local_gap,
        lower_bound_from=describe_proof(dual, proof),
    )


def _least_kernel_norm(
    data: SolverData, targets: Targets, tol: float, bias: bool, started: float
) -> KernelInterpolation:
    """Solve for l2, over one sample of each ray; f = 0 and [0, inf] where interrupted."""
    data.require_squares()
    # A power of 2, which rounds nothing.
    size, kept, height = float(floor_to_powers(data.size)), targets.kept, np.abs(data.y).max()
    coefficients, dual, ended = np.zeros(len(data)), np.zeros(len(data)), Status.STALLED
    norm, lower, upper, residual = 0.0, 0.0, np.inf if height else 0.0, height
    Z, y = data.Z[kept] / size, data.y[kept]
    try:
        for tried, found, below, above, missed in fit_in_kernel(Z, y) if height else ():
            if missed <= residual:
                coefficients[kept], norm, residual = tried, found, missed
            if below > lower:
                lower, dual[kept] = below, tried * (below / float(y @ tried))
            upper = min(upper, above)
            if residual <= GOOD * height:
                break
        if lower > 0:  # of the weights as they are returned
            lower = judge_in_kernel(Z, y, dual[kept])[1]
        if len(kept) < len(data):  # others of the same rays may ask for other values
            short, hidden = judge_in_kernel(data.Z / size, data.y, coefficients)[2:]
            residual = float((np.abs(short) + hidden).max())
    except KeyboardInterrupt:
        ended, lower = Status.INTERRUPTED, 0.0
    if targets.contradiction is not None:
        dual, norm, lower, upper = size * targets.contradiction, np.inf, np.inf, np.inf
    elif residual > _REACHED * height:
        norm = np.inf
    upper = upper if targets.exact else np.inf
    if not np.isfinite(coefficients / size**2).all():
        raise DataError(_BEYOND)
    return KernelInterpolation(
        **_judge(norm / size, lower / size, upper / size, tol, ended),
        residual=residual,
        dual=dual / size,
        seconds=time.monotonic() - started,
        coefficients=coefficients / size**2,
        inputs=data.Z,
        bias=bias,
    )


def _judge(norm: float, lower: float, upper: float, tol: float, ended: Status) -> dict[str, Any]:
    """Both ends and the status, certified if `upper`, proved for the very values, agrees."""
    # Only a function that does not quite pass through the points has a norm below its proved bound.
    if norm < lower * (1 - tol):
        norm = np.inf
    lower = min(lower, norm)
    status, certified = judge_bracket(Bracket(lower, norm), tol, ended=ended)
    if certified and lower < np.inf and Bracket(lower, upper).gap > tol:
        status, certified = Status.STALLED, False
    return {"norm": norm, "lower_bound": lower, "status": status, "certified": certified}
