"""Sliding columns on drawn problems, against Clarabel on 2,000 fixed neurons and the older solvers.

    python -m benchmarks drawn_columns

Every loss with every activation, with one output and with several: 108 problems, whose samples,
dimensions and costs are drawn. A net may not be worse than its judges by more than the tolerance,
nor its local bound above what any of them attains. Adds the rows that
runs/benchmarks/drawn_columns.jsonl lacks, and prints them.
"""

import itertools
import time
import warnings
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from netmargin.core.cone_program import minimize
from netmargin.nets.threads import one_thread_of_blas
from netmargin.result import Bracket
from netmargin.solvers import f1_logistic, f1_max_margin, f1_soft_margin, min_norm_interpolation
from netmargin.solvers.neurons.activations import ABSOLUTE, LINEAR, RELU, Activation, squared
from netmargin.solvers.neurons.constraints import keep_constraints
from netmargin.solvers.neurons.labels import Labels, Rivals, Signs
from netmargin.solvers.neurons.losses import (
    LogisticLoss,
    Loss,
    hinge_loss,
    squared_hinge_loss,
    squared_loss,
)
from netmargin.solvers.neurons.samples import Samples, respond
from netmargin.solvers.neurons.search import unit_rows
from netmargin.solvers.neurons.sliding import slide_columns
from netmargin.solvers.regularized import f1_squared

from .clock import clock_of_process
from .estimators_growth import FOLDER
from .rows import add_row, read_rows

ROWS = FOLDER / "drawn_columns.jsonl"
TARGETS, CONSTRAINTS = ("squared", "equality"), ("hard", "equality")
LOSSES = ("hinge", "squared hinge", "hard", "logistic", *TARGETS)
ACTIVATIONS = {
    "ReLU": RELU,
    "leaky .1": Activation(0.1),
    "leaky .5": Activation(0.5),
    "leaky -.4": Activation(-0.4),
    "|.|": ABSOLUTE,
    "linear": LINEAR,
    "ReLU^2": squared(RELU),
    "leaky .1^2": squared(Activation(0.1)),
    "|.|^2": squared(ABSOLUTE),
}
PROBLEMS = list(itertools.product(("one", "several"), ACTIVATIONS, LOSSES))
TOL = 1e-2
"""The default tolerance of sliding columns."""
ROUNDING = 1e-6
"""Clarabel's answers and float32 are off by less."""
NEURONS, OUTPUTS = 2000, 1000
"""Fixed neurons; samples times outputs, with which Clarabel's time grows to 15 CPU seconds."""
LIMIT, OLDER_LIMIT = 20, 4
"""CPU seconds of a fit, and of an older solver."""


def main() -> None:
    """Judge the problems that have no row yet, and print all."""
    rows = read_rows(ROWS)
    # In an order that mixes them, as a run of hours may be stopped.
    for seed in (61 * step % len(PROBLEMS) for step in range(len(PROBLEMS))):
        if not any(row["seed"] == seed for row in rows):
            with warnings.catch_warnings(), one_thread_of_blas(), clock_of_process():
                warnings.simplefilter("ignore")
                rows.append(judge(seed))
            add_row(ROWS, rows[-1])
        print(describe(next(row for row in rows if row["seed"] == seed)), flush=True)
    print(f"{len(rows)} problems, {sum(map(bool, map(find_faults, rows)))} with a fault")


def describe(row: dict) -> str:
    """A line of the table; objectives are told relative to those of the judges."""
    over = [
        "-" if best is None else f"{row['objective'] / best - 1:+.1e}" for best in attained(row)
    ]
    return (
        f"{row['seed']:3} {row['loss']:13} {row['activation']:10} n {row['n']:4} D {row['D']:2} K"
        f" {row['K']} factor {row['factor']:6.1f}: gap {row['gap']:.1e}, {row['neurons']} neurons,"
        f" {row['seconds']:.1f} s; over Clarabel {over[0]}, older {over[1]}  "
        + ", ".join(find_faults(row))
    )


def find_faults(row: dict) -> list[str]:
    """What is false or worse in a row."""
    best = min((best for best in attained(row) if best is not None), default=np.inf)
    below, above = row["clarabel"] or (1.0, 1.0)
    found = {
        "worse": row["objective"] > best * (1 + TOL),
        "bound false": row["bound"] > min(best, row["objective"]) * (1 + ROUNDING),
        "neuron missed": row["largest"] > 1 + TOL,
        "objective not attained": abs(row["attained"] / row["objective"] - 1) > ROUNDING,
        "older bound false": (row["older"] or [0.0])[0] > row["objective"] * (1 + ROUNDING),
        "Clarabel failed": abs(above / below - 1) > ROUNDING,
    }
    return [name for name, fault in found.items() if fault]


