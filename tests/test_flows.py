"""Flow against closed forms, tiny steps and its own order; descent under (S5); margin ascent."""

import contextlib
import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.core.lbfgs import minimize
from netmargin.core.progress import Progress
from netmargin.flow.gradient_descent import gradient_descent
from netmargin.flow.kinks import find_gates
from netmargin.flow.proximal import ProximalFlow
from netmargin.flow.theory_rate import SmoothnessBounds
from netmargin.losses import CrossEntropy, Exponential, Logistic
from netmargin.models import mlp, mnist_cnn


def flat(state: dict) -> np.ndarray:
    return np.concatenate([p.reshape(-1).numpy() for p in state.values()])


def random_data(n: int, d: int, seed: int = 0):
    random = torch.Generator().manual_seed(seed)
    return (
        torch.randn(n, d, generator=random, dtype=torch.float64),
        1 - 2 * (torch.rand(n, generator=random) < 0.5).long(),
    )


@pytest.mark.slow
def test_closed_form_of_one_weight_deep_in_time():
    """w' = e^{-w}: w(t) = log(e^w0 + t), also at t = e^100."""
    net = nn.Linear(1, 1, bias=False).double()
    net.weight.data.fill_(0.5)
    flow = nm.gradient_flow(net, ([[1.0]], [1]), time=math.exp(100.0), loss=Exponential())
    assert flow.rows[-1]["log_time"] == 100.0
    assert flow.final["weight"].item() == pytest.approx(100.0, rel=1e-6)
    assert net.weight.item() == 0.5  # the model is not changed


def tiny_steps(weights, X: np.ndarray, y: np.ndarray, time: float, step: float) -> np.ndarray:
    """Euler's method for a ReLU net without biases and the exponential loss."""
    W = [w.detach().numpy().copy() for w in weights]
    for _ in range(round(time / step)):
        layers = [X]
        for w in W[:-1]:
            layers.append(np.maximum(layers[-1] @ w.T, 0))
        back = (step * y * np.exp(-y * (layers[-1] @ W[-1][0])))[:, None]
        for i in reversed(range(len(W))):
            asked = back
            back = (back @ W[i]) * (layers[i] > 0)
            W[i] += asked.T @ layers[i]
    return np.concatenate([w.ravel() for w in W])


def test_alignment_of_a_flow_is_that_of_the_shortest_gradient_and_of_certificates_autograds():
    """It slides along the kink of sample 1 in unit 0, whose gate may be anything in [0, 1]."""
    data = X, y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]]).double(), [1, -1, 1]
    net = nm.solvers.f1_max_margin(*data, bias=False).to_network()
    row = (flow := nm.gradient_flow(net, data, time=100.0, progress=False)).rows[-1]
    net.load_state_dict(flow.final)

    def gradient(gate: float) -> torch.Tensor:
        z = net[0](X)
        gates = torch.where(z > 0, 1.0, 0.0)
        gates[1, 0] = gate
        q = torch.tensor(y) * net[2](gates * z)[:, 0]
        loss = nn.functional.softplus(-q).sum()
        return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, net.parameters())])

    theta = torch.from_numpy(flat(flow.final))
    closed, turn = gradient(0.0), gradient(1.0) - gradient(0.0)
    shortest = closed + (-closed @ turn / turn.square().sum()).clamp(0, 1) * turn
    cosine = [-(theta @ g / theta.norm() / g.norm()).item() for g in (shortest, closed)]
    assert [row["alignment"], nm.certify(net, data).alignment] == pytest.approx(cosine, rel=1e-6)
    assert row["sliding"] == 1
    assert f"  {row['log_time']:.4g} " in str(flow).splitlines()[-2]
    assert cosine[0] > cosine[1] + 0.1


