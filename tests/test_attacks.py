"""Our own attack against exact radii, foolbox's attacks, and nets that are hard on attacks."""

import copy
import itertools
import math

import clarabel
import numpy as np
import pytest
import torch
from scipy import sparse
from torch import nn

import netmargin as nm
from benchmarks.attacks import run_foolbox
from netmargin import models
from netmargin.radii import region_descent
from netmargin.radii.attacks import nearest_misclassified
from netmargin.radii.boundary import (
    Attacked,
    compute_gap_and_slope,
    compute_margin,
    polish_points,
)
from netmargin.radii.exact.chain import read_chain
from netmargin.radii.region_descent import descend_through_regions
from netmargin.radii.walks import _step_aside, walk_to_boundary
from tests.chains import make_chain


def radii(net, X, y, **options):
    return nm.robustness(net, (X, y), progress=False, **options)


def find(net, x, y, *, box=None, scale=1.0, chain=None):
    return nearest_misclassified(net, x, y, box=box, scale=scale, chain=chain)


class Scores(nn.Module):
    """A net given by a function."""

    def __init__(self, function):
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.function(x) * self.weight


def shortest_step(rows: np.ndarray, bounds: np.ndarray) -> float:
    """The length of the shortest step with rows . step >= bounds, by an interior point solver."""
    d = rows.shape[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_feas = 1e-12
    solved = clarabel.DefaultSolver(
        sparse.identity(d, format="csc"), np.zeros(d), sparse.csc_matrix(-rows), -bounds,
        [clarabel.NonnegativeConeT(len(rows))], settings,
    ).solve()  # fmt: skip
    return np.linalg.norm(solved.x) if "Infeasible" not in str(solved.status) else math.inf


def distances_by_pattern(chain, x: np.ndarray, gap: np.ndarray) -> dict[tuple, float]:
    """The distance of x to where gap . scores >= 0, in each linear region of one hidden layer."""
    (inner, outer), (b, c), slope = chain.weights, chain.biases, chain.slopes[0]
    found = {}
    for pattern in itertools.product((True, False), repeat=len(b)):
        signs, factors = np.where(pattern, 1.0, -1.0), np.where(pattern, 1.0, slope)
        row = gap @ outer @ (factors[:, None] * inner)
        rows = np.vstack([signs[:, None] * inner, row])
        at = np.append(signs * (inner @ x + b), gap @ (outer @ (factors * (inner @ x + b)) + c))
        found[pattern] = shortest_step(rows, -at)
    return found


def small_net(outputs: int, activation: nn.Module, seed: int, units: int = 6):
    """A net of one hidden layer, with samples of its own classes."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, units), activation, nn.Linear(units, outputs)).double()
    X = 2 * torch.randn(12, 3).double()
    with torch.no_grad():
        z = net(X)
    return net, X, (z[:, 0] > 0).long() if outputs == 1 else z.argmax(1)


def rivals_of(y: int, outputs: int) -> list[np.ndarray]:
    """For each rival the combination of scores that is at least 0 where it wins."""
    if outputs == 1:
        return [np.array([-1.0 if y else 1.0])]
    return [np.eye(outputs)[j] - np.eye(outputs)[y] for j in range(outputs) if j != y]


@pytest.mark.slow_cases("2", "4")
@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_linear_nets_to_the_last_digits(outputs):
    """The distance to the nearest hyperplane; the points are misclassified and that far."""
    torch.manual_seed(outputs)
    net, X = nn.Linear(6, outputs).double(), torch.randn(20, 6).double()
    with torch.no_grad():
        z, W = net(X), net.weight
        if outputs == 1:
            y, exact = (z[:, 0] > 0).long(), z[:, 0].abs() / W.norm()
        else:
            y = z.argmax(1)
            gaps = z.gather(1, y[:, None]) - z
            exact = (gaps / (W[y][:, None] - W).norm(dim=2)).nan_to_num(torch.inf).amin(1)
    np.testing.assert_allclose(radii(net, X, y, effort="quick").upper, exact, rtol=1e-9)
    found = find(net, X, y if outputs > 1 else 2.0 * y - 1, chain=read_chain(net, X))
    np.testing.assert_allclose((found.points - X).norm(dim=1), exact, rtol=1e-9)
    margin = compute_margin(net, found.points, y if outputs > 1 else 2.0 * y - 1)
    assert (margin <= 0).all()
    assert (found.found_by == 0).all()


def test_the_boundary_of_a_ball_is_followed_towards_x():
    """Tangents lead past the ball: points .42 of the distance too far come to .03, .05 at most."""
    torch.manual_seed(0)
    net = Scores(lambda x: x.square().sum(1) - 1)
    inside = 0.5 * nn.functional.normalize(torch.randn(20, 3).double())
    x = 3 * nn.functional.normalize(inside + torch.randn(20, 3).double())
    distances, points = polish_points(Attacked(net, x, torch.ones(20).double()), inside)
    assert 2 * (1 - 1e-12) <= distances.min() <= distances.max() <= 2.1
    np.testing.assert_allclose((points - x).norm(dim=1), distances, rtol=1e-12)


@pytest.mark.slow_cases("activation0-1", "activation1")
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.LeakyReLU(0.3)])
def test_small_nets_against_all_linear_regions(outputs, activation):
    """The radius found is the exact one, on every sample."""
    net, X, y = small_net(outputs, activation, seed=outputs)
    X, y = X[:6], y[:6]
    chain = read_chain(net, X)
    report = radii(net, X, y)
    for x, label, upper in zip(X.numpy(), y.tolist(), report.upper, strict=True):
        exact = min(
            min(distances_by_pattern(chain, x, gap).values()) for gap in rivals_of(label, outputs)
        )
        assert upper == pytest.approx(exact, rel=1e-6)  # the accuracy of the other solver


@pytest.mark.slow_cases("0.3")
@pytest.mark.parametrize("slope", [0.0, 0.3, -1.0])
def test_descents_end_where_no_neighbour_is_nearer(slope):
    """From far points: the nearest of its own region, and of those beyond each kink it lies on."""
    random, ended = np.random.default_rng(0), 0
    W, b = random.standard_normal((7, 3)), random.standard_normal(7)
    V, c = random.standard_normal((2, 7)), random.standard_normal(2)
    chain = make_chain((W, V), (b, c), (slope,))
    A, a, B, d = map(torch.from_numpy, (W, b, V, c))
    net = Scores(lambda x: nn.functional.leaky_relu(x @ A.T + a, slope) @ B.T + d)
    X, far = torch.from_numpy(random.standard_normal((2, 300, 3)) * 2)
    far = X + 4 * far
    with torch.no_grad():
        y, there = net(X).argmax(1), net(far).argmax(1)
    wrong = y != there
    x, y, start = X[wrong][:40], y[wrong][:40], far[wrong][:40]
    ends = descend_through_regions(Attacked(net, x, y), chain, start)
    for anchor, label, first, end in zip(x.numpy(), y.tolist(), start, ends.numpy(), strict=True):
        distance = np.linalg.norm(end - anchor)
        assert distance < np.linalg.norm(first.numpy() - anchor)
        scores = chain.evaluate(end[None])[-1][0]
        assert scores[1 - label] >= scores[label]
        z = W @ end + b
        on_kink = np.abs(z) < 1e-8 * np.abs(z).max()
        exact = distances_by_pattern(chain, anchor, rivals_of(label, 2)[0])
        for flipped in [None, *np.flatnonzero(on_kink)]:
            pattern = z > 0
            if flipped is not None:
                pattern = pattern ^ (np.arange(7) == flipped)
            assert distance <= exact[tuple(pattern)] * (1 + 1e-7)
        ended += on_kink.any()
    assert ended > 5 or slope < 0  # those of the absolute value are left behind


def pooled_net() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.nightly_cases("pooled_net")
@pytest.mark.parametrize(
    ("make", "box", "farther"),
    [
        (lambda: models.mlp([64, 32, 32, 10], bias="all"), None, 0),
        (lambda: models.mlp([64, 32, 32, 10], bias="all"), (0, 1), 1),
        (pooled_net, None, 1),
    ],
)
def test_no_weaker_than_the_attacks_of_foolbox(make, box, farther):
    """On 60 digits against the nearest of DeepFool, DDN and Carlini-Wagner.

    farther : on how many of them it may be farther by more than 1e-3; nowhere by 5%.
    """
    torch.manual_seed(0)
    net, (X, y) = make(), nm.datasets.digits(limit=300)
    nm.train(net, (X, y), until=nm.Epochs(40), lr=nm.ConstantLR(0.1), batch_size=20, progress=False)
    X, y = X[:60].double(), y[:60]
    # The search for proofs would find nearer points.
    ours = radii(net, X, y, box=box, effort="quick")
    twin = copy.deepcopy(net).double()
    names = ("deepfool", "ddn", "carlini-wagner")
    theirs = np.min([run_foolbox(twin, X, y, name, steps=20, box=box) for name in names], axis=0)
    right = ours.q > 0
    assert right.sum() > 50
    ratio = ours.upper[right] / theirs[right]
    assert (ratio > 1 + 1e-3).sum() <= farther
    assert ratio.max() < 1.05
    assert (ratio < 1 - 1e-3).sum() > 3 * farther
    assert (ours.upper[~right] == 0).all()
    assert (ours.lower <= ours.upper).all()


@pytest.mark.slow
def test_the_same_points_twice():
    """Nothing depends on torch's generator, and it is left as it was."""
    net, X, y = small_net(3, nn.ReLU(), seed=0)
    X, y = X[:3], y[:3]
    torch.manual_seed(5)
    first = find(net, X, y)
    state = torch.get_rng_state()
    torch.manual_seed(6)
    second = find(net, X, y)
    torch.testing.assert_close(first.points, second.points, rtol=0, atol=0)
    torch.manual_seed(5)
    torch.testing.assert_close(torch.get_rng_state(), state)


def test_points_lie_in_the_box():
    """A box so narrow that it decides: the exact radius of a linear net in it."""
    net = nn.Linear(2, 1).double()
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, 10.0]]))
        net.bias.fill_(-0.5)
    x, y = torch.tensor([[0.9, 0.05]]).double(), torch.tensor([1.0]).double()
    found = find(net, x, y, box=(0, 1), chain=read_chain(net, x))
    assert found.points.min() >= 0
    assert found.points.max() <= 1
    # The second input falls by 0.05 at most: the first has to fall to 0.5.
    radius = math.hypot(0.4, 0.05)
    assert found.distances[0].item() == pytest.approx(radius, rel=2e-6)
    # The same function as relu(z) - relu(-z), whose regions know no box: walks alone find it.
    layers = [nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2, bias=False)]
    net, y = nn.Sequential(*layers).double(), torch.tensor([1])
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0, 10.0], [-1.0, -10.0]]))
        net[0].bias.copy_(torch.tensor([-0.5, 0.5]))
        net[2].weight.copy_(torch.tensor([[0.0, 0.0], [1.0, -1.0]]))
    walked = walk_to_boundary(Attacked(net, x, y, (0, 1)), 10.0, read_chain(net, x))
    assert (walked - x).norm().item() == pytest.approx(radius, rel=2e-6)


