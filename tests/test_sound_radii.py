"""Certified radii against points that are misclassified: nets made so that a wrong bound shows."""

import copy
import math
import operator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.radii import lipschitz
from netmargin.radii.certified import certified_radii
from tests.chains import score_lipschitz


def radii(net, X, y, **options):
    return nm.robustness(
        net, (X, y), progress=False, **({"attacks": False, "effort": "quick"} | options)
    )


def linear(weight, bias=0.0) -> nn.Linear:
    """A linear layer with these rows."""
    weight = torch.as_tensor(weight, dtype=torch.float64)
    layer = nn.Linear(weight.shape[1], weight.shape[0]).double()
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(torch.as_tensor(bias, dtype=torch.float64).expand(len(weight)))
    return layer


class Branch(nn.Module):
    """x + f(x), x - f(x) or (x, f(x))."""

    def __init__(self, inner: nn.Module, joined: str):
        super().__init__()
        self.inner, self.joined = inner, joined

    def forward(self, x):
        if self.joined == "cat":
            return torch.cat([x, self.inner(x)], 1)
        return x + self.inner(x) if self.joined == "add" else x - self.inner(x)


def prelu(*slopes: float) -> nn.PReLU:
    """A PReLU with one slope for all, or for each channel."""
    layer = nn.PReLU(len(slopes)).double()
    layer.weight.data.copy_(torch.tensor(slopes))
    return layer


def on_one_channel(*layers) -> nn.Sequential:
    return nn.Sequential(nn.Unflatten(1, (1, -1)), *layers)


@dataclass
class Case:
    """A net, a sample that it classifies as `label`, and a misclassified input.

    tight : how much of the distance between both is certified; 0 : nothing, the net is refused.
    """

    net: nn.Module
    x: list
    misclassified: list
    label: int = 1
    tight: float = 0.999


def pooled(pool: nn.Module, length: int, entry: int) -> Case:
    """The sum of two maxima attained by one input: moved by d, it changes by 2 d."""
    x = torch.zeros(length)
    x[entry] = 1.0
    net = on_one_channel(pool, nn.Flatten(), linear([[1.0, 1.0]], -1.0))
    return Case(net, x.tolist(), (0.5 * x).tolist())


def pooled_in_the_plane() -> Case:
    """The sum of four maxima."""
    x = torch.zeros(3, 3)
    x[1, 1] = 1.0
    net = nn.Sequential(
        nn.Unflatten(1, (1, 3, 3)), nn.MaxPool2d(2, 1), nn.Flatten(), linear([[1.0] * 4], -2.0)
    )
    return Case(net, x.flatten().tolist(), (0.5 * x).flatten().tolist())


def batch_norm(weight: list[float]) -> nn.BatchNorm2d:
    layer = nn.BatchNorm2d(len(weight), eps=0.0).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weight))
    return layer


def scaled_channels() -> Case:
    """Batch norm by -3 and a 1 x 1 convolution by 2, each too large to be written out: 6 in all."""
    side = 41
    double = nn.Conv2d(2, 2, 1, bias=False).double()
    pick = torch.zeros(1, 2 * side * side)
    pick[0, 0] = 1.0
    with torch.no_grad():
        double.weight.copy_(2 * torch.eye(2)[:, :, None, None])
    net = nn.Sequential(
        nn.Unflatten(1, (2, side, side)),
        batch_norm([-3.0, 0.5]),
        double,
        nn.ReLU(),
        nn.Flatten(),
        linear(pick, -3.0),
    )
    x, z = torch.zeros(2 * side * side), torch.zeros(2 * side * side)
    x[0], z[0] = -1.0, -0.5
    return Case(net, x.tolist(), z.tolist())