@pytest.mark.slow
@pytest.mark.nightly_cases("widths1", "widths2")
@pytest.mark.parametrize(
    ("widths", "seed", "time", "most"),
    [((5, 20, 1), 0, 3.0, 2500), ((5, 20, 1), 0, 10.0, 5000), ((5, 12, 6, 1), 2, 3.0, 10000)],
)
def test_relu_flow_equals_tiny_steps(widths, seed, time, most):
    """20 points, d 5, 20 units, T to 10: pre-activations cross, slide and leave their kinks."""
    torch.manual_seed(seed)
    net = mlp(list(widths), bias="none").double()
    X, y = random_data(20, 5)
    flow = nm.gradient_flow(
        net, (X, y), time=time, loss=Exponential(), rtol=1e-7, estimate_error=True
    )
    assert flow.evaluations + flow.normal_evaluations <= most
    assert max(flow.column("sliding")) > 0
    assert flow.error < 1e-5
    h, final = time * 4e-5, flat(flow.final)
    differences = [
        np.abs(final - tiny_steps(net.parameters(), X.numpy(), y.numpy(), time, step)).max()
        for step in (4 * h, h)
    ]
    # Euler's own error is proportional to its step: what is left of ours vanishes in it.
    assert differences[1] < 5e-3
    assert differences[1] < 0.4 * differences[0]


@pytest.mark.slow
@pytest.mark.nightly_cases("widths1", "widths2", "widths3")
@pytest.mark.parametrize(
    ("widths", "n", "seed"),
    [
        ((5, 12, 6, 1), 40, 8),
        ((5, 10, 10, 10, 1), 40, 12),
        ((2, 10, 10, 10, 1), 60, 27),
        ((8, 16, 8, 3), 25, 10),
    ],
)
def test_flow_passes_where_kinks_meet(widths, n, seed):
    """Kinks of several layers on a sample, dying layers: found by hand, each stopped the flow."""
    torch.manual_seed(seed)
    X = torch.randn(n, widths[0])
    net = mlp(list(widths), bias="none")
    y = torch.where(X[:, 0] > 0, 1, -1) if widths[-1] == 1 else torch.randint(0, 3, (n,))
    flow = nm.gradient_flow(net, (X, y), time=2.0, max_evaluations=20_000)
    assert flow.message == "t reached 2"


@pytest.mark.parametrize(("force", "rises"), [(0.5, True), (-1.5, False)])
def test_a_unit_that_no_side_holds_goes_where_both_sides_push_it(force, rises):
    """Its pre-activation moves at force - gate * pull, here upwards or downwards at both gates."""
    pull = -1.0
    assert (force > 0) == (force - pull > 0) == rises
    kinks = find_gates(
        free=torch.tensor([force, 0.3]).double(),
        normals=torch.tensor([[1.0, 0.0]]).double(),
        forces=torch.tensor([force]).double(),
        pull=torch.tensor([pull]).double(),
    )
    assert not kinks.convex.item()
    assert kinks.rising.item() is rises


class Hidden(nn.Module):
    """One hidden layer with any activation, and a parameter that nothing uses."""

    def __init__(self, activation):
        super().__init__()
        self.a, self.b, self.unused = (
            nn.Linear(4, 8, bias=False),
            nn.Linear(8, 1, bias=False),
            nn.Parameter(torch.ones(3)),
        )
        self.activation = activation

    def forward(self, x):
        return self.b(self.activation(self.a(x)))


def in_place(z):
    nn.functional.relu_(z)
    return z


def flow_of(activation, **options):
    torch.manual_seed(2)
    net = Hidden(activation).double()
    return nm.gradient_flow(net, random_data(12, 4, seed=2), **options)


def test_relu_in_place_is_relu():
    plain = flat(flow_of(torch.relu, time=0.1).final)
    for relu in (in_place, nn.ReLU(inplace=True)):
        assert np.array_equal(flat(flow_of(relu, time=0.1).final), plain)


@pytest.mark.nightly
def test_flow_says_where_it_stalls():
    assert "no relu" in flow_of(lambda z: z.clamp(min=0), time=50.0).message
    assert flow_of(torch.relu, time=50.0).message == "t reached 50"


@pytest.mark.parametrize("time", [1e-16, 1e-300])
def test_a_time_far_below_a_first_step_is_reached(time):
    """The flow begins evenly: its path is in proportion to the time."""

    def path(time):
        net = nn.Linear(1, 1, bias=False, dtype=torch.float64)
        net.weight.data.fill_(-3.0)
        found = nm.gradient_flow(
            net, ([[1.0]], [1]), time=time, loss=nm.losses.Exponential(), progress=False
        )
        assert found.message == f"t reached {time:.6g}"
        return found.rows[-1]["s"]

    assert path(time) / time == pytest.approx(path(1e-9) / 1e-9, rel=1e-6)


