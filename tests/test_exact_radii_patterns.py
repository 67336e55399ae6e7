"""Exact radii against all activation patterns: proofs succeed just inside, and nowhere outside."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import nnls

from netmargin.radii.exact.ball import Ball, compact, enclose
from netmargin.radii.exact.chain import Chain
from netmargin.radii.exact.inequality import Proof, Region
from netmargin.radii.exact.leaf import solve_leaf
from netmargin.radii.exact.proof import list_functionals
from netmargin.radii.exact.region_bound import bound_gap
from netmargin.radii.exact.region_relaxation import Question
from netmargin.radii.exact.tree import search_rival
from tests.chains import are_proofs, make_chain, search_radius
from tests.plain_gap_bound import plain_bound

MOST_REGIONS = 1024
"""Of a tree: at most all 2^9 patterns of nine units and what is above them."""


def draw_net(rng) -> tuple[Chain, np.ndarray, int]:
    """A small net of one or two hidden layers, a sample and its class, or the sign of its score."""
    hidden = [int(rng.integers(3, 10))] if rng.random() < 0.5 else [5, 4]
    widths = [int(rng.integers(2, 5)), *hidden, int(rng.integers(1, 4))]
    pairs = list(itertools.pairwise(widths))
    chain = make_chain(
        [rng.normal(size=(n, m)) for m, n in pairs],
        [0.5 * rng.normal(size=n) for _, n in pairs],
        [float(rng.choice([0, 0, 0.1, -1])) for _ in hidden],
    )
    x = rng.normal(size=widths[0])
    scores = chain.evaluate(x[None])[-1][0]
    return chain, x, int(np.argmax(scores)) if len(scores) > 1 else int(np.sign(scores[0]))


def nearest_point(rows: np.ndarray, least: np.ndarray) -> float:
    """The length of the shortest d with rows d >= least, by Lawson and Hanson 1974, or infinity."""
    lengths = np.linalg.norm(rows, axis=1)
    if (lengths == 0).any():
        if (least[lengths == 0] > 0).any():
            return math.inf
        rows, least, lengths = rows[lengths > 0], least[lengths > 0], lengths[lengths > 0]
    stacked = np.vstack([(rows / lengths[:, None]).T, least / lengths])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    u, _ = nnls(stacked, target)
    rest = stacked @ u - target
    if np.linalg.norm(rest) < 1e-9:
        return math.inf
    return float(np.linalg.norm(rest[:-1] / rest[-1]))


def exact_radius(chain: Chain, x: np.ndarray, label: int) -> float:
    """The distance of the nearest misclassified point, region by region."""
    best = math.inf
    functionals = list_functionals(label, chain.widths[-1])
    counts = chain.widths[1:-1]
    for pattern in itertools.product((1, -1), repeat=sum(counts)):
        signs = np.split(np.array(pattern), np.cumsum(counts)[:-1])
        linear, constant, rows, least = np.eye(len(x)), x, [], []
        for k, sign in enumerate(signs):
            linear = chain.weights[k] @ linear
            constant = chain.weights[k] @ constant + chain.biases[k]
            rows.append(sign[:, None] * linear)
            least.append(-sign * constant)
            slopes = np.where(sign > 0, 1.0, chain.slopes[k])
            linear, constant = slopes[:, None] * linear, slopes * constant
        linear = chain.weights[-1] @ linear
        constant = chain.weights[-1] @ constant + chain.biases[-1]
        for c in functionals:
            ends = [*rows, -(c @ linear)[None]], [*least, np.array([c @ constant])]
            best = min(best, nearest_point(*map(np.concatenate, ends)))
    return best


def find_proofs(chain, x, label, radius) -> tuple[Ball, list[Proof]] | None:
    """Proofs of all rivals, which the judge has accepted; None where one was not found."""
    ball = enclose(compact(chain), x, radius)
    proofs = []
    for functional in list_functionals(label, chain.widths[-1]):
        if functional @ ball.scores <= 0:
            return None
        answer = search_rival(
            Question(ball, functional), lambda _: False, lambda: False, most_regions=MOST_REGIONS
        )
        if answer.proof is None:
            return None
        proofs.append(answer.proof)
    return (ball, proofs) if are_proofs(ball, label, proofs) else None


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=pytest.mark.nightly) if seed == 10 or seed >= 12 else seed
        for seed in range(112)
    ],
)
def test_proofs_succeed_up_to_the_exact_radius_and_not_beyond(seed):
    chain, x, label = draw_net(np.random.default_rng(seed))
    exact = exact_radius(chain, x, label)
    if math.isinf(exact):
        assert find_proofs(chain, x, label, 10.0)
        return
    assert find_proofs(chain, x, label, 0.999 * exact)
    assert not find_proofs(chain, x, label, 1.001 * exact)


@pytest.mark.slow_cases("5", "1")
@pytest.mark.parametrize("seed", [0, 1, 5])
def test_a_region_without_free_units_is_proved_or_holds_a_misclassified_point(seed):
    chain, x, label = draw_net(np.random.default_rng(seed))
    exact, counts = exact_radius(chain, x, label), chain.widths[1:-1]
    for factor in (0.999, 1.001):
        ball, open_ = enclose(compact(chain), x, factor * exact), 0
        for pattern in itertools.product((1, -1), repeat=sum(counts)):
            signs = np.split(np.array(pattern, np.int8), np.cumsum(counts)[:-1])
            for functional in list_functionals(label, chain.widths[-1]):
                multipliers, point = solve_leaf(ball, functional, Region(tuple(signs)))
                if not bound_gap(ball, functional, Region(tuple(signs)), multipliers) > 0:
                    assert np.linalg.norm(point) < ball.radius
                    open_ += 1
        assert (open_ > 0) is (factor > 1)


def test_a_plain_second_version_accepts_every_certificate():
    """All leaves of all rivals of ten nets, at radii near the exact ones."""
    accepted = 0
    for seed in range(200, 210):
        chain, x, label = draw_net(np.random.default_rng(seed))
        for radius in 0.5 * 0.7 ** np.arange(20):
            if found := find_proofs(chain, x, label, radius):
                break
        ball, proofs = found
        for proof in proofs:
            for region, multipliers in proof.leaves:
                clipped = enclosed_region_is_empty(ball, region)
                plain = plain_bound(chain, x, radius, ball, proof.functional, region, multipliers)
                assert plain > 0 or clipped
                accepted += plain > 0
    assert accepted >= 10


def enclosed_region_is_empty(ball: Ball, region) -> bool:
    """Whether a sign is asked for that a unit's interval does not hold."""
    return any(
        ((s > 0) & (high < -z) | (s < 0) & (low > -z)).any()
        for s, z, low, high in zip(region.signs, ball.anchors, ball.low, ball.high, strict=True)
    )