def off_the_grid_of_frequencies() -> Case:
    """A convolution whose norm is that of its symbol between the frequencies that are looked at.

    Complex numbers as pairs of channels: the symbol is cos(u - a) cos(v - a), largest at a, half
    way between two of 32 frequencies. Zero padding leaves a tridiagonal matrix along each
    dimension.
    """
    side, a = 58, math.pi / 32
    turn = torch.tensor(
        [[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]], dtype=torch.float64
    )
    taps = {-1: turn.T / 2, 0: torch.zeros(2, 2).double(), 1: turn / 2}
    kernel = torch.zeros(2, 2, 3, 3, dtype=torch.float64)
    for i, row in taps.items():
        for j, column in taps.items():
            kernel[:, :, i + 1, j + 1] = row @ column
    layer = nn.Conv2d(2, 2, 3, padding=1).double()
    with torch.no_grad():
        layer.weight.copy_(kernel)
        layer.bias.fill_(10.0)  # the ReLU behind it is the identity
    k = torch.arange(1, side + 1).double()
    wave = torch.polar(torch.sin(math.pi * k / (side + 1)), -a * k)
    wave = torch.view_as_real(wave[:, None] * wave[None]).permute(2, 0, 1)
    wave /= wave.norm()
    image = torch.nn.functional.conv2d(wave[None], kernel, padding=1).flatten()
    norm = image.norm()
    assert norm == pytest.approx(math.cos(math.pi / (side + 1)) ** 2)
    rows = (image / norm)[None]
    net = nn.Sequential(
        nn.Unflatten(1, (2, side, side)),
        layer,
        nn.ReLU(),
        nn.Flatten(),
        linear(rows, -10 * rows.sum()),
    )
    wave = wave.flatten()
    return Case(net, wave.tolist(), (-1e-9 * wave).tolist(), tight=0.98)


def kernel_beyond_the_grid_of_frequencies() -> Case:
    """A convolution that only delays, by more than there are frequencies at least."""
    layer = nn.Conv2d(1, 1, (1, 41), bias=False).double()
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[..., -1] = 1.0
    x, pick = torch.zeros(3300), torch.zeros(1, 3260)
    x[40], pick[0, 0] = 1.0, 1.0
    net = nn.Sequential(
        nn.Unflatten(1, (1, 1, 3300)), layer, nn.ReLU(), nn.Flatten(), linear(pick, -0.5)
    )
    return Case(net, x.tolist(), (x / 2).tolist(), tight=0.9)


def averages_at_the_edge(kernel, stride, padding) -> Case:
    """At the edge an input counts more than once in all: no bound is known."""
    pool = nn.AvgPool2d(kernel, stride, padding, count_include_pad=False)
    x = torch.zeros(1, 1, 60, 60, dtype=torch.float64)
    x[0, 0, 0] = 1.0
    outputs = pool(x).numel()
    rows = pool(x).reshape(1, outputs)
    slope = torch.func.grad(lambda x: (rows @ torch.relu(pool(x)).flatten())[0])(x)
    net = nn.Sequential(
        nn.Unflatten(1, (1, 60, 60)),
        pool,
        nn.ReLU(),
        nn.Flatten(),
        linear(rows, -rows.square().sum() / 2),
    )
    t = rows.square().sum() / 2 / slope.square().sum()
    return Case(
        net, x.flatten().tolist(), (x - (1 + 1e-9) * t * slope).flatten().tolist(), tight=0.0
    )


def with_hook(kind: str) -> Case:
    """A ReLU whose input or output is multiplied by 10 by a hook."""
    net = nn.Sequential(linear([[1.0]]), nn.ReLU(), linear([[1.0]], -5.0))
    getattr(net[1], f"register_forward_{kind}")(
        (lambda module, inputs: (10 * inputs[0],))
        if kind == "pre_hook"
        else (lambda module, inputs, output: 10 * output)
    )
    return Case(net, [1.0], [0.5], tight=0.0)


def with_own_forward(part: int | None) -> Case:
    """A module whose forward was replaced: the whole net, or one layer of it."""
    net = nn.Sequential(linear([[1.0]]), nn.ReLU(), linear([[1.0]], -5.0))
    module = net if part is None else net[part]
    forward = module.forward
    module.forward = (lambda x: forward(10 * x)) if part is None else (lambda x: 10 * forward(x))
    return Case(net, [1.0], [0.5], tight=0.0)


