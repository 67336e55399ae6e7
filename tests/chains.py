"""Chains of given arrays, for tests of exact radii."""

import math

import numpy as np

from netmargin.radii.exact.ball import Ball, compact
from netmargin.radii.exact.chain import Chain
from netmargin.radii.exact.inequality import Proof
from netmargin.radii.exact.proof import covers_ball, list_functionals
from netmargin.radii.exact.radius import RadiusSearch
from netmargin.radii.exact.region_bound import bound_gap
from netmargin.radii.lipschitz import chain_norms, multiply_norms
from netmargin.radii.traced_layers import trace_layers


def score_lipschitz(net, x):
    """What certified radii take for the Lipschitz constants of the score gaps, (C, C)."""
    return multiply_norms(*chain_norms([named.layer for named in trace_layers(net, x)], x))


def make_chain(weights, biases, slopes) -> Chain:
    """Make a chain of the arrays of its layers, which are taken as exact.

    slopes : of each hidden layer one, or one for each unit.
    """
    weights = tuple(np.array(weight, dtype=np.float64) for weight in weights)
    biases = tuple(np.array(bias, dtype=np.float64) for bias in biases)
    return Chain(
        weights,
        biases,
        tuple(np.full(len(b), s, np.float64) for b, s in zip(biases, slopes, strict=False)),
        tuple(np.zeros_like(weight) for weight in weights),
        tuple(np.zeros_like(bias) for bias in biases),
    )


def search_radius(chain: Chain, x: np.ndarray, label: int, upper: float = math.inf) -> RadiusSearch:
    """The search of the radius of a sample, which calls wrong what the chain does for certain."""

    def judge(point: np.ndarray) -> float:
        values = chain.evaluate(point[None])
        # Twice, for the rounding of the functional itself.
        errors = 2 * chain.bound_errors(point[None], values)[0]
        gaps = [c @ values[-1][0] + abs(c) @ errors for c in list_functionals(label, len(errors))]
        return float(np.linalg.norm(point - x)) if min(gaps) <= 0 else math.inf

    return RadiusSearch(compact(chain), x, label, upper, judge)


def is_closed(proved, tol: float) -> bool:
    """Whether a radius is known up to a relative gap."""
    return proved.lower >= (1 - tol) * proved.upper


def are_proofs(ball: Ball, label: int, proofs: list[Proof]) -> bool:
    """Whether proofs, one for each rival, prove that no input in a ball is misclassified."""
    for functional in list_functionals(label, len(ball.scores)):
        leaves = [p.leaves for p in proofs if np.array_equal(p.functional, functional)]
        if not leaves or not covers_ball(ball, [region for region, _ in leaves[0]]):
            return False
        if not all(bound_gap(ball, functional, *leaf) > 0 for leaf in leaves[0]):
            return False
    return True