def test_steps_and_rates_beyond_all_reason_are_said():
    net, data = nn.Linear(2, 1, bias=False), ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    before = net.weight.detach().clone()
    with pytest.raises(nm.ArgumentError, match="step_size must be a number above 0 and of at most"):
        nm.gradient_flow(net, data, time=1.0, step_size=1e308)
    with pytest.raises(nm.DivergenceError, match="smaller rate"):
        nm.flow.gradient_descent(net, data, steps=2, rate=1e200)
    # float32 has no such number; the line search gets down to what is of use.
    with pytest.raises(nm.DivergenceError, match="smaller rate than ConstantLR"):
        nm.train(net, data, lr=1e308, progress=False)
    assert torch.equal(net.weight, before)
    history = nm.train(
        net, data, lr=nm.LossBasedLR(1e40), until=nm.LogLossBelow(-3), progress=False
    )
    assert history.rows[-1]["accuracy"] == 1


@pytest.mark.slow
def test_error_estimate_compares_the_same_time():
    """Found by review: with a stopping rule it was the distance of two times."""
    flow = flow_of(torch.relu, until=nm.LogLossBelow(-0.5), estimate_error=True)
    assert flow.rows[-1]["log10_mean_loss"] < -0.5
    assert 0 < flow.error < 1e-6


@pytest.mark.slow
def test_smoothed_margin_never_falls_along_relu_flow():
    torch.manual_seed(0)
    net = mlp([4, 10, 1], bias="none").double()
    flow = nm.gradient_flow(net, random_data(12, 4), until=nm.LogLossBelow(-5), loss=Exponential())
    rows = [row for row in flow.rows if row["log_loss"] < 0]
    assert len(rows) > 50
    margins = np.array([row["smoothed_margin"] for row in rows])
    assert (np.diff(margins) >= -1e-8 * margins[1:]).all()


@pytest.mark.slow
def test_order_of_the_integrator():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).double()
    data = random_data(8, 3)
    exact = flat(nm.gradient_flow(net, data, time=1.0, rtol=1e-13).final)
    steps = np.array([0.1, 0.05, 0.025])
    errors = [
        np.linalg.norm(flat(nm.gradient_flow(net, data, time=1.0, step_size=h).final) - exact)
        for h in steps
    ]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert 4.3 < slope < 6.5


PROXIMAL = [  # errors relative to ||theta|| that steps of 0.08 and of 0.02 may have; the flows turn by 0.5 to 1
    ((4, 8, 1), 10, 10.0, 0.03, 0.015),
    ((4, 6, 5, 1), 10, 3.0, 0.05, 0.012),
    ((4, 6, 3), 9, 1e4, 0.03, 0.012),
]


@pytest.mark.nightly_cases("widths0", "widths2")
@pytest.mark.slow
@pytest.mark.parametrize(("widths", "n", "time", "coarse", "fine"), PROXIMAL)
def test_proximal_steps_end_where_the_exact_flow_ends(widths, n, time, coarse, fine):
    """The mode that passes kinks: its error is small beside the way, and falls with the step."""
    torch.manual_seed(0)
    net = mlp(list(widths), bias="none").double()
    X, y = random_data(n, widths[0])
    data = (X, y if widths[-1] == 1 else torch.arange(n) % widths[-1])
    exact, start = (
        flat(nm.gradient_flow(net, data, time=time, rtol=1e-6, progress=False).final),
        flat(net.state_dict()),
    )
    assert np.linalg.norm(exact / np.linalg.norm(exact) - start / np.linalg.norm(start)) > 0.45
    for step, most in ((0.08, coarse), (0.02, fine)):
        flow = nm.gradient_flow(
            net, data, time=time, method="proximal", step_size=step, progress=False
        )
        assert flow.message.startswith("t reached")
        assert flow.rows[-1]["log_time"] == math.log(time)
        assert np.linalg.norm(flat(flow.final) - exact) < most * np.linalg.norm(exact)
        assert np.array_equal(flat(net.state_dict()), start)  # the model is not changed


