"""Both radii against rational arithmetic, where rounding, or the size of numbers, decides."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.radii.certified import certified_radii
from netmargin.radii.lipschitz import chain_norms


def radii(net, X, y, **options):
    return nm.robustness(net, (X, y), progress=False, **options)


def chain_of(weights, biases, kinks) -> nn.Sequential:
    """Layers with one input, one output and one unit each, with or without a ReLU between them."""
    layers: list[nn.Module] = []
    for weight, bias, kink in zip(weights, biases, [*kinks, False], strict=True):
        layer = nn.Linear(1, 1).double()
        with torch.no_grad():
            layer.weight.fill_(weight)
            layer.bias.fill_(bias)
        layers += [layer, nn.ReLU()] if kink else [layer]
    return nn.Sequential(*layers)


def exact_score(net: nn.Sequential, x: Fraction) -> Fraction:
    for layer in net:
        if isinstance(layer, nn.ReLU):
            x = max(x, Fraction(0))
        else:
            x = Fraction(layer.weight.item()) * x + Fraction(layer.bias.item())
    return x


def exact_radius(net: nn.Sequential, x: float, sign: int) -> Fraction | None:
    """The distance to the nearest input of score 0 or the other sign, from all kinks, or None."""
    start, kinks = Fraction(x), set()
    for place, layer in enumerate(net):
        if isinstance(layer, nn.ReLU) or place == len(net) - 1:
            head = net[:place] if isinstance(layer, nn.ReLU) else net
            kinks |= set(roots(head, kinks))
    wrong = [point for point in kinks if sign * exact_score(net, point) <= 0]
    far = max([abs(k) for k in kinks] + [abs(start)]) + 1
    ends = [end for end in (far, -far) if sign * exact_score(net, end) <= 0]
    if sign * exact_score(net, start) <= 0:
        return Fraction(0)
    # Beyond the last root the sign does not change: the root itself is the nearest wrong point.
    assert wrong or not ends
    return min((abs(point - start) for point in wrong), default=None)


def roots(net: nn.Sequential, kinks: set) -> list[Fraction]:
    """Where a piecewise linear score with these kinks is 0."""
    edges, found = sorted(kinks), []
    edges = [edges[0] - 1, *edges, edges[-1] + 1] if edges else [Fraction(0), Fraction(1)]
    for index, (a, b) in enumerate(itertools.pairwise(edges)):
        at_a, at_b = exact_score(net, a), exact_score(net, b)
        if at_a == at_b:
            found += [a, b] if at_a == 0 else []
            continue
        root = a - at_a * (b - a) / (at_b - at_a)
        first, last = index == 0, index == len(edges) - 2
        if (first or root >= a) and (last or root <= b):
            found.append(root)
    return found


@pytest.mark.slow_cases("8-options2", "2-options1")
@pytest.mark.parametrize(
    ("count", "options"),
    [
        (8, {"effort": "quick", "attacks": False}),
        (2, {"effort": "quick"}),
        (8, {"effort": "exact", "attacks": False}),
        pytest.param(80, {"effort": "exact"}, marks=pytest.mark.nightly),
    ],
)
def test_radii_at_every_scale(count, options):
    """From 1e-300 to 1e300 neither radius is beyond the exact one, or infinite without it."""
    rng = np.random.default_rng(0)
    proved = 0
    for _ in range(count):
        depth = int(rng.integers(1, 5))
        # Half of them cancel: what the layers scale by, others scale back.
        exponents = rng.integers(-300, 301, size=depth) / rng.choice([1, 3, 30])
        if depth > 1 and rng.random() < 0.5:
            exponents[-1] = np.clip(-exponents[:-1].sum(), -300, 300)
        weights = rng.choice([-1, 1], depth) * rng.uniform(1, 9, depth) * 10.0**exponents
        sizes = 10.0 ** (rng.integers(-300, 301, depth) / rng.choice([1, 30, 300], depth))
        biases = rng.normal(size=depth) * np.where(rng.random(depth) < 0.3, 0.0, sizes)
        net = chain_of(weights, biases, rng.random(depth - 1) < 0.5)
        x = float(rng.normal() * 10.0 ** (rng.integers(-300, 301) / rng.choice([1, 300])))
        with torch.no_grad():
            score = net(torch.tensor([[x]], dtype=torch.float64)).item()
        if not np.isfinite(score):
            continue
        for sign in (1, -1):
            exact = exact_radius(net, x, sign)
            try:
                X = torch.tensor([[x]], dtype=torch.float64)
                report = radii(net, X, torch.tensor([sign]), **options)
            except nm.ModelError:  # all weights below 1e-154, or one beyond 1e154
                continue
            lower, upper = float(report.lower[0]), float(report.upper[0])
            if exact is not None:
                assert lower < np.inf
                assert Fraction(lower) <= exact
            if upper < np.inf:
                assert exact is not None
                assert Fraction(upper) >= exact
            proved += lower > 0
    assert proved >= count // 8


def cancelling_net(first, second, out, bias, kind: str) -> nn.Sequential:
    """f(x) = bias + out relu(second first x), or without the ReLU, or with convolutions, or with a
    ReLU that is dead at 0: bias + out relu(second first x - bias).
    """
    size, width = first.shape[1], len(first)
    if kind == "convolutions":
        layers = [
            nn.Conv1d(1, width, size, bias=False), nn.Conv1d(width, 1, 1, bias=False), nn.Flatten()
        ]  # fmt: skip
    else:
        layers = [nn.Linear(size, width, bias=False), nn.Linear(width, 1, bias=False)]
    layers += [nn.Linear(1, 1)] if kind == "linear" else [nn.ReLU(), nn.Linear(1, 1)]
    net = nn.Sequential(*layers).double()
    with torch.no_grad():
        for layer, weight in zip(net[:2], (first, second), strict=True):
            layer.weight.copy_(torch.from_numpy(weight).reshape(layer.weight.shape))
        if kind == "dead":
            net[1].bias = nn.Parameter(torch.full((1,), -bias, dtype=torch.float64))
        net[-1].weight.fill_(out)
        net[-1].bias.fill_(bias)
    return net


@pytest.mark.slow_cases(
    "convolutions-standard",
    "relu-standard",
    "dead-standard",
    "linear-standard",
    "convolutions-exact",
    "dead-exact",
    "linear-exact",
    "linear-None",
    "dead-None",
)
@pytest.mark.parametrize("effort", [None, "quick", "standard", "exact"])
@pytest.mark.parametrize("kind", ["linear", "relu", "dead", "convolutions"])
def test_products_of_layers_that_cancel(kind, effort):
    """What two layers multiply to is far below their entries, and partly or all lost in rounding:
    no radius of x = 0 exceeds bias / |out second first|, in fractions, or what a dead ReLU adds.

    effort : of `robustness`; None for the radii of Lipschitz constants and slopes alone.
    """
    rng, close, count = np.random.default_rng(0), 0, 30 if effort is None else 3
    for n in range(count):
        e, size, width = 2.0 ** -int(rng.integers(10, 31)), int(rng.integers(1, 4)), 1
        first, second, out, bias = [[1.0], [1 + e]], [[1.0, e - 1]], -(2.0**60), 1.0
        if n == 1:
            e = 2.0**-20
            first, second, out, bias = [[1.0], [1 + e]], [[1e6, 1e6 * (e - 1)]], -1.0, 1e-6
        if n > 1:
            width = int(rng.integers(1, 4))
            rows, weights = rng.normal(size=(width, size)), rng.normal(size=(1, width))
            first = np.concatenate([rows, rows * (1 + e)])
            second = np.concatenate([weights, weights * (e - 1)], 1) * 10.0 ** rng.integers(-9, 10)
            out, bias = (-1e3 if kind == "dead" else -1.0), float(np.abs(second).max() * e * e)
        first, second = np.array(first), np.array(second)
        net = cancelling_net(first, second, out, bias, kind)
        X = torch.zeros(1, first.shape[1], dtype=torch.float64)
        X = X[:, None] if kind == "convolutions" else X
        one = torch.ones(1).double()
        if effort is None:
            lower = certified_radii(net, X, one, *chain_norms(net, X)).item()
        else:
            lower = float(radii(net, X, one, effort=effort, attacks=False).lower[0])
        exact = np.vectorize(Fraction, otypes=[object])
        slopes = Fraction(out) * (exact(second) @ exact(first))
        gap = Fraction(bias) - (Fraction(out) * Fraction(bias) if kind == "dead" else 0)
        assert lower < np.inf
        assert Fraction(lower) ** 2 * (slopes**2).sum() <= gap**2
        close += lower**2 * float((slopes**2).sum()) >= 0.99 * gap**2
    assert close >= count // 4  # most are near the exact ones where something is left of products


@pytest.mark.parametrize("slope", [0.0, 0.25])
@pytest.mark.parametrize("effort", ["quick", "standard", "exact"])
def test_a_dead_unit_comes_alive_before_its_rounded_value_is_0(effort, slope):
    """f = 1/1024 - kink(x_1 + x_2 - 2^33 - 1), whose first sum is rounded down at x."""
    net = nn.Sequential(
        nn.Linear(2, 1, bias=False), nn.Linear(1, 1), nn.LeakyReLU(slope), nn.Linear(1, 1)
    ).double()
    if slope == 0:
        net[2] = nn.ReLU()
    gap, lost = 2.0**-10, 2.0**-21
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        net[1].weight.fill_(1.0)
        net[1].bias.fill_(-(2.0**33) - 1)
        net[3].weight.fill_(-1.0)
        net[3].bias.fill_(gap)
        X = torch.tensor([[2.0**33, lost]], dtype=torch.float64)
        assert net[1](net[0](X)) == -1  # and -1 + lost in exact arithmetic
    report = radii(net, X, torch.ones(1), attacks=False, effort=effort)
    exact = 1 - Fraction(lost) + Fraction(gap)
    assert 0.999 * exact**2 < 2 * Fraction(float(report.lower[0])) ** 2 <= exact**2


@pytest.mark.slow_cases("standard", "exact")
@pytest.mark.parametrize("effort", ["quick", "standard", "exact"])
def test_a_flip_of_rounding_alone_is_none(effort):
    """Three equal units and output weights that sum to 0: f = 1 everywhere, whatever float64 says."""
    net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    with torch.no_grad():
        net[0].weight.fill_(1.0)
        net[0].bias.fill_(0.1)
        net[2].weight.copy_(torch.tensor([[1e17, -3e16, -7e16]], dtype=torch.float64))
        net[2].bias.fill_(1.0)
    X = torch.linspace(0.1, 1.7, 20, dtype=torch.float64)[:, None][::4]
    with torch.no_grad():
        assert (net(X) <= 0).any()  # in float64
    report = radii(net, X, torch.ones(5), effort=effort)
    assert report.upper_proved
    assert np.isinf(report.upper).all()
    assert (report.certified_by == "").all()


def test_ties_are_decided_in_rational_arithmetic():
    """0.1 + 0.2 - 0.3 is positive in float64's numbers, and so is 0.25 - 0.25 a tie."""
    net = nn.Sequential(nn.Linear(3, 1), nn.ReLU(), nn.Linear(1, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 1.0, -1.0]]))
        net[0].bias.zero_()
        net[2].weight.fill_(1.0)
        net[2].bias.zero_()
    X = torch.tensor([[0.25, 0.5, 0.75], [1.0, 2.0**-54, 1.0]], dtype=torch.float64)
    with torch.no_grad():
        assert (net(X).abs() <= 2.0**-54).all()  # 0 or not, by the order of sums
    report = radii(net, X, torch.ones(2), effort="quick")
    assert report.certified_by.tolist() == ["misclassified", ""]
    assert report.upper[0] == 0
    assert report.upper[1] >= 2.0**-54 / 3**0.5
    assert report.upper[1] < 1e-12


