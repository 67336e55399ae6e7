"""Normalized nets <a . b, F(x; V)>, whose gradient flow is a mirror flow."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import nn

import netmargin as nm
from netmargin.papers.ledger.directions import matrix_game
from netmargin.papers.two_homogeneity import (
    AttentionFeatures,
    NormalizedNet,
    NormalizedReLU,
    early_margin,
    mirror_flow,
    spread_measure,
)
from netmargin.papers.two_homogeneity._measures import least_divergence
from netmargin.papers.two_homogeneity._normalized_nets import (
    layer_norm_features,
    require_bounded_features,
    rms_norm_features,
)
from netmargin.papers.two_homogeneity._parity_flow import flow_on_parity
from netmargin.solvers import f1_max_margin

INNER = {
    "normalized ReLU": lambda: NormalizedReLU(4, 30),
    "LayerNorm": lambda: layer_norm_features(8),
    "transformer": lambda: AttentionFeatures(2, 2, 8),
    "RMSNorm": lambda: rms_norm_features(8),
    "BatchNorm": lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, affine=False), nn.Tanh()),
}


def make(kind: str, n: int = 8) -> tuple[NormalizedNet, tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    inner = INNER[kind]().double()
    x = torch.randn(n, 4, dtype=torch.float64)
    y = torch.where(x[:, 0] * x[:, 1] > 0, 1, -1)
    inner(x)  # BatchNorm notes statistics, with which it is evaluated
    return NormalizedNet(inner, inner(x).shape[1], seed=2), (x, y)


@pytest.mark.nightly_cases("BatchNorm", "LayerNorm", "normalized", "RMSNorm")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "time"),
    [
        ("normalized ReLU", 1e4),
        ("LayerNorm", 1e4),
        ("BatchNorm", 1e4),
        ("RMSNorm", 1e2),
        ("transformer", 1.0),
    ],
)
def test_gradient_flow_is_mirror_flow(kind, time):
    net, data = make(kind)
    flow = nm.gradient_flow(net, data, time=time)
    a, b = flow.final["a"], flow.final["b"]
    assert (a.abs() - b.abs()).abs().max() <= 1e-10 * a.abs().max()
    mirror = mirror_flow(net, data, time=time)
    u = torch.exp(mirror.final["log_u"])
    assert flow.message == mirror.message == f"t reached {time:.6g}"
    assert torch.linalg.vector_norm(
        a * b * torch.sign(net.a * net.b).detach() - u
    ) <= 1e-6 * torch.linalg.vector_norm(u)
    assert torch.linalg.vector_norm(u - net.a.detach() ** 2) > 1e-3 * torch.linalg.vector_norm(u)


@pytest.mark.nightly
def test_ten_sets_of_parities():
    """Theorem 4.1: 60 samples in 12 dimensions, where no margin on all corners is above 0.051."""
    corners = nm.datasets.parity(12, 2)
    found = [
        flow_on_parity(nm.datasets.parity(12, 2, 60, seed=seed), corners, seed=seed)
        for seed in range(10)
    ]
    assert np.median([margin for margin, _ in found]) >= 0.035
    assert np.median([wrong.mean() for _, wrong in found]) <= 0.01


@pytest.mark.slow
def test_early_margin():
    """The promise holds while features keep half of their margin; without parameters, always."""
    x = torch.tensor([[1.0, 0.5], [-0.3, 1.0], [0.2, -1.0]], dtype=torch.float64)
    data, n = (x, torch.tensor([1, -1, 1])), 3
    net = NormalizedNet(NormalizedReLU(2, 50), 50)
    flow = nm.gradient_flow(net, data, time=1e5, levels=[-0.5, -1, -2])
    promised = early_margin(net, data, time=n * 1e5, states=[*flow.states.values(), flow.final])
    z = data[1].numpy()[:, None] * (net.features(x) * torch.sign(net.a * net.b)).detach().numpy()
    assert promised.gamma == pytest.approx((z @ promised.p).min(), rel=1e-9)
    assert 0.5 * promised.proved < promised.gamma < promised.proved
    assert not promised.applies
    assert promised.gamma / 2 <= promised.kept < promised.gamma
    assert 0 < promised.guarantee <= flow.rows[-1]["partial_normalized_margin"]

    still = early_margin(NormalizedNet(_Fixed(net.inner), 50), data, time=n * 1e5)
    assert still.applies
    assert still.C_1 == still.C_2 == still.drift == 0.0
    assert (still.kept, still.R, still.guarantee) == pytest.approx(
        (promised.gamma, promised.R, promised.guarantee)
    )
    # A vertex of the game has the largest margin, but is far from the start.
    options = {"states": [net.state_dict()], "p": matrix_game(z)[0]}
    vertex = early_margin(net, data, time=n * 1e5, **options)
    assert vertex.gamma == pytest.approx(vertex.proved, rel=1e-6)
    assert vertex.guarantee < promised.guarantee
    assert vertex.drift > promised.drift


def test_least_divergence_against_a_solver():
    """And what is asked for is met, with weights u of any sum."""
    random = np.random.default_rng(0)
    z, u = random.normal(size=(3, 6)) + 0.8, random.exponential(size=6)
    margin = 0.9 * matrix_game(z)[1]
    p = least_divergence(z, u, margin)
    divergence = lambda p: (p * np.log(p / u)).sum()  # noqa: E731
    rules = [
        {"type": "ineq", "fun": lambda p: z @ p - margin},
        {"type": "eq", "fun": lambda p: p.sum() - 1},
    ]
    bounds = [(1e-9, 1)] * 6
    found = minimize(
        divergence, np.full(6, 1 / 6), bounds=bounds, constraints=rules, method="SLSQP"
    )
    assert (z @ p).min() >= margin - 1e-4
    assert divergence(p) == pytest.approx(found.fun, abs=1e-4)


@pytest.mark.parametrize("length", [1.0, 20.0])
def test_the_measure_of_lemma_b1(length):
    """Each neuron of the best net gives its weight to the features near it, of its sign."""
    x = length * torch.eye(2, dtype=torch.float64)
    net = NormalizedNet(NormalizedReLU(2, 400, seed=1), 400, seed=2)
    p = spread_measure(net, (x, torch.tensor([1, -1])))
    v, beta = net.inner.v.detach().numpy(), torch.sign(net.a * net.b).detach().numpy()
    gamma = 2 * f1_max_margin(x, [1, -1], bias=False).margin
    assert p.sum() == pytest.approx(1)
    assert (beta[:, None] * v @ [1.0, -1.0])[p > 0].min() > 0.5
    apart = np.linalg.norm(v[p > 0][:, None] - v[p > 0], axis=2)
    assert apart.max() > gamma / length / 2  # two groups
    z = np.array([1, -1])[:, None] * beta * np.maximum(x.numpy() @ v.T, 0)
    assert (z @ p).min() >= gamma / 2
    data, states = (x, torch.tensor([1, -1])), [net.state_dict()]
    given, found = (early_margin(net, data, time=1e5, p=q, states=states) for q in (p, None))
    assert 0 < given.guarantee <= found.guarantee
    with pytest.raises(nm.DataError, match=r"no feature near.*m >="):
        spread_measure(NormalizedNet(NormalizedReLU(2, 2), 2), (x, torch.tensor([1, -1])))


class _Fixed(nn.Module):
    """The features of a module, without its parameters."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self._inner = [inner]

    def forward(self, x):
        return self._inner[0](x)


