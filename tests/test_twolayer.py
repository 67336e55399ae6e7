"""Dynamics of two-layer nets against propositions, explicit recursions and exact optima."""

import math
import warnings

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin.losses import Exponential, Logistic, Loss
from netmargin.papers.chizat_bach import (
    tangent_margin,
    tangent_max_margin,
    train_magnitudes,
    train_output_layer,
)
from netmargin.twolayer import train_both_layers


def from_30_on(near):
    """A function of margins that is the identity where e^-q is below rounding."""
    return lambda q: torch.where(q > 30, q, near(q.clamp(max=30)))


def asinh_slope(q):
    return 1 / (torch.asinh(torch.exp(-q)) * torch.sqrt(1 + torch.exp(2 * q)))


# l(q) = asinh(e^-q): an exponential tail, but linear for wrong samples.
ASINH = Loss(
    from_30_on(lambda q: -torch.log(torch.asinh(torch.exp(-q)))),
    lambda q: asinh_slope(q.clamp(max=30)),
    from_30_on(lambda x: -torch.log(torch.sinh(torch.exp(-x)))),
    name="asinh",
)


def problem(seed: int):
    random = np.random.default_rng(seed)
    n, m = int(random.integers(2, 12)), int(random.integers(1, 40))
    return random.normal(size=(n, m)), np.where(random.random(n) < 0.5, -1, 1)


def blobs(n: int):
    random = np.random.default_rng(0)
    corner = random.integers(4, size=n)
    return np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])[corner] + 0.3 * random.uniform(
        -1, 1, (n, 2)
    ), 1 - 2 * (corner % 2)


VALUES = {
    "exponential": torch.exp,
    "logistic": torch.nn.functional.softplus,
    "asinh": lambda u: torch.asinh(torch.exp(u)),
}


@pytest.mark.parametrize("seed", range(6))
def test_propositions_6_and_7_hold_at_every_iteration(seed):
    features, y = problem(seed)
    runs = [train_magnitudes(features, y, steps=3000)]
    if nm.solvers.linear_max_margin(features, y).margin > 0:
        runs.append(train_output_layer(features, y, steps=3000))
    for run in runs:
        assert run.optimum <= run.proved + 1e-12
        assert run.proved - run.optimum <= 1e-5 * max(abs(run.proved), 1e-3)
        assert (run.best >= run.guarantee - 1e-12).all()
        assert (run.margins <= run.proved + 1e-9).all()


@pytest.mark.parametrize("loss", [Exponential(), Logistic(), ASINH], ids=str)
def test_fixed_features_are_trained_by_gradient_ascent(loss):
    """By autograd; a rate is proved of the exponential loss alone."""
    features, y = problem(3)
    magnitudes, outputs = (
        train(features, y, steps=50, loss=loss) for train in (train_magnitudes, train_output_layer)
    )
    z, m = torch.tensor(y[:, None] * features), features.shape[1]
    r, s, beta = torch.ones(m).double(), torch.zeros(m).double(), 1.0
    F = lambda a: -torch.log(VALUES[loss.name](-(z @ a)).mean())  # noqa: E731
    for t in range(50):
        a, b = r**2 / m, s / m
        beta = max(beta, math.sqrt(m) * b.norm().item())
        for run, weights, size in ((magnitudes, a, a.sum().item()), (outputs, b, beta)):
            assert run.margins[t] == pytest.approx((z @ weights).min().item() / size, abs=1e-12)
            assert run.log_sizes[t] == pytest.approx(math.log(size), abs=1e-12)
        step = 1 / (z.abs().max() * math.sqrt(t + 1))
        r = r + m * step / 16 * torch.func.grad(lambda r: F(r**2 / m))(r)
        s = s + m * step * beta * math.sqrt(2) * torch.func.grad(lambda s: F(s / m))(s)
    assert magnitudes.weights == pytest.approx((r**2 / (r**2).sum()).numpy(), abs=1e-12)
    beta = max(beta, math.sqrt(m) * (s / m).norm().item())
    assert outputs.weights == pytest.approx((s / m / beta).numpy(), abs=1e-12)
    for run in (magnitudes, outputs):
        assert np.isfinite(run.guarantee).all() == isinstance(loss, Exponential)


