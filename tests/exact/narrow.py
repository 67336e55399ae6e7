"""The judge of two-layer ReLU nets of one or two neurons on samples in a plane."""

import itertools
from fractions import Fraction

import numpy as np

from netmargin import Status
from netmargin.papers import wei_2018

from . import spite
from .arrangement import circle, combine, dot
from .neurons import LIMIT, evaluate, inputs_of, signs_of
from .rational import power_of_two, separate, whole
from .verdict import Entry, Verdict


def draw(rng: np.random.Generator) -> dict:
    """Up to 4 samples; of one label for one neuron, which separates no others."""
    bias, width = bool(rng.random() < 0.3), int(rng.integers(1, 3))
    X, y = spite.samples(rng, 4, (1,) if bias else (1, 2, 2))
    return {"X": X, "y": y if width == 2 else abs(y), "bias": bias, "width": width}


def separates(Z: np.ndarray, signs: np.ndarray, width: int) -> bool:
    """Whether some net of that width, its neurons inside their cells, is positive on all rows."""
    rows = [[*z, 0][:2] for z in Z.tolist()]
    cells = [[dot(ray, z) for z in rows] for ray in circle(rows)[1]]
    choices = [(cell, sign) for cell in cells for sign in (1, -1)]
    for chosen in itertools.combinations(choices, min(width, len(choices))):
        outputs = [
            [y * sign * (cell[n] > 0) * part for cell, sign in chosen for part in z]
            for n, (z, y) in enumerate(zip(rows, signs, strict=True))
        ]
        walls = [
            [(1 if value > 0 else -1) * (k == j) * part for k in range(len(chosen)) for part in z]
            for j, (cell, _) in enumerate(chosen)
            for z, value in zip(rows, cell, strict=True)
            if any(z)
        ]
        if all(map(any, outputs)) and separate(np.array(outputs + walls, object))[0] is not None:
            return True
    return False


def square_of_hull(Z: np.ndarray) -> Fraction:
    """The squared distance from 0 of the hull of samples in a plane, if it does not hold 0."""
    rows = Z.tolist()
    best = min(Fraction(dot(z, z)) for z in rows)
    for a, b in itertools.combinations(rows, 2):
        along = combine([1, -1], [b, a])
        if dot(a, along) < 0 < dot(b, along):
            best = min(best, dot(a, a) - Fraction(dot(a, along) ** 2, dot(along, along)))
    return best


def judge(call: dict) -> Verdict:
    """Every statement of `narrow_max_margin`.

    Attained: the least y f over the mass is at least `margin`, and neurons are as few as asked for.
    Proved: the bound is not below what is attained, nor, for one neuron, half the distance of the
    hull. NOT_SEPARABLE: no choice of patterns and signs separates.
    """
    found = wei_2018.narrow_max_margin(**call, time_limit=LIMIT)
    verdict, Z, signs = Verdict(found.status.name, found.certified), inputs_of(call), signs_of(call)
    verdict.check_closed(found)
    verdict.blame(len(found.weights) > call["width"], f"{len(found.weights)} neurons")
    if found.margin > 0:
        values, mass = evaluate(found, Z)
        verdict.check_attained(found.margin, min(signs * values), mass**2)
        verdict.check_proved(found.upper_bound, (min(signs * values) / mass) ** 2)
    rows, unit = whole(Z)
    if found.status is Status.NOT_SEPARABLE:
        verdict.blame(separates(rows, signs, call["width"]), "not separable, but a net separates")
    elif call["width"] == 1 and len(set(signs)) == 1 and separate(rows)[0] is not None:
        square = square_of_hull(rows) * power_of_two(2 * unit)
        verdict.check_proved(found.upper_bound, square / 4)
    return verdict


ENTRIES = [Entry("narrow", draw, judge, 1.0)]
