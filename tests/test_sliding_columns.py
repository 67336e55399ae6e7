"""Sliding columns against what is known: brute force over the directions of the plane, and two
classes as one problem.
"""

import itertools
import time

import numpy as np
import pytest

from netmargin.result import Status
from netmargin.solvers.neurons import losses
from netmargin.solvers.neurons.activations import ABSOLUTE, LINEAR, RELU, Activation, squared
from netmargin.solvers.neurons.labels import Rivals, Signs
from netmargin.solvers.neurons.search import QUICK, THOROUGH
from netmargin.solvers.neurons.sliding import slide_columns

ACTIVATIONS = {
    "relu": RELU,
    "leaky .1": Activation(0.1),
    "leaky .5": Activation(0.5),
    "abs": ABSOLUTE,
    "linear": LINEAR,
    "squared relu": squared(RELU),
    "squared leaky": squared(Activation(0.1)),
    "square": squared(ABSOLUTE),
}
ANGLES = np.linspace(0, 2 * np.pi, 40_001)
PLANE = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def draw(n: int, D: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal points with random signs."""
    random = np.random.default_rng(seed)
    return random.normal(size=(n, D)), random.choice([-1.0, 1.0], size=(n, 1))


def make_loss(name: str, y: np.ndarray, cost: float = 1.0):
    """The loss of this name for signs y (n, 1)."""
    C = np.full(len(y), cost)
    if name in ("squared", "equality"):
        return losses.squared_loss(
            y * np.arange(1, len(y) + 1)[:, None], C if name[0] == "s" else C * np.inf
        )
    if name == "logistic":
        return losses.LogisticLoss(Signs(y), C[:, None])
    make = losses.squared_hinge_loss if name == "squared hinge" else losses.hinge_loss
    return make(Signs(y), C * np.inf if name == "hard" else C)


def largest_in_the_plane(Z, C, phi) -> float:
    """The largest value of a neuron by 40,000 directions, which miss at most 1e-4 of it."""
    return float(np.linalg.norm(phi.feature(PLANE @ Z.T) @ C, axis=1).max())


def prove(net, Z, loss, phi, tol) -> None:
    """The bracket of a net in the plane holds, by brute force."""
    F = phi.feature(Z @ net.W.T) @ net.A
    assert np.linalg.norm(net.W, axis=1) == pytest.approx(1, abs=1e-12)
    mass = np.linalg.norm(net.A, axis=1).sum()
    if np.isfinite(loss.value(F)):  # else constraints that hold to rounding
        assert net.objective == pytest.approx(mass + loss.value(F), rel=1e-9)
    else:
        assert net.objective == pytest.approx(mass)
        assert np.minimum(loss.labels.margins(F) - loss.target, 0).min() > -1e-8
    assert largest_in_the_plane(Z, net.dual, phi) <= 1 + 1e-6
    assert loss.bound(net.dual) == pytest.approx(net.local_bound)
    assert net.local_bound <= net.objective * (1 + 1e-9)
    assert net.local_gap <= tol
    assert net.status is Status.LOCALLY_OPTIMAL
    assert net.look is THOROUGH


SMOOTH = ("squared hinge", "logistic", "squared")


@pytest.mark.slow_cases("squared-", "logistic-leaky", "logistic-square")
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("loss_name", SMOOTH)
def test_the_plane_by_brute_force(name, loss_name):
    Z, y = draw(8, 2, 0)
    loss, phi = make_loss(loss_name, y), ACTIVATIONS[name]
    prove(slide_columns(Z, loss, activation=phi, tol=1e-3), Z, loss, phi, 1e-3)


@pytest.mark.slow_cases("hinge-abs", "hard-abs", "equality-abs")
@pytest.mark.parametrize("name", ["relu", "abs", "squared relu"])
@pytest.mark.parametrize("loss_name", ["hinge", "hard", "equality"])
def test_corners_and_constraints_in_the_plane(name, loss_name):
    Z, y = draw(6, 2, 1)
    loss, phi = make_loss(loss_name, y), ACTIVATIONS[name]
    if phi.power == 2 and loss_name != "hinge":
        Z, loss = Z[:3], loss.take(slice(3))  # three squares of the plane separate as many points
    prove(slide_columns(Z, loss, activation=phi, tol=1e-2), Z, loss, phi, 1e-2)


@pytest.mark.slow_cases("leaky .5-", "squared relu-hinge", "relu-hinge", "relu-squared")
@pytest.mark.parametrize("loss_name", ["hinge", "squared hinge", "softmax"])
@pytest.mark.parametrize("name", ["relu", "leaky .5", "squared relu"])
def test_three_classes_in_the_plane_by_brute_force(name, loss_name):
    Z, _ = draw(9, 2, 2)
    loss, phi = make_three_classes(loss_name), ACTIVATIONS[name]
    prove(slide_columns(Z, loss, activation=phi, tol=3e-3), Z, loss, phi, 3e-3)


def find_largest_exactly(Z, C, slope) -> float:
    """The largest value of a neuron in the plane, from every arc between two kinks."""
    kinks = np.sort(np.arctan2(Z[:, 0], -Z[:, 1]) % np.pi)
    ends = np.append(np.concatenate([kinks, kinks + np.pi]), kinks[0] + 2 * np.pi)
    largest = 0.0
    for low, high in itertools.pairwise(ends):
        middle = np.array([np.cos((low + high) / 2), np.sin((low + high) / 2)])
        M = C.T @ (np.where(Z @ middle > 0, 1, slope)[:, None] * Z)
        top = np.linalg.svd(M)[2][0]
        angles = [
            low,
            high,
            *(low + (np.arctan2(*(s * top[::-1])) - low) % (2 * np.pi) for s in (1, -1)),
        ]
        inside = [angle for angle in angles if angle <= high]
        largest = max(largest, *(np.linalg.norm(M @ [np.cos(a), np.sin(a)]) for a in inside))
    return largest


@pytest.mark.slow_cases("leaky .5-", "relu-hinge", "relu-softmax")
@pytest.mark.parametrize("loss_name", ["hinge", "squared hinge", "softmax"])
@pytest.mark.parametrize("name", ["relu", "leaky .5"])
def test_three_classes_in_the_plane_to_a_millionth(name, loss_name):
    for seed in (2, 3, 4):
        Z = np.random.default_rng(seed).normal(size=(9, 2))
        loss, phi = make_three_classes(loss_name), ACTIVATIONS[name]
        net = slide_columns(Z, loss, activation=phi, tol=1e-6)
        F = phi.feature(Z @ net.W.T) @ net.A
        objective = np.linalg.norm(net.A, axis=1).sum() + loss.value(F)
        dual = net.dual * loss.scale(net.dual, 1 / find_largest_exactly(Z, net.dual, phi.slope))
        assert loss.bound(dual) == pytest.approx(objective, rel=1e-6)


def make_three_classes(loss_name: str):
    """The loss of nine samples of three classes."""
    labels, C = Rivals(np.arange(9) % 3, 3), np.ones(9)
    if loss_name == "softmax":
        return losses.LogisticLoss(labels, C[:, None])
    return (losses.hinge_loss if loss_name == "hinge" else losses.squared_hinge_loss)(labels, C)


def test_two_classes_are_the_binary_problem():
    """A neuron with outputs (-a, a) / 2 adds a to F_1 - F_0 and costs |a| / sqrt 2."""
    Z, y = draw(40, 3, 4)
    two = Rivals((y[:, 0] > 0).astype(int), 2)
    C = np.full(40, 0.5)
    joint = slide_columns(Z, losses.squared_hinge_loss(two, C), tol=1e-3)
    binary = slide_columns(Z, losses.squared_hinge_loss(Signs(y), np.sqrt(2) * C), tol=1e-3)
    assert joint.objective == pytest.approx(binary.objective / np.sqrt(2), rel=1e-3)
    assert joint.A.sum(1) == pytest.approx(0, abs=1e-3 * np.abs(joint.A).max())


def test_hard_margin_is_that_of_wei():
    """XOR: the l1 margin over unit features is sqrt 2 / 4 (Wei et al. 2018, Lemma D.1)."""
    Z = np.array([[1.0, 1], [-1, -1], [1, -1], [-1, 1]])
    y = np.array([[1.0], [1], [-1], [-1]])
    net = slide_columns(Z, make_loss("hard", y), tol=1e-3)
    assert 1 / net.objective == pytest.approx(2**0.5 / 4, rel=1e-3)


def test_a_warm_start_ends_where_it_began():
    Z, y = draw(30, 3, 5)
    loss = make_loss("squared hinge", y)
    net = slide_columns(Z, loss, tol=1e-3)
    again = slide_columns(Z, loss, tol=2e-3, start=(net.W, net.A))
    assert again.rounds == 0
    assert again.objective == pytest.approx(net.objective)


def test_a_cost_too_low_for_neurons_gives_none():
    Z, y = draw(10, 2, 6)
    loss = make_loss("squared hinge", y, 1e-3)
    net = slide_columns(Z, loss)
    assert len(net.W) == 0
    assert net.objective == pytest.approx(1e-3 * 10 / 2)
    assert net.local_gap == pytest.approx(0, abs=1e-12)


def test_an_early_end_tells_its_look_and_keeps_its_numbers():
    Z, y = draw(60, 5, 7)
    loss = make_loss("squared hinge", y)
    net = slide_columns(Z, loss, tol=1e-6, deadline=time.monotonic())
    assert net.status is Status.TIME_LIMIT
    assert net.look == QUICK
    assert net.local_gap > 1e-6
    assert loss.bound(net.dual) == pytest.approx(net.local_bound)


def test_ctrl_c_returns_the_best_net(monkeypatch):
    from netmargin.solvers.neurons import sliding

    calls = []

    def interrupt(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return sliding_slide(*arguments)

    sliding_slide = sliding.slide
    monkeypatch.setattr(sliding, "slide", interrupt)
    Z, y = draw(60, 5, 7)
    loss = make_loss("squared hinge", y)
    net = slide_columns(Z, loss, tol=1e-9)
    assert net.status is Status.INTERRUPTED
    F = np.maximum(Z @ net.W.T, 0) @ net.A
    assert net.objective == pytest.approx(np.abs(net.A).sum() + loss.value(F))
    assert net.objective < loss.value(np.zeros_like(F))


def test_the_same_seed_gives_the_same_net():
    Z, y = draw(30, 3, 8)
    loss = make_loss("squared hinge", y)
    nets = [slide_columns(Z, loss, seed=3) for _ in range(2)]
    assert np.array_equal(nets[0].W, nets[1].W)
    assert np.array_equal(nets[0].A, nets[1].A)


@pytest.mark.slow
def test_the_hard_margin_of_three_classes_in_the_plane_by_brute_force():
    random = np.random.default_rng(3)
    y = np.arange(9) % 3
    centres = np.array([[3.0, 0.0], [-2.0, 2.0], [-2.0, -2.0]])
    Z = centres[y] + random.normal(size=(9, 2))
    loss = losses.hinge_loss(Rivals(y, 3), np.full(9, np.inf))
    prove(slide_columns(Z, loss, tol=1e-2), Z, loss, RELU, 1e-2)


def test_costs_per_sample_and_an_outlier_in_the_plane_by_brute_force():
    Z, y = draw(8, 2, 9)
    Z[3] *= 60
    loss = losses.squared_hinge_loss(Signs(y), np.geomspace(0.01, 10, 8))
    prove(slide_columns(Z, loss, tol=1e-2), Z, loss, RELU, 1e-2)


@pytest.mark.slow
def test_many_samples_of_which_few_are_in_use():
    """3,200 samples are multiplied in float32, and rounds leave out those beyond their target; what
    is returned holds in float64 for all of them, and no direction of space is worth more.
    """
    random = np.random.default_rng(0)
    Z = random.normal(size=(3200, 3))
    y = np.where(Z[:, :1] + 0.2 * np.abs(Z[:, 1:2]) > 0.1, 1.0, -1.0)
    loss = make_loss("squared hinge", y, 0.1)
    net = slide_columns(Z, loss, tol=2e-2)
    F = RELU.feature(Z @ net.W.T) @ net.A
    mass = np.linalg.norm(net.A, axis=1).sum()
    assert net.objective == pytest.approx(mass + loss.value(F), rel=1e-12)
    U = random.normal(size=(20_000, 3))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    assert np.abs(RELU.feature(Z @ U.T).T @ net.dual).max() <= 1 + 1e-5
    assert net.local_gap <= 2e-2


def test_labels_that_contradict_each_other_have_no_hard_margin():
    Z, y = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0], [-1.0]])
    net = slide_columns(Z, make_loss("hard", y))
    assert net.objective == np.inf
    assert net.local_gap == np.inf
    assert net.status is Status.STALLED  # at a bound that no net of this size has


def test_an_interrupted_thorough_look_leaves_the_quick_one(monkeypatch):
    from netmargin.solvers.neurons import sliding

    def interrupt(Z, C, known, look, *others):
        if look is THOROUGH:
            raise KeyboardInterrupt
        return sliding_find(Z, C, known, look, *others)

    sliding_find = sliding.find_neurons
    monkeypatch.setattr(sliding, "find_neurons", interrupt)
    Z, y = draw(40, 3, 7)
    loss = make_loss("squared hinge", y)
    net = slide_columns(Z, loss, tol=0.1)
    assert net.status is Status.INTERRUPTED
    assert net.look == QUICK
    assert net.local_gap <= 0.1
    assert loss.bound(net.dual) == pytest.approx(net.local_bound)
