"""The rounds of a search for an exact radius: their radii, their order, where each begins."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.linalg import eigh
from torch import nn

import netmargin as nm
from netmargin.radii.exact import newton_system, node_search, radius
from netmargin.radii.exact.ball import compact, enclose
from netmargin.radii.exact.chain import Chain
from netmargin.radii.exact.newton_system import _find_step
from netmargin.radii.exact.proof import list_functionals
from netmargin.radii.exact.region_relaxation import Question
from netmargin.radii.exact.tree import search_rival
from tests.chains import is_closed, make_chain, search_radius
from tests.test_exact_radii_patterns import draw_net, exact_radius

HARD = {5: 1.4795, 7: 0.8428}
"""Seeds of nets whose regions inherit multipliers that leave rounding no room, and exact radii."""


def draw_deep_net(seed: int) -> tuple[Chain, np.ndarray, int]:
    """A net 6-10-8-3, a sample and its class."""
    rng = np.random.default_rng(seed)
    pairs = list(itertools.pairwise((6, 10, 8, 3)))
    chain = make_chain(
        [rng.normal(size=(n, m)) / math.sqrt(m) * 1.5 for m, n in pairs],
        [0.3 * rng.normal(size=n) for _, n in pairs],
        [0.0, 0.0],
    )
    x = rng.normal(size=6)
    return chain, x, int(np.argmax(chain.evaluate(x[None])[-1][0]))


def test_multipliers_without_room_begin_farther_out(monkeypatch):
    """Without a search in regions that inherit too little room these trees have 400 and more."""
    monkeypatch.setattr(node_search, "_INHERITED_NU", 1e-3)
    regions = 0
    for seed, share in ((5, 0.95), (7, 0.99)):
        chain, x, label = draw_deep_net(seed)
        ball = enclose(compact(chain), x, share * HARD[seed])
        for functional in list_functionals(label, 3):
            answer = search_rival(
                Question(ball, functional), lambda _: False, lambda: False, most_regions=150
            )
            assert answer.proof is not None
            regions += 2 * len(answer.proof.leaves) - 1
    assert regions < 150


def test_balls_begin_with_no_multipliers_of_smaller_ones(monkeypatch):
    """They are too near the boundary of what is allowed in a larger one."""
    # A sign that never changes: the radius grows, and whole balls soon need trees.
    chain, x, label = draw_net(np.random.default_rng([60, 7]))
    search = search_radius(chain, x, label)
    original, roots, grown = radius.search_rival, [], 0

    def watched(question, *arguments, larger=None, root=None, **options):
        nonlocal grown
        answer = original(question, *arguments, larger=larger, root=root, **options)
        if root is None:
            size = question.ball.radius
            for known, smaller in roots:
                assert larger is not smaller or known > size
                grown += known < size
            roots.append((size, answer.root))
        return answer

    monkeypatch.setattr(radius, "_LARGEST_GUESS", 50.0)
    monkeypatch.setattr(radius, "search_rival", watched)
    search.run(tol=1e-2, exact=True, time_limit=None)
    assert len(search.roots) == 1  # the last whole ball was not proved
    assert grown > 0


def test_whole_balls_of_all_rivals_come_before_any_tree(monkeypatch):
    """So that a time limit leaves a bound for every rival."""
    chain, x, label = draw_deep_net(7)
    search, trees = search_radius(chain, x, label, HARD[7]), []
    original = radius.search_rival

    def watched(*arguments, root=None, **options):
        if root is not None:
            trees.append(search.lower)
        return original(*arguments, root=root, **options)

    monkeypatch.setattr(radius, "search_rival", watched)
    proved = search.run(tol=1e-3, exact=True, time_limit=None)
    assert is_closed(proved, 1e-3)
    assert len(trees) > 0
    assert min(trees) > 0.5 * proved.lower


@pytest.mark.slow
def test_a_descent_from_a_poor_attack_takes_few_rounds(monkeypatch):
    """Each round may find an input that is nearer by the tolerance only."""
    chain, x, label = draw_net(np.random.default_rng([3, 8]))
    truth, radii = exact_radius(chain, x, label), []
    original = radius.enclose

    def watched(compacted, anchor, size):
        radii.append(size)
        return original(compacted, anchor, size)

    monkeypatch.setattr(radius, "enclose", watched)
    search = search_radius(chain, x, label, 1.2 * truth)
    # Bounds of whole balls would be most of the radii.
    monkeypatch.setattr(search, "_shrink", lambda *_: None)
    proved = search.run(tol=3e-3, exact=True, time_limit=None)
    assert is_closed(proved, 3e-3)
    assert len(radii) < 40  # 0.3% a round takes sixty


@pytest.mark.slow_cases("widths2-1e-08", "widths3-1e-08", "widths3-100")
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("widths", [(2, 3), (5, 1), (4, 6, 3), (2, 3, 3, 2)])
def test_radii_close_without_an_attack_in_any_unit_of_the_inputs(widths, scale):
    """The boundary touches the first ball wherever the nearest region is the sample's own."""
    torch.manual_seed(1)
    layers = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    net = nn.Sequential(*layers[:-1]).double().requires_grad_(False)
    net[0].weight /= scale
    X = scale * torch.randn(2, widths[0], dtype=torch.float64)
    scores = net(X)
    y = scores.argmax(1) if widths[-1] > 1 else scores[:, 0].sign()
    report = nm.robustness(net, (X, y), attacks=False, effort="exact", progress=False)
    assert report.closed.all()
    assert (report.upper < 1e3 * scale).all()


