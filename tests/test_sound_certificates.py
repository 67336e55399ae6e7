"""Certificates against brute force over all constraints: nets made so that a wrong bound shows."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, lsq_linear, nnls
from torch import nn

import netmargin as nm
from netmargin.core.progress import Progress
from netmargin.kkt import multipliers as multipliers_module
from netmargin.kkt.certificate import Completeness
from netmargin.kkt.constraint_search import ConstraintSearch
from netmargin.kkt.constraints import Constraints
from netmargin.kkt.problem import Problem
from netmargin.models import mlp
from netmargin.nets.net_on_samples import NetOnSamples
from tests.words import words_of


def jacobian(net, X, y):
    """Values and gradients of all constraints one by one, and their samples and classes."""
    outputs, rows, values, keys = net(X), [], [], []
    outputs = outputs if outputs.ndim == 2 else outputs[:, None]
    for n in range(len(X)):
        for j in range(outputs.shape[1]):
            if outputs.shape[1] > 1 and j == y[n]:
                continue
            s = y[n] * outputs[n, 0] if outputs.shape[1] == 1 else outputs[n, y[n]] - outputs[n, j]
            found = torch.autograd.grad(
                s, list(net.parameters()), retain_graph=True, allow_unused=True
            )
            pairs = zip(found, net.parameters(), strict=True)
            rows.append(
                torch.cat(
                    [torch.zeros(p.numel()) if g is None else g.reshape(-1) for g, p in pairs]
                )
            )
            values.append(s.item())
            keys.append((n, j if outputs.shape[1] > 1 else -1))
    return torch.stack(rows).double().numpy(), np.array(values), keys


def flat(net, counted=None):
    """Parameters in one vector; those that are not counted are 0."""
    parts = [
        (p.detach() * (counted is None or any(p is c for c in counted))).reshape(-1)
        for p in net.parameters()
    ]
    return torch.cat(parts).numpy()


def labelled(net, X, clear=0.1):
    """The inputs that the net separates well, with its own labels."""
    with torch.no_grad():
        outputs = net(X)
    top = (
        outputs.topk(2).values
        if outputs.shape[1] > 1
        else torch.cat([outputs.abs(), 0 * outputs], 1)
    )
    kept = top[:, 0] - top[:, 1] > clear * outputs.abs().mean()
    X, outputs = X[kept], outputs[kept]
    return X, torch.where(outputs[:, 0] > 0, 1, -1) if outputs.shape[1] == 1 else outputs.argmax(1)


def made_feasible(net, q_min, order, counted=None):
    """Multiply the parameters, those that are counted, so that the smallest margin is 1."""
    with torch.no_grad():
        for p in counted or net.parameters():
            p *= q_min ** (-1 / order)


def in_one_plane(order: int, turn: float, size: float, others: int = 0):
    """A net of one neuron per layer on inputs of the plane, all of whose constraint gradients lie
    in one plane of parameters.

    Layers of equal norm and an input s u + t u', with u the direction of the first layer and u'
    across it: the gradient is a multiple of s theta + t (u', 0, .., 0). The nearest constraint, s =
    1, is far from theta, t = 3; the first one, s = t = 1.5, alone has a multiplier at the smallest
    epsilon. The bound from the nearest alone is attained, because in a plane the dual vector has
    one direction only.
    """
    u = torch.tensor([math.cos(turn), math.sin(turn)], dtype=torch.float64)
    across = torch.tensor([-u[1], u[0]])
    layers = [nn.Linear(2, 1, bias=False), *(nn.Linear(1, 1, bias=False) for _ in range(order - 1))]
    net = nn.Sequential(*layers).double()
    with torch.no_grad():
        net[0].weight[0] = size * u
        for layer in layers[1:]:
            layer.weight.fill_(size)
    # In another batch: many that are further from the margin and pull less per unit of s.
    X = torch.stack([1.5 * (u + across), u + 3 * across, *[5 * (u + 3.5 * across)] * others])
    return net, X, torch.ones(len(X), dtype=torch.int64)


@pytest.mark.slow_cases("2-70", "3-70", "1-70", "2-0")
@pytest.mark.parametrize("others", [0, 70])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_lower_bound_is_attained_in_a_plane(order, others):
    """One constraint takes part; the bound by the others is the smallest epsilon over all."""
    for turn in np.linspace(0, 2 * math.pi, 8):
        net, X, y = in_one_plane(order, turn, 1.3, others)
        certificate = nm.certify(net, (X, y), max_constraints=1)
        assert certificate.completeness is Completeness.OPEN
        assert certificate.constraints.tolist() == [[1, -1]]
        made_feasible(net, certificate.q_min, order)
        J, _, _ = jacobian(net, X, y)
        exact = nnls(J.T, flat(net))[1]
        assert certificate.epsilon > 1.05 * exact
        assert certificate.epsilon_lower <= exact * (1 + 1e-12)
        assert certificate.epsilon_lower == pytest.approx(exact, rel=1e-9)


NETS = {
    "binary": lambda: mlp([5, 12, 1]),
    "classes": lambda: mlp([5, 10, 8, 4]),
    "squares": lambda: nn.Sequential(nn.Linear(5, 7), Square(), nn.Linear(7, 3, bias=False)),
}


class Square(nn.Module):
    def forward(self, x):
        return torch.relu(x) ** 2


@pytest.mark.slow_cases("20", "4")
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("few", [1, 4, 20])
def test_no_multipliers_beat_the_lower_bound(name, few):
    """Non-negative least squares over all constraints, of which few took part."""
    torch.manual_seed(few)
    for _ in range(2):
        net = NETS[name]().double()
        X, y = labelled(net, torch.randn(90, 5, dtype=torch.float64))
        certificate = nm.certify(net, (X, y), max_constraints=few, tol=1e-9)
        made_feasible(net, certificate.q_min, certificate.order)
        J, values, keys = jacobian(net, X, y)
        theta = flat(net)
        assert certificate.epsilon_lower <= nnls(J.T, theta, maxiter=10_000)[1] * (1 + 1e-9)
        weights = np.zeros(len(keys))
        for key, weight in zip(
            certificate.constraints.tolist(), certificate.multipliers.tolist(), strict=True
        ):
            weights[keys.index(tuple(key))] = weight
        assert (weights >= 0).all()
        assert certificate.epsilon == pytest.approx(np.linalg.norm(theta - J.T @ weights), rel=1e-9)
        assert certificate.delta == pytest.approx(
            (weights * (values - 1)).max(), rel=1e-9, abs=1e-12
        )


def test_trade_off_equals_bounded_least_squares():
    """Over all constraints, with lambda (s - 1) <= delta, from little to what is needed."""
    torch.manual_seed(3)
    near = nn.Linear(2, 1, bias=False).double()  # both other constraints are just beyond the margin
    near.weight.data = torch.tensor([[1.0, 0.0]]).double()
    X = torch.tensor([[1.0, 3.0], [1.05, 0.2], [1.02, 0.3]]).double()
    cases = [(near, X, torch.ones(3, dtype=torch.int64))]
    for name in NETS:
        net = NETS[name]().double()
        cases.append((net, *labelled(net, torch.randn(25, 5, dtype=torch.float64))))
    for net, X, y in cases:
        certificate = nm.certify(net, (X, y))
        made_feasible(net, certificate.q_min, certificate.order)
        J, values, _ = jacobian(net, X, y)
        for delta in (1e-3, 0.03, 0.3, 3.0):
            upper = np.where(values > 1 + 1e-9, delta / np.maximum(values - 1, 1e-9), np.inf)
            exact = math.sqrt(2 * lsq_linear(J.T, flat(net), (0, upper), tol=1e-13).cost)
            assert certificate.trade_off(delta) == pytest.approx(exact, rel=1e-6)
    with pytest.raises(nm.ArgumentError, match="delta must be"):
        certificate.trade_off(-1.0)


def test_completeness_is_not_said_of_multipliers_that_are_not_best(monkeypatch):
    """All constraints take part, but the solver returns half of what is best."""
    net, X, y = in_one_plane(2, 0.3, 1.0)
    assert nm.certify(net, (X, y)).completeness is Completeness.ALL
    monkeypatch.setattr(
        "netmargin.kkt.constraint_search.multipliers",
        lambda G, c: 0.5 * multipliers_module.multipliers(G, c),
    )
    assert nm.certify(net, (X, y)).completeness is Completeness.OPEN


def linear_net(weights):
    """A net without hidden layers."""
    weights = torch.atleast_2d(torch.as_tensor(weights, dtype=torch.float64))
    net = nn.Linear(weights.shape[1], len(weights), bias=False).double()
    net.weight.data = weights
    return net


def test_small_multipliers_of_long_gradients_count():
    """(1, 1) = 1 x_1 + 1e-10 x_2 is a KKT point; and inputs of many lengths in three classes."""
    certificate = nm.certify(linear_net([1.0, 1.0]), ([[1.0, 0.0], [0.0, 1e10]], [1, 1]))
    assert certificate.epsilon == 0
    assert certificate.completeness is Completeness.ALL
    assert certificate.support.tolist() == [0, 1]
    assert certificate.multipliers.tolist() == pytest.approx([1, 1e-10])
    assert certificate.delta == pytest.approx(1)
    for seed in range(3):
        random = np.random.default_rng(seed)
        net = linear_net(random.normal(size=(3, 4)))
        sizes = 10 ** random.uniform(-4.5, 5.3, size=(40, 1))
        X = torch.tensor(random.normal(size=(40, 4)) * sizes)
        y = net(X).argmax(1)
        certificate = nm.certify(net, (X, y))
        made_feasible(net, certificate.q_min, 1)
        J, _, _ = jacobian(net, X, y)
        units = J / np.linalg.norm(J, axis=1, keepdims=True)
        exact = nnls(units.T, flat(net))[1]
        assert certificate.epsilon == pytest.approx(exact, rel=1e-9)
        assert certificate.epsilon_lower <= exact


def exact_share_in_a_plane(weights, rows) -> Fraction:
    """The square of the sine between weights and the cone of the rows, in rationals."""

    def cross(a, b):
        return a[0] * b[1] - a[1] * b[0]

    def dot(a, b):
        return a[0] * b[0] + a[1] * b[1]

    # Between two rows that turn the same way, or on one: elsewhere the nearest point is on a row.
    for a in rows:
        if cross(a, weights) == 0 or any(
            cross(a, b) > 0 and cross(a, weights) > 0 and cross(weights, b) > 0 for b in rows
        ):
            return Fraction(0)
    return 1 - max(dot(weights, a) ** 2 / dot(a, a) for a in rows) / dot(weights, weights)


def test_rounding_is_allowed_for():
    """Inputs far from 0 beside their differences, against rational arithmetic: without allowances
    2 in 5 lower bounds and smallest margins are wrong by more than they say.
    """
    proved = 0
    for seed in range(15):
        random = np.random.default_rng(seed)
        weights = random.normal(size=2)
        across = np.array([-weights[1], weights[0]]) * 10 ** random.uniform(0, 8)
        X = across * (random.choice([-1, 1], (3, 1)) if seed % 2 else 1) + random.normal(
            size=(3, 2)
        )
        y = np.where(X @ weights > 0, 1, -1)
        certificate = nm.certify(linear_net(weights), (X, y))
        rows = [tuple(Fraction(v) * int(s) for v in x) for x, s in zip(X, y, strict=True)]
        exact = tuple(map(Fraction, weights))
        q_min = min(exact[0] * a + exact[1] * b for a, b in rows)
        error = Fraction(certificate.q_rounding) * Fraction(certificate.q_min)
        assert abs(Fraction(certificate.q_min) - q_min) <= error
        share = Fraction(certificate.epsilon_lower) / Fraction(certificate.norm)
        assert share**2 <= exact_share_in_a_plane(exact, rows)
        proved += certificate.completeness is Completeness.ALL
    assert proved >= 11


def dot(weights, x) -> Fraction:
    """The output of a linear net of some weights, exactly."""
    return sum(Fraction(w) * Fraction(v) for w, v in zip(weights, x, strict=True))


def test_many_samples_hide_no_cancelling_one():
    """One of 640, hardly moved by the first random change where it stands, is misclassified, and
    right by 1e-7 as this machine adds up.
    """
    net = linear_net(weights := np.linspace(0.1, 1, 40))
    drawn = np.random.default_rng(0).uniform(1e8, 2e8, (1000, 40))
    drawn[:, -1] = -(drawn[:, :-1] @ weights[:-1]) / weights[-1]
    q = net(torch.from_numpy(drawn))[:, 0].detach().numpy()
    x = next(x for x in drawn[q > 1e-7] if dot(weights, x) < 0)
    place = least_moved(net, x)
    X = np.full((640, 40), 100.0)
    X[place] = x
    with pytest.raises(nm.NotSeparatedError, match=f"sample {place}, is not told apart from 0"):
        nm.certify(net, (X, np.ones(640)))


def least_moved(net, x) -> int:
    """The row of 640 in which the first random change moves a sample least."""
    constraints = Constraints(NetOnSamples(net, (np.tile(x, (640, 1)), np.ones(640))), ("weight",))
    source = torch.Generator().manual_seed(0)
    return int((constraints.nearest(source)[0] - constraints.nearest()[0]).abs().argmin())


def test_a_change_that_is_small_by_chance(monkeypatch):
    """640 samples, one of which cancels; it stands where one of the changes moves it least. The
    smallest margin is right to what is said of it, in every second set with one draw for all.
    """
    sets = [([1 / 3, 1 / 3 + 1e-9], [102829535.64398429, -102829531.73122871], 126)]
    for seed in range(20):
        random = np.random.default_rng(seed)
        weights = random.normal(size=2)
        across = np.array([-weights[1], weights[0]]) * 1e8
        x = across + weights * random.uniform(0.1, 1)
        sets.append((weights, x, least_moved(linear_net(weights), x)))
    for index, (weights, x, place) in enumerate(sets):
        monkeypatch.setattr("netmargin.kkt.problem.CLOSE", 0 if index % 2 else 64)
        X = np.sign(weights) * np.full((640, 2), 100.0)
        X[place] = x
        net, data = linear_net(weights), (X, np.ones(640))
        problem = Problem(net, data, norm="global", loss=nm.losses.Logistic())
        q_min = Fraction(problem.report.q_min)
        assert abs(q_min - dot(weights, x)) <= Fraction(problem.q_rounding) * q_min


def test_a_margin_that_rounding_made_is_none():
    """.1 + .2 - .3 is 6e-17 as floats are added, and 3e-17 as they are."""
    data = (1e-3 * np.array([[1.0, 1.0, -1.0], [1.0, 2.0, 3.0]]), [1, 1])
    with pytest.raises(nm.NotSeparatedError, match="sample 0, is not told apart from 0"):
        nm.certify(linear_net([0.1, 0.2, 0.3]), data)


@pytest.mark.parametrize(
    "sizes", [(1e-200, 1e200), (1e-200, 1e100), (1e-300, 1e-290), (1e-310, 1e-310)]
)
def test_what_leaves_float64_is_refused(sizes):
    for compute in (nm.certify, nm.tangent_svm):
        with pytest.raises(nm.DataError, match="too small or too large for float64"):
            compute(linear_net([1.0, 1.0]), (np.diag(sizes), [1, 1]))


def test_rounding_that_shows_is_said():
    for offset, said in ((0.0, False), (1e12, True)):
        certificate = nm.certify(linear_net([1.0, -1.0]), ([[offset + 1, offset + 0.5]], [1]))
        assert ("holds to a part of" in words_of(certificate.summary())) == said


def test_no_bound_where_gaps_overflow():
    """A gap beyond float64 is no gap to the sample's own class, which is infinite too."""
    data = ([[1.0, 0.1], [1.0, 0.2]], [1, 1])
    problem = Problem(linear_net([1.0, 1.0]), data, norm="global", loss=nm.losses.Logistic())
    search = ConstraintSearch(problem, 5e-3, 2, Progress(False, ""))
    across = {"weight": torch.tensor([[-0.2, 1.0]]).double()}
    assert search._bound(across)[0] == pytest.approx(problem.norm * 0.8 / math.sqrt(2.08), rel=1e-6)
    problem.constraints.move_to({"weight": torch.tensor([[1.0, math.inf]])})
    assert search._bound(across)[0] == 0


class OwnGradient(nn.Module):
    """Homogeneous of order 2; the gradient of one layer is cut off."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4, bias=False), nn.Linear(4, 1, bias=False)

    def forward(self, x):
        return nn.functional.linear(torch.relu(self.first(x)), self.last.weight.detach())


def test_gradients_that_are_not_those_of_the_outputs():
    torch.manual_seed(0)
    net, X = OwnGradient().double(), torch.randn(6, 3, dtype=torch.float64)
    with pytest.raises(nm.NetmarginError):
        nm.certify(net, labelled(net, X))


# -- Lemma C.8 -------------------------------------------------------------------------------------


LOSSES = {
    "exponential": (nm.losses.Exponential(), lambda q: torch.exp(-q)),
    "logistic": (nm.losses.Logistic(), lambda q: torch.nn.functional.softplus(-q)),
    "cross-entropy": (nm.losses.CrossEntropy(), lambda q: torch.nn.functional.softplus(-q)),
    "exponential-cubic": (nm.losses.Exponential(3), lambda q: torch.exp(-(q**3))),
    "logistic-cubic": (nm.losses.Logistic(3), lambda q: torch.nn.functional.softplus(-(q**3))),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_multipliers_of_the_loss(name, outputs):
    """lambda proportional to the loss's slopes, as long as theta~; and the lemma's delta."""
    loss, formula = LOSSES[name]
    torch.manual_seed(outputs)
    net = mlp([4, 8, outputs]).double()
    X, y = labelled(net, torch.randn(150, 4, dtype=torch.float64), clear=0.5)
    with torch.no_grad():
        for p in net.parameters():
            p *= 4
    report = nm.measure(net, (X, y), loss=loss)
    certificate = nm.certify(net, (X, y), loss=loss)
    _, values, _ = jacobian(net, X, y)
    gaps = torch.tensor(values).reshape(len(X), -1).requires_grad_()
    total = formula(-torch.logsumexp(-gaps, 1)).sum()
    slopes = -torch.autograd.grad(total, gaps)[0].reshape(-1).numpy()
    assert math.log(total.item()) == pytest.approx(report.log_loss)
    made_feasible(net, report.q_min, 2)
    J, values, _ = jacobian(net, X, y)
    theta = flat(net)
    lambdas = slopes * np.linalg.norm(theta) / np.linalg.norm(slopes @ J)
    assert certificate.loss_epsilon == pytest.approx(np.linalg.norm(theta - lambdas @ J), rel=1e-9)
    assert certificate.loss_delta == pytest.approx((lambdas * (values - 1)).max(), rel=1e-9)
    # The softmax of several classes goes with s, not with s^3.
    assert (certificate.lemma_delta is None) == (outputs > 1 and "cubic" in name)
    if certificate.lemma_delta is not None:
        assert (lambdas * (values - 1)).sum() <= certificate.lemma_delta


def test_bound_of_the_lemma_is_nearly_attained():
    """Two samples of margins q and q + 1, one weight a layer, at the largest (s - q) e^-s."""
    for depth, q, size in ((1, 30.0, 7.0), (2, 30.0, 0.4), (3, 12.0, 3.0)):
        net = nn.Sequential(*(nn.Linear(1, 1, bias=False) for _ in range(depth))).double()
        with torch.no_grad():
            for layer in net:
                layer.weight.fill_(size)
        X = torch.tensor([[q], [q + 1]]).double() / size**depth
        certificate = nm.certify(
            net, (X, torch.ones(2, dtype=torch.int64)), loss=nm.losses.Exponential()
        )
        assert certificate.loss_delta <= certificate.lemma_delta
        # Lost: the loss is e^-q (1 + 1 / e), not e^-q, and its margin is a bit smaller than q.
        assert certificate.loss_delta >= 0.9 * certificate.lemma_delta / (1 + 1 / math.e)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_bound_of_the_lemma_at_large_losses(name, depth):
    """Its formula at the smoothed margin of `measure`, well below the margin."""
    loss, _ = LOSSES[name]
    torch.manual_seed(depth)
    net = mlp([4, *[5] * (depth - 1), 1]).double()
    X, y = labelled(net, torch.randn(7, 4, dtype=torch.float64))
    q = nm.measure(net, (X, y)).q

    def above(factor):
        return loss.inverse_link(loss.log_sum(factor * q)) / (factor * q.min().item()) - 0.7

    with torch.no_grad():
        for p in net.parameters():
            p *= brentq(above, 0.05 / q.min(), 20 / q.min()) ** (1 / depth)
    report = nm.measure(net, (X, y), loss=loss)
    margin = loss.inverse_link(report.log_loss)
    assert 0.1 * report.q_min < margin < 0.8 * report.q_min
    certificate = nm.certify(net, (X, y), loss=loss)
    # Lemma C.8: delta = gamma~^{-2/L} K (N - 1) / (L l^{-1}(Loss)), K = 1 / e for f(q) = q; for
    # e^{-q^p} with p more in K, which g' / g takes away, and the power of the margin.
    powered = margin ** (3 if "cubic" in name else 1)
    bound = report.smoothed_margin ** (-2 / depth) * (len(X) - 1) / (math.e * depth * powered)
    if "exponential" not in name:
        bound *= math.exp(math.exp(report.log_loss))
    assert certificate.lemma_delta == pytest.approx(bound, rel=1e-9)
    assert certificate.loss_delta <= bound


def test_bound_of_the_lemma_for_a_loss_of_the_user():
    """f = 2 q is 2 times a margin, K = 1: the bound is that of the exponential loss at 2 q."""
    steep = nm.losses.Loss(lambda q: 2 * q, lambda q: 2 + 0 * q, lambda x: x / 2)
    cubic = nm.losses.Loss(lambda q: q**3, lambda q: 3 * q**2, lambda x: x ** (1 / 3))
    net = linear_net([1.5, 0.5])
    data = ([[2.0, 0.1], [1.0, 1.0], [1.6, 0.0]], [1, 1, 1])
    bound = nm.certify(net, data, loss=steep).lemma_delta
    x, q = -steep.log_sum(nm.measure(net, data).q), torch.tensor([2.0, 2.4, 3.05])
    length = 1.5**2 + 0.5**2
    assert bound == pytest.approx(2 * length * (2 / x) ** 2 / (math.e * x), rel=1e-9)
    # The K of (B3.4) loses, and by how much is what the closed form of q^3 saves.
    general, own = (nm.certify(net, data, loss=L) for L in (cubic, nm.losses.Exponential(3)))
    assert general.loss_delta == pytest.approx(own.loss_delta, rel=1e-9)
    K = cubic.check_b3().K
    assert general.lemma_delta == pytest.approx(own.lemma_delta * K / 3, rel=1e-9)
    assert own.loss_delta <= own.lemma_delta
    assert q.max() < 2 * q.min()  # so that K counts once


def test_the_lemma_is_not_claimed_beyond_its_losses():
    net = nn.Linear(2, 1, bias=False).double()
    net.weight.data[:] = 3.0
    data = ([[2.0, 0.0], [0.0, -2.0]], [1, -1])
    assert nm.certify(net, data, loss=nm.losses.Exponential()).lemma_delta is not None
    net.weight.data[:] = 1e-3  # the loss is beyond that of a sample with margin 0
    assert nm.certify(net, data, loss=nm.losses.Exponential()).lemma_delta is None


# -- Which problem it is
# -----------------------------------------------------------------------------


def test_layers_are_balanced_by_their_exponents():
    """||W_i||^2 proportional to k_i: the KKT point of a neuron with a squared ReLU."""
    for sizes in ((1.0, 1.0), (0.2, 5.0), (9.0, 0.5)):
        net = nn.Sequential(
            nn.Linear(2, 1, bias=False), Square(), nn.Linear(1, 1, bias=False)
        ).double()
        with torch.no_grad():
            net[0].weight.copy_(sizes[0] * torch.tensor([[0.6, 0.8]]))
            net[2].weight.fill_(sizes[1])
        data = ([[0.6, 0.8], [1.2, 1.6]], [1, 1])
        certificate = nm.certify(net, data, norm="layers")
        assert certificate.relative_epsilon < 1e-7
        # min (a^2 + w^2) / 2 with a w^2 >= 1: w^2 = 2 a^2, a = 2^{-1/3}.
        assert certificate.norm == pytest.approx(math.sqrt(3) * 2 ** (-1 / 3))
        assert certificate.order == 3


@pytest.mark.parametrize("norm", ["layers", "global"])
def test_problems_of_nets_with_unequal_exponents(norm):
    """Least squares over all constraints at parameters that are balanced by hand."""
    torch.manual_seed(5)
    net = NETS["squares"]().double()
    net[0].bias = None
    X, y = labelled(net, torch.randn(30, 5, dtype=torch.float64))
    certificate = nm.certify(net, (X, y), norm=norm)
    if norm == "layers":
        with torch.no_grad():
            for layer, k in ((net[0], 2), (net[2], 1)):
                layer.weight *= math.sqrt(k) / layer.weight.norm()
    q = jacobian(net, X, y)[1].min()
    made_feasible(net, q, 3)
    J, values, _ = jacobian(net, X, y)
    assert values.min() == pytest.approx(1.0)
    assert certificate.norm == pytest.approx(np.linalg.norm(flat(net)))
    assert certificate.epsilon == pytest.approx(nnls(J.T, flat(net))[1], rel=1e-8)
    assert certificate.epsilon_lower <= certificate.epsilon


class Quotient(nn.Module):
    """Order 2 in one layer and -1 in the norm of another: 1 in all."""

    def __init__(self):
        super().__init__()
        self.first, self.divisor = nn.Linear(3, 5, bias=False), nn.Linear(3, 1, bias=False)

    def forward(self, x):
        return (torch.relu(self.first(x)) ** 2).sum(
            1, keepdim=True
        ) / self.divisor.weight.norm() - 0.0


def test_negative_exponents_count_in_the_global_norm():
    torch.manual_seed(0)
    net = Quotient().double()
    X = torch.randn(8, 3, dtype=torch.float64)
    y = torch.ones(8, dtype=torch.int64)
    certificate = nm.certify(net, (X, y))
    assert certificate.order == 1
    made_feasible(net, certificate.q_min, 1)
    J, _, _ = jacobian(net, X, y)
    assert certificate.norm == pytest.approx(np.linalg.norm(flat(net)))
    assert certificate.epsilon == pytest.approx(nnls(J.T, flat(net))[1], rel=1e-8)


def test_later_biases_of_either_sign_are_refused():
    """Also where all of them are negative."""
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)).double()
    X = torch.randn(6, 2, dtype=torch.float64)
    for bias in (1.0, -1.0):
        with torch.no_grad():
            net[2].bias.fill_(bias)
        with pytest.raises(nm.NotHomogeneousError, match=r"2\.bias"):
            nm.certify(net, labelled(net, X))


# -- Gradients within a radius
# -----------------------------------------------------------------------


class TwoUnits(nn.Module):
    """f(x) = relu(w x) + relu(u x), on the kink of w up to the distance d."""

    def __init__(self, d: float):
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([[d], [1 - d]], dtype=torch.float64))

    def forward(self, x):
        return torch.relu(nn.functional.linear(x, self.weights)).sum(1, keepdim=True)


@pytest.mark.slow_cases("0.0001")
@pytest.mark.parametrize("d", [1e-2, 1e-4])
def test_gradients_come_from_within_the_radius(d):
    """theta = (d, 1 - d): (1, 1) alone leaves (1 - 2 d) / sqrt 2, with (0, 1) nothing."""
    net, data = TwoUnits(d), ([[1.0]], [1])
    norm = math.hypot(d, 1 - d)
    short, far = 0.9 * d / norm, 1.6 * d / norm
    sharp = nm.certify(net, data)
    assert sharp.epsilon == pytest.approx((1 - 2 * d) / math.sqrt(2))
    for seed in range(3):
        assert nm.certify(net, data, radius=short, seed=seed).radius_epsilon == pytest.approx(
            sharp.epsilon
        )
    assert nm.certify(net, data, radius=far).radius_epsilon < 1e-5


@pytest.mark.parametrize("d", [1e-2, 1e-4])
def test_tangent_machine_on_a_kink(d):
    """Of the gradients (1, 1) and (0, 1) the average along theta makes theta / L the solution."""
    net, data = TwoUnits(d), ([[1.0]], [1])
    assert nm.tangent_svm(net, data).cosine == pytest.approx(
        1 / math.hypot(d, 1 - d) / math.sqrt(2)
    )
    machine = nm.tangent_svm(net, data, radius=1.6 * d / math.hypot(d, 1 - d))
    assert machine.cosine == pytest.approx(1.0, abs=1e-9)
    # Gradients at the other side have <grad s, theta> = 1 - d for 1.
    assert machine.margin == pytest.approx(1 / nm.certify(net, data).norm, rel=1.5 * d)


def test_tangent_machine_of_a_max_margin_net_on_kinks():
    """Of three samples and their constraints, of which one has gradients on both sides."""
    X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 2.0], [5.0, 1.0]], [1, -1, 1, 1]
    net = nm.solvers.f1_max_margin(X, y, bias=False).to_network()
    sharp, wide = nm.tangent_svm(net, (X, y)), nm.tangent_svm(net, (X, y), radius=1e-2)
    assert sharp.cosine < 0.99
    assert wide.cosine > 0.9999
    assert wide.margin == pytest.approx(2 / nm.certify(net, (X, y)).norm, rel=1e-2)
    assert len(wide.constraints) == len(wide.dual) < 4 == len(sharp.dual)


@pytest.mark.parametrize("d", [1e-2, 1e-4])
def test_share_of_kinks(d):
    """One of two pre-activations, d and 1 - d, is within 1.2 d of 0, none within 0.8 d."""
    size = math.sqrt((d**2 + (1 - d) ** 2) / 2)
    for factor, share in ((1.2, 0.5), (0.8, 0.0)):
        assert nm.certify(TwoUnits(d), ([[1.0]], [1]), radius=factor * d / size).kink_share == share


# -- Multipliers and the support vector machine
# ------------------------------------------------------


def test_bounds_of_multipliers_hold_exactly_and_are_left_again():
    """Many columns along few directions, bounds of all sizes: bounded least squares."""
    random = np.random.default_rng(1)
    for _ in range(30):
        directions = random.normal(size=(4, 6)) * 10.0 ** random.integers(-3, 4, size=6)
        A, b = (
            np.repeat(directions, 3, axis=1) * random.uniform(0.5, 2, size=18),
            random.normal(size=4),
        )
        upper = np.where(random.random(18) < 0.2, np.inf, 10.0 ** random.uniform(-6, 3, size=18))
        ours = multipliers_module.multipliers(A.T @ A, A.T @ b, upper)
        theirs = lsq_linear(A, b, (0, upper), tol=1e-13).x
        assert ((ours >= 0) & (ours <= upper)).all()
        assert np.linalg.norm(A @ ours - b) <= np.linalg.norm(A @ theirs - b) * (1 + 1e-7) + 1e-10


def test_multipliers_leave_any_bounds_that_they_start_from():
    random = np.random.default_rng(2)
    for _ in range(30):
        A, b = random.normal(size=(4, 6)), random.normal(size=4)
        A, upper = A / np.linalg.norm(A, axis=0), random.uniform(0.01, 1.0, size=6)
        start = np.where(random.random(6) < 0.5, upper, 0.0)
        ours = multipliers_module._improve(A.T @ A, A.T @ b, upper, start)
        theirs = lsq_linear(A, b, (0, upper), tol=1e-13).x
        assert np.linalg.norm(A @ ours - b) <= np.linalg.norm(A @ theirs - b) * (1 + 1e-7)


def test_tangent_machine_of_a_kkt_point():
    """Its solution is theta~ / L: cosine 1 and margin L / ||theta~||, at orders 1 to 3."""
    for order in (1, 2, 3):
        net = nn.Sequential(
            nn.Linear(2, 1, bias=False), *(nn.Linear(1, 1, bias=False) for _ in range(order - 1))
        ).double()
        with torch.no_grad():
            net[0].weight.copy_(torch.tensor([[0.6, 0.8]]))
            for layer in net[1:]:
                layer.weight.fill_(1.0)
        data = ([[1.2, 1.6], [3.0, 4.0]], [1, 1])
        machine = nm.kkt.tangent_svm(net, data)
        assert machine.cosine == pytest.approx(1.0, abs=1e-9)
        assert machine.margin == pytest.approx(order / nm.certify(net, data).norm, rel=1e-7)