def test_constants_of_normalized_relus():
    """C_1 by the formula for relu(v . x / |v|), and C_2 = 0: no parameters are shared."""
    net, (x, y) = make("normalized ReLU", n=4)
    net = NormalizedNet(NormalizedReLU(4, 60, seed=5), 60, seed=2)
    found = early_margin(net, (x, y), time=1e3)
    v = net.inner.v.detach()
    tangent = x[:, None] - (x @ v.T)[:, :, None] * v  # |v| = 1
    gradients = (x @ v.T > 0)[:, :, None] * tangent
    products = torch.einsum("ijd,rjd->irj", gradients, gradients).abs()
    assert pytest.approx(products.max().item(), rel=1e-12) == found.C_1
    assert found.C_2 == 0.0
    # Rows of their own, and one parameter that two of the features share.
    for share in (False, True):
        inner = _Chained(60, share=share)
        found = early_margin(NormalizedNet(inner, 60, seed=2), (x, y), time=1e3)
        assert (found.C_2 > 0) is share


def test_features_of_assumption_2_1():
    """The bound holds at any V, is nearly met, and a module without one is named."""
    for kind in INNER:
        net, (x, _) = make(kind)
        bound = require_bounded_features(net.inner, x)
        for p in net.inner.parameters():
            nn.init.normal_(p, std=30.0)
        assert 0.3 * bound < net.inner(x).abs().max() <= bound * (1 + 1e-12)
    for unbounded in (nn.Linear(4, 3), nn.Sequential(nn.Tanh(), nn.LayerNorm(3))):
        with pytest.raises(nm.ModelError, match="Assumption 2.1"):
            require_bounded_features(unbounded, x)