def test_sizes_beyond_float64():
    run = train_magnitudes(
        np.array([[1.0], [2.0]]), [1, 1], steps=8000, rate=lambda t: np.full(len(t), 0.1)
    )
    assert run.log_sizes[-1] > 1000
    assert run.margins[-1] == 1.0


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("loss", [Exponential(), Logistic(), ASINH], ids=str)
def test_steps_of_both_layers_equal_autograd(power, loss):
    """m times the gradient of F from the library's own start, and across the rescaling."""
    random = np.random.default_rng(0)
    X, y, m, steps = random.normal(size=(9, 3)), np.where(random.random(9) < 0.5, -1, 1), 7, 25
    runs = train_both_layers(
        X,
        y,
        width=m,
        steps=steps,
        power=power,
        loss=loss,
        scale=1.5,
        seeds=(4,),
        records=steps,
        dtype=torch.float64,
        progress=False,
    )
    start = np.random.default_rng(4)
    a = start.normal(size=(m, 4))
    a = torch.tensor(1.5 * a / np.linalg.norm(a, axis=1, keepdims=True))
    b = torch.tensor((1.5 if power == 1 else 1.0) * start.choice([-1.0, 1.0], m))
    Z, labels = torch.tensor(np.hstack([X, np.ones((9, 1))])), torch.tensor(y, dtype=torch.float64)
    for t in range(steps + 1):
        a.requires_grad_(True), b.requires_grad_(power == 1)
        q = labels * ((Z @ a.T).relu() ** power @ b / m)
        mass = ((a**2).sum() + ((b**2).sum() if power == 1 else 0.0)) / m
        assert runs.margins[t, 0] == pytest.approx((q.min() / mass).item(), rel=1e-9, abs=1e-12)
        assert runs.log_masses[t, 0] == pytest.approx(math.log(mass.item()), abs=1e-9)
        F = -torch.log(VALUES[loss.name](-q).mean())
        moved = torch.autograd.grad(F, [a, b] if power == 1 else [a])
        with torch.no_grad():
            a = a + 0.5 / math.sqrt(t + 1) * m * moved[0]
            b = b + 0.5 / math.sqrt(t + 1) * m * moved[1] if power == 1 else b
    assert runs.measures[0].normalized_margin(X, y) == pytest.approx(runs.margins[-1, 0], rel=1e-12)
    assert runs.measures[0].mass == pytest.approx(1.0)


