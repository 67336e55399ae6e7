"""Judges of two-layer ReLU nets of any width: margins, soft margins, losses and least norms."""

import itertools
from fractions import Fraction

import mpmath
import numpy as np

from netmargin import Status, solvers

from . import spite
from .arrangement import largest_response, nets_attain, nets_separate, response_of_squares
from .rational import SLACK, exact, exceeds, power_of_two, root, shown, whole
from .verdict import TOLERANCE, Entry, Verdict

LIMIT = 5.0
"""Seconds of a solver, so that one instance does not take the time of a thousand."""


def draw(rng: np.random.Generator) -> dict:
    """Up to 6 samples whose neurons have at most 3 weights, to be visited all; at times more."""
    bias, high = bool(rng.random() < 0.5), rng.random() < 0.15
    X, y = spite.samples(
        rng, 4 if high else 6, (4, 5) if high else (1, 2) if bias else (1, 2, 2, 3)
    )
    return {"X": X, "y": y, "bias": bias}


def draw_power(rng: np.random.Generator, call: dict) -> dict:
    """The call, with squared ReLUs now and then."""
    return call | {"power": 2} if rng.random() < 0.15 else call


def inputs_of(call: dict) -> np.ndarray:
    """The inputs with their bias."""
    X = call["X"]
    return np.hstack([X, np.ones((len(X), 1))]) if call["bias"] else X


def evaluate(found, Z: np.ndarray) -> tuple[np.ndarray, Fraction]:
    """The values of a measure of neurons on inputs, as fractions, and its mass ||theta||^2."""
    if not len(found.weights):
        return np.array([Fraction(0)] * len(Z), dtype=object), Fraction(0)
    (rows, z_unit), (a, a_unit), (w, w_unit) = whole(Z), whole(found.atoms), whole(found.weights)
    power = found.power
    values = np.maximum(rows @ a[:, :-1].T, 0) ** power @ (w * a[:, -1])
    unit = power_of_two(power * (z_unit + a_unit) + a_unit + w_unit)
    norms = (a * a).sum(1) if power == 1 else (a[:, :-1] ** 2).sum(1)
    mass = sum(w * norms) * power_of_two(2 * a_unit + w_unit)
    return np.array([Fraction(value) * unit for value in values], dtype=object), Fraction(mass)


def response(Z: np.ndarray, c: np.ndarray, power: int = 1) -> Fraction:
    """The square of the largest response of a unit neuron to weights c, both in float64."""
    if power == 2:
        return response_of_squares(Z, c) ** 2
    (rows, z_unit), (c, c_unit) = whole(Z), whole(c)
    return largest_response(rows, c) * power_of_two(2 * (z_unit + c_unit))


def signs_of(call: dict) -> np.ndarray:
    """The labels as whole numbers."""
    return np.array([int(label) for label in call["y"]], dtype=object)


def judge_hard(call: dict) -> Verdict:
    """Every statement of `f1_max_margin`.

    Attained: the least y f over the mass is at least `margin`. Proved: no neuron has a response
    above 2 upper_bound to the weights y p / sum p. NOT_SEPARABLE: no net of any width separates.
    Responses of squared ReLUs are those at eigenvectors found in float64, evaluated exactly.
    """
    found = solvers.f1_max_margin(**call, time_limit=LIMIT)
    verdict, Z = Verdict(found.status.name, found.certified), inputs_of(call)
    verdict.check_closed(found)
    if found.margin > 0:
        values, mass = evaluate(found, Z)
        verdict.check_attained(found.margin, min(signs_of(call) * values), mass**2)
    verdict.blame(min(found.dual) < 0 or not any(found.dual), "dual weights negative, or all 0")
    refuted = found.status is Status.NOT_SEPARABLE
    separable = refuted and nets_separate(whole(Z)[0], signs_of(call), found.power)
    if not refuted or separable:
        square = response(Z, found.dual * call["y"], found.power) / sum(exact(found.dual)) ** 2
        verdict.check_proved(found.upper_bound, square / 4 if found.power == 1 else square)
    verdict.blame(separable, "not separable, but a net separates")
    return verdict


