"""What theorems promise, on tight instances, closed forms, and formulas worked out apart."""

import math
import sys
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from mpmath import mpf
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from torch import nn

import netmargin as nm
from netmargin import bounds
from netmargin.losses import Exponential, Logistic
from netmargin.papers.chizat_bach import (
    projected_flow,
    tangent_margin,
    tangent_max_margin,
    train_magnitudes,
    train_output_layer,
)
from netmargin.papers.two_homogeneity import (
    NormalizedNet,
    early_margin,
    fast_rate_bound,
    mirror_flow,
)
from netmargin.papers.wei_2018 import (
    Regularity,
    perturbation_schedule,
    perturbed_flow,
    regularized_logistic,
)
from netmargin.papers.wei_2018._perturbation_schedule import bound_growth, largest_step
from netmargin.solvers import ReLUMeasure
from netmargin.twolayer import slackness
from netmargin.twolayer.smooth_margin import sample_weights

# Fixed features: Propositions 6 and 7 of Chizat and Bach

GAME = np.array([[1.0, -0.2, -1.0], [-0.2, 0.9, -1.5]])
"""Signed features. The third column is worse than both others: the value of the game is that of the
first two, by its formula.
"""
VALUE = (1.0 * 0.9 - 0.2 * 0.2) / (1.0 + 0.9 + 0.2 + 0.2)


def softmin(margins: np.ndarray) -> np.ndarray:
    p = np.exp(margins.min() - margins)
    return p / p.sum()


def test_proposition_6_in_the_variables_of_its_text():
    """r(t + 1) = r(t) + eta(t) m grad F(r(t)), r(0) = 1, a = r^2 / m; (15) term by term."""
    n, m = GAME.shape
    labels = np.array([1, -1])
    run = train_magnitudes(labels[:, None] * GAME, labels, steps=40)
    largest, r, best, sums = 1.5, np.ones(m), -math.inf, 0.0
    assert run.optimum <= VALUE * (1 + 1e-12)
    assert VALUE * (1 - 1e-12) <= run.proved <= VALUE * (1 + 1e-9)
    for t in range(40):
        a = r**2 / m
        best = max(best, (GAME @ a).min() / a.sum())
        sums += 1 / (a.sum() * math.sqrt(t + 1))
        r = r + 1 / (16 * largest * math.sqrt(t + 1)) * 2 * r * (softmin(GAME @ a) @ GAME)
        # After these steps s = 0 .. t the proposition speaks of t + 1.
        loses = (
            8 * largest * math.log(m) + largest * math.log(t + 1) + largest + 4 * math.log(n) * sums
        )
        assert run.best[t] == pytest.approx(best, abs=1e-13)
        assert run.guarantee[t] == pytest.approx(VALUE - loses / math.sqrt(t + 1), abs=1e-9)


def test_no_rate_is_promised_of_step_sizes_that_are_not_those_of_the_theorem():
    """One sample and two features, steps too small to move: best is 0, the theorem says 0.84."""
    run = train_magnitudes([[1.0, -1.0]], [1], steps=10_000, rate=lambda t: 1e-12 / np.sqrt(t + 1))
    assert run.best[-1] < 1e-6
    assert run.guarantee.max() == -np.inf


def test_proposition_7_in_the_variables_of_its_text():
    n, m = GAME.shape
    labels = np.array([1, -1])
    run = train_output_layer(labels[:, None] * GAME, labels, steps=40)
    # Both margins are tight at the optimum in the span of the two samples: gamma_2 = 1 / sqrt(m 1'
    # (z z')^-1 1).
    gamma = 1 / math.sqrt(m * np.linalg.inv(GAME @ GAME.T).sum())
    largest, r, size, best = 1.5, np.zeros(m), 1.0, -math.inf
    assert run.optimum <= gamma * (1 + 1e-12)
    assert gamma * (1 - 1e-12) <= run.proved <= gamma * (1 + 1e-5)
    for t in range(40):
        a = r / m
        size = max(size, math.sqrt(m) * np.linalg.norm(a))
        best = max(best, (GAME @ a).min() / size)
        r = r + size * math.sqrt(2) / (largest * math.sqrt(t + 1)) * (softmin(GAME @ a) @ GAME)
        loses = 2 * math.sqrt(2) * largest + math.sqrt(3) * largest * math.log(n) / gamma
        assert run.best[t] == pytest.approx(best, abs=1e-10)
        assert run.guarantee[t] == pytest.approx(gamma - loses / math.sqrt(t + 1), abs=1e-5)