@pytest.mark.slow_cases("<Exponential exponential>-1", "<Logistic logistic>")
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("loss", [Exponential(), Logistic()], ids=str)
def test_runs_side_by_side_are_the_runs_alone(power, loss):
    """Of several widths and rates, some in the same tensors."""
    random = np.random.default_rng(0)
    widths, seeds = (20, 15, 18, 31), (0, 1, 2, 0)
    X = random.normal(size=(12, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    rates = [
        lambda t, r=r: r / power**3 / np.sqrt(t + 1) for r in (0.3, 0.2, 0.1, 0.05)
    ]  # of larger ones rounding errors grow
    options = {
        "steps": 300,
        "power": power,
        "loss": loss,
        "dtype": torch.float64,
        "progress": False,
        "records": 30,
    }
    together = train_both_layers(X, y, width=widths, seeds=seeds, rate=rates, **options)
    for r in range(4):
        alone = train_both_layers(
            X, y, width=widths[r], seeds=(seeds[r],), rate=rates[r], **options
        )
        assert together.margins[:, r] == pytest.approx(alone.margins[:, 0], rel=1e-9, abs=1e-12)
        assert together.log_masses[:, r] == pytest.approx(alone.log_masses[:, 0], abs=1e-9)
        assert together.measures[r].normalized_margin(X, y) == pytest.approx(
            alone.margins[-1, 0], rel=1e-9
        )


def test_runs_of_different_size_in_different_groups():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.tile([1, -1], 6)
    together = train_both_layers(
        X, y, width=[4, 400, 5], steps=100, dtype=torch.float64, progress=False
    )
    alone = train_both_layers(X, y, width=400, steps=100, dtype=torch.float64, progress=False)
    assert together.margins[:, 1] == pytest.approx(alone.margins[:, 0], rel=1e-9, abs=1e-12)
    assert [len(measure.weights) for measure in together.measures] == [4, 400, 5]


@pytest.mark.parametrize("odd", [torch.int32, torch.float16, "float32"])
def test_runs_are_of_float32_or_float64(odd):
    with pytest.raises(nm.ArgumentError, match="dtype must be torch.float32 or torch.float64"):
        train_both_layers([[0.0], [1.0]], [0, 1], width=4, steps=1, dtype=odd, progress=False)


def test_diverging_runs_go_back_and_others_do_not_notice():
    """A step of 30 throws run 1 far away; it goes on with smaller ones. Run 0 keeps its steps."""
    X, y = 3 * np.random.default_rng(0).normal(size=(12, 2)), np.tile([1, -1], 6)
    rates = [0.02, lambda t: np.full(len(t), 30.0)]
    with pytest.warns(UserWarning, match="run 1 diverged between steps 0 and"):
        runs = train_both_layers(
            X, y, width=30, steps=200, rate=rates, dtype=torch.float64, progress=False
        )
    alone = train_both_layers(
        X, y, width=30, steps=200, rate=rates[0], dtype=torch.float64, progress=False
    )
    assert runs.halvings[0] == 0 < runs.halvings[1]
    last, best = f"{runs.margins[-1, 0]:.4g}", f"{runs.best[0]:.4g}"
    assert runs.summary().splitlines()[2].split()[:3] == ["0", last, best]
    assert runs.margins[:, 0] == pytest.approx(alone.margins[:, 0], rel=1e-9, abs=1e-12)
    assert np.isfinite(runs.margins).all()
    assert np.isfinite(runs.log_masses).all()


def test_steps_that_kill_all_neurons_are_taken_back():
    X, y = 1e3 * np.random.default_rng(0).normal(size=(6, 2)), np.tile([1, -1], 3)
    with pytest.warns(UserWarning, match="half its step sizes"):
        runs = train_both_layers(
            X, y, width=20, steps=300, power=2, rate=lambda t: np.full(len(t), 1e-3), progress=False
        )
    assert runs.measures[0].decision_function(X).any()
    with (
        pytest.warns(UserWarning, match="half its step sizes"),
        pytest.raises(nm.DivergenceError, match="largest input is 1.* Divide X by that"),
    ):
        train_both_layers(1e5 * X, y, width=20, steps=300, progress=False)


@pytest.mark.parametrize("power", [1, 2])
def test_steps_that_throw_all_neurons_off_a_sample_are_warned_of(power):
    """Its margin is 0 and stays so; of the steps that the warning names no sample is lost."""
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2))
    options = {"width": 100, "power": power, "loss": "logistic", "progress": False}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        runs = train_both_layers(*(X, np.sign(X.prod(1))), steps=200, rate=8.0, **options)
    w = runs.snapshots[-1].positions(0)
    lost = (np.hstack([X, np.ones((40, 1))]) @ w[:, :-1].T <= 0).all(1).sum()
    said = str(warned[-1].message)
    assert warned[-1].filename == __file__
    assert f"run 0 ends with no neuron active on {lost} of 40 samples" in said
    assert lost > 0 >= runs.margins[-1, 0]
    rate = float(said.partition("up to ")[2].split()[0])
    longest = math.sqrt((X**2).sum(1).max() + 1)
    assert rate == pytest.approx({1: 1 / longest, 2: 1 / (2 * longest**2)}[power], rel=0.05)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "run 0 ends")
        train_both_layers(*(X, np.sign(X.prod(1))), steps=200, rate=rate, **options)