CASES = {
    "max-pool, strides that do not divide": lambda: pooled(nn.MaxPool1d(3, 2), 5, 2),
    "max-pool, dilated": lambda: pooled(nn.MaxPool1d(2, 2, dilation=2), 5, 2),
    "max-pool, both dimensions": pooled_in_the_plane,
    "LeakyReLU, steep": lambda: Case(
        nn.Sequential(linear([[2.0]]), nn.LeakyReLU(3.0), linear([[1.0]], 3.0)), [0.5], [-0.5]
    ),
    "LeakyReLU, steep, and a unit that is always 0": lambda: Case(
        nn.Sequential(linear([[2.0], [0.0]]), nn.LeakyReLU(3.0), linear([[1.0, 0.0]], 3.0)),
        [0.5],
        [-0.5],
    ),
    "LeakyReLU, steep and falling": lambda: Case(
        nn.Sequential(linear([[1.0]]), nn.LeakyReLU(-3.0), linear([[-1.0]], 4.0)), [-1.0], [-4 / 3]
    ),
    "LeakyReLU twice": lambda: Case(
        nn.Sequential(nn.LeakyReLU(3.0), nn.LeakyReLU(2.0), linear([[1.0]], 6.0)), [-0.5], [-1.0]
    ),
    "LeakyReLU, many kinks": lambda: Case(
        nn.Sequential(
            linear([[1.0]] * 4, [0.0, 1, 2, 3]), nn.LeakyReLU(10.0), linear([[1.0] * 4], -4.0)
        ),
        [0.1],
        [-2 / 13],
        tight=0.5,
    ),
    "LeakyReLU in place, first": lambda: Case(
        nn.Sequential(nn.LeakyReLU(0.5, True), linear([[1.0]], 1.0)), [-1.0], [-2.0]
    ),
    "PReLU, of which one slope is steep": lambda: Case(
        nn.Sequential(linear([[0.0], [2.0]]), prelu(0.25, 3.0), linear([[0.0, 1.0]], 3.0)),
        [0.5],
        [-0.5],
    ),
    "PReLU, of which one slope is steep and falls": lambda: Case(
        nn.Sequential(linear([[1.0], [0.0]]), prelu(-3.0, 0.5), linear([[-1.0, 0.0]], 4.0)),
        [-1.0],
        [-4 / 3],
    ),
    "PReLU, flat below 0": lambda: Case(
        nn.Sequential(linear([[1.0]]), prelu(0.25), linear([[1.0]], -0.5)), [1.0], [0.5]
    ),
    "PReLU and max-pool": lambda: Case(
        on_one_channel(prelu(-3.0), nn.MaxPool1d(3, 2), nn.Flatten(), linear([[1.0, 1.0]], -1.0)),
        [0.0, 0.0, -1 / 3, 0.0, 0.0],
        [0.0, 0.0, -1 / 6, 0.0, 0.0],
    ),
    "branches that are added": lambda: Case(
        nn.Sequential(Branch(nn.LeakyReLU(3.0), "add"), linear([[1.0]], 5.0)), [-1.0], [-1.25]
    ),
    "branches that are subtracted": lambda: Case(
        nn.Sequential(Branch(nn.LeakyReLU(-3.0), "sub"), linear([[1.0]], 5.0)), [-1.0], [-1.25]
    ),
    "branches side by side": lambda: Case(
        nn.Sequential(Branch(nn.LeakyReLU(2.0), "cat"), linear([[1.0, 2.0]], 6.0)), [-1.0], [-1.2]
    ),
    "slope only within the region": lambda: Case(
        nn.Sequential(linear([[1.0]]), nn.LeakyReLU(100.0), linear([[1.0]])), [1.0], [0.0]
    ),
    "two scores that end nonlinearly": lambda: Case(
        nn.Sequential(linear(np.eye(2)), nn.Hardtanh(-9, 9)), [2.0, 1.0], [1.5, 1.5], label=0
    ),
    "two scores that move apart": lambda: Case(
        nn.Sequential(linear([[1.0]]), nn.ReLU(), linear([[1.0], [-1.0]])), [1.0], [0.0], label=0
    ),
    "three scores, of which one is steep": lambda: Case(
        nn.Sequential(nn.Tanh(), linear([[0.0], [1.0], [40.0]], [0.0, 10.0, 20.0])),
        [0.1],
        [-0.2624],
        label=2,
        tight=0.9,
    ),
    "two steep layers": lambda: Case(
        nn.Sequential(linear([[3.0]]), nn.Tanh(), linear([[3.0]]), nn.Tanh(), linear([[3.0]])),
        [0.01],
        [0.0],
        tight=0.99,
    ),
    "max-pool, next piece": lambda: Case(
        nn.Sequential(linear([[0.1], [3.0]], [1.0, 0.0]), nn.MaxPool1d(2), linear([[-1.0]], 2.0)),
        [0.0],
        [2 / 3],
        tight=0.49,
    ),
    "tanh, flat here": lambda: Case(
        nn.Sequential(nn.Tanh(), linear([[1.0]], 0.5)), [3.0], [-0.5494], tight=0.4
    ),
    "ReLU6, flat here": lambda: Case(
        nn.Sequential(nn.ReLU6(), linear([[1.0]], -1.0)), [7.0], [1.0], tight=0.8
    ),
    "Hardtanh, flat here": lambda: Case(
        nn.Sequential(nn.Hardtanh(), linear([[1.0]], 0.5)), [2.0], [-0.5], tight=0.5
    ),
    "batch norm and convolution, large": scaled_channels,
    "convolution, large": off_the_grid_of_frequencies,
    "convolution with a large kernel": kernel_beyond_the_grid_of_frequencies,
    "averages that overlap": lambda: averages_at_the_edge(8, 1, 4),
    "averages that overlap along one dimension": lambda: averages_at_the_edge((8, 1), 1, (4, 0)),
    "a small slope beside a large bias": lambda: Case(
        nn.Sequential(linear([[5e-5], [0.0]], 1e12), nn.ReLU(), linear([[1.0, 0.0]], 1 - 1e12)),
        [0.0],
        [-2.1e4],
        tight=0.9,
    ),
    "hook before a ReLU": lambda: with_hook("pre_hook"),
    "hook behind a ReLU": lambda: with_hook("hook"),
    "a net with a forward of its own": lambda: with_own_forward(None),
    "a layer with a forward of its own": lambda: with_own_forward(1),
}


