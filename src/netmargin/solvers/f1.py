"""The exact max margin of infinitely wide two-layer nets, hard and soft, by column generation."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..core.arguments import check_flag, check_number
from ..core.matrices import SolverData, binary_data, check_sample_weight, warn_of_size
from ..errors import ArgumentError, DataError
from ..result import Bracket, Status, judge_bracket
from .attained import attained_hinge_objective, attained_margin
from .columns.best_net import extract_net
from .columns.engine import generate_columns
from .columns.margin_problem import MarginProblem, invert
from .columns.master import Constraints
from .columns.options import read_options
from .columns.restricted_problem import RestrictedProblem
from .contradictions import Contradictions, recommended_cost
from .extended import round_up
from .neurons.activations import Activation
from .solution import (
    SoftVariationNormSolution,
    VariationNormSolution,
    build_measure,
    describe_proof,
)

_SMALLEST_COST = 1e-300
"""Smallest C times the length of the longest sample: reciprocals of smaller numbers overflow."""


def f1_max_margin(
    X: Any,
    y: Any,
    *,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    neurons: Any = None,
    seed: int = 0,
    progress: bool = False,
    power: int = 1,
    n_jobs: int | None = None,
    activation: Any = "relu",
) -> VariationNormSolution:
    """The best margin that two-layer ReLU nets of any width can have, with a proved upper bound.

    gamma_1 = max over probability measures nu on the unit sphere of (a, b) of min_n y_n int b
    relu(a . x~_n) d nu(a, b), where x~ is x, or (x, 1) with a bias: the best q_min / ||theta||^2 of
    nets of width at least n. Divide the normalized margin of your net by it.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs; computations are in float64.
    y : array_like of shape (n,)
        Labels {-1, +1} or {0, 1}.
    bias : bool, default True
        Whether neurons have a bias.
    tol : float, default 1e-6
        Relative gap between margin and upper bound up to which the status is OPTIMAL.
    time_limit : float, optional
        Seconds after which the best bracket so far is returned, as it is at Ctrl-C. Where no net
        found until then separates the samples, the margin is negative. No limit by default.
    pricing : {"auto", "complete", "local"}
        "auto" proves as much as some seconds allow, or `time_limit`; "complete" all, however long
        that takes; "local" a loose bound, if you need the net alone. "auto" closes the gap at any
        rank up to 2, at rank 3 up to 1,400 samples, at rank 4 up to 125; above that where the
        margin rests on few samples.
    neurons : array_like of shape (k, d), or (k, d + 1) with a bias, optional
        Directions to begin with, for instance the first layer of a net.
    seed : int, default 0
        Seed of the search for neurons.
    progress : bool, default False
        Whether to show rounds, margin and the bound as they come.
    power : {1, 2}
        2 for features eps relu(a . x~)^2 of unit a and signs eps (the S-ReLU of Chizat and Bach
        2020, Section 2), whose bound is loose above rank 4.
    n_jobs : int, optional
        Threads for proofs, one by default, -1 for all cores: only time depends on them.
    activation : str or callable, default "relu"
        In place of relu "abs", "linear", or a function of tensors that is positively homogeneous
        and 1 at 1, such as `torch.nn.LeakyReLU(0.1)`.

    Returns
    -------
    VariationNormSolution
        A probability measure of k neurons (`atoms`, float64 of shape (k, D)), its `margin`,
        recomputed from them, and the `upper_bound` with dual weights of shape (n,). Data that no
        such net separates give margin 0, weights that prove it, and a `note` that says why.

    Raises
    ------
    DataError
        For X or y of a wrong shape or kind, NaN, or one class only.
    ArgumentError
        For any other argument out of its range, and any other activation.

    Examples
    --------
    >>> from netmargin.solvers import f1_max_margin
    >>> xor = f1_max_margin([[1, 1], [-1, -1], [1, -1], [-1, 1]], [1, 1, -1, -1], bias=False)
    >>> abs(xor.margin - 2**0.5 / 8) < 1e-12, xor.certified  # Wei et al. 2018, Lemma D.1, halved
    (True, True)

    Source: Chizat and Bach 2020, (4); Wei et al. 2018, (3.6) and Claim B.3.
    """
    started = time.monotonic()
    options = read_options(tol, time_limit, pricing, seed, n_jobs, activation, power)
    phi = options.activation
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The variation norm problem")
    if phi.power == 2:
        data.require_squares()
        contradictions = Contradictions.among(data, bias=bias)
    else:
        contradictions = Contradictions.of_neurons(data, phi.slope, bias=bias)
    # Contradictions are a proof at once, where a search can take for ever.
    if contradictions.weights is not None:
        dual, proof, rounds = contradictions.weights, "which contradict each other", 0
        t = margin = bound = local_gap = 0.0
        status, certified = Status.NOT_SEPARABLE, True
        measure = build_measure(data.Z[:0], np.zeros(0), np.zeros(0), phi, bias)
    else:
        # Unit-norm features (l1 units) -> the unit sphere of (a, b): Proposition 9. Squared ReLU is
        # on the sphere of a. In longer floats, as products of the least float64 may round to 0.
        longest = np.longdouble(data.longest)
        unit = 0.5 * longest if phi.power == 1 else longest**2
        best = RestrictedProblem(data.scaled, Constraints(data.y, np.ones(len(data))), phi)
        problem = MarginProblem(best, options, data.directions(neurons))
        ending = generate_columns(
            problem,
            progress=progress,
            title="max margin",
            in_units=lambda found: Bracket(float(unit * found.lower), float(unit * found.upper)),
        )
        dual, proof, rounds = problem.dual, problem.proof, ending.rounds
        judge = partial(judge_bracket, tol=options.tol, ended=ending.status, zero=0.0)
        # Nothing contradicts: what is 0 to rounding is no proof.
        status, certified = judge(problem.bracket)
        U, s, weights = extract_net(best, early=ending.early and not certified)
        weights = weights / (weights.sum() or 1.0)
        t, local_gap = float((best.columns(U, s) @ weights).min()), problem.local_gap()
        margin, bound = 0.0, round_up(unit * problem.upper)
        measure = build_measure(U, s, weights, phi, bias)
        if len(weights):
            margin = attained_margin(measure, data)
            status, certified = judge(Bracket(margin, bound))
        # Balanced neurons have half the weights of the measure (`build_measure`).
        measure = replace(measure, weights=weights)
    remedy = _describe_remedy(data, bias, phi)
    return VariationNormSolution(
        **vars(measure),
        margin=margin,
        upper_bound=bound,
        certified=certified,
        status=status,
        dual=dual,
        seconds=time.monotonic() - started,
        note=contradictions.note(dual * certified, remedy) if t <= 0 else "",
        rounds=rounds,
        local_gap=local_gap,
        upper_bound_from=describe_proof(dual, proof),
    )


def _describe_remedy(data: SolverData, bias: bool, phi: Activation) -> str:
    """A sentence with the call that solves the soft problem, its cost chosen for these inputs."""
    if phi.power == 2:
        return "For a soft margin: f1_logistic(X, y, regularization=1e-3, power=2)."
    mean = data.size * float(np.linalg.norm(data.Z / data.size, axis=1).mean())
    more = f", activation=torch.nn.LeakyReLU({phi.slope:g})" if phi.slope else ""
    C = recommended_cost(mean)
    return f"For a soft margin: f1_soft_margin(X, y, C={C:g}, bias={bias}{more})."


def f1_soft_margin(
    X: Any,
    y: Any,
    *,
    C: float = 1.0,
    sample_weight: Any = None,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    neurons: Any = None,
    seed: int = 0,
    progress: bool = False,
    n_jobs: int | None = None,
    activation: Any = "relu",
) -> SoftVariationNormSolution:
    """The two-layer ReLU net of any width with the least squared norm plus hinge loss.

    It minimizes ||theta||^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)). By balancing layers this is
    sum_j |alpha_j| + C (sum of hinge losses) over f = sum_j alpha_j relu(u_j . x~), |u_j| = 1: the
    variation norm instead of the squared norm of a support vector machine. As C grows, f /
    ||theta||^2 tends to the solution of `f1_max_margin`, where the data separate.

    Parameters
    ----------
    X, y
        As in `f1_max_margin`.
    C : float, default 1.0
        Cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC`; at 1 / mean |x~| a single
        sample is just worth a neuron. Contradictory labels with C |x| above 1e5 are beyond the
        precision of the linear program (status STALLED; the bracket is valid).
    sample_weight : array_like of shape (n,), optional
        Factors > 0 of C, one per sample; 1 by default.
    bias, tol, time_limit, pricing, neurons, seed, progress, n_jobs, activation
        As in `f1_max_margin`; the tolerance is that of the objective and its lower bound.

    Returns
    -------
    SoftVariationNormSolution
        A measure of k neurons (`atoms`, float64 of shape (k, D)), its `objective`, the proved
        `lower_bound` with dual weights of shape (n,) in [0, C] (times `sample_weight`), its hinge
        loss and its margin.

    Raises
    ------
    DataError
        For X or y of a wrong shape or kind, NaN, or one class only.
    ArgumentError
        For C <= 0, a C too small for inputs of this size, and other arguments out of range.

    Examples
    --------
    >>> from netmargin.solvers import f1_soft_margin
    >>> contradiction = f1_soft_margin([[1.0], [1.0]], [1, -1], C=3.0, bias=False)
    >>> round(contradiction.objective, 9), contradiction.certified  # f = 0: both losses are 1
    (6.0, True)

    Source: the l1 support vector machine of Wei et al. 2018, (3.6), with slacks; its dual caps the
    weights of Claim B.3 at C.
    """
    started = time.monotonic()
    C = check_number("C", C, above=0)
    options = read_options(tol, time_limit, pricing, seed, n_jobs, activation)
    phi = options.activation
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The variation norm problem")
    weights = check_sample_weight(sample_weight, len(data))
    if not weights.all():
        raise DataError("sample_weight holds zeros. Leave these samples out.")
    # A weight is a part of the cost: the largest is 1, so that margins asked for are of size 1.
    given, costs = data, C * weights
    C, weights = C * float(weights.max()), weights / weights.max()
    # f(w z) = w f(z) for w > 0: a hinge loss of weight w is that of w z to the margin w.
    data = SolverData(weights[:, None] * data.Z, data.y)
    if C * data.longest < _SMALLEST_COST:
        raise ArgumentError(
            f"C must be at least {_SMALLEST_COST / data.longest:.0e} for inputs of this size;"
            f" got {C}"
        )
    scale = data.longest
    restricted = RestrictedProblem(data.scaled, Constraints(data.y, weights, C * scale), phi)
    problem = MarginProblem(restricted, options, data.directions(neurons))
    # 1 / t is the least objective in the units of the problem (`Constraints`).
    ending = generate_columns(
        problem,
        progress=progress,
        title="soft margin",
        in_units=lambda bracket: invert(bracket, 1 / scale),
    )
    U, s, alphas = extract_net(problem.restricted, early=ending.early)
    outputs = problem.restricted.columns(U, s) @ alphas / weights
    hinges = np.maximum(1 - outputs, 0.0)
    measure = build_measure(U, s, alphas / scale, phi, bias)
    objective = attained_hinge_objective(measure, given, costs)
    # The bound is above the objective by rounding only.
    lower = min(1 / (problem.upper * scale), objective)
    status, certified = judge_bracket(Bracket(lower, objective), options.tol, ended=ending.status)
    return SoftVariationNormSolution(
        **vars(measure),
        objective=objective,
        lower_bound=lower,
        certified=certified,
        status=status,
        dual=weights * problem.dual / (problem.upper * scale),
        seconds=time.monotonic() - started,
        local_gap=problem.local_gap(),
        hinge=float(hinges.sum()),
        margin=float(outputs.min()) / measure.mass if measure.mass > 0 else 0.0,
        lower_bound_from=describe_proof(problem.dual, problem.proof),
    )