@pytest.mark.slow
def test_proximal_steps_leave_out_only_samples_without_weight():
    """Far samples take no part while they weigh less than rounding, and come back after."""
    torch.manual_seed(0)
    net = mlp([4, 8, 1], bias="none").double()
    X, y = random_data(12, 4)
    data = (torch.cat([X, 30 * X[:3]]), torch.cat([y, y[:3]]))
    flow = nm.gradient_flow(
        net, data, until=nm.LogLossBelow(-25), method="proximal", step_size=0.1, progress=False
    )
    limits = {"log_end": 1.0, "rules": [], "levels": [], "most": 10}
    run = ProximalFlow(net, data, CrossEntropy(), step_size=0.1, **limits)
    run.field.put(torch.from_numpy(flat(flow.final)))
    run.objective.measure(wide=True)
    _, log_loss = run.objective.measure(wide=False)
    assert 0 < len(run.objective._xs) < len(data[0])
    assert run.objective.left_out < math.log(1e-12)
    assert run.objective.log_loss() == pytest.approx(log_loss, rel=1e-12)
    assert log_loss == flow.rows[-1]["log_loss"]
    run.field.put(torch.from_numpy(flat(net.state_dict())))
    run.objective.measure(wide=False)
    assert run.objective.left_out > math.log(1e-12)  # seen where the weights have come back
    before = len(run.objective._xs)
    run.objective.enter()
    assert len(run.objective._xs) > before


@pytest.mark.slow
def test_proximal_flow_passes_kinks_that_are_no_relus():
    """Where the exact flow stalls: L-BFGS that starts on a kink may find no way down."""
    flow = flow_of(
        lambda z: z.clamp(min=0), time=50.0, method="proximal", step_size=0.1, progress=False
    )
    assert flow.message == "t reached 50"


@pytest.mark.nightly
def test_error_of_proximal_steps_is_the_distance_to_halved_ones():
    flow, finer = (
        flow_of(torch.tanh, time=3.0, method="proximal", step_size=h, progress=False)
        for h in (0.1, 0.05)
    )
    measured = flow_of(
        torch.tanh, time=3.0, method="proximal", step_size=0.1, estimate_error=True, progress=False
    )
    distance = np.linalg.norm(flat(flow.final) - flat(finer.final)) / np.linalg.norm(
        flat(finer.final)
    )
    assert measured.error == pytest.approx(distance, rel=1e-9)
    exact = flow_of(torch.tanh, time=3.0, progress=False)
    true = np.linalg.norm(flat(flow.final) - flat(exact.final)) / np.linalg.norm(flat(exact.final))
    # Of first order: the halved steps leave half.
    assert measured.error == pytest.approx(true / 2, rel=0.1)


@pytest.mark.slow
@pytest.mark.nightly_cases("proximal")
@pytest.mark.parametrize("method", ["exact", "proximal"])
def test_time_left_is_shown_while_a_flow_runs(method, monkeypatch):
    shown = []
    monkeypatch.setattr(
        Progress, "draw", lambda self, done, left, line, aside="": shown.append((done, left, line))
    )
    torch.manual_seed(0)
    X, _ = random_data(12, 4)
    net, data = nn.Linear(4, 1, bias=False).double(), (X, torch.where(X[:, 0] > 0, 1, -1))
    # Progress is shown by default.
    flow = nm.gradient_flow(net, data, until=nm.LogLossBelow(-12), method=method)
    steps = len(flow) - 1
    late = [(done, left) for done, left, _ in shown if done > steps / 2]
    assert late
    assert all(left is not None and 0.1 < (left + done) / steps < 10 for done, left in late)
    assert "log10-loss" in shown[-1][2]
    assert "log t" in shown[-1][2]


