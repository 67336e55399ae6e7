"""Normalized nets <a . b, F(x; V)>: gradient flow is a mirror flow, and the smooth margin over (a,
b) never falls.
"""

import math

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.papers.two_homogeneity import (
    AttentionFeatures,
    NormalizedNet,
    NormalizedReLU,
    early_margin,
    mirror_flow,
)

INNER = {
    "normalized ReLU": lambda: NormalizedReLU(4, 30),
    "LayerNorm": lambda: nn.Sequential(
        nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.LayerNorm(8, elementwise_affine=False)
    ),
    "transformer": lambda: AttentionFeatures(2, 2, 8),
    "RMSNorm": lambda: nn.Sequential(
        nn.Linear(4, 8),
        nn.Tanh(),
        nn.Linear(8, 8),
        nn.RMSNorm(8, eps=1e-5, elementwise_affine=False),
    ),
    "BatchNorm": lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, affine=False), nn.Tanh()),
}


def make(kind: str, n: int = 8) -> tuple[NormalizedNet, tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    inner = INNER[kind]().double()
    x = torch.randn(n, 4, dtype=torch.float64)
    y = torch.where(x[:, 0] * x[:, 1] > 0, 1, -1)
    inner(x)  # BatchNorm notes statistics, with which it is evaluated
    return NormalizedNet(inner, inner(x).shape[1], seed=2), (x, y)


@pytest.mark.nightly_cases("normalized", "BatchNorm")
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


@pytest.mark.slow
def test_another_mirror_map_is_another_flow(monkeypatch):
    """Without the factor 2 of Lemma 3.2, u differs."""
    net, data = make("LayerNorm")
    u = torch.exp(mirror_flow(net, data, time=10.0).final["log_u"])

    def halved(*arguments, metric, **options):
        return nm.gradient_flow(
            *arguments, metric=lambda point: {k: v / 2 for k, v in metric(point).items()}, **options
        )

    monkeypatch.setattr("netmargin.papers.two_homogeneity._normalized_nets.gradient_flow", halved)
    wrong = torch.exp(mirror_flow(net, data, time=10.0).final["log_u"])
    assert torch.linalg.vector_norm(wrong - u) > 1e-2 * torch.linalg.vector_norm(u)


@pytest.mark.nightly_cases("normalized")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "time"), [("normalized ReLU", 1e3), ("LayerNorm", 1e3), ("transformer", 1e2)]
)
def test_smooth_margin_never_falls_along_the_flow(kind, time):
    """Theorem 3.6, for nets that are homogeneous in (a, b) alone: from mean loss log(2) / n on."""
    net, data = make(kind)
    flow = nm.gradient_flow(net, data, time=time, rtol=1e-6 if kind == "transformer" else 1e-8)
    margins = np.array(
        [r["partial_smoothed_margin"] for r in flow.rows if r["log_loss"] < math.log(math.log(2))]
    )
    assert len(margins) > 20
    assert margins[-1] > 1.05 * margins[0]
    assert (np.diff(margins) >= -1e-9 * margins[1:]).all()


@pytest.mark.parametrize("kind", INNER)
def test_smooth_margin_rises_at_every_point(kind):
    """d psi / |(a, b)|^2 >= 0 along -grad L wherever psi > 0; with the opposite sign it falls."""
    net, (x, y) = make(kind, n=2)
    net.eval()
    rises = []
    for seed in range(200):
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in net.inner.parameters():
                parameter.normal_()
            net.a.normal_().mul_(4 * torch.rand(()))
            net.b.normal_().mul_(4 * torch.rand(()))
        losses = nn.functional.softplus(-y * net(x)[:, 0])
        if losses.sum() >= math.log(2):
            continue
        psi = -torch.log(torch.expm1(losses.sum()))
        ratio = psi / (net.a.square().sum() + net.b.square().sum())
        parameters = list(net.parameters())
        descent = torch.autograd.grad(losses.sum(), parameters, retain_graph=True)
        slope = torch.autograd.grad(ratio, parameters, allow_unused=True)
        rise = -sum(
            (s * d).sum() for s, d in zip(slope, descent, strict=True) if s is not None
        ).item()
        size = math.sqrt(
            sum(d.square().sum().item() for d in descent)
            * sum(s.square().sum().item() for s in slope if s is not None)
        )
        rises.append(rise / size)
    assert len(rises) > 12
    assert min(rises) >= -1e-12
    assert max(rises) > 0.1


def test_early_margin():
    """What is promised holds, as long as the features keep half of their margin; features without
    parameters do not drift.
    """
    x = torch.tensor([[1.0, 0.5], [-0.3, 1.0], [0.2, -1.0]], dtype=torch.float64)
    data, n = (x, torch.tensor([1, -1, 1])), 3
    net = NormalizedNet(NormalizedReLU(2, 50), 50)
    flow = nm.gradient_flow(net, data, time=1e5, levels=[-0.5, -1, -2])
    promised = early_margin(net, data, time=n * 1e5, states=[*flow.states.values(), flow.final])
    z = data[1].numpy()[:, None] * (net.features(x) * torch.sign(net.a * net.b)).detach().numpy()
    assert (
        promised.gamma
        == pytest.approx((z @ promised.p).min(), rel=1e-9)
        == pytest.approx(promised.proved, rel=1e-6)
    )
    assert not promised.applies
    assert promised.gamma / 2 <= promised.kept < promised.gamma
    assert 0 < promised.guarantee <= flow.rows[-1]["partial_normalized_margin"]

    still = early_margin(NormalizedNet(_Fixed(net.inner), 50), data, time=n * 1e5)
    assert still.applies
    assert still.C_1 == still.C_2 == still.drift == 0.0
    assert (still.kept, still.R, still.guarantee) == pytest.approx(
        (promised.gamma, promised.R, promised.guarantee)
    )


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


def test_flows_pass_where_all_coordinates_vanish():
    """log u = 0 is no special point, and w = 0 only to the norm: h = u x from u = 1/4 or 1, and h =
    w x from w = -1.
    """
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
    with pytest.raises(nm.ArgumentError, match="time"):
        early_margin(make("normalized ReLU")[0], data, time=0.01)