@pytest.mark.slow
def test_population_objective_with_fresh_samples():
    """Fresh samples of two half planes are learnt; margins are of the given ones."""

    def draw(t: int):
        X = np.random.default_rng(t).uniform(-1, 1, size=(64, 2))
        return X[np.abs(X[:, 0]) > 0.3], np.sign(X[np.abs(X[:, 0]) > 0.3, 0])

    runs = train_both_layers(*draw(12345), width=50, steps=1000, resample=draw, progress=False)
    other = train_both_layers(*draw(54321), width=50, steps=1000, resample=draw, progress=False)
    assert runs.margins[0, 0] < 0.01 < 0.05 < runs.margins[-1, 0]
    assert np.array_equal(runs.measures[0].weights, other.measures[0].weights)


def test_snapshots_hold_the_neurons():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.tile([1, -1], 6)
    runs = train_both_layers(
        X, y, width=10, steps=50, scale=2.0, paired=True, snapshots=[0, 20], progress=False
    )
    assert [snapshot.time for snapshot in runs.snapshots] == [0, 20, 50]
    start = runs.snapshots[0].positions(0)
    assert np.linalg.norm(start[:, :-1], axis=1) == pytest.approx(np.full(10, 2.0))
    assert np.array_equal(start[:5, -1], -start[5:, -1])
    assert runs.snapshots[0].measures[0].decision_function(X) == pytest.approx(
        np.zeros(12), abs=1e-12
    )  # paired
    for snapshot in runs.snapshots:
        row = list(runs.times).index(snapshot.time)
        w = snapshot.positions(0)
        q = y * (np.maximum(np.hstack([X, np.ones((12, 1))]) @ w[:, :-1].T, 0) @ w[:, -1] / 10)
        assert q.min() == pytest.approx(
            runs.margins[row, 0] * math.exp(runs.log_masses[row, 0]), rel=1e-6, abs=1e-9
        )
        assert snapshot.duals[0].sum() == pytest.approx(1.0)
        if snapshot.time == 0:
            assert snapshot.duals[0] == pytest.approx(np.exp(-q) / np.exp(-q).sum(), rel=1e-6)


