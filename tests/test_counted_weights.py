"""Which weights count: pruned, frozen, and reparametrized as a direction and a length."""

import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm

import netmargin as nm
from netmargin.nets.model import float64_copy

X = torch.randn(14, 5, generator=torch.Generator().manual_seed(3))


def plain():
    generator = torch.Generator().manual_seed(1)
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3, bias=False))
    for p in net.parameters():
        p.data = torch.randn(p.shape, generator=generator)
    return net


def answers(net):
    with torch.no_grad():
        return net(X).argmax(1)


class Polar(nn.Module):
    """A dense layer that holds the directions and the lengths of its rows."""

    def __init__(self, weight):
        super().__init__()
        self.length = nn.Parameter(weight.norm(dim=1, keepdim=True))
        self.direction = nn.Parameter(weight / self.length.detach())

    def forward(self, x):
        return F.linear(x, self.length * self.direction / self.direction.norm(dim=1, keepdim=True))


def old(net, **options):
    for layer in (net[0], net[2]):
        weight_norm(layer, **options)
    return net


def new(net):
    for layer in (net[0], net[2]):
        parametrizations.weight_norm(layer)
    return net


def own(net):
    return nn.Sequential(net[0], nn.ReLU(), Polar(net[2].weight.detach()))


REPARAMETRIZED = {
    "old": (old, "weight_v"),
    "old, whole": (lambda net: old(net, dim=None), "weight_v"),
    "old, by columns": (lambda net: old(net, dim=1), "weight_v"),
    "parametrized": (new, "original1"),
    "own": (own, "direction"),
}


@pytest.mark.parametrize("kind", REPARAMETRIZED)
def test_the_direction_of_a_weight_does_not_count_beside_its_length(kind):
    """The partial margin is that of the effective weights, however long the directions are."""
    make, direction = REPARAMETRIZED[kind]
    net, expected = make(plain()).eval(), nm.measure(plain(), (X, answers(plain())))
    for factor in (1.0, 7.0):
        with torch.no_grad():
            for name, p in net.named_parameters():
                if name.endswith(direction):
                    p *= factor
        found = nm.measure(net, (X, answers(plain())))
        for row in ("partial", "layers"):
            value = found.margins[row].value
            assert value == pytest.approx(expected.margins[row].value, rel=1e-5)
        exponents = found.homogeneity.groups
        assert {k for name, k in exponents.items() if name.endswith(direction)} == {0}


def test_convolutions_and_spectral_norms():
    net = nn.Sequential(
        weight_norm(nn.Conv1d(1, 4, 2, bias=False)), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2, bias=False)
    ).eval()  # fmt: skip
    found = nm.analyse(net, X[:, None])
    assert found.groups == {"0": 1, "0.weight_v": 0, "3": 1}
    for wrap in (spectral_norm, parametrizations.spectral_norm):
        net = nn.Sequential(
            wrap(nn.Linear(5, 8, bias=False)), nn.ReLU(), nn.Linear(8, 3, bias=False)
        )
        net(X)  # a step of its power iteration
        found = nm.measure(net.eval(), (X, answers(net)))
        assert found.homogeneity.groups == {"0": 0, "2": 1}
        with torch.no_grad():
            next(net[0].parameters()).mul_(5)
        again = nm.measure(net, (X, answers(net)))
        assert again.margins["partial"].value == pytest.approx(
            found.margins["partial"].value, rel=1e-5
        )


def pruned():
    torch.manual_seed(0)  # of the masks that are drawn
    net = plain()
    prune.l1_unstructured(net[0], "weight", 0.5)
    prune.random_unstructured(net[0], "bias", 0.3)
    prune.ln_structured(net[2], "weight", 0.4, n=2, dim=1)
    prune.random_unstructured(net[2], "weight", 0.2)  # twice
    return net


def removed():
    """The same function, with zeros written into the weights."""
    net = pruned()
    for layer, name in ((net[0], "weight"), (net[0], "bias"), (net[2], "weight")):
        prune.remove(layer, name)
    return net


def test_masked_weights_count_as_the_zeros_that_they_are():
    data = X, answers(removed())
    squares = sum((w.double() ** 2).sum().item() for w in removed().parameters())
    found, expected = nm.measure(pruned(), data), nm.measure(removed(), data)
    assert found.norm == pytest.approx(math.sqrt(squares), rel=1e-12)
    assert found.normalized_margin == pytest.approx(expected.normalized_margin, rel=1e-9)
    for norm in ("global", "layers"):
        ours, right = (nm.certify(net(), data, norm=norm) for net in (pruned, removed))
        # Of zeros that are trained gradients count as well, of masked ones not.
        assert ours.norm == pytest.approx(right.norm, rel=1e-9)
        assert ours.relative_epsilon <= right.relative_epsilon * (1 + 1e-9) or norm == "layers"


