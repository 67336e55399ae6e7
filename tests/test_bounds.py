"""Generalization bounds against hand-computed numbers, brute force, and 200 trials."""

import math

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin import bounds
from netmargin.kernels import arc_cosine


def test_values_are_the_sums_of_their_terms():
    """Each term by hand is in `test_sound_guarantees.py`; samples below gamma add their ramp."""
    X = np.tile([[1.0, 0.0]], (400, 1))
    two = bounds.two_layer_bound(np.full(400, 0.25), X, radius=1.0)
    assert two.value == pytest.approx(sum(two.terms.values()))
    with_errors = bounds.two_layer_bound(
        np.tile([0.25, 0.125, -0.4, 0.25], 100), X, radius=1.0, margin=0.25
    )
    assert with_errors.value == pytest.approx(two.value + (0.5 + 1) / 4)


def test_kernel_bound_of_the_arc_cosine_kernel():
    """Lemma 3.4 with its constants: 2 sqrt 2 / gamma sqrt(D / (d n)), D the mean square."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    arc = bounds.kernel_bound(np.full(50, 0.3), arc_cosine(X, bias=False), largest=10.0)
    expected = 2 * math.sqrt(2) / 0.3 * math.sqrt((X**2).sum() / 50 / (3 * 50))
    assert arc.terms["complexity, 4 Rad / gamma"] == pytest.approx(expected)


def test_truncated_squares():
    assert bounds.truncated_squares(
        [0.0, 3.0, -1.0], [0.5, 0.0, -1.5], largest=2.0
    ) == pytest.approx([0.25, 2.0, 0.25])


def test_vacuous_bounds_say_so():
    X = np.eye(3)
    bound = bounds.two_layer_bound(np.full(3, 0.1), X, radius=1.0)
    assert bound.vacuous
    assert "vacuous" in bound.summary()
    assert all(name in bound.summary() for name in bound.terms)
    assert "assumes: |x| <= 1" in bound.summary()
    assert not bounds.regression_bound(
        np.zeros(10_000), np.ones((10_000, 1)), norm=0.0, largest_loss=5.0, lipschitz=1.0
    ).vacuous


def test_no_bound_is_violated_in_200_trials():
    """Noisy half planes, a net that computes a direction learnt from them; not by miles either."""
    ratios = []
    for seed in range(200):
        random = np.random.default_rng(seed)
        n = 20_000

        def draw(count: int, random=random):
            X = random.uniform(-1, 1, size=(count, 2))
            return X, np.where(random.random(count) < 0.05, -1, 1) * np.sign(X[:, 0])

        X, y = draw(n)
        u = (y[:, None] * X).mean(0)
        u /= np.linalg.norm(u)
        # f(x) = u . x = relu(u . x) - relu(-u . x): |Theta|^2 = 4 with balanced layers.
        bound = bounds.two_layer_bound(y * (X @ u) / 4, X, radius=math.sqrt(2), margin=0.1)
        assert not bound.vacuous
        X, y = draw(20_000)
        error = float((y * (X @ u) <= 0).mean())
        assert error <= bound.value
        ratios.append(bound.value / error)
    assert 3 < np.median(ratios) < 20


def test_rademacher_of_the_variation_ball_by_brute_force():
    X = np.random.default_rng(0).normal(size=(12, 2))
    found = bounds.variation_ball(X, bias=False, draws=20, seed=3)
    signs = np.random.default_rng([3, 1]).choice([-1.0, 1.0], (20, 12))
    angle = np.linspace(0, 2 * np.pi, 20_001)
    features = np.maximum(np.column_stack([np.cos(angle), np.sin(angle)]) @ X.T, 0)
    assert found.exact
    assert found.estimate == pytest.approx(np.abs(signs @ features.T).max(1).mean() / 12, rel=1e-5)
    assert found.bound == pytest.approx(3 * np.linalg.norm(X) / 12)


@pytest.mark.slow
def test_rademacher_estimates_stay_below_their_lemmas():
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(25, 1 + seed))
        for ball in (bounds.variation_ball, bounds.kernel_ball):
            found = ball(X, draws=200 if ball is bounds.kernel_ball else 40)
            assert 0 < found.estimate - 3 * found.error < found.bound
        assert (
            bounds.kernel_ball(X, draws=4000).estimate > 0.8 * bounds.kernel_ball(X).bound
        )  # Jensen loses little
    assert not bounds.variation_ball(np.random.default_rng(0).normal(size=(20, 6)), draws=3).exact


@pytest.mark.slow
def test_the_largest_margin_where_each_sample_has_its_own_noise():
    """Samples of one point of the line are weighed alike: `chizat-bach/interclass-bound`."""
    line, y = np.array([-0.5, -0.2, 0.15, 0.5]), np.array([1, -1, 1, -1])
    noise, at = np.sqrt(1 - line**2), np.random.default_rng(0).integers(4, size=10)
    alike = np.diag(noise / np.sqrt(np.bincount(at)))
    few = nm.solvers.f1_max_margin(np.column_stack([line, alike]), y)
    all_samples = np.column_stack([line[at], np.diag(noise[at])])
    best = nm.solvers.f1_max_margin(all_samples, y[at])
    assert few.margin == pytest.approx(best.margin, rel=1e-6)
    assert best.upper_bound == pytest.approx(best.margin, rel=1e-5)


@pytest.mark.slow
def test_interclass_distance_finds_planted_structure():
    """Two of 10 coordinates tell classes apart: within 0.1%, in a bracket of less than 1%."""
    for draw, distance in ((nm.datasets.hypercube, math.sqrt(2)), (nm.datasets.gaussian_xor, 2.0)):
        X, y = draw(60, 10)
        found = bounds.interclass_distance(X, y, 2)
        assert found.distance >= 0.999 * distance
        assert found.distance <= found.upper_bound <= 1.01 * distance
        assert found.basis.T @ found.basis == pytest.approx(np.eye(2), abs=1e-9)
        projected = X.numpy() @ found.basis
        pairs = np.linalg.norm(projected[y > 0][:, None] - projected[y < 0], axis=2)
        assert pairs.min() == pytest.approx(found.distance)
        flat = bounds.interclass_distance(X[:, :2], y, 2)
        assert flat.distance == flat.upper_bound == pytest.approx(distance)


@pytest.mark.slow
def test_interclass_distance_in_one_dimension_by_brute_force():
    """The widest gap between classes on lines through the plane, by all angles."""
    for seed in range(2):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(10, 2)), np.tile([1, -1], 5)
        angle = np.linspace(0, np.pi, 20_001)
        lines = X @ np.array([np.cos(angle), np.sin(angle)])
        widest = np.abs(lines[y > 0][:, None] - lines[y < 0]).min((0, 1)).max()
        found = bounds.interclass_distance(X, y, 1, starts=12)
        assert found.distance == pytest.approx(widest, rel=1e-3)
        assert found.upper_bound >= widest * (1 - 1e-9)


@pytest.mark.slow
def test_distances_scale_with_the_data():
    X, y = nm.datasets.hypercube(40, 4)
    found = [
        bounds.interclass_distance(scale * X, y, 2).distance / scale
        for scale in (1e-160, 1.0, 1e160)
    ]
    assert found == pytest.approx([found[1]] * 3, rel=1e-6)


def test_bad_input():
    X = np.eye(2)
    with pytest.raises(nm.DataError, match=r"q is -0\.1, not positive: some sample is wrong"):
        bounds.two_layer_bound([-0.1, 0.2], X, radius=1.0)
    with pytest.raises(nm.DataError, match="radius must bound"):
        bounds.two_layer_bound([0.1, 0.2], 3 * X, radius=1.0)
    with pytest.raises(ValueError, match="delta"):
        bounds.margin_bound([1.0], rademacher=0.1, largest=1.0, delta=1.5)
    with pytest.raises(nm.DataError, match="all finite"):
        bounds.margin_bound([math.nan], rademacher=0.1, largest=1.0)
    with pytest.raises(nm.DataError, match=r"K must be the \(1, 1\) kernel matrix"):
        bounds.kernel_bound([0.1], np.eye(2), largest=1.0)
    with pytest.raises(nm.DataError, match="the sum of its diagonal is -2"):
        bounds.kernel_bound([0.1, 0.1], -np.eye(2), largest=1.0)
    with pytest.raises(nm.DataError, match="X holds NaN or infinite values in 1 of"):
        bounds.kernel_ball([[0.0], [math.inf]])
    with pytest.raises(nm.DataError, match="beyond largest_loss"):
        bounds.regression_bound([2.0, 0.0], X, norm=1.0, largest_loss=1.0, lipschitz=1.0)
    with pytest.raises(nm.DataError, match=r"A margin of 1e\+06 .* <= 1\. Are margins divided"):
        bounds.two_layer_bound(np.full(10, 1e6), np.ones((10, 2)), radius=2.0)
    with pytest.raises(nm.DataError, match="divided by the norm"):
        bounds.deep_bound(np.full(10, 1e6), depth=3, radius=2.0)
    with pytest.raises(nm.DataError, match="2 margins for 3 samples"):
        bounds.two_layer_bound([0.1, 0.1], np.eye(3), radius=1.0)
    with pytest.raises(nm.ArgumentError, match="rademacher"):
        bounds.margin_bound([1.0], rademacher=-1.0, largest=1.0)
    with pytest.raises(nm.DataError, match="predictions"):
        bounds.truncated_squares(np.zeros((5, 2)), np.zeros(5))
    assert bounds.truncated_squares(torch.zeros(5, 1, requires_grad=True), np.zeros(5)).shape == (
        5,
    )
    with pytest.raises(nm.DataError, match="both classes"):
        bounds.interclass_distance(X, [1, 1], 1)
    with pytest.raises(ValueError, match="r must be"):
        bounds.interclass_distance(X, [1, -1], 3)
    with pytest.raises(ValueError, match="constant"):
        bounds.interclass_bound(10, distance=0.1, radius=1.0, r=1, constant=0.0)