@pytest.mark.parametrize("name", CASES)
def test_no_radius_exceeds_the_distance_of_a_misclassified_point(name):
    """A bound that is wrong by a term is beyond it; the right one comes near."""
    case = CASES[name]()
    x, z = (
        torch.tensor([case.x], dtype=torch.float64),
        torch.tensor([case.misclassified], dtype=torch.float64),
    )
    y = torch.tensor([case.label])
    with torch.no_grad():
        scores = copy.deepcopy(case.net).eval()(torch.cat([x, z]))
    if scores.shape[1] == 1:
        q = scores[:, 0] * (2 * case.label - 1)
    else:
        others = [j for j in range(scores.shape[1]) if j != case.label]
        q = scores[:, case.label] - scores[:, others].amax(1)
    assert q[0] > 0 >= q[1] - 1e-12
    report = radii(case.net, x.clone(), y)
    distance = (z - x).norm().item()
    assert report.lower[0] <= distance * (1 + 1e-9)
    assert report.lower[0] >= case.tight * distance
    assert bool(report.no_lower) == (case.tight == 0)


def test_a_net_that_is_not_its_chain():
    """A hook on every module of the process multiplies what Sequentials hand back."""
    net = nn.Sequential(linear([[1.0]]), nn.ReLU(), linear([[1.0]], -0.5))

    def louder(module, inputs, output):
        return 10 * output if isinstance(module, nn.Sequential) else output

    handle = torch.nn.modules.module.register_module_forward_hook(louder)
    try:
        report = radii(net, [[1.0]], [1])
    finally:
        handle.remove()
    assert "not the chain of its layers" in report.no_lower
    assert report.lower.tolist() == [0.0]


