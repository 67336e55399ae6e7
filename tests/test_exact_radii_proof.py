"""The judge of exact radii: chains, intervals, bounds and proofs, against plain second versions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.linalg import cho_solve
from torch import nn

from netmargin.errors import ModelError
from netmargin.radii.exact import quadratics
from netmargin.radii.exact.ball import compact, enclose
from netmargin.radii.exact.boxes import Box, find_sectors
from netmargin.radii.exact.chain import Chain, activate, read_chain
from netmargin.radii.exact.inequality import Multipliers, Proof, Region
from netmargin.radii.exact.proof import covers_ball, list_functionals
from netmargin.radii.exact.quadratics import (
    bound_least_eigenvalue,
    bound_minimum,
    bound_norm,
)
from netmargin.radii.exact.region_bound import bound_gap
from tests.chains import are_proofs, make_chain
from tests.plain_gap_bound import plain_bound

SLOPES = (0.0, 0.1, -1.0, -0.3, 1.5)


def random_chain(rng, widths, slopes, gain: float = 1.5) -> Chain:
    pairs = list(itertools.pairwise(widths))
    weights = [rng.normal(size=(n, m)) * gain / math.sqrt(m) for m, n in pairs]
    return make_chain(weights, [0.3 * rng.normal(size=n) for _, n in pairs], slopes)


def random_case(rng, depth=None):
    """A small net, an anchor, a ball around it, and a functional of its scores."""
    depth = int(rng.integers(0, 4)) if depth is None else depth
    hidden = [int(n) for n in rng.integers(1, 6, size=depth)]
    widths = (int(rng.integers(1, 7)), *hidden, int(rng.integers(1, 4)))
    chain = random_chain(rng, widths, [rng.choice(SLOPES, n) for n in hidden])
    anchor, radius = rng.normal(size=widths[0]), float(rng.uniform(0.2, 1.5))
    return (
        chain,
        anchor,
        radius,
        enclose(compact(chain), anchor, radius),
        rng.normal(size=widths[-1]),
    )


def random_region(rng, ball) -> Region:
    """Signs of a tree's node: those that cannot change, and some of the others."""
    signs = []
    for k, z in enumerate(ball.anchors):
        stable, drawn = ball.fix_stable(k), rng.choice([0, 0, 1, -1], size=len(z))
        signs.append(np.where(stable != 0, stable, drawn).astype(np.int8))
    return Region(tuple(signs))


def random_multipliers(rng, ball, size: float) -> Multipliers:
    """Multipliers of any sign, with a mu that makes some of the Hessians positive definite."""
    theta = tuple(size * rng.normal(size=(5, len(z))) for z in ball.anchors)
    for values in theta:  # the t are variables that only de and be bound
        values[4] = np.abs(values[4]) + size
        values[3] *= 0.3
    return Multipliers(theta, float(rng.uniform(1, 12) * size + 0.1))