def test_bounds_of_gamma_2_hold_the_closed_form_to_the_last_digit():
    for seed in range(20):
        z = np.abs(np.random.default_rng(seed).normal(size=(2, 3))) + np.eye(2, 3) / 2
        first, second = ([Fraction(float(v)) for v in row] for row in z)
        a, b, c = (
            sum(x * y for x, y in zip(*pair, strict=True))
            for pair in ((first, first), (first, second), (second, second))
        )
        if min(a, c) <= b:  # one sample alone holds the margin
            continue
        square = (a * c - b * b) / (3 * (a - 2 * b + c))
        run = train_output_layer(z, [1, 1], steps=1)
        assert Fraction(run.optimum) ** 2 <= square <= Fraction(run.proved) ** 2


# The early margin: Theorem 3.1 of "The ubiquity of 2-homogeneity", corrected


class Given(nn.Module):
    """Features that are the inputs, and do not move."""

    def forward(self, x):
        return x


def frozen(z: np.ndarray, u) -> tuple[NormalizedNet, tuple]:
    """A net whose signed features are the rows of z, from the weights u."""
    net = NormalizedNet(Given(), z.shape[1])
    with torch.no_grad():
        net.a.copy_(torch.tensor(u, dtype=torch.float64).sqrt())
        net.b.copy_(net.a)
    return net, (torch.tensor(z), torch.ones(len(z), dtype=torch.int64))


def test_no_margin_is_promised_that_the_flow_does_not_have():
    """999 samples want one feature, one the other: a promise without n is broken."""
    z = np.tile([1.0, 0.1], (1000, 1))
    z[-1] = [-1.0, 0.5]
    net, data = frozen(z, [0.5, 0.5])
    kinds, shares = np.array([z[0], z[-1]]), np.array([0.999, 0.001])

    def field(_, log_u):
        return 2 * (shares / (1 + np.exp(kinds @ np.exp(log_u)))) @ kinds

    times = np.array([500.0, 700.0, 1000.0, 1500.0, 1e4, 1e6, 1e9, 1e12])
    flow = solve_ivp(
        field,
        (0, times[-1]),
        np.log([0.5, 0.5]),
        t_eval=times,
        method="LSODA",
        rtol=1e-10,
        atol=1e-10,
    )
    promised = 0
    for time, log_u in zip(times, flow.y.T, strict=True):
        u = np.exp(log_u)
        found = early_margin(net, data, time=time).guarantee
        if found is not None and found > 0:
            assert found <= (kinds @ u).min() / (2 * u.sum())
            promised += 1
    assert promised >= 2


@pytest.mark.parametrize("time", [50.0, 1e5, 1e10])
def test_every_step_of_the_early_margin(time):
    """u_bar = log(t n) / (gamma / 2) p and its divergence, in 30 digits, step by step."""
    z = np.tile([[1.0, -0.2], [-0.2, 0.9]], (4, 1))
    u, n = [0.3, 0.2], 8
    found = early_margin(*frozen(z, u), time=time, p=np.array([1.1, 1.2]) / 2.3)
    with mpmath.workdps(30):
        total = mpf(
            "2.3"
        )  # 1 + 0.9 + 0.2 + 0.2: the game's p is (1.1, 1.2) / 2.3, its value 0.86 / 2.3
        p, gamma = [mpf("1.1") / total, mpf("1.2") / total], mpf("0.86") / total
        assert found.gamma == pytest.approx(float(gamma), rel=1e-12)
        u_bar = [2 * mpmath.log(time * n) / gamma * share for share in p]
        divergence = mpmath.fsum(
            b * mpmath.log(b / start) - b + start for b, start in zip(u_bar, u, strict=True)
        )
        length = mpmath.fsum(u_bar)
        assert pytest.approx(float(divergence / length), rel=1e-10) == found.R
        # The mean loss at t: mean l(q(u_bar)) <= e^(-gamma' |u_bar|) = 1 / (t n) from the
        # comparison, D / (2 t) from the flow.
        mean_loss = 1 / (mpf(time) * n) + divergence / (2 * mpf(time))
        q = -mpmath.log(
            mpmath.expm1(n * mean_loss)
        )  # one sample has all of the loss: log(1 + e^-q) = n * mean
        mass = 8 * divergence + 2 * length + mpf(16) / n
        promise = q / (2 * mass)
    if found.guarantee is None:
        assert promise <= 0
    else:
        assert found.guarantee == pytest.approx(float(promise), rel=1e-9)