def draw_soft(rng: np.random.Generator) -> dict:
    """With a cost that matters."""
    call = draw(rng)
    size = max(float(np.abs(inputs_of(call)).max()), 1e-290)
    return call | {"C": float(np.clip(10 ** rng.uniform(-2, 3) / size, 1e-290, 1e290))}


def judge_soft(call: dict) -> Verdict:
    """Every statement of `f1_soft_margin`: the measure has at most `objective`, half its mass plus
    C times its hinge losses; the weights are at most C, and sum p over the largest response, if
    that is above 1, is at least `lower_bound`.
    """
    found = solvers.f1_soft_margin(**call, time_limit=LIMIT)
    verdict, Z = Verdict(found.status.name, found.certified), inputs_of(call)
    verdict.check_closed(found)
    values, mass = evaluate(found, Z)
    hinges = [max(1 - value, Fraction(0)) for value in signs_of(call) * values]
    verdict.check_objective(found.objective, mass / 2 + Fraction(call["C"]) * sum(hinges))
    p = exact(found.dual)
    verdict.blame(min(p) < 0 or max(p) > Fraction(call["C"]) * (1 + SLACK), "weights leave [0, C]")
    square = max(response(Z, found.dual * call["y"]), Fraction(1))
    verdict.check_lower(found.lower_bound, sum(p), square)
    return verdict


def draw_logistic(rng: np.random.Generator) -> dict:
    """With a price of the norm that matters."""
    call = draw(rng)
    size = max(float(np.abs(inputs_of(call)).max()), 1e-290)
    call = draw_power(rng, call)
    return call | {"regularization": float(np.clip(size * 10 ** rng.uniform(-5, 0), 1e-290, 1e290))}


def judge_logistic(call: dict) -> Verdict:
    """Every statement of `f1_logistic`: the measure has at most `objective`; the mean entropy of n
    times the weights, scaled so that no response is above 2 lambda, is at least `lower_bound`.
    """
    found = solvers.f1_logistic(**call, time_limit=LIMIT)
    verdict, Z = Verdict(found.status.name, found.certified), inputs_of(call)
    verdict.check_closed(found)
    n, price = len(Z), Fraction(call["regularization"])
    values, mass = evaluate(found, Z)
    with mpmath.workdps(50):
        losses = [mpmath.log1p(mpmath.exp(-real(v))) for v in signs_of(call) * values]
        attained = mpmath.fsum(losses) / n + real(price * mass)
        verdict.check_objective(found.objective, rational(attained))
        largest = root(response(Z, found.dual * call["y"], found.power)) * found.power
        share = min(Fraction(1), 2 * price / largest) if largest else Fraction(1)
        p = [real(n * share * weight) for weight in exact(found.dual)]
        verdict.blame(min(p) < 0 or max(p) > 1 + 1e-13, "weights leave [0, 1 / n]")
        entropies = [-q * mpmath.log(q) - (1 - q) * mpmath.log1p(-q) for q in p if 0 < q < 1]
        verdict.check_lower(found.lower_bound, rational(mpmath.fsum(entropies) / n))
    return verdict


def real(number: Fraction) -> mpmath.mpf:
    """A fraction in the present precision."""
    return mpmath.mpf(number.numerator) / number.denominator


def rational(number: mpmath.mpf) -> Fraction:
    """A number of mpmath as the fraction that it is."""
    sign, mantissa, exponent, _ = mpmath.mpf(number)._mpf_
    return (-1) ** sign * mantissa * power_of_two(exponent)