@pytest.mark.parametrize("kind", ["linear", "stretch", "matrix"])
def test_norms_in_exact_arithmetic(kind):
    """Rounded upwards: no less than those of the weights as rational numbers, and hardly more."""
    torch.manual_seed(0)
    for _ in range(20):
        rows = torch.randn(2 if kind == "matrix" else 1, 5, dtype=torch.float64)
        chain = nn.Sequential(linear(rows), nn.ReLU(), linear([[1.0] * len(rows)]))
        chain, at = (chain[:1] if kind == "linear" else chain), torch.zeros(1, 5).double()
        norms, last = lipschitz.chain_norms(chain, at)
        bound = Fraction(last.item() if kind == "linear" else norms[0]) ** 2
        rows = [[Fraction(w) for w in row] for row in rows.tolist()]
        squares = [[sum(map(operator.mul, a, b)) for a in rows] for b in rows]
        for factor, sign in ((1, 1), (1 + Fraction(1, 10**8), -1)):
            # t bounds the eigenvalues of a 2 x 2 matrix where t - matrix has no negative minor.
            t = bound / factor
            least = t - squares[0][0]
            if kind == "matrix":
                least = min(least, least * (t - squares[1][1]) - squares[0][1] ** 2)
            assert sign * least >= 0
        assert bound <= Fraction(score_lipschitz(chain, at).item()) ** 2


def test_products_of_large_linear_layers(monkeypatch):
    """All rows alike: the norm is sqrt(n) times what the largest sum of a row says."""
    monkeypatch.setattr(lipschitz, "_LARGEST_SIDE", 3)  # written out it would be exact
    rows = torch.zeros(4, 4, dtype=torch.float64)
    rows[:, 0] = 1.0
    net = nn.Sequential(linear(rows, 1.0), nn.ReLU(), linear([[1.0] * 4], -4.0))
    report = radii(net, [[1.0, 0, 0, 0]], [1])
    assert report.lower[0] == pytest.approx(1.0)


def test_ties_are_misclassified():
    """q = 0: both radii are 0, and no share of the samples is robust at epsilon 0."""
    report = radii(nn.Sequential(linear([[1.0]])), [[0.0], [1.0], [-2.0]], [1, 1, 1], attacks=True)
    assert report.lower[[0, 2]].tolist() == report.upper[[0, 2]].tolist() == [0.0, 0.0]
    assert report.lower[1] == pytest.approx(1.0)
    unattacked = radii(nn.Sequential(linear([[1.0]])), [[0.0], [1.0], [-2.0]], [1, 1, 1])
    assert unattacked.upper.tolist() == [0.0, math.inf, 0.0]
    assert report.curve([0.0]).to_numpy()[0, 1:] == pytest.approx([1 / 3, 1 / 3])
    # Without the judge that counts them as misclassified whatever their radii are.
    net, X = nn.Sequential(linear([[1.0]])), torch.tensor([[0.0], [1.0], [-2.0]]).double()
    found = certified_radii(net, X, torch.ones(3).double(), *lipschitz.chain_norms(net, X))
    assert found.tolist() == pytest.approx([0.0, 1.0, 0.0])


