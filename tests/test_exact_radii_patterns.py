"""Exact radii against all activation patterns: proofs succeed just inside, and nowhere outside."""

import itertools
import math

import numpy as np
import pytest
from netmargin.l2_robustness.exact.node_search import Finding, search_region
from netmargin.l2_robustness.exact.relaxation import Question
from netmargin.l2_robustness.exact.tree import search_rival
from scipy.optimize import nnls

from netmargin.l2_robustness.exact.ball import compact, enclose
from netmargin.l2_robustness.exact.chain import Chain, make_chain
from netmargin.l2_robustness.exact.multipliers import Multipliers, Proof, Region
from netmargin.l2_robustness.exact.node_bound import bound_gap
from netmargin.l2_robustness.exact.proof import judge_ball, list_functionals

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
    """The length of the shortest d with rows d >= least; infinite if there is none.

    Source: Lawson and Hanson 1974, least distance programming.
    """
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


def prove_ball(chain, x, label, radius) -> bool:
    """Whether the judge accepts what the search finds."""
    ball = enclose(compact(chain), x, radius)
    proofs = []
    for functional in list_functionals(label, chain.widths[-1]):
        if functional @ ball.scores <= 0:
            return False
        answer = search_rival(
            Question(ball, functional), lambda _: False, lambda: False, most_regions=MOST_REGIONS
        )
        if answer.proof is None:
            return False
        proofs.append(answer.proof)
    return judge_ball(ball, label, proofs) == ""


def check_net(seed: int) -> None:
    chain, x, label = draw_net(np.random.default_rng(seed))
    exact = exact_radius(chain, x, label)
    if math.isinf(exact):
        assert prove_ball(chain, x, label, 10.0)
        return
    assert prove_ball(chain, x, label, 0.999 * exact)
    assert not prove_ball(chain, x, label, 1.001 * exact)


@pytest.mark.parametrize("seed", range(12))
def test_proofs_succeed_up_to_the_exact_radius_and_not_beyond(seed):
    check_net(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 112))
def test_proofs_succeed_up_to_the_exact_radius_of_a_hundred_nets(seed):
    check_net(seed)