def shared_features(width: int = 4) -> tuple[NormalizedNet, tuple]:
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, width), nn.Tanh()).double()
    x = torch.randn(3, 2, dtype=torch.float64)
    net = NormalizedNet(inner, width)
    with torch.no_grad():  # labels that some neuron gets right
        y = torch.sign(inner(x)[:, 0])
        net.b.copy_(net.a)
    return net, (x, y)


def test_the_drift_of_shared_features():
    """C_1 and C_2 gradient by gradient; the drift is their pull over the whole of the loss."""
    net, (x, y) = shared_features()
    found = early_margin(net, (x, y), time=100.0)
    gradients = {}
    for i in range(3):
        for j in range(4):
            grads = torch.autograd.grad(net.inner(x)[i, j], list(net.inner.parameters()))
            gradients[i, j] = torch.cat([g.flatten() for g in grads])
    products = {
        (j == k, abs(float(g @ h)))
        for (_, j), g in gradients.items()
        for (_, k), h in gradients.items()
    }
    own, other = (max(size for same, size in products if same is kind) for kind in (True, False))
    assert pytest.approx(own, rel=1e-10) == found.C_1
    assert pytest.approx(other, rel=1e-10) == found.C_2
    length = math.log(300.0) / (found.gamma / 2)
    # int of the mean loss <= D / 2 + 1 / n, and sum u <= (8 R + 2) |u_bar| + 16 / n all along.
    loss, mass = found.R * length / 2 + 1 / 3, (8 * found.R + 2) * length + 16 / 3
    assert found.drift == pytest.approx((own * found.p.max() + other) * loss * mass, rel=1e-9)
    for drift, applies in ((0.49, True), (0.51, False), (0.99, False)):
        assert replace(found, drift=drift * found.gamma).applies is applies


# The schedule of perturbed flow: Theorem E.4 of Wei et al. 2018

REGULARITIES = {
    "logistic": (Regularity(4, 6, 0.4, 0.04, 2.0, 1.5, 0.1, 0.1, 0.0), 0.1, 0.7),
    "a steep penalty": (Regularity(4, 2, 0.1, 0.2, 1.0, 0.1, 0.5, 3.0, 5.0), 0.2, 1.0),
    "B_L is c_1": (Regularity(3, 1, 3.0, 1e-3, 0.5, 0.5, 1.0, 2.0, 0.2), 0.3, 0.5),
    "a large start": (Regularity(3, 3, 0.5, 0.1, 1.0, 1.0, 0.05, 0.05, 0.0), 0.1, 40.0),
    "a small start": (Regularity(3, 3, 0.5, 0.1, 1.0, 1.0, 5.0, 6.0, 1.0), 1e-3, 1e-2),
    "slow noise": (Regularity(5, 1, 1e-2, 1e-4, 1.0, 20.0, 1.0, 1.0, 0.0), 1e-2, 0.1),
    "hardly any curvature": (Regularity(3, 1, 1e-3, 1e-6, 1e-2, 1e-2, 1.0, 1e-3, 0.0), 0.3, 0.5),
    "the second fall is the smaller": (
        Regularity(3, 1, 0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 0.0),
        1e-8,
        1e-6,
    ),
}


