"""Judges of margins in the space of a given kernel matrix, hard and soft."""

import math
from fractions import Fraction

import numpy as np

from netmargin import Status, solvers

from . import spite
from .rational import SLACK, exact, float_separator, power_of_two, whole
from .verdict import Entry, Verdict


def draw_gram(rng: np.random.Generator) -> dict:
    """The Gram matrix of up to 8 samples; in half of all cases exact, of 20 digits a sample."""
    few_digits = bool(rng.random() < 0.5)
    X, y = spite.samples(rng, 8, (1, 2, 3, 5))
    X = np.clip(X, -1e150, 1e150)
    if few_digits:
        _, exponents = np.frexp(np.abs(X).max(1, keepdims=True))
        X = np.ldexp(np.round(np.ldexp(X, 20 - exponents)), np.maximum(exponents, -480) - 20)
    with np.errstate(under="ignore"):
        K = X @ X.T
    return {"K": (K + K.T) / 2, "y": y, "features": X if few_digits else None}


def _signed(call: dict) -> tuple[np.ndarray, Fraction]:
    """The matrix y y' K in whole numbers, and their unit."""
    K, unit = whole(call["K"])
    signs = np.array([int(label) for label in call["y"]], dtype=object)
    return signs[:, None] * K * signs, power_of_two(unit)


def judge_hard(call: dict) -> Verdict:
    """Every statement of `kernel_max_margin`.

    Attained: f / ||f|| has at least `margin` on every sample. Proved: p' (yy' * K) p / (sum p)^2 is
    at most the square of `upper_bound`. NOT_SEPARABLE: no coefficients in float64 separate the
    samples, or p' (yy' * K) p is at most 2^-52 (sum_n p_n K_nn^(1/2))^2, as roundings of K may make
    of 0; this is asked of matrices without rounding only, as others need not be kernels.
    """
    found = solvers.kernel_max_margin(call["K"], call["y"])
    verdict = Verdict(found.status.name, found.certified)
    verdict.check_closed(found)
    Q, unit = _signed(call)
    (a, _), (p, _) = whole(found.coefficients * call["y"]), whole(found.dual)
    verdict.blame(min(p) < 0 or sum(p) == 0, "dual weights are negative, or all 0")
    verdict.check_attained(found.margin, Fraction(min(Q @ a)) * unit, Fraction(a @ Q @ a) * unit)
    refuted = found.status is Status.NOT_SEPARABLE
    lengths = sum(
        weight * math.isqrt(int(square)) for weight, square in zip(p, np.diag(Q), strict=True)
    )
    refuted_as_rounded = refuted and 2**52 * (p @ Q @ p) <= lengths**2
    separator = float_separator(Q) if refuted and call["features"] is not None else None
    separator = None if refuted_as_rounded else separator
    if not refuted or separator is not None:
        verdict.check_proved(found.upper_bound, Fraction(p @ Q @ p) * unit / (sum(p) or 1) ** 2)
    if separator is not None:
        verdict.blame(True, f"not separable, but y * {separator.tolist()} separates")
    return verdict


def draw_soft(rng: np.random.Generator) -> dict:
    """A kernel with a cost C that matters, and weights of samples now and then."""
    call = draw_gram(rng)
    size = float(np.diag(call["K"]).mean()) or 1.0
    with np.errstate(over="ignore", under="ignore"):
        C = float(np.clip(10 ** rng.uniform(-3, 4) / size, 1e-290, 1e290))
    weights = 10 ** rng.uniform(-2, 2, len(call["y"])) if rng.random() < 0.2 else None
    return call | {"C": C, "sample_weight": weights}


def judge_soft(call: dict) -> Verdict:
    """Every statement of `kernel_soft_margin`: f has at most `objective`; the weights are within
    their caps, and sum p - p' (yy' * K) p / 2 is at least `lower_bound`.
    """
    found = solvers.kernel_soft_margin(
        call["K"], call["y"], C=call["C"], sample_weight=call["sample_weight"]
    )
    verdict = Verdict(found.status.name, found.certified)
    verdict.check_closed(found)
    Q, unit = _signed(call)
    (a, a_unit), p = whole(found.coefficients * call["y"]), exact(found.dual)
    a_unit = power_of_two(a_unit)
    costs = exact(np.ones(len(p)) if call["sample_weight"] is None else call["sample_weight"])
    caps = costs * Fraction(call["C"])
    hinges = [max(1 - Fraction(value) * unit * a_unit, Fraction(0)) for value in Q @ a]
    attained = Fraction(a @ Q @ a) * unit * a_unit**2 / 2 + sum(caps * np.array(hinges))
    verdict.check_objective(found.objective, attained)
    within = all(0 <= weight <= cap * (1 + SLACK) for weight, cap in zip(p, caps, strict=True))
    verdict.blame(not within, "dual weights leave [0, C]")
    p = np.minimum(p, caps)
    whole_p, p_unit = whole(np.array([float(weight) for weight in p]))
    proved = sum(p) - Fraction(whole_p @ Q @ whole_p) * unit * power_of_two(p_unit) ** 2 / 2
    verdict.check_lower(found.lower_bound, proved)
    return verdict


ENTRIES = [
    Entry("kernel", draw_gram, judge_hard, 20.0),
    Entry("kernel_soft", draw_soft, judge_soft, 15.0),
]