@pytest.mark.slow
def test_float32_nets_and_inputs():
    """They are attacked in float64: the radii of the same net in float64."""
    net, X, y = small_net(3, nn.ReLU(), seed=1)
    net, X, y = net.float(), X[:2].float(), y[:2]
    report = radii(net, X, y, effort="quick")
    assert report.upper.dtype == np.float64
    np.testing.assert_array_equal(
        report.upper, radii(net.double(), X.double(), y, effort="quick").upper
    )


@pytest.mark.slow
def test_a_constant_net_has_no_misclassified_point():
    net = Scores(lambda x: x.sum(1, keepdim=True) * 0 + torch.tensor([1.0, 0.0]).double())
    X = torch.randn(4, 3).double()
    report = radii(net, X, torch.tensor([0, 0, 1, 0]))
    assert report.upper.tolist() == [math.inf, math.inf, 0.0, math.inf]
    assert "no flip is found for 3 samples" in " ".join(report.summary().split())
    found = find(net, X[:1], torch.tensor([0]))
    assert found.points.isnan().all()
    assert found.found_by.tolist() == [-1]


def test_gradients_that_are_no_numbers():
    """sqrt(x^2) has none at 0, in the first input: a walk from there goes along the second."""

    def function(x):
        f = 2 - x[:, 0].square().sqrt() - x[:, 1]
        return torch.stack([f, torch.zeros_like(f)], 1)

    X, y = torch.tensor([[0.0, 0.0], [0.0, 1.0]]).double(), torch.zeros(2).long()
    z = X.clone().requires_grad_()
    function(z).sum().backward()
    assert z.grad.isnan().any()
    net = Scores(function)
    assert compute_gap_and_slope(net, X, y, 1 - y)[1].tolist() == [[0.0, -1.0]] * 2
    walked = walk_to_boundary(Attacked(net, X, y), 10.0, None)
    np.testing.assert_allclose((walked - X).norm(dim=1), [2**0.5, 0.5**0.5], rtol=1e-5)
    assert (compute_margin(net, walked, y) <= 0).all()
    # |d_1| + d_2 = 2 - x_2 at the boundary: the nearest points lie on the diagonals.
    np.testing.assert_allclose(find(net, X, y).distances, [2**0.5, 0.5**0.5], rtol=2e-6)