def proof_of_theorem_e4(b: Regularity, sigma, epsilon, start, eta=0):
    """l and t_epsilon with this sigma, lemma by lemma in 40 digits; None where one fails.

    With eta > 0 the proof of E.21, in steps that lose half of the fall.
    """
    B_L = b.M_R * b.B_Phi + b.B_V  # Lemma E.6
    W2 = mpf(2) * start / (mpf(b.b_V) / 2)  # Lemma E.9, once sigma t B_L <= start and <= b_V / 2
    tau = epsilon / (2 * W2)
    if not sigma < tau / 2:
        return None
    # Lemma E.11 with the whole gradient of a 2-homogeneous function: tangential M_Phi, radial 2
    # B_Phi.
    gradient = mpmath.sqrt(mpf(b.M_Phi) ** 2 + (2 * mpf(b.B_Phi)) ** 2)
    if eta:
        B_L += eta * sigma * b.C_R * mpf(b.B_Phi) ** 2 * (W2 + 1)
        gradient *= mpf(5) / 4 * mpmath.sqrt(2)
    c_1 = max(
        b.k * b.C_R * mpf(b.B_Phi) ** 2, b.k * b.C_R * b.B_Phi * gradient, mpf(B_L)
    )  # Lemma E.12
    c_2 = mpmath.sqrt(b.k) * b.M_R * b.M_Phi + b.M_V  # Lemma E.13
    # Lemma E.14, corrected, with delta = tau / 2: a cap of chord delta / c_2 has (delta / 2 c_2)^d
    # / 2 of the sphere at least.
    log_cap = (b.dimension - 1) * mpmath.log(min(tau / 2 / (2 * c_2), mpf(1))) - mpmath.log(2)
    growth = tau - sigma
    if eta:
        growth = mpmath.log((1 - eta * sigma) * (1 + eta * tau / 2) ** 2) / eta
    window = max((mpmath.log(W2 / sigma) - log_cap) / growth, mpf(0)) + 1 + 2 * eta  # Lemma E.16
    drawn = sigma * window * (W2 + 1)
    if not c_1 * drawn < tau / 8:
        return None
    first = (epsilon / (8 * W2) - c_1 * drawn) ** 2 / (
        c_1**2 * W2 * window
    ) - 3 * c_1 * drawn  # (E.16)
    second = window * epsilon**2 / (4 * W2) - 2 * B_L * drawn  # (E.17)
    if not (first > 0 and second > 0):
        return None
    time = 2 * window * (mpmath.ceil(start / min(first, second)) + 1)  # L falls by that in each 2 l
    return (window, time) if sigma * time * B_L <= min(start, mpf(b.b_V) / 2) else None


@pytest.mark.parametrize("discrete", [False, True], ids=["flow", "descent"])
@pytest.mark.parametrize("name", REGULARITIES)
def test_schedules_take_the_largest_sigma_of_the_proof(name, discrete):
    regularity, epsilon, start = REGULARITIES[name]
    regularity = replace(regularity, C_Phi=1.5 * regularity.M_Phi, C_V=0.3)
    found = perturbation_schedule(regularity, epsilon=epsilon, start=start, discrete=discrete)
    assert (found.rate > 0) is discrete
    with mpmath.workdps(40):
        of_proof = [mpf(epsilon), mpf(start), mpf(found.rate)]
        window, time = proof_of_theorem_e4(regularity, mpf(found.sigma), *of_proof)
        assert found.window == pytest.approx(float(window), rel=1e-12)
        assert found.time == pytest.approx(float(time), rel=1e-9)
        of_proof[2] = mpf(largest_step(regularity, 2 * found.sigma, 4 * start / regularity.b_V))
        of_proof[2] *= discrete
        assert proof_of_theorem_e4(regularity, 2 * mpf(found.sigma), *of_proof) is None


@pytest.mark.parametrize("name", REGULARITIES)
def test_half_of_the_fall_is_left_to_the_longest_steps(name):
    """(1 - eta sigma) (1 - eta H / 2) - C_R G^2 (1 + eta S)^2 eta W^2 >= 1/2 at the eta of E.21."""
    b, _, start = REGULARITIES[name]
    for C_Phi in (b.M_Phi, 100 * b.M_Phi + 100):
        b, moment, sigma = replace(b, C_Phi=C_Phi, C_V=0.3), 4 * start / b.b_V, 0.3
        eta = largest_step(b, sigma, moment)
        H = math.sqrt(b.k) * b.M_R * C_Phi + 0.3
        along, L = math.sqrt(b.k) * b.M_R * b.M_Phi + b.M_V, b.M_R * b.B_Phi + b.B_V
        G2, S = b.k * b.M_Phi**2 + 4 * b.B_Phi**2, math.hypot(along, 2 * L)
        left = (1 - eta * sigma) * (1 - eta * H / 2)
        assert left - b.C_R * G2 * (1 + eta * S) ** 2 * eta * moment >= 0.5 - 1e-12
        assert eta * max(S / 4, H / 2 + L) <= 1 + 1e-12
        assert eta * max(4 * S, 4 * sigma, 4 * H, 2 * L, 7 * b.C_R * G2 * moment) >= 0.5
        grown = bound_growth(b, eta * sigma, moment)
        assert grown == pytest.approx(L + eta * sigma * b.C_R * b.B_Phi**2 * (moment + 1))