def sample_ball(rng, anchor, radius, count):
    """Points of a ball, a third of them on its sphere."""
    d = rng.normal(size=(count, len(anchor)))
    lengths = rng.uniform(size=(count, 1)) ** (1 / len(anchor))
    lengths[: count // 3] = 1
    return anchor + d * (radius * lengths / np.linalg.norm(d, axis=1, keepdims=True))


def test_a_plain_second_version_agrees_with_the_bound():
    rng, agreed = np.random.default_rng(0), 0
    for _ in range(60):
        chain, anchor, radius, ball, functional = random_case(rng)
        if not chain.slopes:
            continue
        region = random_region(rng, ball)
        for size in (0.03, 0.3):
            multipliers = random_multipliers(rng, ball, size)
            ours = bound_gap(ball, functional, region, multipliers)
            plain = plain_bound(chain, anchor, radius, ball, functional, region, multipliers)
            if math.isinf(plain):
                continue
            # The judge is below by its allowance for rounding, and no more than that.
            assert plain * (1 - 1e-9 * np.sign(plain)) - 1e-7 <= ours <= plain + 1e-11
            agreed += 1
    assert agreed >= 40


@pytest.mark.slow_cases("3")
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_bound_is_below_the_gap_at_every_sampled_point(depth):
    rng, finite = np.random.default_rng(depth), 0
    for _ in range(70):
        chain, anchor, radius, ball, functional = random_case(rng, depth)
        values = chain.evaluate(sample_ball(rng, anchor, radius, 2000))
        region = random_region(rng, ball)
        inside = np.all(
            [(s * z >= 0).all(1) for s, z in zip(region.signs, values[:-1], strict=True)], axis=0
        )
        least = (values[-1][inside] @ functional).min(initial=math.inf)
        for size in (0.0, 0.03, 0.1, 0.3):
            lower = bound_gap(ball, functional, region, random_multipliers(rng, ball, size))
            assert lower <= least
            finite += math.isfinite(lower)
    assert finite >= 60


# What the bound rests on: intervals, quadratics, rounding.


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_intervals_hold_at_sampled_points(depth):
    rng = np.random.default_rng(depth)
    for _ in range(60):
        chain, anchor, radius, ball, _ = random_case(rng, depth)
        values = chain.evaluate(sample_ball(rng, anchor, radius, 3000))
        for z, z_hat, low, high in zip(values[:-1], ball.anchors, ball.low, ball.high, strict=True):
            y = z - z_hat
            slack = 1e-12 * (1 + np.abs(z_hat))
            assert (y >= low - slack).all()
            assert (y <= high + slack).all()


def test_intervals_are_attained_where_nothing_bends():
    """With units that cannot change, an interval is that of a linear map: its row's norm."""
    rng = np.random.default_rng(0)
    chain = random_chain(rng, (6, 5, 4, 3, 2), (0.0, 0.1, -1.0))
    chain.biases[0][:] = [30, -30, 30, 30, -30]
    anchor, radius = np.zeros(6), 0.01
    ball = enclose(compact(chain), anchor, radius)
    assert all((ball.fix_stable(k) != 0).all() for k in range(3))
    jacobian = np.eye(6)
    for k in range(3):
        jacobian = chain.weights[k] @ jacobian
        reach = radius * np.linalg.norm(jacobian, axis=1)
        np.testing.assert_allclose(ball.high[k], reach, rtol=1e-9)
        np.testing.assert_allclose(-ball.low[k], reach, rtol=1e-9)
        assert (ball.high[k] >= reach).all()
        slopes = np.where(ball.anchors[k] >= 0, 1.0, chain.slopes[k])
        jacobian = slopes[:, None] * jacobian


@pytest.mark.parametrize("slope", SLOPES)
def test_secants_lie_in_their_sector(slope):
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(size=200), np.zeros(5)])
    box = Box(-rng.exponential(size=205), rng.exponential(size=205))
    sector = find_sectors(z, slope, box)
    attained = np.zeros(205)
    for share_ in np.linspace(0, 1, 101):
        y = box.low + share_ * (box.high - box.low)
        r = activate(z + y, slope) - activate(z, slope) - sector.m * y
        assert (np.abs(r) <= sector.spread * np.abs(y) + 1e-14).all()
        assert (sector.rest.low - 1e-14 <= r).all()
        assert (r <= sector.rest.high + 1e-14).all()
        attained = np.maximum(attained, np.abs(r) - sector.spread * np.abs(y))
    np.testing.assert_allclose(attained, 0, atol=1e-14)  # no wider than it must be


def exact_minimum(matrix, linear) -> Fraction:
    """The minimum of v'Sv/2 + q.v by Gaussian elimination in rational numbers."""
    n = len(linear)
    rows = [
        [Fraction(v) for v in row] + [-Fraction(q)] for row, q in zip(matrix, linear, strict=True)
    ]
    for i in range(n):
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [b - factor * a for a, b in zip(rows[i], rows[j], strict=True)]
    v = [Fraction(0)] * n
    for i in reversed(range(n)):
        v[i] = (rows[i][n] - sum(rows[i][j] * v[j] for j in range(i + 1, n))) / rows[i][i]
    return sum(Fraction(q) * x for q, x in zip(linear, v, strict=True)) / 2