class _Chained(nn.Module):
    """Features tanh(v_j x), of which the last may also move with v_0."""

    def __init__(self, width: int, *, share: bool):
        super().__init__()
        self.v = nn.Parameter(torch.linspace(-1, 1, 4 * width, dtype=torch.float64).view(width, 4))
        self._share = share

    def forward(self, x):
        turned = torch.tanh(x @ self.v.T)
        added = torch.nn.functional.pad(turned[:, :1], (turned.shape[1] - 1, 0))
        return turned + added if self._share else turned


@pytest.mark.slow
def test_flows_pass_where_all_coordinates_vanish():
    """log u = 0 is no special point, and w = 0 only to the norm: h = u x, and h = w x."""
    data = (torch.ones(1, 1, dtype=torch.float64), torch.tensor([1]))
    for a in (0.5, 1.0):
        net = NormalizedNet(_Fixed(nn.Identity()), 1, seed=1)
        with torch.no_grad():
            net.a.fill_(a)
            net.b.fill_(a)
        u = torch.exp(mirror_flow(net, data, time=20.0).final["log_u"]).item()
        assert u > 1.5
        assert u == pytest.approx(
            nm.gradient_flow(net, data, time=20.0).final["a"].item() ** 2, rel=1e-6
        )
    line = nn.Linear(1, 1, bias=False)
    nn.init.constant_(line.weight, -1.0)
    flow = nm.gradient_flow(line, data, time=10.0, loss=nm.losses.Exponential())
    assert flow.final["weight"].item() == pytest.approx(
        math.log(10 + math.exp(-1)), rel=1e-6
    )  # w = log(t + e^-1)


def test_bad_input():
    net, data = make("normalized ReLU")
    with torch.no_grad():
        net.b[0] *= 2
    with pytest.raises(nm.ModelError, match=r"\|a_j\| = \|b_j\|"):
        mirror_flow(net, data, time=1.0)
    with pytest.raises(nm.ModelError, match=r"\|a_j\| = \|b_j\|"):
        early_margin(net, data, time=10.0)
    whole = make("normalized ReLU")[0]
    with pytest.raises(nm.ModelError, match=r"'inner\.v' of a state must be a tensor"):
        early_margin(whole, data, time=10.0, states={-1: whole.state_dict()})
    for metric in ({"b1": torch.ones(30)}, {"b": 2.0}, {"b": -torch.ones(30)}):
        with pytest.raises(nm.ModelError, match="positive, finite tensors"):
            nm.gradient_flow(whole, data, time=1.0, metric=lambda point, given=metric: given)
    with pytest.raises(ValueError, match="width"):
        NormalizedNet(nn.Identity(), 0)
    with pytest.raises(nm.ModelError, match="3 features for each of 8"):
        NormalizedNet(NormalizedReLU(4, 5), 3).features(data[0])
    with pytest.raises(nm.DataError, match="do not separate"):
        early_margin(NormalizedNet(NormalizedReLU(4, 1), 1), data, time=10.0)
    for p in ([1.0], np.full(30, 1 / 29), [-1.0, 2.0, *[0.0] * 28]):
        with pytest.raises(nm.ArgumentError, match="probabilities of the 30 features"):
            early_margin(whole, data, time=10.0, p=p)
    with pytest.raises(nm.ModelError, match="Lemma B.1"):
        spread_measure(make("LayerNorm")[0], data)
    with pytest.raises(nm.ArgumentError, match="time"):
        early_margin(make("normalized ReLU")[0], data, time=0.01)