def test_boundaries_beyond_the_first_order():
    """The first-order distance is 1, the true one 500.5; random points in 60 inputs miss it."""

    def function(x):
        f = torch.where(x[:, 0] < 0.5, 1 - x[:, 0], 0.5 - (x[:, 0] - 0.5) / 1000)
        # Of several rivals each has few walks, which do not reach so far by themselves.
        return torch.stack([f, torch.zeros_like(f), f - 1, f - 2], 1)

    X = torch.zeros(1, 60).double()
    X[0, 1] = 200.0
    found = find(Scores(function), X, torch.zeros(1).long())
    assert found.distances[0].item() == pytest.approx(500.5, rel=1e-9)
    assert found.found_by.tolist() == [0]


@pytest.mark.slow
def test_boundaries_beyond_a_bend():
    """The first order is 15 times too short, and no straight line along the walk crosses."""

    def function(x):
        f = (-20 * x[:, 0]).exp() + 0.1 * (x[:, 0] ** 2 + x[:, 2:].square().sum(1) + 1 - x[:, 1])
        return torch.stack([f, torch.zeros_like(f)], 1)

    found = find(Scores(function), torch.zeros(1, 60).double(), torch.zeros(1).long())
    first = np.linspace(0, 1, 100_001)
    second = 1 + first**2 + 10 * np.exp(-20 * first)
    assert found.distances[0].item() == pytest.approx(np.hypot(first, second).min(), rel=1e-3)
    assert found.found_by.tolist() == [0]