@pytest.mark.parametrize("least", [1.0, 1e-3, 1e-6, 1e-9])
def test_minima_of_quadratics_are_below_the_exact_ones(least):
    rng = np.random.default_rng(0)
    for _ in range(20):
        basis, _ = np.linalg.qr(rng.normal(size=(6, 6)))
        matrix = (basis * np.geomspace(least, 1, 6)) @ basis.T
        scales = 10.0 ** rng.integers(-4, 5, size=6)
        matrix = (matrix + matrix.T) / 2 * scales * scales[:, None]
        matrix, linear = np.tril(matrix) + np.tril(matrix, -1).T, scales * rng.normal(size=6)
        lower, exact = bound_minimum(matrix, linear), exact_minimum(matrix, linear)
        assert Fraction(lower) <= exact
        assert lower >= float(exact) * (1 + 1e-6 + 1e-14 / least)  # it is negative


def test_no_matrix_is_proved_positive_that_is_not():
    rng = np.random.default_rng(0)
    for n in (3, 20, 80):
        for below in (0.0, 1e-14, 1e-13):
            # Integers of rank n - 1, and so an eigenvalue that is exactly 0.
            rows = rng.integers(-3, 4, size=(n, n - 1)).astype(float)
            matrix = rows @ rows.T
            size = np.diag(matrix).max()
            matrix[np.diag_indices(n)] -= below * size
            assert bound_least_eigenvalue(matrix / 2 ** np.ceil(np.log2(size))) == 0
            assert bound_minimum(matrix, np.ones(n)) == -math.inf
    assert bound_least_eigenvalue(np.eye(5)) > 0
    assert bound_minimum(np.diag([1.0, math.nan]), np.ones(2)) == -math.inf


def test_factors_and_solutions_are_not_trusted(monkeypatch):
    """Wrong answers of LAPACK cost the proof, or make the bound lower, never higher."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 8))
    matrix, linear = rows @ rows.T / 8, rng.normal(size=6)
    matrix = (matrix + matrix.T) / 2
    exact = exact_minimum(matrix, linear)
    for factor in (0.0, 0.9, 1.1, -1.0):
        with monkeypatch.context() as patch:
            wrong = lambda *a, **k: factor * cho_solve(*a, **k)  # noqa: B023, E731
            patch.setattr(quadratics, "cho_solve", wrong)
            assert Fraction(bound_minimum(matrix, linear)) <= exact
    indefinite = matrix - 2 * np.linalg.eigvalsh(matrix)[0] * np.eye(6)
    monkeypatch.setattr(np.linalg, "cholesky", lambda _: np.eye(6))
    assert bound_least_eigenvalue(indefinite) == 0


def test_norms_are_bounded_from_above():
    rng = np.random.default_rng(0)
    for shape in ((1, 4), (5, 3), (30, 40)):
        matrix = 1e-160 * rng.normal(size=shape)
        true = np.linalg.norm(matrix * 1e160, 2) * 1e-160
        assert true * (1 - 1e-15) <= bound_norm(matrix) <= true * (1 + 1e-10)


def evaluate_exactly(chain, x) -> list[Fraction]:
    """The scores of a chain in rational numbers."""
    a = [Fraction(v) for v in x]
    for k, (weight, bias) in enumerate(zip(chain.weights, chain.biases, strict=True)):
        z = [
            sum(Fraction(w) * v for w, v in zip(row, a, strict=True)) + Fraction(b)
            for row, b in zip(weight, bias, strict=True)
        ]
        slopes = chain.slopes[k] if k < len(chain.slopes) else np.ones(len(z))
        a = [v if v >= 0 else Fraction(s) * v for v, s in zip(z, slopes, strict=True)]
    return a


def test_rounding_of_the_scores_is_within_its_bound():
    """Scores that consist of rounding: a large value less itself, layer by layer."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(30):
        chain = random_chain(rng, (4, 6, 5, 2), (0.0, -1.0))
        chain.biases[0][:] += 1e3  # and the next layer cancels it
        chain.biases[1][:] -= chain.weights[1] @ np.full(6, 1e3)
        anchor = rng.normal(size=4)
        ball = enclose(compact(chain), anchor, 1e-12)
        exact = evaluate_exactly(chain, anchor)
        off = [abs(Fraction(s) - e) for s, e in zip(ball.scores, exact, strict=True)]
        assert all(o <= Fraction(b) for o, b in zip(off, ball.output_errors, strict=True))
        worst = max(worst, float(off[0]) / ball.output_errors[0])
    assert worst > 1e-3  # rounding is there


