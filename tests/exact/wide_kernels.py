"""Judges of functions in the spaces of the two-layer kernels, which have 90 digits here."""

from fractions import Fraction

import mpmath
import numpy as np

from netmargin import Status, solvers

from . import spite
from .arrangement import dot, nets_separate
from .neurons import (
    check_attainable,
    check_steepest,
    draw_values,
    inputs_of,
    rational,
    real,
    signs_of,
    steepest,
)
from .rational import exact, root, shown, whole
from .verdict import Entry, Verdict

DIGITS = 90
"""Two inputs one last digit apart have features 1e-16 apart, and squares of these are 1e-32."""


def kernel(Z: np.ndarray, first: float, second: float) -> mpmath.matrix:
    """|a| |b| (first (sin t + (pi - t) cos t) / D + second (pi - t) cos t) / 2 pi of all rows, with
    t the angle of two: its cosine and sine from whole numbers, which lose nothing.
    """
    rows, exponent = whole(Z)
    rows, D = rows.tolist(), Z.shape[1]
    unit = mpmath.mpf(2) ** (2 * exponent)
    K = mpmath.matrix(len(rows))
    for i, a in enumerate(rows):
        for j, b in enumerate(rows[: i + 1]):
            inner = dot(a, b)
            sine = mpmath.sqrt(dot(a, a) * dot(b, b) - inner**2)  # times both lengths, as all here
            angle = mpmath.pi - mpmath.atan2(sine, inner) if any(a) and any(b) else mpmath.pi / 2
            value = (
                mpmath.mpf(first) * (sine + angle * inner) / D + mpmath.mpf(second) * angle * inner
            )
            K[i, j] = K[j, i] = value * unit / (2 * mpmath.pi)
    return K


def quadratic(K: mpmath.matrix, c: mpmath.matrix) -> mpmath.mpf:
    """c' K c."""
    return (c.T * K * c)[0]


def draw_f2(rng: np.random.Generator) -> dict:
    """Up to 6 samples in up to 3 dimensions."""
    X, y = spite.samples(rng, 6, (1, 2, 3))
    if len(X) > 1 and X.shape[1] > 1 and rng.random() < 0.15:  # small angles, opposite labels
        t = 10 ** rng.uniform(-4, -1)
        X[1], y[1] = X[0], -y[0]
        turn = [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]
        X[1, :2] = turn @ X[0, :2]
    return {"X": X, "y": y, "bias": bool(rng.random() < 0.5)}


def draw_ntk(rng: np.random.Generator) -> dict:
    """Scales of both layers besides."""
    return draw_f2(rng) | dict(
        zip(("r_w", "r_u"), rng.choice([0.5, 1.0, 3.0], 2).tolist(), strict=True)
    )


def judge_hard(call: dict) -> Verdict:
    """Every statement of `f2_max_margin` and `ntk_max_margin`, as of `kernel_max_margin`, of the
    kernel itself, not of its values in float64. NOT_SEPARABLE: no net of any width separates.
    """
    solve = solvers.ntk_max_margin if "r_w" in call else solvers.f2_max_margin
    found = solve(**call)
    verdict, Z = Verdict(found.status.name, found.certified), inputs_of(call)
    verdict.check_closed(found)
    with mpmath.workdps(DIGITS):
        K = kernel(Z, call.get("r_u", 1.0) ** 2, call.get("r_w", 0.0) ** 2)
        (c, c_unit), (p, _) = whole(found.coefficients), whole(found.dual * call["y"])
        f = mpmath.matrix([mpmath.mpf(part) * mpmath.mpf(2) ** c_unit for part in c])
        outputs = K * f
        least = min(
            label * output for label, output in zip(call["y"].tolist(), outputs, strict=True)
        )
        verdict.check_attained(found.margin, rational(least), rational(quadratic(K, f)))
        refuted = found.status is Status.NOT_SEPARABLE
        separable = refuted and nets_separate(whole(Z)[0], signs_of(call))
        if not refuted or separable:
            square = quadratic(
                K, mpmath.matrix([real(Fraction(part, sum(abs(p)) or 1)) for part in p])
            )
            verdict.check_proved(found.upper_bound, rational(square))
        verdict.blame(separable, "not separable, but a net separates")
    return verdict


def judge_least_norm(call: dict) -> Verdict:
    """Every statement of `min_norm_interpolation` in F_2, as in the variation norm.

    The function has at most `norm`, and errors of at most `residual`, to 1e-9 of the values; dual .
    y / |dual| is at least `lower_bound`. A certified norm is that of a function which takes the
    values exactly, sqrt(y' K^-1 y), to the tolerance; where K is singular, it is at least that of
    `steepest`, as the norm in F_2 is at least the variation norm.
    """
    found = solvers.min_norm_interpolation(**call, norm="l2")
    verdict, Z = Verdict(found.status.name, found.certified), inputs_of(call)
    verdict.check_closed(found)
    check_attainable(verdict, found, Z, call["y"])
    if found.status is Status.NOT_ATTAINABLE:
        return verdict
    with mpmath.workdps(DIGITS):
        K = kernel(Z, 1.0, 0.0)
        c, dual = (
            mpmath.matrix([real(part) for part in exact(parts)])
            for parts in (found.coefficients, found.dual)
        )
        verdict.check_lower(
            found.lower_bound,
            sum(exact(found.dual) * exact(call["y"])),
            rational(quadratic(K, dual)),
        )
        if found.norm < np.inf:
            square, values = rational(quadratic(K, c)), [rational(value) for value in K * c]
            verdict.check_objective(found.norm, root(square))
            verdict.check_residual(found.residual, values, exact(call["y"]))
    check_steepest(verdict, found, steepest(Z, call["y"]))
    if found.certified and (least := _least_norm(Z, call["y"])) is not None:
        verdict.blame(
            least > found.norm * (1 + 2 * mpmath.mpf(10) ** -6),
            f"norm {found.norm!r}, but the least is {shown(rational(least))}",
        )
    return verdict


def _least_norm(Z: np.ndarray, y: np.ndarray) -> mpmath.mpf | None:
    """sqrt(y' K^-1 y), where more digits give the same; None for kernels that are singular."""
    found = []
    for digits in (DIGITS, 2 * DIGITS):
        with mpmath.workdps(digits):
            values = mpmath.matrix([mpmath.mpf(value) for value in y.tolist()])
            try:
                found.append((values.T * mpmath.lu_solve(kernel(Z, 1.0, 0.0), values))[0])
            except (ZeroDivisionError, TypeError):  # mpmath finds no pivot
                return None
    same = abs(found[0] - found[1]) <= mpmath.mpf(10) ** -9 * abs(found[1])
    return mpmath.sqrt(found[1]) if same and found[1] > 0 else None


ENTRIES = [
    Entry("f2", draw_f2, judge_hard, 8.0),
    Entry("ntk", draw_ntk, judge_hard, 8.0),
    Entry("least_norm_l2", draw_values, judge_least_norm, 6.0),
]
