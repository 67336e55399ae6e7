"""The inequalities of docs/certified-radii.md that bounds are made of, each by sampling."""

import math

import numpy as np

from netmargin.radii.exact.boxes import BoxBuilder
from netmargin.radii.exact.chain import activate
from netmargin.radii.exact.first_layer_quadratic import bound_functionals
from netmargin.radii.exact.inequality import Multipliers
from netmargin.radii.exact.region_bound import bound_gap
from netmargin.radii.exact.units import (
    minimize_on_branch,
    negative_branch,
    positive_branch,
)
from tests.test_exact_radii_proof import (
    SLOPES,
    random_case,
    random_multipliers,
    random_region,
    sample_ball,
)

CASES = 60


def test_the_minimum_on_a_graph_is_below_every_sample_and_attained():
    """h, unit by unit: -psi at points of both pieces."""
    rng = np.random.default_rng(0)
    units = np.arange(CASES)
    for slope in SLOPES:
        theta, z = rng.normal(size=(5, CASES)), rng.normal(size=CASES)
        low, high = -rng.exponential(size=(2, CASES)) * [[1], [-1]]
        branches = [make(z, slope, low, high) for make in (positive_branch, negative_branch)]
        h = np.minimum(*(minimize_on_branch(theta, branch) for branch in branches))
        y = low + np.linspace(0, 1, 5001)[:, None] * (high - low)
        t = activate(z + y, slope) - activate(z, slope)
        g, e, al, be, de = theta
        values = -(g * y + e * t + al * y * y / 2 + be * y * t + de * t * t / 2)
        assert (h <= values + 1e-12).all()
        assert (values[values.argmin(0), units] - h < 1e-2).all()


def test_bounds_are_concave_in_all_multipliers():
    rng, finite = np.random.default_rng(0), 0
    while finite < CASES:
        _, _, _, ball, functional = random_case(rng, int(rng.integers(1, 4)))
        region = random_region(rng, ball)
        first, second = (random_multipliers(rng, ball, size) for size in (0.1, 0.3))
        share = float(rng.uniform(0.1, 0.9))
        mixed = Multipliers(
            tuple(
                share * a + (1 - share) * b for a, b in zip(first.theta, second.theta, strict=True)
            ),
            share * first.mu + (1 - share) * second.mu,
        )
        left, right, middle = (
            bound_gap(ball, functional, region, m) for m in (first, second, mixed)
        )
        if not (math.isfinite(left) and math.isfinite(right)):
            continue
        chord = share * left + (1 - share) * right
        assert middle >= chord - 1e-9 * (1 + abs(left) + abs(right))
        finite += 1


def test_weighted_norms_of_a_layer_hold_at_sampled_points():
    """N_j >= |sqrt(spread_j) y_j|, and how near it comes."""
    rng, nearest = np.random.default_rng(0), 0.0
    for _ in range(CASES):
        chain, anchor, radius, ball, _ = random_case(rng, 3)
        builder = BoxBuilder(chain.weights[0], radius)
        for k in range(2):
            builder.pass_layer(ball.anchors[k], chain.slopes[k], chain.weights[k + 1])
        values = chain.evaluate(sample_ball(rng, anchor, radius, 1000))
        for k in range(2):
            y = values[k] - ball.anchors[k]
            lengths = np.linalg.norm(np.sqrt(builder.sectors[k].spread) * y, axis=1)
            assert (lengths <= builder.norms[k] * (1 + 1e-12)).all()
            nearest = max(nearest, float(lengths.max()) / max(builder.norms[k], 1e-300))
    assert nearest > 0.9


def test_functionals_of_the_first_layer_are_above_their_bound():
    """The shared quadratic of the intervals, against sampled points of the ball."""
    rng, shares = np.random.default_rng(0), []
    for _ in range(CASES):
        chain, anchor, radius, ball, _ = random_case(rng, 2)
        builder = BoxBuilder(chain.weights[0], radius)
        box = builder.box
        builder.pass_layer(ball.anchors[0], chain.slopes[0], chain.weights[1])
        rows = rng.normal(size=(3, len(ball.anchors[0])))
        bounds = bound_functionals(
            rows,
            chain.weights[0],
            ball.anchors[0],
            chain.slopes[0],
            box,
            builder.sectors[0],
            radius,
        )
        values = chain.evaluate(sample_ball(rng, anchor, radius, 1000))
        z = values[0]
        t = activate(z, chain.slopes[0]) - activate(ball.anchors[0], chain.slopes[0])
        least = (t @ rows.T).min(0)
        assert (bounds <= least + 1e-12).all()
        shares += list(least / np.minimum(bounds, -1e-300))
    assert np.median(shares) > 0.7  # not by being far below