WRONG = [
    ({"time": "long"}, "time must be a number above 0"),
    ({"time": -1.0}, "time must be a number above 0"),
    ({"time": math.inf}, "time must be a number"),
    ({}, "Say when to stop"),
    ({"until": 5}, "until must be a stopping rule, such as nm.Epochs"),
    ({"until": nm.LogLossBelow}, "write LogLossBelow"),
    ({"until": [nm.LogLossBelow(-3), -3]}, r"until\[1\] must be"),
    ({"time": 1.0, "rtol": 0}, "rtol must be a number above 0 and below 1"),
    ({"time": 1.0, "step_size": 0}, "step_size must be a number above 0"),
    ({"time": 1.0, "levels": -3}, "levels must be a list"),
    ({"time": 1.0, "levels": ["a"]}, r"levels\[0\] must be a number"),
    ({"time": 1.0, "method": "prox"}, 'Did you mean "proximal"'),
    ({"time": 1.0, "metric": 3}, "metric must be a function"),
    ({"time": 1.0, "metric": dict, "method": "proximal"}, "metric must be a function"),
    ({"time": 1.0, "estimate_error": 1}, "estimate_error must be True or False"),
    ({"time": 1.0, "max_evaluations": 0.5}, "max_evaluations must be a whole number"),
]


@pytest.mark.parametrize(("options", "sentence"), WRONG)
def test_wrong_arguments_of_a_flow(options, sentence):
    with pytest.raises(nm.ArgumentError, match=sentence):
        flow_of(torch.relu, **options)


@pytest.mark.slow_cases("1e-300-proximal")
@pytest.mark.parametrize("method", ["exact", "proximal"])
@pytest.mark.parametrize("scale", [1e-300, 1e20, 1e160, 1e300])
def test_a_flow_of_data_at_the_ends_of_float64_ends_or_says_why(scale, method):
    """Found by fuzzing: LAPACK was asked for least squares of numbers that are not finite."""
    X, y = random_data(8, 3)
    torch.manual_seed(0)
    net = mlp([3, 4, 4, 1], bias="none").double()
    with contextlib.suppress(nm.NetmarginError):
        flow = nm.gradient_flow(
            net, (X * scale, y), time=1.0, method=method, max_evaluations=30, progress=False
        )
        assert flow.message


@pytest.fixture
def _float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.nightly
@pytest.mark.usefixtures("_float64")
def test_flow_of_a_relu_net_approaches_a_kkt_point_within_a_radius():
    torch.manual_seed(0)
    X, y = torch.randn(12, 4), torch.where(torch.rand(12) < 0.5, -1, 1)
    net = mlp([4, 10, 1], bias="none")
    flow = nm.gradient_flow(net, (X, y), until=nm.LogLossBelow(-100), levels=(-3, -99))
    epsilons = []
    for state in flow.states.values():
        net.load_state_dict(state)
        epsilons.append(nm.certify(net, (X, y), radius=1e-3).relative_radius_epsilon)
    assert epsilons[1] <= epsilons[0] / 3


class Square(nn.Module):
    def forward(self, z):
        return z * z


@pytest.mark.nightly_cases("2")
@pytest.mark.slow
@pytest.mark.parametrize("power", [2, 3])
def test_gamma_hat_never_falls_under_s5(power):
    torch.manual_seed(3)
    X = torch.randn(6, 3, dtype=torch.float64)
    X = X / X.norm(dim=1, keepdim=True)
    if power == 2:
        net, y = (
            nn.Sequential(
                nn.Linear(3, 8, bias=False), Square(), nn.Linear(8, 1, bias=False)
            ).double(),
            X[:, 0].abs() > X[:, 1].abs(),
        )
    else:
        net, y = mlp([3, 8, 1], bias="none", power=3).double(), X[:, 0] > 0
    y = torch.where(y, 1, -1)
    net.load_state_dict(
        nm.gradient_flow(net, (X, y), until=nm.LogLossBelow(-1.5), loss=Exponential()).final
    )
    bounds = SmoothnessBounds.of_layers(X, power)

    def margins(relative: float) -> np.ndarray:
        history = gradient_descent(
            copy.deepcopy(net), (X, y), steps=300, rate=bounds, relative=relative
        )
        assert all(
            row["log_gamma_hat"] <= math.log(row["smoothed_margin"])
            for row in history.rows
            if row["smoothed_margin"] > 0
        )
        return np.array([row.get("log_gamma_hat", -np.inf) for row in history.rows])

    assert (np.diff(margins(1.0)) >= 0).all()
    if power == 3:
        # Far beyond the rate of the theory the margin does fall: the check can fail.
        assert any(np.diff(margins(10.0**digits)).min() < 0 for digits in range(4, 9))