def attack(chain: Chain, x, functional, radius: float, worst, rng) -> float:
    """The smallest gap that projected gradient descent finds, 50 times from near a point."""
    noise = rng.normal(size=(50, len(x))) * radius / math.sqrt(len(x))
    d = worst + rng.uniform(size=(50, 1)) * noise
    least = math.inf
    for step in np.geomspace(0.3, 0.003, 60) * radius:
        d *= np.minimum(1, radius / np.linalg.norm(d, axis=1, keepdims=True))
        values = chain.evaluate(x + d)
        least = min(least, float((values[-1] @ functional).min()))
        slope = np.tile(functional @ chain.weights[-1], (50, 1))
        for k in reversed(range(len(chain.slopes))):
            slope = np.where(values[k] >= 0, slope, chain.slopes[k] * slope) @ chain.weights[k]
        d = d - step * slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-12)
    return least


@pytest.mark.slow
def test_no_attack_from_the_certificates_worst_points_succeeds_below_a_proved_radius():
    rng, ratios = np.random.default_rng(0), []
    for _ in range(4):
        pairs = list(itertools.pairwise((6, 9, 7, 3)))
        chain = make_chain(
            [rng.normal(size=(n, m)) / math.sqrt(m) * 1.5 for m, n in pairs],
            [0.3 * rng.normal(size=n) for _, n in pairs],
            [0.0, float(rng.choice([0, 0.1, -1]))],
        )
        x = rng.normal(size=6)
        label = int(np.argmax(chain.evaluate(x[None])[-1][0]))
        functionals = list_functionals(label, 3)
        upper = next(
            radius
            for radius in np.geomspace(0.01, 100, 60)
            if min(attack(chain, x, c, radius, np.zeros(6), rng) for c in functionals) <= 0
        )
        search = search_radius(chain, x, label, upper)
        proved = search.run(tol=0.01, exact=False, time_limit=None)
        assert 0 < proved.lower <= proved.upper
        ball = enclose(compact(chain), x, proved.lower)
        for functional in functionals:
            question = Question(ball, functional)
            root = search_rival(question, lambda _: False, lambda: False, most_regions=1).root
            # There are no more inputs than units: the coordinates of the ball are those of inputs.
            assert attack(chain, x, functional, proved.lower, root.point, rng) > 0
        ratios.append(proved.lower / proved.upper)
    assert np.median(ratios) > 0.7  # the radii are large, and the attack is worth its name