def test_a_sample_where_the_net_is_flat_has_a_radius_in_any_unit():
    """All units are off at the sample: the boundary of f = 1 - relu(x - 3 s) is at x = 4 s."""
    for scale in (1e-8, 1.0, 1e8):
        chain = make_chain(
            [np.array([[1.0 / scale]]), np.array([[-1.0]])], [-3 * np.ones(1), np.ones(1)], [0.0]
        )
        found = search_radius(chain, np.zeros(1), 1)
        proved = found.run(tol=1e-3, exact=True, time_limit=None)
        assert is_closed(proved, 1e-3)
        assert proved.lower <= 4 * scale <= proved.upper * (1 + 1e-9)


@pytest.mark.slow  # bounds alone in the quick run: `test_the_size_of_the_parameters_changes_no_bound`
@pytest.mark.nightly_cases("1000.0")
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_size_of_the_parameters_moves_no_radius(scale):
    """Layer k times the scale has biases times its k-th power: all scores times one number."""
    chain, x, label = draw_deep_net(1)
    scaled = make_chain(
        [scale * weight for weight in chain.weights],
        [scale ** (k + 1) * bias for k, bias in enumerate(chain.biases)],
        chain.slopes,
    )
    own, other = (
        search_radius(net, x, label, 0.18).run(tol=1e-3, exact=True, time_limit=None)
        for net in (chain, scaled)
    )
    assert is_closed(own, 1e-3)
    assert is_closed(other, 1e-3)
    assert (other.lower, other.upper) == pytest.approx((own.lower, own.upper), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_radii_that_no_float_can_square_are_not_tried(scale):
    chain = make_chain([np.array([[1.0, 2.0]]) / scale, np.ones((1, 1))], [np.zeros(1)] * 2, [0.1])
    x = np.array([scale, 0.0])
    proved = search_radius(chain, x, 1).run(tol=0.1, exact=True, time_limit=None)
    assert proved.lower == 0
    assert proved.upper > 0


@pytest.mark.parametrize("size", [1, 3, 40])
@pytest.mark.parametrize("end", [0.02, 0.5, 3.0])
def test_steps_end_where_what_is_positive_ends(size, end):
    """Of matrices a fifth before it at most, of numbers there."""
    rng = np.random.default_rng(size)
    half, change = rng.normal(size=(2, size, size))
    matrix, change = half @ half.T + np.eye(size), -np.eye(size) - change @ change.T
    change *= -1 / (end * eigh(change, matrix, eigvals_only=True)[0])
    full = 1 / newton_system._STEP
    least = min(end, full)
    assert 0.8 * least < _find_step(matrix, change, 0.0) <= least
    assert _find_step(matrix, 0 * change, 1.0, -1 / end) == pytest.approx(least)


def test_a_radius_is_that_of_the_rival_with_the_smallest_proof():
    chain, x, label = draw_deep_net(0)
    search = search_radius(chain, x, label, 0.3)
    search.run(tol=1e-2, exact=False, time_limit=None)
    first, last = search.proofs
    search.proofs[first] = (0.1, *search.proofs[first][1:])
    assert search.lower == 0.1
    del search.proofs[last]
    assert search.lower == 0