def test_a_gap_that_may_be_rounding_is_not_proved():
    """0.1 + 0.2 - 0.3 is 5.6e-17 in floats."""
    chain = make_chain([[[0.1, 0.2, -0.3]]], [[0.0]], [])
    ball = enclose(compact(chain), np.ones(3), 1e-30)
    assert ball.scores[0] > 0
    nothing = Multipliers((), 1e20)
    assert bound_gap(ball, np.ones(1), Region(()), nothing) <= 0


def test_fewer_units_than_inputs_change_no_bound():
    rng = np.random.default_rng(0)
    chain = random_chain(rng, (40, 6, 5, 3), (0.0, 0.1))
    anchor, functional = rng.normal(size=40), np.array([1.0, 0.0, -1.0])
    small = compact(chain)
    assert small.first.shape == (6, 6)
    plain = type(small)(chain, chain.weights[0], 1.0, np.zeros(6))
    bounds = []
    for which in (small, plain):
        ball = enclose(which, anchor, 0.4)
        region = Region(tuple(np.zeros(len(z), np.int8) for z in ball.anchors))
        multipliers = random_multipliers(np.random.default_rng(1), ball, 0.1)
        multipliers.theta[0][4] = 2.0  # with mu large enough for a positive definite Hessian
        multipliers = Multipliers(multipliers.theta, 10.0)
        bounds.append(bound_gap(ball, functional, region, multipliers))
    assert math.isfinite(bounds[0])
    assert math.isclose(*bounds, rel_tol=1e-8)


# Proofs: every rival, regions that cover the ball.


def linear_proof(ball, functional, mu=1.0) -> Proof:
    empty = Region(tuple(ball.fix_stable(k) for k in range(len(ball.slopes))))
    theta = tuple(np.zeros((5, len(z))) for z in ball.anchors)
    return Proof(functional, ((empty, Multipliers(theta, mu)),))


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_radius_of_a_linear_net_is_proved_up_to_its_distance_and_not_beyond(outputs):
    rng = np.random.default_rng(0)
    chain = random_chain(rng, (5, outputs), ())
    anchor = rng.normal(size=5)
    scores = chain.evaluate(anchor[None])[-1][0]
    label = int(np.argmax(scores)) if outputs > 1 else int(np.sign(scores[0]))
    functionals = list_functionals(label, outputs)
    lengths = [np.linalg.norm(f @ chain.weights[0]) for f in functionals]
    exact = min(f @ scores / length for f, length in zip(functionals, lengths, strict=True))
    for factor, proved in ((0.999999, True), (1.000001, False)):
        radius = factor * exact
        ball = enclose(compact(chain), anchor, radius)
        proofs = [
            linear_proof(ball, f, n / radius) for f, n in zip(functionals, lengths, strict=True)
        ]
        assert are_proofs(ball, label, proofs) is proved
        if outputs > 1 and proved:
            assert not are_proofs(ball, label, proofs[1:])
            assert not are_proofs(ball, label, [proofs[0]])


