"""Nets with a forward of their own, read as the layers that they apply: what is read is the net."""

from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import netmargin as nm
from netmargin.errors import ModelError
from netmargin.radii.exact.chain import read_chain
from netmargin.radii.layers import Branches, Moved, Scaled
from netmargin.radii.lipschitz import run_layers
from netmargin.radii.rounding import rounding_errors
from netmargin.radii.traced_layers import trace_layers
from tests.chains import score_lipschitz


class Own(nn.Module):
    """Parts that forwards use in their own ways, for images (N, 2, 6, 6)."""

    def __init__(self):
        super().__init__()
        self.conv, self.same = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3, padding=1)
        self.norm, self.slopes = nn.BatchNorm2d(4), nn.PReLU(4)
        self.fc1, self.fc2 = nn.Linear(16, 5), nn.Linear(5, 3)
        self.head, self.relu = nn.Linear(4, 3), nn.ReLU(inplace=True)
        self.across = nn.Conv1d(2, 2, 1)
        self.register_buffer("mean", torch.rand(2, 1, 1))
        with torch.no_grad():
            self.slopes.weight.copy_(torch.tensor([-2.0, 0.25, 0.0, 1.5]))
            self.norm.running_var.uniform_(0.5, 2)
            self.norm.running_mean.uniform_(-1, 1)


class Plain(Own):
    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc2(F.leaky_relu(self.fc1(torch.flatten(x, 1)), 0.2))


class Sizes(Own):
    def forward(self, x, mask=None):
        x = self.slopes(self.norm(self.conv((x - self.mean) / 0.3)))
        x = F.dropout(F.avg_pool2d(x, kernel_size=2), 0.5, self.training)
        return self.fc2(self.fc1(x.view(x.size(0), -1)).tanh()), None


class ByHand(Own):
    def forward(self, x):
        x = F.max_pool2d(self.relu(self.conv(x)), 2).permute(0, 3, 2, 1).contiguous()
        x = F.hardtanh(x.reshape(x.shape[0], -1) @ self.fc1.weight.t() + self.fc1.bias, -0.5, 0.5)
        return F.linear(x[:, :5], self.fc2.weight.detach(), bias=self.fc2.bias)


class Residual(Own):
    def forward(self, x):
        x = self.conv(x)
        y = self.norm(self.same(self.relu(self.same(x))))
        y += x
        y = self.relu(y)
        y = y - self.slopes(self.same(y))
        return self.head(y.permute(0, 2, 3, 1).mean((1, 2)))


class Dense(Own):
    def forward(self, x):
        x = self.conv(x)
        x = torch.cat([x, self.relu(self.same(x)), 2 * x], dim=1)
        unused = x.flip(1)  # noqa: F841
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)[:, 4:8])


@pytest.mark.parametrize("kind", [Plain, Sizes, ByHand, Residual, Dense])
def test_what_is_read_is_the_net(kind):
    """At samples that it was not read at, far out too; no gap grows faster than its constant."""
    torch.manual_seed(0)
    net, x = kind().double().eval(), torch.randn(40, 2, 6, 6).double()
    x[20:] *= 10
    layers = [step.layer for step in trace_layers(net, x[:1])]
    theirs = net(x)[0] if isinstance(net(x), tuple) else net(x)
    torch.testing.assert_close(run_layers(layers, x), theirs, rtol=1e-12, atol=1e-12)
    constants, at = score_lipschitz(net, x[:1]), x.clone().requires_grad_()
    scores = run_layers(layers, at)
    (slopes,) = torch.autograd.grad((scores[:, 0] - scores[:, 1]).sum(), at)
    steepest = slopes.flatten(1).norm(dim=1).max().item()
    assert steepest <= constants[0, 1].item() < 1000 * steepest


