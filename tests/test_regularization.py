"""The path of weak regularization against certified optima."""

import math

import numpy as np
import pytest
import torch
from joblib import parallel_config
from torch import nn

import netmargin as nm
from netmargin import datasets
from netmargin.core.lbfgs import minimize
from netmargin.models import mlp
from netmargin.solvers import f1_logistic, f1_max_margin


def line(x, y):
    return torch.tensor(x, dtype=torch.float64)[:, None], torch.tensor(y)


def circle(n: int):
    angle = 2 * np.pi * np.arange(n) / n
    return torch.tensor(np.column_stack([np.cos(angle), np.sin(angle)])), torch.tensor(
        1 - 2 * (np.arange(n) % 2)
    )


# Sets whose exact minimizer at lambda = 1e-12 is itself within 1% of the max margin; elsewhere that
# takes a smaller lambda.
SETS = {
    "two pairs": line([-2.0, -1.0, 1.0, 2.0], [1, 1, -1, -1]),
    "inside, outside": line([-3.0, -1.0, 1.0, 3.0], [-1, 1, 1, -1]),
    "square": datasets.parity(2, 2),
    "xor": datasets.gaussian_xor(20, 2),
    "hexagon": circle(6),
}


@pytest.mark.nightly_cases("hexagon", "inside", "square", "xor")
@pytest.mark.slow_cases("two")
@pytest.mark.parametrize("name", SETS)
def test_margins_tend_to_the_certified_optimum(name):
    X, y = SETS[name]
    optimum = f1_max_margin(X, y)
    assert optimum.certified
    path = nm.regularization_path(
        lambda: mlp([X.shape[1], 16, 1]), (X, y), lambdas=[1e-3, 1e-6, 1e-12], progress=False
    )
    gaps = 1 - np.array(path.column("normalized_margin")) / optimum.margin
    assert gaps[-1] < 0.01
    assert (np.diff(gaps) <= 1e-4).all()  # minimizers are found to about that
    assert (gaps > -1e-6).all()


@pytest.mark.slow
def test_the_path_is_the_exact_path():
    """Its objective and margin are those of the convex problem, at every lambda."""
    X, y = datasets.alternating(4)
    path = nm.regularization_path(
        lambda: mlp([1, 20, 1]), (X, y), lambdas=[1e-2, 1e-6, 1e-12], starts=2, progress=False
    )
    for row in path.rows:
        exact = f1_logistic(X, y, regularization=row["regularization"])
        assert exact.lower_bound <= math.exp(row["log_objective"]) * (1 + 1e-9)
        assert math.exp(row["log_objective"]) <= exact.objective * (1 + 1e-5)
        assert row["normalized_margin"] == pytest.approx(exact.normalized_margin(X, y), rel=3e-3)
    net = mlp([1, 20, 1]).double()
    net.load_state_dict(path.states[1e-12])
    report = nm.measure(net, (X, y))
    assert report.normalized_margin == pytest.approx(path.rows[-1]["normalized_margin"])
    assert path.rows[-1]["log_objective"] == pytest.approx(
        math.log(math.exp(report.log_loss) / 4 + 1e-12 * report.norm**2), rel=1e-9
    )


@pytest.mark.slow
def test_the_path_goes_on_where_a_strong_lambda_made_the_net_vanish():
    """Found by the ledger: 0 is stationary for every lambda, and paths ended there."""
    X, y = SETS["square"]
    path = nm.regularization_path(
        lambda: mlp([2, 16, 1]), (X, y), lambdas=[10.0, 0.3, 1e-3, 1e-9], starts=1, progress=False
    )
    assert path.rows[0]["norm"] < 1e-3
    assert path.rows[-1]["normalized_margin"] > 0.95 * f1_max_margin(X, y).margin


@pytest.mark.nightly
def test_multi_class_path_meets_a_margin_ascent():
    """Three classes on a circle: the margin at lambda = 1e-12 is `maximize_margin`'s."""
    angle = 2 * np.pi * np.arange(6) / 6
    X, y = torch.tensor(np.column_stack([np.cos(angle), np.sin(angle)])), torch.arange(6) % 3
    path = nm.regularization_path(
        lambda: mlp([2, 20, 3]), (X, y), lambdas=[1e-2, 1e-4, 1e-8, 1e-12], starts=3, progress=False
    )
    found = []
    for seed in range(3):
        torch.manual_seed(seed)
        net = mlp([2, 20, 3]).double()
        found.append(
            nm.maximize_margin(net, (X, y), iterations=400, progress=False).report.normalized_margin
        )
    # Minimizers are found to about that.
    assert (np.diff(path.column("normalized_margin")) >= -1e-5).all()
    assert path.rows[-1]["normalized_margin"] > 0.98 * max(found)