@pytest.mark.parametrize(
    ("X", "power", "error", "names"),
    [
        ([[1.0, 0.0]], 0, nm.ArgumentError, "power"),
        ([[1.0, 0.0]], 2.5, nm.ArgumentError, "power"),
        ([1.0, 0.0], 2, nm.DataError, "X must have shape"),
        ([[math.nan, 0.0]], 2, nm.DataError, "X holds NaN"),
        ([["odd"]], 2, nm.DataError, "X cannot be read"),
    ],
)
def test_smoothness_bounds_refuse_what_they_do_not_cover(X, power, error, names):
    with pytest.raises(error, match=names):
        SmoothnessBounds.of_layers(X, power)


@pytest.mark.parametrize(("power", "layers"), [(2, 2), (3, 2), (2, 3), (3, 3), (1, 3), (1, 1)])
def test_smoothness_bounds_hold_and_are_attained(power, layers):
    """At random weights, and along one path of neurons whose layers have r_i^2 = k_i / L."""
    random = np.random.default_rng(power)
    x = torch.from_numpy(random.normal(size=(1, 2)))
    bounds = SmoothnessBounds.of_layers(x, power, layers)
    shapes = [(2, 2)] * (layers - 1) + [(1, 2)]

    def f(theta: torch.Tensor) -> torch.Tensor:
        h = x[0]
        for index, W in enumerate(theta.split([a * b for a, b in shapes])):
            h = W.reshape(shapes[index]) @ h
            if index < layers - 1 and power > 1:  # without activation for power 1
                h = h.clamp(min=0) ** power
        return h.sum()

    k = float(power) ** np.arange(layers)[::-1]
    path = [np.zeros(shape) for shape in shapes]
    for W, weight in zip(path, k, strict=True):
        W[0, 0] = math.sqrt(weight / k.sum())
    path[0][0] = path[0][0, 0] * x[0].numpy() / x.norm().item()
    largest = np.zeros(3)
    for theta in [np.concatenate([W.ravel() for W in path])] + [
        random.normal(size=sum(a * b for a, b in shapes)) for _ in range(30)
    ]:
        theta = torch.from_numpy(theta / np.linalg.norm(theta)).requires_grad_(True)
        gradient = torch.autograd.grad(f(theta), theta)[0]
        hessian = torch.autograd.functional.hessian(f, theta.detach())
        found = [f(theta).item(), gradient.norm().item(), torch.linalg.matrix_norm(hessian, 2)]
        largest = np.maximum(largest, found)
    limits = [bounds.value, bounds.gradient, bounds.hessian]
    assert largest == pytest.approx(limits, rel=1e-9, abs=1e-12)


@pytest.mark.slow
def test_margin_ascent_beats_training_and_ends_near_a_kkt_point():
    X, y = nm.datasets.digits(limit=120)
    torch.manual_seed(0)
    net = mlp([64, 32, 10], power=2)
    trained = copy.deepcopy(net)
    history = nm.train(trained, (X, y), until=nm.Epochs(60), progress=False)
    ascent = nm.maximize_margin(net, (X, y), iterations=60, multiplier_steps=12, progress=False)
    assert ascent.report.margins["layers"].value > 3 * history.rows[-1]["layer_normalized_margin"]
    assert nm.measure(net, (X, y)).margins["layers"].value == pytest.approx(
        ascent.report.margins["layers"].value, rel=1e-4
    )
    assert ascent.certificate.relative_epsilon < 0.02
    margins = ascent.column("layer_normalized_margin")
    assert margins[5] > margins[0] > 0


def test_minimization_stays_finite():
    """L-BFGS can run into NaN once only rounding is left to gain; here, as the function ends."""
    x = torch.tensor([1.0, 4.0], dtype=torch.float64, requires_grad=True)
    minimize([x], lambda: torch.sqrt(x).sum(), 50)
    assert torch.isfinite(x).all()
    assert torch.sqrt(x).sum() < 3