def test_regions_must_cover_the_ball():
    chain = make_chain([np.eye(3), np.ones((1, 3))], [[0.0, 0.1, 5.0], [1.0]], [0.0])
    ball = enclose(compact(chain), np.zeros(3), 1.0)
    assert ball.fix_stable(0).tolist() == [0, 0, 1]

    def covers(*rows):
        return covers_ball(ball, [Region((np.array(row, np.int8),)) for row in rows])

    for rows in (
        [(0, 0, 1)],
        [(0, 0, 0)],
        [(1, 0, 1), (-1, 1, 1), (-1, -1, 1)],
        [(1, 1, 0), (1, -1, 0), (-1, 0, 1)],
    ):
        assert covers(*rows), rows
    for rows in (
        [],
        [(0, 0, -1)],  # a unit that cannot change to that sign
        [(1, 0, 1)],
        [(1, 0, 1), (-1, 1, 1)],
        [(1, 1, 1), (-1, -1, 1)],
        [(1, 0, 1), (0, 1, 1)],  # a corner is left out
        [(1, 0)],
    ):
        assert not covers(*rows), rows
    assert not covers_ball(ball, [Region(())])


# Nets that are read as chains.


class _OwnForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(12, 7), nn.BatchNorm1d(7)
        self.second, self.last = nn.Linear(7, 6), nn.Linear(6, 1, bias=False)
        self.register_buffer("mean", torch.linspace(-1, 1, 12))
        with torch.no_grad():
            self.norm.running_mean.uniform_(-1, 1)
            self.norm.running_var.uniform_(0.5, 2)
            self.norm.weight.uniform_(-1, 1)

    def forward(self, x):
        x = (x.view(x.size(0), -1) - self.mean) / 0.3
        x = F.dropout(F.relu(self.norm(self.first(x))), training=self.training)
        return self.last(1 - torch.abs(F.leaky_relu(self.second(x), 0.2))).squeeze(-1)


def _convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Dropout(), nn.Linear(6, 3), nn.PReLU(),
    )  # fmt: skip


def _transposed() -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose2d(1, 2, 2, stride=2, output_padding=1), nn.BatchNorm2d(2), nn.ReLU(),
        nn.Flatten(1, 2), nn.ConvTranspose1d(14, 3, 3), nn.Flatten(), nn.Linear(33, 3),
    )  # fmt: skip


class _OneSlopePerChannel(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(1, 3, 3, padding=1), nn.Linear(36, 4)
        self.slopes, self.more = nn.PReLU(3), nn.Parameter(torch.tensor([0.5, 0.0, 3.0, -1.0]))
        self.slopes.weight.data = torch.tensor([-0.5, 0.25, 2.0])

    def forward(self, x):
        return F.prelu(self.last(self.slopes(self.first(x)).flatten(1)), self.more)


@pytest.mark.parametrize(
    ("make", "slopes"),
    [
        (_OwnForward, (0.0, 0.2, -1.0)),
        (_convolutional, (0.0, 0.25)),
        (_transposed, (0.0,)),
        (_OneSlopePerChannel, (np.repeat([-0.5, 0.25, 2.0], 12), [0.5, 0.0, 3.0, -1.0])),
    ],
)
def test_chains_are_their_nets(make, slopes):
    torch.manual_seed(0)
    net, x = make().double().eval(), torch.randn(50, 1, 3, 4).double()
    chain = read_chain(net, x[:5])
    for ours, its in zip(chain.slopes, slopes, strict=True):
        np.testing.assert_allclose(ours, np.broadcast_to(its, ours.shape), rtol=1e-7)
    theirs = net(x).detach().reshape(50, -1).numpy()
    np.testing.assert_allclose(chain.evaluate(x.numpy())[-1], theirs, rtol=1e-10, atol=1e-12)
    # What folding rounds is bounded, and above 0 where something was folded.
    assert 0 < chain.weight_errors[0].max() < 1e-10


def test_folding_is_within_its_error_bounds():
    """Two linear layers in a row, against their product in rational numbers."""
    torch.manual_seed(0)
    first, second = nn.Linear(5, 4), nn.Linear(4, 3)
    net = nn.Sequential(first, second).double()
    chain = read_chain(net, torch.ones(1, 5).double())
    at = [*np.eye(5), np.zeros(5)]
    plain = make_chain(
        *(
            [getattr(layer, name).tolist() for layer in (first, second)]
            for name in ("weight", "bias")
        ),
        [1.0],
    )
    exact = [evaluate_exactly(plain, x) for x in at]
    for o in range(3):
        assert abs(exact[-1][o] - Fraction(chain.biases[0][o])) <= Fraction(chain.bias_errors[0][o])
        for i in range(5):
            off = abs(exact[i][o] - exact[-1][o] - Fraction(chain.weights[0][o, i]))
            assert off <= Fraction(chain.weight_errors[0][o, i])


class _Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return x + F.relu(self.layer(x))


class _Branching(_Skip):
    def forward(self, x):
        return self.layer(x) if x.sum() > 0 else x


class _Counting(_Skip):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) * self.calls


