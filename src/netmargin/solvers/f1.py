"""The exact max margin of infinitely wide two-layer ReLU nets, hard and soft, by column
generation.
"""

import numpy as np

from ..core.arguments import (
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_seed,
    check_time_limit,
)
from ..core.matrices import SolverData, binary_data, warn_of_size
from ..errors import ArgumentError
from ..result import Status
from .columns.generation import ColumnGeneration, Options, generate_columns
from .columns.master import Rows
from .columns.restricted_problem import RestrictedProblem
from .contradictions import Contradictions, recommended_cost
from .solution import SoftVariationNormSolution, VariationNormSolution

_LEAST_COST = 1e-300
"""Of the hinge loss of the longest sample: reciprocals of smaller numbers overflow."""
_GUESSED = 500
"""Least squares over so many neurons take a fraction of a second for some thousand samples."""
_MULTIPLES = 64
"""Of a guess that are tried: enough to come within a few per cent of the best."""
_RIDGE = 1e-6
"""Of the sum of squares of all columns: nearly equal neurons then share their weight."""


def f1_max_margin(
    X,
    y,
    *,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    neurons=None,
    seed: int = 0,
    progress: bool = False,
    power: int = 1,
) -> VariationNormSolution:
    """The largest margin in the unit ball of the variation norm of two-layer ReLU nets.

    gamma_1 = max over probability measures nu on the unit sphere of (a, b) of min_n y_n int b
    relu(a . x~_n) d nu(a, b), where x~ is x, or (x, 1) with a bias. It equals the best q_min /
    ||theta||^2 of two-layer nets of width at least n.

    Parameters
    ----------
    X : (n, d), y : (n,) labels {-1, +1} or {0, 1}.
    bias : whether neurons have a bias.
    tol : relative gap between margin and upper bound at which to stop.
    time_limit : seconds, after which the best bracket so far is returned, by Ctrl-C too. Where no
        net found until then separates the samples, it is the one of least squares over the neurons
        found, with a negative margin.
    pricing : how it is proved that no neuron is missing. Neurons are found by local search in any
        case. Points of rank at most 4: "complete" visits the whole arrangement. Above, branch and
        bound over activation patterns, whose cost grows with the number of samples with dual
        weight: "complete" goes on until the proof is done or the time is up, "auto" for some
        seconds (until the time is up, if there is a limit). "local" does not try, and bounds the
        margin by a relaxation, valid but loose. "auto" takes the arrangement where it is
        affordable: rank 4 up to 125 samples (half a minute), rank 3 up to 1,400, rank 2 always.
    neurons : (k, D) directions to begin with, for instance `other_solution.atoms[:, :-1]` or the
        first layer of a net; D = d + 1 with a bias.
    seed : of the starts of local search.
    progress : show rounds, margin and the bound as they come.
    power : 2 for squared ReLU: measures on unit a and signs eps, with feature eps relu(a . x~)^2
        (the S-ReLU of Chizat and Bach 2020, Section 2). There "complete" means the arrangement, and
        what lies above it has a relaxed bound only.

    Returns a `VariationNormSolution`. Data that no such net separates give margin 0, with dual
    weights on the samples that prove it and a `note` that names the samples which contradict each
    other, if there are any, and a soft margin to take instead. Raises DataError for data of a wrong
    shape or kind, ArgumentError for the other arguments. Warns where more than 5,000 samples will
    take long.

    Examples
    --------
    >>> from netmargin.solvers import f1_max_margin
    >>> xor = f1_max_margin([[1, 1], [-1, -1], [1, -1], [-1, 1]], [1, 1, -1, -1], bias=False)
    >>> abs(xor.margin - 2**0.5 / 8) < 1e-12, xor.certified               # Wei et al. 2018, Lemma D.1, halved
    (True, True)

    Source: Chizat and Bach 2020, (4); Wei et al. 2018, (3.6) and Claim B.3. Margins are judged in
    float64; `certified` means that the gap to the proved upper bound is within `tol`.
    """
    power, options = check_power(power), read_options(tol, time_limit, pricing, seed)
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The variation norm problem")
    if power == 2:
        data.require_squares()
    contradictions = Contradictions.among(data, bias=bias)
    if (
        contradictions.exact and contradictions.weights is not None
    ):  # a proof at once, where a search can take for ever
        return _not_separable(data, contradictions, contradictions.weights, bias, power)
    rows = Rows(data.y, np.ones(len(data)))
    # Unit-norm features (l1 units) -> the unit sphere of (a, b): Proposition 9. Squared ReLU has
    # its own sphere.
    unit, sphere = (0.5 * data.longest, np.sqrt(2)) if power == 1 else (data.longest**2, 1.0)
    run = generate_columns(
        data, rows, options, neurons, progress, "max margin", unit=unit, power=power
    )
    best = run.problem
    U, s, weights, t = _best_net(run)
    # A bound that is 0 to the precision of the largest samples says nothing if only much smaller
    # ones have dual weight.
    shortest = float(np.linalg.norm(best.Z, axis=1)[run.dual > 0].min(initial=1.0))
    unproved = run.status is Status.NOT_SEPARABLE and run.upper > max(1e-13, 1e-6 * shortest)
    status = Status.STALLED if unproved else run.status
    columns = _columns(best, U, s)
    slack = float((run.dual * (columns @ weights - t)).max())
    unused = float((weights * (run.upper - columns.T @ run.dual)).max(initial=0.0))
    proof = run.dual * (status is Status.NOT_SEPARABLE)
    return VariationNormSolution(
        margin=unit * t,
        upper_bound=unit * run.upper,
        certified=status in (Status.OPTIMAL, Status.NOT_SEPARABLE),
        status=status,
        dual=run.dual,
        seconds=run.seconds,
        note=contradictions.note(proof, _remedy(data, bias, power)) if t <= 0 else "",
        atoms=np.column_stack([U, s]) / sphere,
        weights=weights,
        bias=bias,
        power=power,
        slackness=max(slack, unused),
        rounds=run.rounds,
        local_gap=run.local_gap(),
    )


