"""The judge: whether proofs of all rivals prove that no input in a ball is misclassified."""

import numpy as np

from .ball import Ball
from .inequality import Proof, Region
from .region_bound import bound_gap


def judge_ball(ball: Ball, label: int, proofs: list[Proof]) -> str:
    """Judge proofs, one for each rival in any order, that no input in a ball is misclassified.

    Nothing is taken on trust: every rival needs a proof, the regions of a proof must cover the
    ball, and on each of them the bound must be positive in float64, rounding accounted for. Returns
    "" where the ball is proved; else a sentence that says what is missing. Beyond the papers.
    """
    for functional in list_functionals(label, len(ball.scores)):
        proof = next((p for p in proofs if np.array_equal(p.functional, functional)), None)
        rival = f"Rival {np.argmin(functional)}" if len(functional) > 1 else "The sign"
        if proof is None:
            return f"{rival} has no proof."
        if not covers_ball(ball, [region for region, _ in proof.leaves]):
            return f"{rival}: the regions of its proof do not cover the ball."
        for index, (region, multipliers) in enumerate(proof.leaves):
            lower = bound_gap(ball, functional, region, multipliers)
            if not lower > 0:
                return (
                    f"{rival}: the score gap is not proved to be positive on region {index} of"
                    f" {len(proof.leaves)}; its bound is {lower:.3g}."
                )
    return ""


def list_functionals(label: int, outputs: int) -> list[np.ndarray]:
    """The functionals c of the scores that must be positive for a sample to have its label.

    One for each rival of a class, 1 at the class and -1 at the rival; the sign for one output.
    """
    if outputs == 1:
        return [np.array([float(np.sign(label))])]
    identity = np.eye(outputs)
    return [identity[label] - identity[rival] for rival in range(outputs) if rival != label]


def covers_ball(ball: Ball, regions: list[Region]) -> bool:
    """Whether every point of a ball lies in one of the regions.

    Signs that cannot change in the ball count as given. The others must branch both ways: where all
    regions fix a unit, those with + must cover the half with +, and those with - the other.
    """
    fixed = np.concatenate([np.zeros(0), *(ball.fix_stable(k) for k in range(len(ball.slopes)))])
    if not regions or any(
        len(r.signs) != len(ball.slopes)
        or any(len(s) != len(z) for s, z in zip(r.signs, ball.anchors, strict=True))
        for r in regions
    ):
        return False
    signs = np.stack([np.concatenate([np.zeros(0), *r.signs]) for r in regions])
    return _covers(fixed, signs)


def _covers(fixed: np.ndarray, signs: np.ndarray) -> bool:
    """Whether regions, one row of signs each, cover all points with the fixed signs."""
    while len(signs):
        # Regions that contradict the fixed signs hold no such point but on kinks.
        signs = signs[~((signs * fixed < 0).any(1))]
        open_ = np.where(fixed == 0, signs, 0)
        if (open_ == 0).all(1).any():
            return True
        units = np.flatnonzero((open_ != 0).all(0))
        if not len(units):
            return False
        half = fixed.copy()
        half[units[0]] = 1
        if not _covers(half, signs):
            return False
        fixed = fixed.copy()
        fixed[units[0]] = -1
    return False