@pytest.mark.slow
def test_margin_ascent_of_a_convolutional_net_in_any_memory_layout():
    torch.manual_seed(0)
    net = mnist_cnn(channels=(4, 6), hidden=32)  # channels last
    X, y = torch.rand(8, 1, 28, 28), torch.arange(8) % 2
    ascent = nm.maximize_margin(net, (X, y), temperatures=(0.1,), iterations=10, progress=False)
    assert ascent.report.normalized_margin > 0
    assert nm.measure(net, (X, y)).margins["layers"].value == pytest.approx(
        ascent.report.margins["layers"].value, rel=1e-4
    )


@pytest.mark.slow
def test_margin_ascent_with_activations_computed_twice_is_the_same(monkeypatch):
    """Many samples go through the net in parts, whose activations are not held for the gradient."""
    torch.manual_seed(0)
    X, y = torch.randn(12, 4), torch.arange(12) % 3
    net = mlp([4, 32, 3])

    def ascend() -> float:
        ascent = nm.maximize_margin(
            copy.deepcopy(net), (X, y), temperatures=(0.1,), iterations=10, progress=False
        )
        return ascent.report.margins["layers"].value

    held = ascend()
    monkeypatch.setattr("netmargin.ascent.smoothed_margin._CHECKPOINTED_ABOVE", 3)
    assert ascend() == pytest.approx(held, rel=1e-6)


def test_a_sample_that_no_unit_sees_is_not_helped_by_more_evaluations():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 1, bias=False))
    net[0].weight.data.fill_(-1.0), net[2].weight.data.fill_(1.0)
    rules = {"until": nm.LogLossBelow(-3), "max_evaluations": 200, "progress": False}
    flow = nm.gradient_flow(net, ([[1.0], [-1.0]], [1, 1]), **rules)
    assert flow.status is nm.Status.EVALUATION_LIMIT
    said = " ".join(flow.summary().split())
    assert "raise max_evaluations" not in said
    assert "the worst by 0 in the net's scores" in said
    assert "More steps will not help" in said


@pytest.mark.slow
def test_bad_input(tmp_path):
    X, y = random_data(8, 3)
    net = mlp([3, 4, 1]).double()
    assert (
        "raise max_evaluations"
        in nm.gradient_flow(net, (X, y), time=1e9, max_evaluations=20).message
    )
    with pytest.raises(nm.NotSeparatedError, match="0 and 1 are equal and have different labels"):
        nm.maximize_margin(net, (torch.ones(2, 3), [1, -1]), iterations=5, progress=False)
    blocked = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    with pytest.raises(nm.NotHomogeneousError):
        nm.maximize_margin(blocked, (X, y), progress=False)
    frozen = mlp([3, 4, 1], bias="none")
    frozen[0].weight.requires_grad_(False)
    with pytest.raises(nm.ModelError, match="0.weight is frozen"):
        nm.maximize_margin(frozen, (X, y), progress=False)
    with pytest.raises(ValueError, match="temperatures must be"):
        nm.maximize_margin(net, (X, y), temperatures=(), progress=False)
    with pytest.raises(nm.DataError, match="summed loss is below 1"):
        gradient_descent(net, (X, y), steps=1, rate=SmoothnessBounds(1.0, 1.0, 1.0))
    flow = nm.gradient_flow(blocked, (X, y), time=0.1, loss=Logistic())
    assert flow.rows[-1]["log10_mean_loss"] < flow.rows[0]["log10_mean_loss"]
    assert nm.load(flow.save(tmp_path / "flow.zip")).rows == flow.rows


@pytest.mark.parametrize("draws", [3, 60])
def test_ctrl_c_ends_the_error_estimate_too(draws, monkeypatch):
    net = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 0.3]]))
    shown = []

    def draw(*args):
        shown.append(args)
        if len(shown) == draws:  # 42 are of the flow itself, the others of the finer one
            raise KeyboardInterrupt

    monkeypatch.setattr("netmargin.core.progress.Progress.draw", draw)
    data = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    flow = nm.gradient_flow(net, data, time=100.0, estimate_error=True, progress=False)
    assert (flow.error, len(shown)) == (None, draws)
    assert flow.status is nm.Status.INTERRUPTED