def attained(row: dict) -> tuple[float | None, float | None]:
    """The objectives that Clarabel and an older solver attain."""
    return row["clarabel"] and row["clarabel"][1], row["older"] and row["older"][1]


def judge(seed: int) -> dict:
    """The row of a problem."""
    outputs, activation, name = PROBLEMS[seed]
    random = np.random.default_rng(seed)
    problem, factor = draw(random, outputs, name, activation)
    (n, D), K = problem.Z.shape, problem.loss.labels.outputs
    W = unit_rows(random.normal(size=(NEURONS, D)))
    began = time.process_time()
    net = slide_columns(
        problem.Z, problem.loss, activation=problem.activation, deadline=began + LIMIT
    )
    seconds = time.process_time() - began
    A, below = weigh(problem, W)
    above = keep_constraints(problem, W, A)[2]
    judged = time.process_time() - began - seconds
    older = bracket_as_before(problem, name) if K == 1 else None
    responses = respond(problem.Z, net.dual, W, problem.activation)
    return {
        "seed": seed,
        "loss": name,
        "activation": activation,
        "n": n,
        "D": D,
        "K": K,
        "factor": factor,
        "objective": net.objective,
        "attained": keep_constraints(problem, net.W, net.A)[2],
        "bound": net.local_bound,
        "gap": net.local_gap,
        "neurons": len(net.W),
        "status": net.status.name,
        "seconds": seconds,
        "largest": float(np.linalg.norm(responses, axis=1).max()),
        "clarabel": [below, above] if above < np.inf else None,
        "older": older and [older.lower, older.upper if older.upper < np.inf else None],
        "judged": judged,
    }