@pytest.mark.slow
def test_chains_too_large_for_regions(monkeypatch):
    """They are polished along the boundary instead."""
    torch.manual_seed(0)
    net, X = nn.Linear(6, 2).double(), torch.randn(20, 6).double()
    with torch.no_grad():
        z, y = net(X), net(X).argmax(1)
    exact = (z[:, 0] - z[:, 1]).abs() / (net.weight[0] - net.weight[1]).norm().detach()
    monkeypatch.setattr(region_descent, "_LARGEST_CHAIN", 11)
    found = find(net, X, y, chain=read_chain(net, X))
    np.testing.assert_allclose(found.distances, exact, rtol=2e-6)


@pytest.mark.parametrize(("classes", "least"), [(2, 12), (3, 2)])
def test_steps_aside_lie_on_no_line(classes, least):
    """Of two scores whose sum is constant, any weights give one line; walks from there are one."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 8), nn.Tanh(), nn.Linear(8, classes)).double()
    with torch.no_grad():
        net[2].weight[1] = -net[2].weight[0]
    x, random = torch.randn(1, 20).double(), torch.Generator().manual_seed(0)
    steps = [_step_aside(net, x, torch.full((1,), 0.3), random) - x for _ in range(12)]
    assert torch.linalg.matrix_rank(torch.cat(steps), rtol=1e-6) >= least
    for step in steps:
        assert step.norm().item() == pytest.approx(0.3, rel=1e-6)


@pytest.mark.slow
def test_two_classes_behind_prelus_and_max_pools():
    """Descents on the sphere of .99 times the distance, from 20 random points, hit 5% at most."""
    torch.manual_seed(0)
    X, y = nm.datasets.digits(limit=400)
    X, y = X.reshape(-1, 1, 8, 8), y % 2
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.PReLU(8), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Linear(72, 16),
        nn.PReLU(16), nn.Linear(16, 2),
    )  # fmt: skip
    nm.train(net, (X, y), until=nm.Epochs(40), lr=nm.ConstantLR(0.1), batch_size=20, progress=False)
    net, X, y = net.double(), X[:40].double(), y[:40]
    ours = radii(net, X, y, effort="quick")
    right = torch.from_numpy(ours.q > 0)
    X, y, radius = X[right], y[right], 0.99 * torch.from_numpy(ours.upper)[right]

    def rescale(steps, lengths):
        return steps * (lengths / steps.flatten(1).norm(dim=1))[:, None, None, None]

    broken = torch.zeros(len(X), dtype=torch.bool)
    for _ in range(20):
        z = X + rescale(torch.randn_like(X), radius)
        for step in range(60):
            z = z.detach().requires_grad_()
            scores = net(z)
            gap = (scores.gather(1, y[:, None]) - scores.gather(1, 1 - y[:, None]))[:, 0]
            broken |= gap < 0
            (slope,) = torch.autograd.grad(gap.sum(), z)
            z = z - rescale(slope, 0.3 * (1 - step / 60) * radius)
            z = X + rescale(z - X, radius)
    assert len(X) > 35
    assert broken.sum() <= 0.05 * len(X)


@pytest.mark.slow_cases("activation1")
@pytest.mark.parametrize("activation", [nn.GELU(), nn.Softplus()])
def test_flips_of_nets_whose_rounding_is_unknown_are_not_on_the_boundary_itself(activation):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 20), activation, nn.Linear(20, 4)).double()
    x = torch.randn(30, 5, dtype=torch.float64)
    y = net(x).argmax(1)
    report = nm.robustness(net, (x, y), effort="quick", progress=False)
    found = net(torch.from_numpy(report.flips)).detach()
    own = found.gather(1, y[:, None])
    gaps = (own - found.scatter(1, y[:, None], -math.inf)).amin(1)
    # Other batches, and other machines, round by some units in the last place.
    assert (gaps < -1e-14 * found.abs().amax(1)).all()