@pytest.mark.slow
def test_far_below_underflow_and_other_powers():
    """A linear net: the max margin at lambda = 1e-300, for any power r, and by layers."""
    X, y = torch.tensor([[2.0, 1.0], [-1.0, -2.0]]), torch.tensor([1, -1])
    for r, norm in ((1.0, "global"), (2.0, "layers"), (3.5, "global")):
        path = nm.regularization_path(
            lambda: nn.Linear(2, 1, bias=False),
            (X, y),
            lambdas=[1e-3, 1e-300],
            r=r,
            norm=norm,
            starts=1,
            progress=False,
        )
        assert path.rows[-1]["normalized_margin"] == pytest.approx(3 / math.sqrt(2), rel=1e-6)
        assert path.rows[-1]["log10_mean_loss"] < -290
        assert path.rows[-1]["stationarity"] < 1e-4


@pytest.mark.parametrize(
    ("norm", "expected"), [("global", (2, 1)), ("l1", (1, 0)), ("linf", (1, 1))]
)
def test_each_norm_has_its_own_max_margin(norm, expected):
    """Points (2, 1) and its opposite: by hand the dual vectors of (2, 1)."""
    path = nm.regularization_path(
        lambda: nn.Linear(2, 1, bias=False),
        (torch.tensor([[2.0, 1.0], [-2.0, -1.0]]), torch.tensor([1, -1])),
        lambdas=[1e-12],
        norm=norm,
        iterations=25,
        starts=1,
        progress=False,
    )
    weights = path.states[1e-12]["weight"][0].numpy()
    assert weights / weights.max() == pytest.approx(np.array(expected) / max(expected), abs=1e-3)


@pytest.mark.parametrize("norm", ["global", "layers", "l1", "linf"])
def test_paths_do_not_depend_on_the_units_of_inputs(norm):
    """Of a linear net and r = 1, weights in other units are the same weights at another lambda."""
    X, y = torch.tensor([[2.0, 1.0], [-1.0, -2.0]]).double(), torch.tensor([1, -1])
    rows = []
    for unit in (1.0, 2.0**500, 2.0**-500):

        def make(unit=unit):
            net = nn.Linear(2, 1, bias=False).double()
            net.weight.data *= unit
            return net

        path = nm.regularization_path(
            make, (X / unit, y), lambdas=[1e-6 / unit], r=1, norm=norm, starts=1, progress=False
        )
        row = path.rows[-1]
        assert math.isfinite(row["stationarity"])
        rows.append([row["normalized_margin"] * unit, row["log_objective"]])
    assert rows[0][0] == pytest.approx(3 / math.sqrt(2), rel=1e-6)
    assert rows == [pytest.approx(rows[0], rel=1e-6)] * 3


@pytest.mark.parametrize("unit", [1e6, 1e-6])
def test_paths_of_ordinary_nets_end_alike_in_any_units_of_inputs(unit):
    """A net that has to shrink is not one that is on its way to 0."""
    X, y = torch.tensor([[2.0, 1.0], [-1.0, -2.0]]).double(), torch.tensor([1, -1])
    path = nm.regularization_path(
        lambda: nn.Linear(2, 1, bias=False).double(),
        (X * unit, y),
        lambdas=[1e-2, 1e-6],
        r=1,
        starts=2,
        progress=False,
    )
    assert path.rows[-1]["normalized_margin"] == pytest.approx(unit * 3 / math.sqrt(2), rel=1e-6)


# Theorem 2.2


def test_exponent_is_the_smallest_that_the_proof_allows():
    """By hand, r = a, two classes: for n = 2, 5, 10, 100 the first multiples of 1/4 that do."""
    for n, quarter in ((2, 14.75), (5, 7.75), (10, 6.25), (100, 4.25)):
        assert quarter - 0.25 < nm.weak_regularization(0.3, n=n).exponent <= quarter
    for n, classes, r, order in ((2, 2, 1.0, 3.0), (7, 10, 2.0, 1.0), (1, 3, 3.0, 2.0)):
        weak = nm.weak_regularization(0.3, n=n, classes=classes, r=r, order=order)
        depth = math.log((classes - 1) * 0.3 ** (r / order)) - weak.log_regularization
        bound = 4 * weak.regularization * (depth / 0.3) ** (r / order)  # L^(UB) of the proof
        assert depth >= 1
        assert n * bound <= 0.5
        promised = -math.log(2 * n * bound) * (weak.regularization / bound) ** (order / r)
        assert promised >= weak.guarantee * (1 - 1e-9)
        assert weak.guarantee == pytest.approx(0.3 / (2 * 4 ** (order / r)))


