"""`nm.analyse` on random nets: its exponents are those of two passes, and all there are."""

import copy
import math

import pytest
import torch
from hypothesis import assume, event, given, note, settings, strategies as st
from torch import Tensor, nn
from torch.func import functional_call

import netmargin as nm
from netmargin.homogeneity import Evidence, Kind
from netmargin.models import ReLUPower

WIDTH = 4
INPUTS = torch.randn(5, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
FACTORS = (0.5, 2.0)
ROUNDING = 1e-8
"""Relative to the largest output: long sums lose some digits, a wrong exponent shows at once."""


class Residual(nn.Module):
    """x + inner(x)."""

    def __init__(self, *inner: nn.Module):
        super().__init__()
        self.inner = nn.Sequential(*inner)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


layers = st.one_of(
    st.builds(lambda bias: lambda: nn.Linear(WIDTH, WIDTH, bias=bias), st.booleans()),
    st.just(nn.ReLU),
    st.just(lambda: nn.LeakyReLU(0.2)),
    st.just(lambda: ReLUPower(2)),
    st.builds(
        lambda affine, bias, eps: (
            lambda: nn.LayerNorm(WIDTH, elementwise_affine=affine, bias=bias, eps=eps)
        ),
        st.booleans(),
        st.booleans(),
        st.sampled_from([1e-5, 1e-12]),
    ),
    st.just(lambda: nn.AvgPool1d(3, stride=1, padding=1)),  # over the features
)
sequences = st.lists(layers, min_size=1, max_size=3)
blocks = st.one_of(
    layers,
    layers,
    st.builds(lambda inner: lambda: Residual(*(make() for make in inner)), sequences),
)


@st.composite
def nets(draw) -> nn.Module:
    """Linear, up to five blocks, Linear, the ends optional; float64, no special values."""
    first = [nn.Linear(WIDTH, WIDTH, bias=draw(st.booleans()))] if draw(st.booleans()) else []
    body = [make() for make in draw(st.lists(blocks, min_size=1, max_size=5))]
    last = [nn.Linear(WIDTH, 2, bias=draw(st.booleans()))] if draw(st.booleans()) else []
    net = nn.Sequential(*first, *body, *last).double()
    assume(list(net.parameters()))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(
                0.3 + torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            )
    assume(every_parameter_counts(net))
    note(str(net))
    return net


def every_parameter_counts(net: nn.Module) -> bool:
    """Whether no layer is dead on these inputs: what is not there scales like anything."""
    live = copy.deepcopy(net)
    found = live(INPUTS)
    weights = torch.linspace(1, 2, found.numel(), dtype=torch.float64).sin().view_as(found)
    (weights * found).sum().backward()
    size = found.detach().abs().max()
    return all(p.grad is not None and p.grad.abs().max() > 1e-4 * size for p in live.parameters())


def outputs(net: nn.Module, factors: dict[str, float]) -> Tensor:
    """With parameters multiplied by these factors, 1 for the others."""
    scaled = {name: p * factors.get(name, 1.0) for name, p in net.named_parameters()}
    with torch.no_grad():
        return functional_call(net, scaled, (INPUTS,))


def miss(net: nn.Module, names, exponent) -> float:
    """The largest relative difference of the outputs from c^exponent times those at c = 1."""
    plain = outputs(net, {})
    differences = [
        outputs(net, dict.fromkeys(names, c)) / c ** float(exponent) - plain for c in FACTORS
    ]
    return max((d.abs().max() / plain.abs().max()).item() for d in differences)


def measured_exponent(net: nn.Module, names, within: float = ROUNDING) -> float | None:
    """The k with outputs c^k at both factors, an integer here; None where there is none."""
    plain, doubled = outputs(net, {}), outputs(net, dict.fromkeys(names, 2.0))
    index = plain.abs().argmax()
    ratio = (doubled.flatten()[index] / plain.flatten()[index]).item()
    if not ratio > 0:
        return None
    exponent = round(math.log2(ratio))
    return exponent if miss(net, names, exponent) <= within else None


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(net=nets())
def test_derived_exponents_are_the_measured_ones(net):
    answer = nm.analyse(net, INPUTS)
    note(answer.summary())
    event(answer.kind.name)
    assert answer.evidence is Evidence.DERIVED
    names = {name for name, _ in net.named_parameters()}
    if not answer.whole:
        assert answer.blockers
        assert (measured_exponent(net, names) or 0) <= 0
    if answer.order is None:
        assert answer.kind is Kind.NONE
        return
    members = {name for group in answer.groups for name in answer.members[group]}
    assert members == names if answer.whole else members <= names
    within = 1.01 * answer.deviation + ROUNDING
    assert within <= 0.011
    assert measured_exponent(net, members, within) == answer.order
    assert sum(answer.groups.values()) == answer.order
    for group, exponent in answer.groups.items():  # each on its own
        assert measured_exponent(net, answer.members[group], 0.03) == exponent


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(net=nets(), data=st.data())
def test_no_other_parameters_have_a_larger_order(net, data):
    """Whatever two forward passes show of some parameters, the rules do not fall behind."""
    answer = nm.analyse(net, INPUTS)
    note(answer.summary())
    some = data.draw(st.sets(st.sampled_from([name for name, _ in net.named_parameters()])))
    exponent = measured_exponent(net, some)
    event(f"exponent {exponent}")
    assert exponent is None or exponent <= (answer.order or 0)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(net=nets())
def test_what_is_quasi_homogeneous_is_so(net):
    """Every parameter p by c^{w_p}: the outputs by c."""
    quasi = nm.analyse(net, INPUTS).quasi_exponents
    event(f"quasi-homogeneous: {quasi is not None}")
    if quasi is None:  # sums of what scales differently: a layer's input, an eps
        assert any(isinstance(module, (Residual, nn.LayerNorm)) for module in net.modules())
        return
    plain = outputs(net, {})
    for c in FACTORS:
        found = outputs(net, {name: c ** float(weight) for name, weight in quasi.items()})
        assert (found / c - plain).abs().max() <= 0.011 * plain.abs().max()