def _best_net(run: ColumnGeneration) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Directions, output signs, weights with sum 1 and the least y f of the net found; no neurons
    and 0 where nothing separates the samples.

    A search that is stopped before any net separates has nothing but f = 0 to show. Least squares
    over its neurons make few errors.
    """
    best = run.problem
    if best.t > 0:
        used = np.flatnonzero(best.weights)
        return best.U[used], best.s[used], best.weights[used], best.t
    if run.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
        return _guess(best)
    return best.U[:0], best.s[:0], best.weights[:0], 0.0


def _best_soft_net(
    run: ColumnGeneration, C: float, scale: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions, output signs and weights alpha of the net found; of a search that was stopped at
    f = 0, the best multiple of the guess.
    """
    best, used = run.problem, np.flatnonzero(run.problem.weights)
    if len(used) or run.status not in (Status.TIME_LIMIT, Status.INTERRUPTED):
        return best.U[used], best.s[used], best.weights[used] / (best.t * scale)
    U, s, weights, _ = _guess(best)
    outputs = _columns(best, U, s) @ weights
    bends = 1 / outputs[outputs > 0]  # of the sum of hinge losses, convex in the multiple
    multiples = (
        np.append(0.0, np.quantile(bends, np.linspace(0, 1, _MULTIPLES)))
        if len(bends)
        else np.zeros(1)
    )
    objectives = [m / scale + C * np.maximum(1 - m * outputs, 0.0).sum() for m in multiples]
    return U, s, weights * multiples[int(np.argmin(objectives))] / scale


def _columns(problem: RestrictedProblem, U: np.ndarray, s: np.ndarray) -> np.ndarray:
    """y_n s_j relu(u_j . z_n)^power, shape (n, k)."""
    return s * problem.rows.signs[:, None] * np.maximum(problem.Z @ U.T, 0.0) ** problem.power