@pytest.mark.slow
@pytest.mark.nightly_cases("square")
@pytest.mark.parametrize("name", ["two points", "square"])
def test_two_approximate_nets_keep_their_margin(name):
    """From the minimizer, ascent of every sample's damage as far as L <= 2 L_min allows."""
    X, y = {"two points": datasets.alternating(2), "square": datasets.parity(2, 2)}[name]
    gamma, n = f1_max_margin(X, y).margin, len(X)
    weak = nm.weak_regularization(gamma, n=n)
    least = f1_logistic(X, y, regularization=weak.regularization).lower_bound
    path = nm.regularization_path(
        lambda: mlp([X.shape[1], 12, 1]),
        (X, y),
        lambdas=[1e-2, 1e-4, weak.regularization],
        starts=1,
        progress=False,
    )
    net, worst = mlp([X.shape[1], 12, 1]).double(), math.inf
    parameters = list(net.parameters())

    def judged():
        q, square = y * net(X)[:, 0], sum(p.square().sum() for p in parameters)
        return (
            q,
            square,
            torch.log(nn.functional.softplus(-q).mean() + weak.regularization * square),
        )

    def attack(sample: int, penalty: float):
        q, square, log_objective = judged()
        return (
            q[sample] / square / gamma
            + penalty * torch.relu(log_objective - math.log(2 * least) + 0.05) ** 2
        )

    for sample in range(n):
        net.load_state_dict(path.states[weak.regularization])
        for penalty in (1.0, 10.0, 100.0, 1000.0):
            minimize(parameters, lambda s=sample, p=penalty: attack(s, p), 100)
        with torch.no_grad():
            q, square, log_objective = judged()
        if log_objective <= math.log(2 * least):
            worst = min(worst, (q.min() / square).item())
    assert weak.guarantee <= worst < 0.6 * gamma  # the attack gets somewhere, but not that far


def test_one_sample_of_two_classes_has_no_weak_lambda():
    """Against the printed theorem: x = 1, lambda = 1: Theta = -1/2 has less than twice L_min."""
    theta = np.linspace(-3, 3, 60_001)
    L = np.logaddexp(0, -theta) + theta**2
    assert L[np.argmin(np.abs(theta + 0.5))] < 2 * L.min()
    with pytest.raises(ValueError, match="n \\(classes - 1\\) >= 2"):
        nm.weak_regularization(1.0, n=1)
    with pytest.raises(ValueError, match="margin must be"):
        nm.weak_regularization(-1.0, n=5)


@pytest.mark.slow
def test_layers_with_parameters_at_zero():
    """Biases of `mlp` begin at 0, where the log of their penalty has no slope: they move."""
    X, y = datasets.alternating(3)
    path = nm.regularization_path(
        lambda: mlp([1, 12, 1]),
        (X, y),
        norm="layers",
        lambdas=[1e-1, 1e-3, 1e-6],
        starts=1,
        progress=False,
    )
    assert path.rows[-1]["normalized_margin"] > 0.8 * f1_max_margin(X, y).margin
    assert all(math.isfinite(row["stationarity"]) for row in path.rows)


def test_weak_lambdas_beyond_float64():
    for options in ({"order": 600.0, "r": 1.0}, {"order": 1e-3}):
        weak = nm.weak_regularization(0.1, n=100, **options)
        assert math.isfinite(weak.log_regularization)
        assert weak.guarantee >= 0


def test_bad_input():
    data = (torch.tensor([[1.0]]), torch.tensor([1]))
    for wrong in ({"lambdas": []}, {"lambdas": [0.0]}, {"r": -1.0}, {"starts": 0}, {"norm": "l2"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}.* must be"):
            nm.regularization_path(
                lambda: nn.Linear(1, 1), data, **({"lambdas": [0.1], "progress": False} | wrong)
            )
    frozen = nn.Linear(1, 1).requires_grad_(False)
    with pytest.raises(nm.ModelError, match="nothing to regularize"):
        nm.regularization_path(lambda: frozen, data, lambdas=[0.1], progress=False)


@pytest.mark.slow
def test_starts_in_processes_are_those_of_one():
    X, y = nm.datasets.clusters(40, 5, k=2, seed=0)
    given = {"lambdas": [1e-1, 1e-3], "starts": 2, "iterations": 40, "progress": False}
    one = nm.regularization_path(lambda: nm.models.mlp([5, 20, 1]), (X, y), **given)
    with parallel_config(n_jobs=2):
        two = nm.regularization_path(lambda: nm.models.mlp([5, 20, 1]), (X, y), **given)
    for a, b in zip(one.rows, two.rows, strict=True):
        assert (a["start"], a["log_objective"]) == (b["start"], b["log_objective"])
    lines = [line.split()[0] for line in str(two).splitlines()]
    assert lines == ["Regularization", "lambda", "0.1", "0.001", "2"]


@pytest.mark.slow
def test_the_best_of_all_starts_is_kept():
    """At every lambda; narrow nets end in minima of their own."""

    def follow(seed, starts):
        return nm.regularization_path(
            lambda: mlp([2, 3, 1]), circle(6), lambdas=[1e-2, 1e-4],
            starts=starts, iterations=10, seed=seed, progress=False,
        )  # fmt: skip

    alone, together = [follow(seed, 1) for seed in range(3)], follow(0, 3)
    for index, value in enumerate((1e-2, 1e-4)):
        objectives = [path.rows[index]["log_objective"] for path in alone]
        best = int(np.argmin(objectives))
        row = together.rows[index]
        assert row["start"] == best
        assert row["log_objective"] == objectives[best]
        for name, weights in together.states[value].items():
            assert torch.equal(weights, alone[best].states[value][name])
    # At the first lambda all end at the zero net.
    assert objectives[best] < max(objectives) - 0.1