def test_interruption_keeps_the_records(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.tile([1, -1], 6)
    whole = train_both_layers(X, y, width=10, steps=100, records=10, progress=False)
    calls = []

    def interrupted(t: int):
        calls.append(t)
        if t == 35:
            raise KeyboardInterrupt
        return X, y

    runs = train_both_layers(
        X, y, width=10, steps=100, records=10, resample=interrupted, progress=False
    )
    assert (runs.status, whole.status) == (nm.Status.INTERRUPTED, nm.Status.FINISHED)
    assert list(runs.times) == [0, 10, 20, 30]
    assert runs.margins[:, 0] == pytest.approx(whole.margins[:4, 0], rel=1e-5, abs=1e-9)
    assert runs.measures[0].normalized_margin(X, y) == pytest.approx(runs.margins[-1, 0], rel=1e-9)


@pytest.mark.slow
def test_lazy_nets_approach_the_tangent_margin_first():
    """From a large paired start: the tangent margin first, the variation-norm margin later."""
    X, y = blobs(30)
    options = {
        "width": 800,
        "scale": 20.0,
        "paired": True,
        "rate": lambda t: np.full(len(t), 0.02 / 20),
    }
    runs = train_both_layers(X, y, steps=8000, snapshots=[0, 300], progress=False, **options)
    start, lazy, rich = (snapshot.positions(0) for snapshot in runs.snapshots)
    tangent, optimum = (
        tangent_max_margin(start, X, y).margin,
        nm.solvers.f1_max_margin(X, y).margin,
    )
    assert np.linalg.norm(lazy - start) < 0.1 * np.linalg.norm(start)
    assert 0.9 * tangent < tangent_margin(start, lazy, X, y) <= tangent * (1 + 1e-6)
    assert runs.snapshots[1].measures[0].normalized_margin(X, y) < 0.2 * optimum
    assert tangent_margin(start, rich, X, y) < 0.7 * tangent
    assert 0.98 * optimum < runs.margins[-1, 0] <= optimum * (1 + 1e-6)
    # Proposition 12 holds ever better.
    residuals = [nm.twolayer.slackness(s.measures[0], X, y, s.duals[0]) for s in runs.snapshots]
    assert all(r.proved for r in residuals)
    assert residuals[2].residual < 0.1 * min(residuals[1].residual, residuals[0].residual)
    assert residuals[2].residual >= optimum - runs.margins[-1, 0] - 1e-9


def test_bad_input():
    with pytest.raises(nm.DataError, match="All features are 0"):
        train_magnitudes(np.zeros((3, 2)), [1, -1, 1], steps=10)
    with pytest.raises(nm.DataError, match="gamma_2 = 0"):
        train_output_layer(np.ones((2, 3)), [1, -1], steps=10)
    with pytest.raises(nm.DataError, match="NaN"):
        train_output_layer(np.full((2, 3), np.nan), [1, -1], steps=10)
    with pytest.raises(ValueError, match="steps"):
        train_magnitudes(np.ones((2, 3)), [1, 1], steps=0)
    with pytest.raises(ValueError, match="positive, finite"):
        train_magnitudes(np.ones((2, 3)), [1, 1], steps=5, rate=lambda t: -1.0)
    with pytest.raises(ValueError, match="one number or an array"):
        train_magnitudes(np.ones((2, 3)), [1, 1], steps=5, rate=lambda t: np.ones(3))
    data = ([[0.0, 1.0], [1.0, 0.0]], [1, -1])
    for wrong in (
        {"width": 0},
        {"steps": 0},
        {"power": 3},
        {"scale": -1.0},
        {"width": 3, "paired": True},
    ):
        with pytest.raises(nm.ArgumentError, match=next(iter(wrong))):
            train_both_layers(*data, **({"width": 3, "steps": 3, "progress": False} | wrong))
    for wrong in ({"seeds": ()}, {"seeds": (0, 1), "width": [1, 2, 3]}):
        with pytest.raises(ValueError, match="one for each run"):
            train_both_layers(*data, **({"width": 3, "steps": 3, "progress": False} | wrong))
    for wrong in ({"snapshots": [4]}, {"snapshots": [1.5]}, {"paired": "no"}):
        with pytest.raises(nm.ArgumentError, match=f"{next(iter(wrong))} must be"):
            train_both_layers(*data, **({"width": 3, "steps": 3, "progress": False} | wrong))
    with pytest.raises(nm.ArgumentError, match="measure must be"):
        nm.twolayer.slackness("a net", *data, [1.0, 1.0])
    with pytest.raises(nm.DataError, match="NaN"):
        train_both_layers([[np.nan, 1.0]], [1], width=3, steps=3, progress=False)
    random = np.random.default_rng(0)
    with pytest.raises(ValueError, match="the same t"):
        train_both_layers(
            *data,
            width=3,
            steps=3,
            resample=lambda t: (random.normal(size=(2, 2)), [1, -1]),
            progress=False,
        )
    with pytest.raises(nm.DataError, match=r"resample\(0\) gave inputs of dimension 1"):
        train_both_layers(
            *data, width=3, steps=3, resample=lambda t: ([[1.0]], [1]), progress=False
        )
    with pytest.raises(ValueError, match="rate must be a number, or a function"):
        train_both_layers(*data, width=3, steps=3, rate="0.1", progress=False)
    with pytest.raises(ValueError, match="positive, finite"):
        train_both_layers(*data, width=3, steps=3, rate=0.0, progress=False)
    assert train_both_layers(*data, width=np.array(3), steps=3, progress=False).margins.shape == (
        4,
        1,
    )
    with pytest.raises(nm.DataError, match="No neuron has moved"):
        tangent_margin(np.ones((2, 4)), np.ones((2, 4)), *data)
    flat = Loss(lambda q: 2 * q, lambda q: torch.full_like(q, 2.0), lambda x: x / 2)
    for loss in (Exponential(3), Logistic(3), flat):
        with pytest.raises(ValueError, match=r"loss must be e\^-q up to a factor"):
            train_both_layers(*data, width=3, steps=3, loss=loss, progress=False)


def test_slackness_leaves_the_weights_of_the_caller_as_they_are():
    X, y = np.eye(2), np.array([1, -1])
    best, dual = nm.solvers.f1_max_margin(X, y), np.array([2.0, 3.0])
    nm.twolayer.slackness(best, X, y, dual)
    assert dual.tolist() == [2.0, 3.0]
