"""Judges of linear margins, hard and in both norms."""

from fractions import Fraction

import numpy as np

from netmargin import Status, solvers

from . import spite
from .rational import float_separator, power_of_two, whole
from .verdict import Entry, Verdict


def draw(norm: str, rng: np.random.Generator) -> dict:
    """Up to 12 samples in up to 4 dimensions, rarely more."""
    most = 40 if rng.random() < 0.05 else 12
    X, y = spite.samples(rng, most, (1, 2, 2, 3, 4))
    return {"X": X, "y": y, "norm": norm, "bias": bool(rng.random() < 0.4)}


def judge(call: dict) -> Verdict:
    """Every statement of `linear_max_margin`.

    Attained: some multiple of norm 1 of the weights has at least `margin` on every sample.
    Proved: the dual norm of sum p y x / sum p is at most `upper_bound`; or 0 is the largest margin.
    NOT_SEPARABLE: no weights in float64 separate the samples.
    """
    found = solvers.linear_max_margin(**call)
    verdict = Verdict(found.status.name, found.certified)
    verdict.check_closed(found)
    Z = np.hstack([call["X"], np.ones((len(call["y"]), 1))]) if call["bias"] else call["X"]
    signs = np.array([int(label) for label in call["y"]], dtype=object)
    (Z, unit), (w, _), (p, _) = whole(Z), whole(found.weights), whole(found.dual)
    rows = signs[:, None] * Z
    unit = power_of_two(unit)
    verdict.blame(min(p) < 0 or sum(p) == 0, "dual weights are negative, or all 0")
    size = sum(w * w) if call["norm"] == "l2" else sum(abs(w)) ** 2
    # The weights are 0 where nothing is separated: a margin of 0, which every function attains.
    verdict.check_attained(found.margin, Fraction(min(rows @ w)) * unit, Fraction(size))
    separator = float_separator(rows) if found.status is Status.NOT_SEPARABLE else None
    hull = p @ rows
    size = sum(hull * hull) if call["norm"] == "l2" else max(abs(hull)) ** 2
    if found.status is not Status.NOT_SEPARABLE or separator is not None:
        verdict.check_proved(found.upper_bound, Fraction(size) * (unit / (sum(p) or 1)) ** 2)
    if separator is not None:
        verdict.blame(True, f"not separable, but {separator.tolist()} separates")
    return verdict


ENTRIES = [
    Entry(f"linear_{norm}", lambda rng, norm=norm: draw(norm, rng), judge, 20.0)
    for norm in ("l1", "l2")
]