def draw(
    random: np.random.Generator, outputs: str, name: str, activation: str
) -> tuple[Samples, float]:
    """Samples with the labels of a net of five neurons, a tenth of them wrong where they may be;
    and the factor of their cost over the least that is worth a neuron.
    """
    phi, regression = ACTIVATIONS[activation], name in TARGETS
    K = 1 if outputs == "one" else int(random.integers(2 if regression else 3, 5))
    n = int(np.exp(random.uniform(np.log(20), np.log(OUTPUTS // K))))
    D = round(np.exp(random.uniform(np.log(2), np.log(20))))
    Z = random.normal(size=(n, D))
    if random.random() < 0.5:
        Z[:, -1] = 1.0  # a bias
    F = phi.feature(Z @ unit_rows(random.normal(size=(5, D))).T) @ random.normal(size=(5, K))
    F /= F.std()
    wrong = random.random(n) < (0.0 if name in CONSTRAINTS else 0.1)
    F[wrong] = random.normal(size=(wrong.sum(), K))
    factor = float(np.exp(random.uniform(np.log(1.5), np.log(300))))
    cost = np.inf
    if name not in CONSTRAINTS:  # at F = 0 a hinge is as steep as its square
        smooth = make_loss("squared hinge" if name == "hinge" else name, F, np.ones(n))
        W = unit_rows(random.normal(size=(NEURONS, D)))
        responses = respond(Z, smooth.slopes(np.zeros((n, K))), W, phi)
        cost = factor / np.linalg.norm(responses, axis=1).max()
    loss = make_loss(name, F, np.full(n, cost))
    return Samples(Z, loss, phi), factor


def make_loss(name: str, F: np.ndarray, cost: np.ndarray) -> Loss:
    """The loss of this name for targets F (n, K), or for the classes whose output is largest."""
    if name in TARGETS:
        return squared_loss(F, cost)
    several = F.shape[1] > 1
    labels = Rivals(F.argmax(1), F.shape[1]) if several else Signs(np.where(F > 0, 1.0, -1.0))
    if name == "logistic":
        return LogisticLoss(labels, cost[:, None])
    return (squared_hinge_loss if name == "squared hinge" else hinge_loss)(labels, cost)


def weigh(problem: Samples, W: np.ndarray) -> tuple[np.ndarray, float]:
    """The best outputs A (k, K) of neurons W (k, D), by Clarabel: multipliers of the largest bound
    by weights of margins at which no neuron has a value above 1; and that bound.
    """
    k, K = len(W), problem.loss.labels.outputs
    margins, squares, gain, rows, offset, cones = write_bound(problem)
    values = sparse.kron(sparse.csc_matrix(problem.features(W)).T, sparse.eye(K)) @ margins.T
    vectors = sparse.kron(sparse.eye(k), np.eye(K + 1)[:, 1:])
    rest = sparse.csc_matrix((k * (K + 1), len(gain) - values.shape[1]))
    A = sparse.vstack([
        sparse.hstack([vectors @ values, rest]),
        -rows,
    ])  # fmt: skip
    best, found = minimize(
        -gain,
        A,
        np.concatenate([np.tile(np.eye(1, K + 1)[0], k), offset]),
        [*[clarabel.SecondOrderConeT(K + 1)] * k, *cones],
        quadratic=sparse.diags(squares),
        tol=1e-9,
    )
    outputs = found[: k * (K + 1)].reshape(k, K + 1)[:, 1:]
    return outputs, float(gain @ best - squares @ best**2 / 2)


def write_bound(problem: Samples) -> tuple[Any, np.ndarray, np.ndarray, Any, np.ndarray, list[Any]]:
    """The map of outputs to margins; square costs and gains of weights of margins, and of what else
    the bound needs; rows and an offset whose sum lies in cones.
    """
    loss, margins = problem.loss, map_margins(problem.loss.labels, len(problem.Z))
    if isinstance(loss, LogisticLoss):  # entropies h <= -q log q of q of each class, with sum 1
        if isinstance(loss.labels, Signs):  # the margin over the own class is 0
            margins = sparse.kron(margins, [[1.0], [0.0]])
        n, count = len(loss.cost), margins.shape[0]
        each, place = sparse.eye(count), np.eye(3)[:, :, None]
        total = sparse.kron(sparse.eye(n), np.ones((1, count // n)))
        rows = sparse.bmat([
            [-total, None],
            [sparse.kron(each, place[1]), sparse.kron(each, place[0])],
        ])  # fmt: skip
        costs = np.repeat(loss.cost[:, 0], count // n)
        gain = np.concatenate([0 * costs, costs])
        offset = np.concatenate([np.ones(n), np.tile([0.0, 0.0, 1.0], count)])
        cones = [clarabel.ZeroConeT(n), *[clarabel.ExponentialConeT()] * count]
        return sparse.diags(costs) @ margins, 0 * gain, gain, rows, offset, cones
    wanted = loss.high.ravel() > 0
    high, count = loss.high.ravel()[wanted], int(wanted.sum())
    squares = np.broadcast_to(1 / loss.cost, loss.target.shape).ravel()[wanted]
    sides = [] if loss.low < 0 else [(sparse.eye(count), 0 * squares)]
    if np.isfinite(high).all():
        sides.append((-sparse.eye(count), high))
    rows = sparse.vstack([sparse.csc_matrix((0, count)), *(side for side, _ in sides)])
    offset = np.concatenate([np.zeros(0), *(end for _, end in sides)])
    gain, cones = loss.target.ravel()[wanted], [clarabel.NonnegativeConeT(len(offset))]
    return sparse.csr_matrix(margins)[wanted], squares, gain, rows, offset, cones


def map_margins(labels: Labels, n: int) -> Any:
    """The map of outputs (n, K) to margins (n, R), with that over the own class, which is 0."""
    if isinstance(labels, Signs):
        return sparse.diags(labels.y[:, 0])
    own = np.arange(n * labels.outputs)
    if isinstance(labels, Rivals):
        own = np.repeat(own[:: labels.outputs] + labels.y, labels.outputs)
        return sparse.eye(n * labels.outputs, format="csr")[own] - sparse.eye(len(own))
    return sparse.eye(len(own))


def bracket_as_before(problem: Samples, name: str) -> Bracket | None:
    """The bracket of a problem of one output by the older solvers, if they have it."""
    Z, loss, phi = problem.Z, problem.loss, problem.activation
    n, power = len(Z), phi.power
    options: dict[str, Any] = {"bias": False, "time_limit": OLDER_LIMIT}
    if power == 1:
        options["activation"] = phi
    elif phi == squared(RELU) and name in ("hard", "logistic"):
        options["power"] = 2
    else:
        return None
    if name == "hard":
        found: Any = f1_max_margin(Z, loss.labels.y[:, 0], **options)
        unit = 0.5 if power == 1 else 1.0
        return Bracket(
            unit / found.upper_bound, unit / found.margin if found.margin > 0 else np.inf
        )
    if name == "hinge":
        found = f1_soft_margin(Z, loss.labels.y[:, 0], C=loss.high[0, 0], **options)
        return Bracket(found.lower_bound, found.objective)
    if name == "equality" and phi != LINEAR:
        found = min_norm_interpolation(Z, loss.target[:, 0], **options)
        return Bracket(found.lower_bound, found.norm)
    if name not in ("logistic", "squared"):
        return None
    scale = n * loss.cost[0, 0]
    if name == "logistic":
        y, price = loss.labels.y[:, 0], power / (2 * scale)
        found = f1_logistic(Z, y, regularization=price, **options)
    else:
        found = f1_squared(Z, loss.target[:, 0], regularization=1 / scale, **options)
    return Bracket(found.lower_bound * scale, found.objective * scale)