def test_constants_of_the_logistic_problem_are_attained():
    """Equal samples of length 3 reach M_R, C_R, B_Phi and M_Phi; nothing random passes them."""
    n, length = 5, 3.0
    problem = regularized_logistic([[length]] * n, [1] * n, regularization=0.1, bias=False)
    known = problem.regularity
    q = torch.full((n,), -1e3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(problem.risk(q), q)
    assert slope.norm().item() == pytest.approx(known.M_R)
    hessian = torch.autograd.functional.hessian(problem.risk, torch.zeros(n, dtype=torch.float64))
    assert torch.linalg.matrix_norm(hessian, 2).item() == pytest.approx(known.C_R)
    diagonal = torch.tensor([[1.0, 1.0]], dtype=torch.float64) / math.sqrt(2)
    assert problem.features(diagonal).norm().item() == pytest.approx(known.B_Phi)
    turned = torch.tensor([[math.cos(1e-6), math.sin(1e-6)], [1.0, 0.0]], dtype=torch.float64)
    values = problem.features(turned)
    assert (
        (values[0] - values[1]).abs().max() / (turned[0] - turned[1]).norm()
    ).item() == pytest.approx(known.M_Phi)
    assert problem.penalty(diagonal).item() == pytest.approx(known.b_V) == known.B_V
    random = torch.randn(500, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    sphere = nn.functional.normalize(random, dim=1)
    values = problem.features(sphere)
    assert values.norm(dim=1).max() <= known.B_Phi * (1 + 1e-12)
    slopes = (values[1:] - values[:-1]).abs().max(1).values / (sphere[1:] - sphere[:-1]).norm(dim=1)
    assert slopes.max() <= known.M_Phi * (1 + 1e-12)


# Flows in closed form


def test_renewal_takes_its_share_at_every_step():
    """After 30 steps old particles keep (1 - sigma rate)^30 of the mass."""
    problem = regularized_logistic([[1.0]], [1], regularization=0.1)
    for every in (1, 10, 30):
        options = {
            "sigma": 0.4,
            "rate": 0.05,
            "steps": 30,
            "records": 1,
            "renew_every": every,
        }
        run = perturbed_flow(problem, [[1.0, 0.0, 1.0]], **options)
        assert run.end.weights[0].item() == pytest.approx((1 - 0.4 * 0.05) ** 30, rel=1e-12)


def test_projected_flow_of_one_neuron_on_a_circle():
    """phi = b relu(a) at (1, 0): sin 2 theta = tanh 2t, and the mass is cosh 2t."""
    start = ReLUMeasure.projected([[1.0, 0.0]], bias=False)
    times = np.array([0.0, 0.3, 1.0, 2.0])
    flow = projected_flow(start, [[1.0]], [1], times=times, rtol=1e-9)
    assert flow.log_masses == pytest.approx(np.log(np.cosh(2 * times)), abs=1e-7)
    assert flow.margins == pytest.approx(np.tanh(2 * times) / 2, abs=1e-7)


def test_mirror_flow_of_one_weight():
    """h = u x with loss e^-u: du / dt = 2 u e^-u, so that Ei(u) grows by 2t."""
    net, _ = frozen(np.array([[1.0]]), [0.25])
    data = (torch.ones(1, 1, dtype=torch.float64), torch.tensor([1]))
    u = torch.exp(mirror_flow(net, data, time=5.0, loss=Exponential()).final["log_u"]).item()
    assert float(mpmath.ei(u) - mpmath.ei(0.25)) == pytest.approx(10.0, rel=1e-5)


@pytest.mark.parametrize("q", [[0.0, 0.0], [1.0, -2.0, 3.0], [40.0, 50.0], [-30.0, 30.0]])
def test_weights_of_samples_are_slopes_over_the_sum_of_losses(q):
    """-l'(q_n) / sum_k l(q_k) to 30 digits: of the logistic loss they do not sum to 1."""
    with mpmath.workdps(30):
        terms = [mpmath.exp(-mpf(v)) for v in q]
        exponential = [float(term / mpmath.fsum(terms)) for term in terms]
        losses = mpmath.fsum(mpmath.log1p(term) for term in terms)
        logistic = [float(term / (1 + term) / losses) for term in terms]
    minus_q = -torch.tensor(q, dtype=torch.float64)[None]
    assert sample_weights(minus_q, Exponential())[0].numpy() == pytest.approx(
        exponential, rel=1e-12
    )
    assert sample_weights(minus_q, Logistic())[0].numpy() == pytest.approx(logistic, rel=1e-12)


# Optimality conditions


def test_slackness_by_hand(monkeypatch):
    """Sample (3, 0): the best neuron gives 3 / 2, one at 60 degrees half; (0, 1) the least."""
    best = ReLUMeasure.projected([[1.0, 0.0, 1.0]], bias=False)
    aside = ReLUMeasure.projected([[0.5, math.sqrt(0.75), 1.0]], bias=False)
    found = [slackness(measure, [[3.0, 0.0]], [1], [1.0]) for measure in (best, aside)]
    assert [f.neurons for f in found] == pytest.approx([0.0, 0.75], abs=1e-9)
    assert [f.samples for f in found] == pytest.approx([0.0, 0.0], abs=1e-12)
    both = slackness(best, [[3.0, 0.0], [0.0, 1.0]], [1, 1], [1.0, 1.0])
    assert both.samples == pytest.approx(0.75)  # q = (3 / 2, 0), p even
    assert both.neurons == pytest.approx(math.hypot(1.5, 0.5) / 2 - 0.75)
    # What search misses is proved all the same.
    nothing = lambda Z, *_, **__: (np.zeros((0, Z.shape[1])), np.zeros(0))  # noqa: E731
    monkeypatch.setattr(sys.modules["netmargin.twolayer.slackness"], "search_neurons", nothing)
    blind = slackness(aside, [[3.0, 0.0]], [1], [1.0])
    assert (blind.neurons, blind.proved) == (pytest.approx(0.75), True)
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert not slackness(
        ReLUMeasure.projected(np.ones((1, 4)), bias=False), X, [1] * 20, [1.0] * 20, time_limit=0.0
    ).proved


def test_tangent_margins_by_hand():
    """Neurons (x / |x|, 1): the gradient (x, |x|) has length sqrt 2 |x|, the kernel's margin."""
    w = np.array([[1.0, 0.0, 1.0]] * 3)
    assert tangent_max_margin(w, [[2.0, 0.0]], [1], bias=False).margin == pytest.approx(
        2 * math.sqrt(2)
    )
    for size in (0.1, 5.0):
        moved = w + size * np.array([1.0, 0.0, 1.0])
        assert tangent_margin(w, moved, [[2.0, 0.0]], [1], bias=False) == pytest.approx(
            2 * math.sqrt(2)
        )


# Generalization bounds: each factor is a number that can be worked out by hand

E = 2 ** (math.e - 2)
"""C / gamma with log log_2(4 C / gamma) = 1. With n = 100 that term is 0.1, and so is the last at
delta = e^-2.
"""
SURE = math.exp(-2)


@pytest.mark.parametrize(
    ("bound", "terms"),
    [
        # 4 Rad / gamma = 4 * 0.025 / 0.5; the ramp at gamma = 0.5 of margins 0.5, 0.25, 0 and -1.
        (lambda: bounds.margin_bound([0.5] * 99 + [0.75], rademacher=0.025, largest=E / 2, delta=SURE), [0.0, 0.2, 0.1, 0.1]),
        (
            lambda: bounds.margin_bound([0.5, 0.25, 0.0, -0.5] * 25, rademacher=0.0, largest=E / 2, margin=0.5, delta=SURE),
            [0.625, 0.0, 0.1, 0.1],
        ),
        # 6 |X|_F / (n gamma) with |X|_F = 5; twice the margin in units of the variation norm.
        (lambda: bounds.two_layer_bound([0.25] * 100, units(100) / 2, radius=E / 2, delta=SURE), [0.0, 1.2, 0.1, 0.1]),
        # 4 sqrt(trace K) / (n gamma) = 4 * 5 / 50.
        (lambda: bounds.kernel_bound([0.5] * 100, np.eye(100) / 4, largest=E / 2, delta=SURE), [0.0, 0.4, 0.1, 0.1]),
        # q = 2: C = radius / 2, 4 C (sqrt(4 log 2) + 1) / (gamma 10); sqrt(4 log 2) = 1.6651092223.
        (lambda: bounds.deep_bound([0.5] * 100, depth=2, radius=E, delta=SURE), [0.0, 0.4 * E * 2.6651092223153956, 0.1, 0.1]),
        # q = 3: C = radius / 3^{3/2}; sqrt(6 log 2) = 2.0393339804.
        (
            lambda: bounds.deep_bound([0.5] * 100, depth=3, radius=E * 0.5 * 3**1.5, delta=SURE),
            [0.0, 0.4 * E * 3.0393339803376, 0.1, 0.1],
        ),
        # K log^3 n Rad^2 / gamma^2 with n = 100: log^3 100 = 97.6645724; log(e^2 * log 8) = 2 +
        # 0.7320993680.
        (
            lambda: fast_rate_bound([0.25] * 100, radius=1.0, constant=1.0, delta=SURE),
            [97.6645724301 * 4 / 100, (2 + 0.7320993681) / 100],
        ),
        # 12 M max(1, |alpha| |X|_F) / n, M = 2, 20 / 100; 2 c sqrt((2 + log 80) / 200), log 80 =
        # 4.3820266347.
        (
            lambda: bounds.regression_bound([0.5] * 100, units(100), norm=2.0, largest_loss=3.0, lipschitz=2.0, delta=SURE),
            [0.5, 4.8, 6 * math.sqrt(6.3820266346738812 / 200)],
        ),
        (
            lambda: bounds.regression_bound([0.5] * 100, units(100), norm=0.01, largest_loss=3.0, lipschitz=2.0, delta=SURE),
            [0.5, 0.24, 6 * math.sqrt(2.6931471805599453 / 200)],
        ),
        # 4 / sqrt(2 d) for 12, d = 2.
        (
            lambda: bounds.regression_bound(
                [0.5] * 100, units(100), norm=2.0, largest_loss=3.0, lipschitz=2.0, delta=SURE, kernel=True
            ),
            [0.5, 0.8, 6 * math.sqrt(6.3820266346738812 / 200)],
        ),
        # C / 10 * 2^{4 / 1.5}; B = log_2(4 * 2 * C) + 3 with C = 2^{e - 3} / 2^3: log_2 gives e -
        # 3.
        (
            lambda: bounds.interclass_bound(100, distance=0.5, radius=1.0, r=1, constant=2 ** (math.e - 6), delta=SURE),
            [2 ** (math.e - 6) / 10 * 2 ** (8 / 3), 0.1, 0.1],
        ),
    ],
    ids=[
        "margin", "ramp", "two layers", "kernel", "depth 2", "depth 3", "fast rate", "regression", "least norm", "kernel regression",
        "interclass",
    ],
)  # fmt: skip
def test_terms_of_bounds_by_hand(bound, terms):
    assert list(bound().terms.values()) == pytest.approx(terms, rel=1e-8)


def units(n: int) -> np.ndarray:
    """n unit vectors of the plane."""
    return np.tile([[1.0, 0.0]], (n, 1))


def test_rademacher_bounds_are_above_the_exact_complexity():
    """Equal samples of length 2: every supremum is 2 |sum eps| / n, in both balls."""
    for n in (1, 2, 5):
        X = 2 * units(n)
        signs = np.array(np.meshgrid(*[[-1, 1]] * n)).reshape(n, -1)
        mean = np.abs(signs.sum(0)).mean() / n
        found = bounds.variation_ball(X, bias=False, draws=400)
        assert found.exact
        assert found.bound >= 2 * mean
        assert found.estimate == pytest.approx(2 * mean, abs=5 * found.error + 1e-12)
        kernel = bounds.kernel_ball(X, bias=False, draws=400)
        # E relu(u . x)^2 = |x|^2 / (2 d) = 1: by Jensen at most 1 / sqrt n, and that with one
        # sample.
        assert mean * (1 - 1e-12) <= kernel.bound == pytest.approx(1 / math.sqrt(n))


def test_outputs_of_balanced_nets_pass_for_possible_margins():
    """|Theta| = 1 in equal layers gives |f(x)| = depth^{-depth/2} |x|: a possible margin."""
    for depth in (1, 2, 4):
        found = bounds.deep_bound([3.0 * depth ** (-depth / 2)] * 50, depth=depth, radius=3.0)
        assert found.value > 0
    assert bounds.two_layer_bound([1.5] * 50, 3 * units(50), radius=3.0).value > 0


@pytest.mark.slow_cases("2", "4", "8")
@pytest.mark.parametrize("seed", [0, 2, 4, 8])
def test_interclass_bounds_are_above_the_best_plane(seed):
    """Of all planes in space, by a fine grid: attained below, proved above, at any time."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(12, 3)), np.tile([1, -1], 6)
    z = (X[y > 0][:, None] - X[y < 0]).reshape(-1, 3)

    def least(normal):
        normal = normal / np.linalg.norm(normal)
        return math.sqrt(((z - np.outer(z @ normal, normal)) ** 2).sum(1).min())

    normals = np.random.default_rng(0).normal(size=(4000, 3))
    start = normals[np.argmax([least(normal) for normal in normals])]
    options = {"xatol": 1e-10, "fatol": 1e-13}
    best = -minimize(lambda v: -least(v), start, method="Nelder-Mead", options=options).fun
    for hurried in (True, False):
        searched = {"starts": 2, "iterations": 10} if hurried else {}
        found = bounds.interclass_distance(X, y, 2, **searched)
        attained = math.sqrt(((z @ found.basis) ** 2).sum(1).min())
        assert found.distance == pytest.approx(attained, rel=1e-12)
        assert found.distance >= (0 if hurried else 0.999) * best
        assert best * (1 - 1e-12) <= found.upper_bound <= 1.1 * best


# Weak regularization: Theorem 2.2 of Wei et al. 2018

WEAK = [
    {"n": 2},
    {"n": 100},
    {"n": 7, "classes": 10, "r": 2.0, "order": 1.0},
    {"n": 5, "classes": 3, "r": 1.0, "order": 3.0},
    {"n": 1, "classes": 3, "r": 3.0, "order": 2.0},
    {"n": 30, "classes": 100, "r": 2.0, "order": 2.0},
    {"n": 20, "classes": 4, "r": 1.0, "order": 2.0, "approximation": 1.5},
]


@pytest.mark.parametrize("case", WEAK, ids=str)
def test_weak_lambdas_are_those_of_the_proof_and_not_smaller(case):
    """L <= 2 alpha lambda (D / gamma)^{r/a} for approximate minimizers: just the guarantee."""
    gamma = 0.3
    weak = nm.weak_regularization(gamma, **case)
    n, others, share = (
        case["n"],
        case.get("classes", 2) - 1,
        mpf(case.get("r", 2.0)) / mpf(case.get("order", 2.0)),
    )
    doubled = 2 * mpf(case.get("approximation", 2.0))

    def margin(log_lambda) -> mpf | None:
        """What the proof gives for every such net, or None where it does not apply."""
        depth = (
            mpmath.log(others) + share * mpmath.log(gamma) - log_lambda
        )  # (l - 1) e^-D = lambda / gamma^{r/a}
        ratio = doubled * (depth / gamma) ** share  # of the bound on L and lambda
        loss = n * ratio * mpmath.exp(log_lambda)
        return -mpmath.log(2 * loss) / ratio ** (1 / share) if depth >= 1 and 2 * loss < 1 else None

    with mpmath.workdps(40):
        log_lambda = share * mpmath.log(gamma) - mpf(weak.exponent) * mpmath.log(n * others)
        assert weak.log_regularization == pytest.approx(float(log_lambda), rel=1e-12)
        promise = mpf(gamma) / 2 / doubled ** (1 / share)
        assert weak.guarantee == pytest.approx(float(promise), rel=1e-12)
        # The proof's own form of the condition: half of D, so that half of gamma is left.
        assert margin(log_lambda) >= promise * (1 - mpf(10) ** -9)
        larger = margin(log_lambda + mpf(10) ** -3 * mpmath.log(n * others))
        assert larger is None or larger < promise