def _guess(problem: RestrictedProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Least squares over the neurons of a problem, the last ones found, which were missing most,
    and the two of a linear function.
    """
    w = np.linalg.lstsq(problem.Z, problem.rows.signs, rcond=None)[0]
    U = np.concatenate([problem.U[-_GUESSED:], np.array([w, -w]) / (np.linalg.norm(w) or 1.0)])
    A = _columns(problem, U, np.ones(len(U)))
    gram = A.T @ A
    alphas = np.linalg.lstsq(gram + _RIDGE * np.trace(gram) * np.eye(len(U)), A.sum(0), rcond=None)[
        0
    ]
    used = alphas != 0
    weights = np.abs(alphas[used]) / (np.abs(alphas).sum() or 1.0)
    s = np.sign(alphas[used])
    return U[used], s, weights, float((A[:, used] @ (s * weights)).min())


def _not_separable(
    data: SolverData, contradictions: Contradictions, weights: np.ndarray, bias: bool, power: int
) -> VariationNormSolution:
    """Of samples with equal inputs and different labels: no neuron has a response to these weights
    on them.
    """
    return VariationNormSolution(
        margin=0.0,
        upper_bound=0.0,
        certified=True,
        status=Status.NOT_SEPARABLE,
        dual=weights,
        seconds=0.0,
        note=contradictions.note(weights, _remedy(data, bias, power)),
        atoms=np.zeros((0, data.Z.shape[1] + 1)),
        weights=np.zeros(0),
        bias=bias,
        power=power,
        slackness=0.0,
        rounds=0,
        local_gap=0.0,
    )


def _remedy(data: SolverData, bias: bool, power: int) -> str:
    if power == 2:
        return "For a soft margin: f1_logistic(X, y, regularization=1e-3, power=2)."
    mean = data.size * float(np.linalg.norm(data.Z / data.size, axis=1).mean())
    return f"For a soft margin: f1_soft_margin(X, y, C={recommended_cost(mean):g}, bias={bias})."


def f1_soft_margin(
    X,
    y,
    *,
    C: float = 1.0,
    bias: bool = True,
    tol: float = 1e-6,
    time_limit: float | None = None,
    pricing: str = "auto",
    neurons=None,
    seed: int = 0,
    progress: bool = False,
) -> SoftVariationNormSolution:
    """The two-layer ReLU net of any width that minimizes ||theta||^2 / 2 + C sum_n max(0, 1 - y_n
    f(x_n)).

    By balancing layers this is sum_j |alpha_j| + C (sum of hinge losses) over f = sum_j alpha_j
    relu(u_j . x~), |u_j| = 1: the variation norm instead of the squared norm of a support vector
    machine. As C grows, f / ||theta||^2 tends to the solution of `f1_max_margin`, where the data
    separate.

    C : cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC`; at 1 / mean |x~| a sample alone
        is just worth a neuron. Other parameters as for `f1_max_margin`; tol bounds the relative gap
        between the objective and its proved lower bound. Contradictory labels with C |x| above 1e5
        are beyond the precision of the linear program (status STALLED; the bracket is valid).
        Raises DataError for data of a wrong shape or kind, ArgumentError for C <= 0 and the other
        arguments.

    Examples
    --------
    >>> from netmargin.solvers import f1_soft_margin
    >>> contradiction = f1_soft_margin([[1.0], [1.0]], [1, -1], C=3.0, bias=False)
    >>> round(contradiction.objective, 9), contradiction.certified           # f = 0: both losses are 1
    (6.0, True)

    Source: the l1 support vector machine of Wei et al. 2018, (3.6), with slacks; its dual caps the
    weights of Claim B.3 at C.
    """
    C, options = check_number("C", C, above=0), read_options(tol, time_limit, pricing, seed)
    bias, progress = check_flag("bias", bias), check_flag("progress", progress)
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The variation norm problem")
    if C * data.longest < _LEAST_COST:
        raise ArgumentError(
            f"C must be at least {_LEAST_COST / data.longest:.0e} for inputs of this size; got {C}"
        )
    scale, rows = data.longest, Rows(data.y, np.ones(len(data)), slack_cost=C * data.longest)
    run = generate_columns(data, rows, options, neurons, progress, "soft margin", unit=scale)
    best = run.problem
    U, s, alphas = _best_soft_net(run, C, scale)
    outputs = _columns(best, U, s) @ (alphas * scale)
    hinge = float(np.maximum(1 - outputs, 0.0).sum())
    norm = float(alphas.sum())
    objective = norm + C * hinge
    lower = min(1 / (run.upper * scale), objective)  # above by rounding only
    certified = run.status is Status.OPTIMAL and objective - lower <= tol * objective
    return SoftVariationNormSolution(
        objective=objective,
        lower_bound=lower,
        certified=certified,
        status=run.status if certified or run.status is not Status.OPTIMAL else Status.STALLED,
        dual=run.dual / (run.upper * scale),
        seconds=run.seconds,
        atoms=np.column_stack([U, s]) / np.sqrt(2),
        weights=2 * alphas,
        bias=bias,
        hinge=hinge,
        margin=float(outputs.min()) / (2 * norm) if norm > 0 else 0.0,
    )


def read_options(tol, time_limit, pricing, seed) -> Options:
    """What all searches over neurons share, as plain numbers. Raises ArgumentError."""
    tol, pricing = (
        check_number("tol", tol, above=0, below=1),
        check_choice("pricing", pricing, ("auto", "complete", "local")),
    )
    return Options(tol, check_time_limit(time_limit), pricing, check_seed(seed))


def check_power(power) -> int:
    """1 (ReLU) or 2 (squared ReLU). Raises ArgumentError."""
    return check_count("power", power, at_most=2)