class _ComputedBias(_Skip):
    def forward(self, x):
        return F.linear(x, self.layer.weight, 2 * self.layer.bias)


class _ByName(_Skip):
    def forward(self, x):
        x = F.relu(F.linear(x, bias=self.layer.bias, weight=self.layer.weight))
        return torch.neg(2 - F.linear(torch.flatten(x, start_dim=1), self.layer.weight) * 3)


def test_operations_by_name_and_in_any_order():
    torch.manual_seed(0)
    net, x = _ByName().double(), torch.randn(9, 4).double()
    scores = read_chain(net, x).evaluate(x.numpy())[-1]
    np.testing.assert_allclose(scores, net(x).detach().numpy(), rtol=1e-12, atol=1e-13)


def _hooked():
    net = nn.Sequential(nn.Linear(4, 4))
    net[0].register_forward_hook(lambda module, inputs, output: 2 * output)
    return net


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.Tanh()), r"'1', Tanh\(\).*Use ReLU"),
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3)), "LayerNorm.*BatchNorm"),
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.Softmax(1)), "Softmax.*without a softmax"),
        (lambda: nn.Sequential(nn.Linear(4, 3), nn.Flatten(0)), "mixes samples"),
        (lambda: nn.Sequential(nn.MaxPool1d(2), nn.Linear(2, 1)), "MaxPool.*average pool"),
        (lambda: nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False)), "statistics"),
        (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), "remove_param"),
        (_Skip, "no chain of layers.*'add'.*skip"),
        (_ComputedBias, "computes its weight or bias"),
        (_Branching, "torch.fx cannot trace.*branches"),
        (_Counting, "differ on the data"),
        (_hooked, "hooks"),
    ],
)
def test_nets_without_a_rule_are_refused_by_name(make, said):
    torch.manual_seed(0)
    x = torch.randn(3, 4).double()
    with pytest.raises(ModelError, match=f"(?s){said}"):
        read_chain(make().double().eval(), x)


def test_multipliers_that_are_not_finite_prove_nothing():
    rng = np.random.default_rng(0)
    _, _, _, ball, functional = random_case(rng, 2)
    region = Region(tuple(np.zeros(len(z), np.int8) for z in ball.anchors))
    for bad in (math.nan, math.inf, -math.inf, 1e308, -1e308):
        for row in range(5):
            multipliers = random_multipliers(np.random.default_rng(1), ball, 0.3)
            multipliers.theta[0][row, 0] = bad
            assert bound_gap(ball, functional, region, multipliers) == -math.inf
        multipliers = Multipliers(random_multipliers(rng, ball, 0.3).theta, bad)
        assert bound_gap(ball, functional, region, multipliers) < 0