def state_of(net):
    """All tensors that the modules of a net hold, also those that hooks wrote."""
    return {
        f"{path}.{name}": value
        for path, module in net.named_modules()
        for kept in (vars(module), module._parameters, module._buffers)
        for name, value in kept.items()
        if isinstance(value, torch.Tensor)
    }


class Remembers(nn.Module):
    """A layer that keeps what it made of its weights."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 3)

    def forward(self, x):
        self.kept = 2 * self.layer.weight
        return F.linear(x, self.kept, self.layer.bias)


FUNCTIONS = {
    "analyse": lambda net, data: nm.analyse(net, data),
    "measure": lambda net, data: nm.measure(net, data),
    "certify": lambda net, data: nm.certify(net, data, norm="partial"),
    "gradient_flow": lambda net, data: nm.gradient_flow(net, data, time=0.01, progress=False),
}
KINDS = {
    "old weight norm": lambda: old(plain()),
    "pruned": pruned,
    "old spectral norm": lambda: nn.Sequential(spectral_norm(nn.Linear(5, 3))),
    "recurrent": lambda: LastState(),
    "remembers": Remembers,
}


class LastState(nn.Module):
    """A recurrent net, whose layer keeps a list of its weights."""

    def __init__(self):
        super().__init__()
        self.states, self.last = nn.GRU(1, 4, batch_first=True), nn.Linear(4, 2, bias=False)

    def forward(self, x):
        return self.last(self.states(x[..., None])[0][:, -1])


@pytest.mark.slow_cases("gradient_flow-old")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_net_is_as_it_was_afterwards(function, kind):
    net = KINDS[kind]().eval()
    y = answers(net)
    before = {name: value.detach().clone() for name, value in state_of(net).items()}
    lists = [w.detach().clone() for w in getattr(getattr(net, "states", None), "_flat_weights", [])]
    try:
        FUNCTIONS[function](net, (X, y))
    except nm.NetmarginError as error:  # of nets that are not separated, or not homogeneous
        assert "margin" in str(error) or "homogene" in str(error)  # noqa: PT017
    after = state_of(net)
    for name, value in before.items():
        assert torch.equal(after[name], value), name
    for left, right in zip(
        lists, getattr(net, "states", net)._flat_weights if lists else [], strict=True
    ):
        assert torch.equal(left, right)


def test_what_is_frozen_is_held_fixed():
    """A frozen backbone with a trained head is the head on features."""
    net = nn.Sequential(
        *plain()[:2], nn.Linear(8, 9, bias=False), nn.ReLU(), nn.Linear(9, 2, bias=False)
    ).double()
    net[:4].requires_grad_(False)
    features = net[:4](X.double())
    while len((y := net[4](features).argmax(1)).unique()) < 2:  # a head that tells no two apart
        net[4].reset_parameters()
    right, ours = nm.certify(net[4], (features, y)), nm.certify(net, (X.double(), y))
    for name in ("epsilon", "epsilon_lower", "delta", "norm", "order", "alignment"):
        assert getattr(ours, name) == pytest.approx(getattr(right, name), rel=1e-8, abs=1e-12), name
    assert ours.order == 1
    assert nm.tangent_svm(net, (X, y)).cosine == pytest.approx(
        nm.tangent_svm(net[4], (features, y)).cosine, rel=1e-6
    )
    kernel = nm.kernels.empirical_ntk(net, X, output=1)
    np.testing.assert_allclose(kernel, features @ features.T, rtol=1e-6, atol=1e-8)
    flows = [
        nm.gradient_flow(*given, time=0.1, progress=False)
        for given in ((net, (X.double(), y)), (net[4], (features, y)))
    ]
    torch.testing.assert_close(flows[0].final["4.weight"], flows[1].final["weight"])
    assert flows[0].final.keys() == {"4.weight"}
    assert flows[0].rows[-1]["normalized_margin"] == pytest.approx(
        flows[1].rows[-1]["normalized_margin"], rel=1e-6
    )
    # The net itself is measured with all of its weights, frozen or not.
    assert nm.measure(net, (X, y)).order == 3
    assert all(not p.requires_grad for p in net[:4].parameters())


def test_where_all_is_frozen_there_is_nothing_to_differentiate():
    net = plain().requires_grad_(False)
    for function in (nm.certify, nm.tangent_svm, lambda n, d: nm.kernels.empirical_ntk(n, d[0])):
        with pytest.raises(nm.ModelError, match="No parameter of the model requires a gradient"):
            function(net, (X, answers(net)))
    report = nm.robustness(
        net, (X[:1], answers(net)[:1]), effort="quick", attacks=False, progress=False
    )
    assert report.lower > 0


def test_a_copy_keeps_masks_and_the_net_its_masked_weights():
    net = pruned()
    before = copy.deepcopy(net.state_dict())
    twin = float64_copy(net)
    torch.testing.assert_close(twin(X.double()), removed().double()(X.double()))
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
