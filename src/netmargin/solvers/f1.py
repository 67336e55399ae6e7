"""The exact max margin of infinitely wide two-layer ReLU nets, hard and soft, by column generation."""

import numpy as np

from ..errors import DataError
from ..result import Status
from .column_generation import Options, generate_columns
from .data import binary_data, warn_of_size
from .master import Rows
from .solution import SoftVariationNormSolution, VariationNormSolution


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

    gamma_1 = max over probability measures nu on the unit sphere of (a, b) of min_n y_n int b relu(a . x~_n) d nu(a, b), where x~ is x,
    or (x, 1) with a bias. It equals the best q_min / ||theta||^2 of two-layer nets of width at least n.

    Parameters
    ----------
    X : (n, d), y : (n,) labels {-1, +1} or {0, 1}.
    bias : whether neurons have a bias.
    tol : relative gap between margin and upper bound at which to stop.
    time_limit : seconds, after which the best bracket so far is returned, by Ctrl-C too. A round that has begun is finished, which takes seconds
        for hundreds of samples and dimensions.
    pricing : how it is proved that no neuron is missing. Neurons are found by local search in any case. Points of rank at most 4: "complete"
        visits the whole arrangement. Above, branch and bound over activation patterns, whose cost grows with the number of samples with dual
        weight: "complete" goes on until the proof is done or the time is up, "auto" for some seconds (until the time is up, if there is a
        limit). "local" does not try, and bounds the margin by a relaxation, valid but loose. "auto" takes the arrangement where it is affordable: rank 4 up to 125 samples (half a minute), rank 3 up
        to 1,400, rank 2 always.
    neurons : (k, D) directions to begin with, for instance `other_solution.atoms[:, :-1]` or the first layer of a net; D = d + 1 with a bias.
    seed : of the starts of local search.
    progress : show rounds, margin and the bound as they come.
    power : 2 for squared ReLU: measures on unit a and signs eps, with feature eps relu(a . x~)^2 (the S-ReLU of Chizat and Bach 2020, Section 2).
        There "complete" means the arrangement, and what lies above it has a relaxed bound only.

    Returns a `VariationNormSolution`. Data that no such net separates give margin 0, with dual weights on the samples that prove it.
    Raises DataError for data of a wrong shape or kind. Warns where more than 5,000 samples will take long.

    >>> from netmargin.solvers import f1_max_margin
    >>> xor = f1_max_margin([[1, 1], [-1, -1], [1, -1], [-1, 1]], [1, 1, -1, -1], bias=False)
    >>> abs(xor.margin - 2**0.5 / 8) < 1e-12, xor.certified               # Wei et al. 2018, Lemma D.1, halved
    (True, True)

    Source: Chizat and Bach 2020, (4); Wei et al. 2018, (3.6) and Claim B.3. Margins are judged in float64; `certified` means that the
    gap to the proved upper bound is within `tol`.
    """
    if power not in (1, 2):
        raise ValueError(f"power must be 1 (ReLU) or 2 (squared ReLU); got {power!r}")
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The variation norm problem")
    rows = Rows(data.y, np.ones(len(data)))
    # Unit-norm features (l1 units) -> the unit sphere of (a, b): Proposition 9. Squared ReLU has its own sphere.
    if power == 2:
        data.require_squares()
    unit, sphere = (0.5 * data.longest, np.sqrt(2)) if power == 1 else (data.longest**2, 1.0)
    options = Options(tol, time_limit, pricing, seed)
    run = generate_columns(data, rows, options, neurons, progress, "max margin", unit=unit, power=power)
    best = run.problem
    used = np.flatnonzero(best.weights) if best.t > 0 else np.array([], dtype=int)
    # A bound that is 0 to the precision of the largest samples says nothing if only much smaller ones have dual weight.
    shortest = float(np.linalg.norm(best.Z, axis=1)[run.dual > 0].min(initial=1.0))
    unproved = run.status is Status.NOT_SEPARABLE and run.upper > max(1e-13, 1e-6 * shortest)
    status = Status.STALLED if unproved else run.status
    outputs, values = best.A @ best.weights, best.A[:, used].T @ run.dual
    slackness = max(
        float((run.dual * (outputs - best.t)).max()), float((best.weights[used] * (run.upper - values)).max(initial=0.0))
    )
    return VariationNormSolution(
        margin=unit * max(best.t, 0.0),
        upper_bound=unit * run.upper,
        certified=status in (Status.OPTIMAL, Status.NOT_SEPARABLE),
        status=status,
        dual=run.dual,
        seconds=run.seconds,
        atoms=np.column_stack([best.U[used], best.s[used]]) / sphere,
        weights=best.weights[used],
        bias=bias,
        power=power,
        slackness=slackness,
        rounds=run.rounds,
        local_gap=run.local_gap(),
    )


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
    """The two-layer ReLU net of any width that minimizes ||theta||^2 / 2 + C sum_n max(0, 1 - y_n f(x_n)).

    By balancing layers this is sum_j |alpha_j| + C (sum of hinge losses) over f = sum_j alpha_j relu(u_j . x~), |u_j| = 1: the variation norm
    instead of the squared norm of a support vector machine. As C grows, f / ||theta||^2 tends to the solution of `f1_max_margin`, where the data separate.

    C : cost of a unit of hinge loss, > 0, as in `sklearn.svm.SVC`. Other parameters as for `f1_max_margin`; tol bounds the relative gap
    between the objective and its proved lower bound. Contradictory labels with C |x| above 1e5 are beyond the precision of the linear program
    (status STALLED; the bracket is valid). Raises DataError for data of a wrong shape or kind, or C <= 0.

    >>> from netmargin.solvers import f1_soft_margin
    >>> contradiction = f1_soft_margin([[1.0], [1.0]], [1, -1], C=3.0, bias=False)
    >>> round(contradiction.objective, 9), contradiction.certified           # f = 0: both losses are 1
    (6.0, True)

    Source: the l1 support vector machine of Wei et al. 2018, (3.6), with slacks; its dual caps the weights of Claim B.3 at C.
    """
    if not C > 0 or not np.isfinite(C):
        raise DataError(f"C must be positive and finite; got {C}. For a hard margin use f1_max_margin.")
    data = binary_data(X, y, bias=bias)
    warn_of_size(len(data), "The variation norm problem")
    scale, rows = data.longest, Rows(data.y, np.ones(len(data)), slack_cost=C * data.longest)
    options = Options(tol, time_limit, pricing, seed)
    run = generate_columns(data, rows, options, neurons, progress, "soft margin", unit=scale)
    best = run.problem
    used = np.flatnonzero(best.weights)
    alphas = best.weights[used] / (best.t * scale)
    outputs = best.A[:, used] @ (alphas * scale)
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
        atoms=np.column_stack([best.U[used], best.s[used]]) / np.sqrt(2),
        weights=2 * alphas,
        bias=bias,
        hinge=hinge,
        margin=float(outputs.min()) / (2 * norm) if norm > 0 else 0.0,
    )