def test_the_size_of_the_parameters_changes_no_bound():
    """Layers times 1e-3 to 1e3 with multipliers in the new units: the bound in units of the gap."""
    rng, finite = np.random.default_rng(0), 0
    for _ in range(40):
        chain, anchor, radius, ball, functional = random_case(rng, 2)
        region = Region(tuple(ball.fix_stable(k) for k in range(2)))
        multipliers = random_multipliers(rng, ball, 0.1)
        own = bound_gap(ball, functional, region, multipliers)
        factors = 10.0 ** rng.uniform(-3, 3, size=3)
        sizes = np.cumprod(factors)
        scaled = make_chain(
            [w * f for w, f in zip(chain.weights, factors, strict=True)],
            [b * s for b, s in zip(chain.biases, sizes, strict=True)],
            chain.slopes,
        )
        powers = np.array([1, 1, 2, 2, 2])[:, None]
        theta = tuple(
            sizes[2] * values / size**powers
            for values, size in zip(multipliers.theta, sizes[:2], strict=True)
        )
        there = enclose(compact(scaled), anchor, radius)
        lower = bound_gap(there, functional, region, Multipliers(theta, sizes[2] * multipliers.mu))
        if math.isfinite(own):
            assert lower / sizes[2] == pytest.approx(own, rel=1e-7)
            finite += 1
    assert finite >= 10


def test_scores_of_all_nets_within_the_errors_of_a_chain_are_within_its_output_errors():
    """Errors as large as a hundredth of the weights, so that sampling sees what they do."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(40):
        chain, anchor, radius, _, _ = random_case(rng, int(rng.integers(0, 4)))
        errors = [0.01 * np.abs(rng.normal(size=w.shape)) for w in chain.weights]
        bias_errors = [0.01 * np.abs(rng.normal(size=b.shape)) for b in chain.biases]
        widened = Chain(
            chain.weights, chain.biases, chain.slopes, tuple(errors), tuple(bias_errors)
        )
        allowed = enclose(compact(widened), anchor, radius).output_errors
        x = sample_ball(rng, anchor, radius, 500)
        scores = chain.evaluate(x)[-1]
        for _ in range(20):
            other = make_chain(
                [
                    w + rng.choice([-1, 1], size=w.shape) * e
                    for w, e in zip(chain.weights, errors, strict=True)
                ],
                [
                    b + rng.choice([-1, 1]) * e
                    for b, e in zip(chain.biases, bias_errors, strict=True)
                ],
                chain.slopes,
            )
            off = np.abs(other.evaluate(x)[-1] - scores).max(0)
            assert (off <= allowed).all()
            worst = max(worst, float((off / allowed).max()))
    assert worst > 0.9  # one with a single unit a layer attains them


@pytest.mark.parametrize("layer", [0, 1])
def test_steep_units_grow_errors(layer):
    """A weight of 1 or 1.01 before or behind a slope of -20, at -1.5: 30 or 30.3, and no more."""
    chain = make_chain([[[1.0]], [[1.0]]], [[0.0], [0.0]], [[-20.0]])
    chain.weight_errors[layer][:] = 0.01
    allowed = enclose(compact(chain), np.array([-1.0]), 0.5).output_errors
    assert allowed == pytest.approx(0.3, rel=1e-9)
    assert allowed >= 0.3


@pytest.mark.parametrize("depth", [1, 2])
def test_anchors_on_kinks_and_ties_of_scores(depth):
    """A float32 input of zeros into a net without biases: every unit is at its kink, scores tie."""
    rng, finite = np.random.default_rng(depth), 0
    for _ in range(30):
        chain, anchor, radius, _, functional = random_case(rng, depth)
        chain = make_chain(chain.weights, [0 * b for b in chain.biases], chain.slopes)
        anchor = (0 * anchor).astype(np.float32)
        ball = enclose(compact(chain), anchor, radius)
        values = chain.evaluate(sample_ball(rng, anchor, radius, 2000))
        for z, low, high in zip(values[:-1], ball.low, ball.high, strict=True):
            assert (z >= low - 1e-12).all()
            assert (z <= high + 1e-12).all()
        region = Region(tuple(np.zeros(len(z), np.int8) for z in ball.anchors))
        lower = bound_gap(ball, functional, region, random_multipliers(rng, ball, 0.1))
        assert lower <= (values[-1] @ functional).min()
        assert lower <= 0  # a tie is misclassified
        finite += math.isfinite(lower)
    assert finite >= 10