@pytest.mark.slow
def test_without_a_bound_of_rounding_flips_are_those_of_float64():
    """A product of activations: the report says so, and nothing is called proved."""

    class Product(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return x * torch.relu(self.inner(x))

    torch.manual_seed(0)
    X = torch.randn(6, 2)
    report = radii(Product(), X, torch.arange(6) % 2)
    assert not report.upper_proved
    assert (report.certified_by == "").all()
    assert "computed in float64" in report.summary()
    assert "(proved)" not in report.summary()


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_layers_of_any_scale_are_answered_or_refused_in_words(factor):
    """Two layers times a factor: LAPACK has nothing to say of infinities."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2)).double()
    with torch.no_grad():
        for part in net[1].parameters():
            part *= factor
        for part in net[3].parameters():
            part *= factor
        X = torch.randn(4, 3, dtype=torch.float64)
        y = net(X).argmax(1)
    report = radii(net, X, y, attacks=False)
    assert "whose products leave the range of float64" in report.no_chain
    assert report.not_found == 0


def test_a_forward_that_works_in_place_has_the_radii_of_one_that_does_not():
    class Halved(nn.Module):
        def __init__(self, in_place):
            super().__init__()
            self.inner, self.in_place = nn.Linear(3, 3), in_place

        def forward(self, x):
            x = x.mul_(0.5) if self.in_place else 0.5 * x
            return torch.tanh(self.inner(x)) + x

    torch.manual_seed(0)
    nets = Halved(False), Halved(True)
    nets[1].load_state_dict(nets[0].state_dict())
    X, y = torch.randn(2, 3), torch.arange(2)
    kept = X.clone()
    first, second = (radii(net, X, y) for net in nets)
    assert torch.equal(X, kept)
    assert (first.upper == second.upper).all()
    assert (first.q == second.q).all()


@pytest.mark.parametrize("effort", ["quick", "standard"])
def test_a_net_that_is_constant_has_infinite_radii(effort):
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    with torch.no_grad():
        net[0].weight.zero_()
        net[0].bias.fill_(0.0)
        net[2].bias.fill_(1.0)
    report = radii(net, torch.ones(1, 2), torch.ones(1), attacks=False, effort=effort)
    assert report.lower[0] == np.inf
    assert report.closed.all()