def draw_values(rng: np.random.Generator) -> dict:
    """Samples with real values, equal for equal inputs most often, or of nearly equal inputs."""
    call = draw(rng)
    n = len(call["y"])
    y = rng.normal(size=n) if rng.random() < 0.7 else rng.integers(-1, 2, n).astype(float)
    if rng.random() < 0.3:
        y = y * 10 ** rng.uniform(-12, 12)
    if rng.random() < 0.8:
        _, first, group = np.unique(call["X"], axis=0, return_index=True, return_inverse=True)
        y = y[first[group.reshape(-1)]]
    if n > 1 and rng.random() < 0.1:
        i, j = rng.choice(n, 2, replace=False)
        call["X"][j] = spite.ulps_beside(rng, call["X"][i])
        y[j] = y[i] * (1 + 10 ** rng.uniform(-14, -7))
    return call | {"y": y}


def judge_least_norm(call: dict) -> Verdict:
    """Every statement of `min_norm_interpolation` in the variation norm.

    Half the mass of the measure is at most `norm`, its largest error at most `residual` to 1e-9 of
    the values; dual . y over the largest response is at least `lower_bound`. A certified norm is at
    least that of `steepest`, to the tolerance. NOT_ATTAINABLE: no net of any width takes the
    values.
    """
    found = solvers.min_norm_interpolation(**call, norm="l1", time_limit=LIMIT)
    verdict, Z = Verdict(found.status.name, found.certified), inputs_of(call)
    verdict.check_closed(found)
    y = exact(call["y"])
    check_attainable(verdict, found, Z, call["y"])
    check_steepest(verdict, found, steepest(Z, call["y"]))
    if found.norm < np.inf:
        values, mass = evaluate(found, Z)
        verdict.check_objective(found.norm, mass / 2)
        verdict.check_residual(found.residual, values, y)
    if found.status is not Status.NOT_ATTAINABLE:
        square = response(Z, found.dual)
        verdict.check_lower(found.lower_bound, sum(exact(found.dual) * y), square)
    return verdict


def check_attainable(verdict: Verdict, found, Z: np.ndarray, y: np.ndarray) -> None:
    """NOT_ATTAINABLE, or a certified norm, against the exact rank."""
    if found.status is not Status.NOT_ATTAINABLE and not found.certified:
        return
    attainable = nets_attain(whole(Z)[0], whole(y)[0])
    verdict.blame(
        attainable == (found.status is Status.NOT_ATTAINABLE),
        f"{found.status.name}, but {'a' if attainable else 'no'} net takes the values",
    )


def steepest(Z: np.ndarray, y: np.ndarray) -> Fraction:
    """The square of a number that no norm is below: |f(a) - f(b)| is at most |a - b| for each unit
    neuron, also of samples on the rays, where f(r z) = r f(z).
    """
    (rows, z_unit), values = whole(Z), exact(y)
    points = [(row, value) for row, value in zip(rows, values, strict=True) if any(row)]
    found = [value**2 / sum(row * row) for row, value in points]
    for (a, f), (b, g) in itertools.combinations(points, 2):
        # From b to the point of the ray of a that is nearest, and the other way round.
        for (p, v), (q, w) in (((a, f), (b, g)), ((b, g), (a, f))):
            part = Fraction(sum(p * q), sum(p * p))
            apart = sum(q * q) - part * sum(p * q)
            if part > 0 and apart:
                found.append((w - part * v) ** 2 / apart)
    return max(found, default=Fraction(0)) / power_of_two(2 * z_unit)


def check_steepest(verdict: Verdict, found, square: Fraction) -> None:
    """A certified norm is not below the root of this by more than the tolerance."""
    verdict.blame(
        found.certified
        and found.norm < np.inf
        and exceeds(root(square) * (1 - TOLERANCE), Fraction(found.norm)),
        f"norm {found.norm!r}, but slopes ask for {shown(root(square))}",
    )


ENTRIES = [
    Entry("f1", lambda rng: draw_power(rng, draw(rng)), judge_hard, 4.0),
    Entry("f1_soft", draw_soft, judge_soft, 2.0),
    Entry("f1_logistic", draw_logistic, judge_logistic, 2.0),
    Entry("least_norm_l1", draw_values, judge_least_norm, 2.0),
]
