"""Nets whose forward pass casts: in float64 they are the nets without the casts."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.nets.model import call_net, float64_copy

X = torch.randn(12, 5, generator=torch.Generator().manual_seed(3))


class Cast(nn.Module):
    """A two-layer net whose forward is given."""

    def __init__(self, forward=lambda net, x: net.layers(x)):
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.layers = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3, bias=False))
        for p in self.parameters():
            p.data = torch.randn(p.shape, generator=generator)
        self._forward, self.one = forward, torch.ones(8, 8).tril().triu()

    def forward(self, x):
        return self._forward(self, x)


def hidden(net, x):
    return net.layers[0](x)


FORMS = {
    "float": lambda net, x: net.layers(x.float()),
    "to": lambda net, x: net.layers(x.to(torch.float32)),
    "to_device": lambda net, x: net.layers(x.to("cpu", dtype=torch.float32)),
    "to_weight": lambda net, x: net.layers(x.to(net.layers[0].weight.dtype)),
    "type": lambda net, x: net.layers(x.type("torch.FloatTensor")),
    "half": lambda net, x: net.layers(x.half().type_as(net.layers[0].weight)),
    "byte_scale": lambda net, x: net.layers((x * 255).float() / 255),
    "scores": lambda net, x: net.layers(x).bfloat16(),
    "mask": lambda net, x: net.layers[2]((hidden(net, x) > 0).float() * hidden(net, x)),
    "index": lambda net, x: net.layers(x)[..., (x.sum() * 0).long() + torch.arange(3)],
    "new": lambda net, x: net.layers(x + torch.zeros(5, dtype=torch.float32)),
    "sum": lambda net, x: net.layers(x) + 0 * x.sum(-1, keepdim=True, dtype=torch.float32),
    "no_buffer": lambda net, x: net.layers[1:](hidden(net, x) @ net.one),
    "no_buffer_first": lambda net, x: net.layers(x @ torch.eye(5, dtype=torch.float32)),
    "numpy": lambda net, x: net.layers(x - torch.from_numpy(np.zeros(5, np.float32))),
}


def labels():
    return call_net(Cast(), X).argmax(1)


FUNCTIONS = {
    "certify": lambda net: nm.certify(net, (X, labels()), progress=False).epsilon,
    "tangent_svm": lambda net: nm.tangent_svm(net, (X, labels())).cosine,
    "empirical_ntk": lambda net: nm.kernels.empirical_ntk(net, X, output=2),
    "robustness": lambda net: (
        nm.robustness(net, (X[:1], labels()[:1]), effort="quick", progress=False).upper
    ),
    "gradient_flow": lambda net: nm.gradient_flow(
        net, (X, labels()), time=0.01, progress=False
    ).final["layers.0.weight"],
    "maximize_margin": lambda net: (
        nm.maximize_margin(
            net, (X, labels()), temperatures=(0.1,), iterations=3, progress=False
        ).certificate.relative_epsilon
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_casts_change_nothing_in_float64(form):
    net, plain = float64_copy(Cast(FORMS[form])), Cast().double()
    fine = X.double() / 3  # with digits that float32 has not
    expected = plain(fine)
    assert torch.equal(call_net(net, fine), expected) or form == "byte_scale"
    assert call_net(copy.deepcopy(net), fine).dtype == torch.float64
    # By plain autograd, sample by sample; the library uses vmap.
    rows = []
    for x in fine:
        found = torch.autograd.grad(plain(x[None])[0, 1], list(plain.parameters()))
        rows.append(torch.cat([g.flatten() for g in found]))
    expected = torch.stack(rows) @ torch.stack(rows).T
    np.testing.assert_allclose(
        nm.kernels.empirical_ntk(Cast(FORMS[form]), fine, output=1), expected, rtol=1e-12
    )


@pytest.mark.slow_cases("float-robustness", "numpy")
@pytest.mark.nightly_cases("half", "mask", "no_buffer_first")
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("form", ["float", "half", "mask", "no_buffer_first", "numpy"])
def test_every_function_takes_nets_that_cast(form, function):
    found, expected = FUNCTIONS[function](Cast(FORMS[form])), FUNCTIONS[function](Cast())
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_radii_read_a_chain_through_its_casts():
    lower = []
    for form in ("float", "scores"):
        found = nm.robustness(
            Cast(FORMS[form]), (X[:1], labels()[:1]), attacks=False, progress=False
        )
        assert not found.no_chain
        lower.append(found.lower.item())
    plain = nm.robustness(Cast(), (X[:1], labels()[:1]), attacks=False, progress=False)
    np.testing.assert_allclose(lower, plain.lower.item(), rtol=1e-9)


def test_whole_numbers_are_cast_to_the_type_of_the_copy():
    tokens = torch.arange(24).reshape(6, 4) % 7

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.last, self.own = nn.Embedding(7, 5), nn.Linear(5, 2), nn.Linear(4, 2)

        def forward(self, x):
            weights = (x != 0).float()[..., None]
            mean = (self.table(x.long()) * weights).sum(-2) / weights.sum(-2)
            return self.last(mean) + self.own(x.float())

    net = Tokens()
    with torch.no_grad():
        net.double()
        want = net.last(
            net.table(tokens).mul((tokens != 0)[..., None]).sum(-2)
            / (tokens != 0).sum(-1, keepdim=True)
        ) + net.own(tokens.double())
    found = call_net(float64_copy(net.float()), tokens)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, want, rtol=1e-12, atol=0)


def test_the_net_that_is_measured_rounds_as_it_does():
    net = Cast(FORMS["half"])
    with torch.no_grad():
        expected = net(X)
    assert torch.equal(call_net(net, X), expected)
    assert nm.measure(net, (X, labels())).q_min == pytest.approx(
        expected.double().topk(2).values.diff()[:, 0].abs().min().item(), rel=1e-12
    )