def test_a_forward_of_ones_own_has_the_radii_of_its_layers():
    """All that is proved of a Sequential is proved of a class with the same layers."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.slopes, self.fc2 = nn.Linear(4, 6), nn.PReLU(6), nn.Linear(6, 3)

        def forward(self, x):
            return self.fc2(F.prelu(self.fc1(x.float()), self.slopes.weight))

    torch.manual_seed(0)
    net, x = Net(), torch.randn(2, 4)
    nn.init.uniform_(net.slopes.weight, -2, 2)
    chain = nn.Sequential(net.fc1, net.slopes, net.fc2)
    data = (x, net(x).argmax(1))
    own, layers = (nm.robustness(m, data, effort="exact", progress=False) for m in (net, chain))
    assert own.closed.all()
    assert own.upper_proved
    np.testing.assert_allclose(own.lower, layers.lower, rtol=1e-9)


class AddsInPlace(Own):
    def forward(self, x):
        x = y = self.fc1(x)
        x += F.relu(x - 1000)  # 0 at all samples, and y is changed as well
        return y + x


class ActsInPlace(Own):
    def forward(self, x):
        x = self.fc1(x)
        return x.view(-1, 5) + self.relu(x)


class Throws(Own):
    def forward(self, x):
        x = self.fc1(x)
        torch.relu_(x)
        return x


class Centers(Own):
    def forward(self, x):
        return self.fc1(x - x.mean(0))


class Averages(Own):
    def forward(self, x):
        return x.view(-1, 2, 8).mean(0)


class Multiplies(Own):
    def forward(self, x):
        return self.fc1(x) * self.fc1(x)


class Mixes(Own):
    def forward(self, x):
        return self.fc1(x)[[1, 0]]


class Gathers(Own):
    def forward(self, x):
        return self.fc1(x[:, [0] * 16])


class Scales(Own):
    def forward(self, x):
        return self.fc1(x) / x.size(0)


class SeesChannels(Own):
    def forward(self, x):
        return self.across(self.fc1(x))


class Chooses(Own):
    def forward(self, x):
        return torch.where(x.sum() > 0, self.fc1(x), -self.fc1(x))


class Looks(Own):
    def forward(self, x):
        return self.fc1(x) if (x > 0).all() else -self.fc1(x)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (AddsInPlace, "in place"),
        (ActsInPlace, "in place"),
        (Throws, "in place"),
        (Centers, "mixes samples"),
        (Averages, "'mean'.*Lipschitz"),
        (Multiplies, "'mul'.*no products"),
        (Mixes, "mixes samples"),
        (Gathers, "'getitem'.*Lipschitz"),
        (Scales, "'truediv'.*Lipschitz"),
        (SeesChannels, "channels of one"),
        (Chooses, "mixes samples"),
        (Looks, "cannot trace"),
    ],
)
def test_what_is_no_function_of_each_sample_is_refused(kind, said):
    torch.manual_seed(0)
    net, x = kind().double().eval(), torch.rand(2, 16).double()
    with pytest.raises(ModelError, match=f"(?s){said}"):
        trace_layers(net, x)


def test_constants_that_take_the_type_of_samples_are_no_samples():
    class Net(Own):
        def forward(self, x):
            return self.fc1.bias.to(x) - self.fc1(x)

    torch.manual_seed(0)
    net, x = Net().double(), torch.randn(4, 16).double()
    layers = [step.layer for step in trace_layers(net, x)]
    torch.testing.assert_close(run_layers(layers, x), -x @ net.fc1.weight.T)


def test_chains_know_no_branches():
    torch.manual_seed(0)
    with pytest.raises(ModelError, match="no skip connections"):
        read_chain(Residual().double().eval(), torch.randn(3, 2, 6, 6).double())


def ones() -> nn.Linear:
    """The sum of three numbers."""
    layer = nn.Linear(3, 1, bias=False).double()
    nn.init.ones_(layer.weight)
    return layer


@pytest.mark.parametrize(
    ("parts", "large"),
    [
        ([[], [Moved(torch.Size([3]), torch.tensor([2, 0, 1]))], []], [1e8, 0.0, 1.0]),
        ([[ones()], [ones(), Scaled(torch.tensor(0.0), torch.tensor(0.0))]], [1e8, -1e8, 0.0]),
    ],
)
def test_the_rounding_of_branches_is_bounded(parts, large):
    """Of the sum where they end, and of what cancels within one of them."""
    net = [Branches("add", [nn.Sequential(*part) for part in parts])]
    x = torch.rand(50, 3, dtype=torch.float64) + torch.tensor(large).double()
    with torch.no_grad():
        found, errors = run_layers(net, x), rounding_errors(net, x, [1e9])
    moved = len(parts) == 3
    for row, z, error in zip(x.tolist(), found.tolist(), errors.tolist(), strict=True):
        a, b, c = map(Fraction, row)
        exact = (2 * a + c, 2 * b + a, 2 * c + b) if moved else (a + b + c,)
        for at, true, allowed in zip(z, exact, error, strict=True):
            assert abs(Fraction(at) - true) <= Fraction(allowed)
    assert 0 < errors.max() < 1e-4
    assert errors.min(0).values.max() > 1e-9


@torch.no_grad()
def test_the_rounding_of_scales_that_have_lost_digits_is_bounded():
    """Of a batch norm: 3/2 and 1/2 of the smallest float64 number, times 1e300."""
    norm = nn.BatchNorm1d(2, eps=0.0).double()
    norm.running_var.fill_(4.0)
    norm.weight.copy_(torch.tensor([3.0, 1.0]).double() * 2.0**-1074)
    x = torch.full((1, 2), 1e300, dtype=torch.float64)
    layers = [named.layer for named in trace_layers(nn.Sequential(norm).eval(), x)]
    found, errors = run_layers(layers, x)[0], rounding_errors(layers, x, [])[0]
    for k, half in enumerate((3, 1)):
        exact = Fraction(half, 2) * Fraction(2.0**-1074) * Fraction(1e300)
        assert abs(Fraction(found[k].item()) - exact) <= Fraction(errors[k].item()) < 1


def test_a_layer_that_holds_layers_is_named_without_them():
    """And not taken for one of the normalizations that it holds."""
    layer = nn.TransformerEncoderLayer(4, 1, 8, batch_first=True)
    net = nn.Sequential(nn.Unflatten(1, (1, 4)), layer, nn.Flatten())
    radii = nm.robustness(net, (torch.randn(2, 4), [0, 1]), attacks=False, progress=False)
    assert "The layer '1', TransformerEncoderLayer, has no known" in radii.no_lower
    assert "BatchNorm" not in radii.no_lower