@pytest.mark.parametrize("lie", ["outside the box", "not misclassified", "no number"])
def test_attacks_are_judged(lie, monkeypatch):
    """What an attack hands back counts only where it is misclassified and in the box."""
    net = nn.Sequential(linear([[1.0, 10.0]], -0.5))
    X, y = torch.tensor([[0.9, 0.05]]).double(), torch.tensor([1])
    lies = {
        "outside the box": [[0.9, -1.0]],
        "not misclassified": [[0.5005, 0.0]],
        "no number": [[math.nan, math.nan]],
    }

    walk = "netmargin.radii.attacks.walk_to_boundary"
    monkeypatch.setattr(walk, lambda samples, *_: samples.x.new_tensor(lies[lie]))
    report = radii(net, X, y, attacks=True, box=(0, 1))
    # In the box the second input falls by 0.05 at most: the first has to fall to 0.5.
    exact = math.hypot(0.4, 0.05)
    assert report.lower[0] <= exact * (1 + 1e-9)
    assert report.upper[0] >= exact * (1 - 1e-9)


def exact_scores(net, x: list[Fraction]) -> list[Fraction]:
    """A chain of linear layers and LeakyReLUs in rational arithmetic."""
    for layer in net:
        if isinstance(layer, nn.LeakyReLU):
            x = [value if value > 0 else Fraction(layer.negative_slope) * value for value in x]
        else:
            rows = zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
            x = [
                sum((Fraction(w) * v for w, v in zip(row, x, strict=True)), Fraction(b))
                for row, b in rows
            ]
    return x


ROUNDED = {
    "cancelling inputs": lambda c: nn.Sequential(
        linear([[1.0, 1.0, -1.0]]), nn.LeakyReLU(100.0), linear([[1.0]], c)
    ),
    "cancelling inputs among others": lambda c: nn.Sequential(
        linear([[1.0, 1.0, -1.0], [1.0, 0.0, 0.0]]), nn.LeakyReLU(1e4), linear([[1.0, 0.0]], c)
    ),
    "cancelling scores": lambda c: nn.Sequential(
        linear([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [c, 0.0])
    ),
    "cancelling score beside zero": lambda c: nn.Sequential(
        linear([[1.0, 1.0, -1.0], [0.0, 0.0, 0.0]], [c, 0.0])
    ),
    "cancelling biases": lambda c: nn.Sequential(
        linear([[1.0, 1.0, -1.0]], 1e9), nn.LeakyReLU(100.0), linear([[1.0]], c - 1e9)
    ),
    "cancelling slopes": lambda c: nn.Sequential(
        linear([[0.1, 0, 0], [0.7, 0, 0], [0.1 + 0.7, 0, 0]]),
        linear([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [1 + c, 0.0]),
    ),
}


@pytest.mark.parametrize("c", [0.0, 1e-17, 1e-16, 1e-15, 3e-12, 1e-3])
@pytest.mark.parametrize("name", ROUNDED)
def test_radii_in_exact_arithmetic(name, c):
    """Of the first two inputs less the third only roundings are left, or a slope difference."""
    torch.manual_seed(0)
    net, pairs = ROUNDED[name](c), torch.rand(30, 2, dtype=torch.float64)
    offset = (
        7e-8 if name == "cancelling biases" else 0.0
    )  # small against the spacing of floats at 1e9
    X = torch.cat([pairs, pairs.sum(1, keepdim=True) - offset], 1)
    report = radii(net, X, torch.full((len(X),), int(net[-1].out_features == 1)))
    share = Fraction(0.57735)  # of 1 / sqrt 3, from below
    directions = [
        [share, share, -share],
        [-share, -share, share],
        [Fraction(1), 0, 0],
        [Fraction(-1), 0, 0],
    ]
    for x, lower in zip(X.tolist(), report.lower.tolist(), strict=True):
        assert lower < math.inf
        for direction in directions if lower > 0 else ():
            inside = [
                Fraction(v) + Fraction(0.999 * lower) * d for v, d in zip(x, direction, strict=True)
            ]
            scores = exact_scores(net, inside)
            assert scores[0] > (scores[1] if len(scores) > 1 else 0)
    assert (report.lower > 0).all() or c < 1e-3
