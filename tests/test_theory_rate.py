"""The rate of Lyu and Li 2019, (S5), against 50 digits of mpmath, from the paper's definitions."""

import math

import mpmath
import numpy as np
import pytest

from netmargin.flow.theory_rate import SmoothnessBounds, TheoryRate

BOUNDS = SmoothnessBounds(0.4, 1.2, 4.0)
LOG_NORM = 0.2


class Reference:
    """kappa, mu, lambda and phi as Appendix E defines them; the supremum by looking for it."""

    def __init__(self, start: float, order: int):
        self.L, self.start = mpmath.mpf(order), mpmath.mpf(start)
        self.bend = 2 - 2 / self.L

    def kappa(self, u):
        v = max(u, self.bend)
        return mpmath.exp(-v) * v**self.bend

    def g(self, u):
        lam = mpmath.exp(-u) * u ** (1 - 2 / self.L) / (self.L * self.kappa(u))
        return (1 + (1 + lam) * self.start / u) * mpmath.exp(u) / u

    def pieces(self, u, grid):
        """Where the running maximum of g changes its kind, by signs on a grid and bisection."""
        values = [self.g(v) for v in grid]
        most, edges = values[0], []
        constant = True
        for index in range(1, len(grid)):
            if (values[index] <= most) != constant:
                if constant:  # g comes up to what was its largest value
                    root = mpmath.findroot(
                        lambda v, most=most: self.g(v) - most,
                        (grid[index - 1], grid[index]), solver="bisect", tol=1e-45, maxsteps=300,
                    )  # fmt: skip
                else:  # only at the bend does it turn down
                    root = self.bend
                    most = max(most, self.g(self.bend))
                edges.append((root, most))
                constant = not constant
            most = max(most, values[index])
        return edges

    def phi(self, u):
        """phi at u: the integral piece by piece, and 1 / v^2 terms in closed form at the end."""
        u, far = mpmath.mpf(u), mpmath.mpf(40)
        count = 600
        grid = [
            self.start + (far - self.start) * (mpmath.mpf(i) / count) ** 2 for i in range(count)
        ]
        grid = sorted({*grid, max(self.bend, self.start)})
        edges, most, constant, place = self.pieces(u, grid), self.g(self.start), True, self.start
        total = mpmath.mpf(0)
        for edge, after in [*edges, (far, None)]:
            low, high = max(place, u), edge
            if high > low:
                marks = [low, *([self.bend] if low < self.bend < high else []), high]
                sup = (lambda v, m=most: m) if constant else self.g
                total += mpmath.quad(lambda v, s=sup: mpmath.exp(-v) * s(v) - 1 / v, marks)
            place, constant, most = edge, not constant, after
        end = max(far, u)
        total += self.start * (1 / end + 1 / (2 * self.L * end**2))
        return mpmath.log(u) - total


QUICK = {(1, 0.01), (3, 0.3), (2, 1.0), (5, 3.0)}
CASES = [
    pytest.param(order, start, marks=() if (order, start) in QUICK else pytest.mark.nightly)
    for order in (1, 2, 3, 4, 5)
    for start in (0.01, 0.05, 0.1, 0.3, 0.5, 1.0, 3.0)
]


@pytest.mark.parametrize(("order", "start"), CASES)
def test_phi_margin_and_rate_against_fifty_digits(order, start):
    with mpmath.workdps(50):
        exact, L = Reference(start, order), mpmath.mpf(order)
        rate = TheoryRate(-start, LOG_NORM, float(order), BOUNDS)
        first = exact.phi(start) - L * mpmath.mpf(LOG_NORM)
        C = (mpmath.mpf(1.2) ** 2 + mpmath.exp(-L * mpmath.mpf(LOG_NORM)) * 4) / 2
        log_C = mpmath.log(C) - 2 * first + 2 / L * mpmath.log(mpmath.mpf(0.4))
        for u in (start, 1.3 * start + 0.2, start + 4):
            phi = exact.phi(u)
            assert abs(rate.phi(-u) - phi) < 1e-8 * max(1, abs(phi))
            assert rate.mu(-u) == pytest.approx(start / (2 * u))
            log_rate = mpmath.log(start / (2 * mpmath.mpf(u))) - log_C
            log_rate -= mpmath.log(exact.kappa(mpmath.mpf(u)))
            assert abs(rate.log_rate(-u) - log_rate) < 1e-8 * max(1, abs(log_rate))
        assert abs(rate.log_gamma_hat(-start, LOG_NORM) - first) < 1e-8 * max(1, abs(first))


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("start", [0.01, 0.1, 0.5, 3.0])
def test_phi_is_convex_in_the_loss(order, start):
    rate = TheoryRate(-start, LOG_NORM, order, BOUNDS)
    u = np.linspace(start, max(rate._tail, start) + 4, 400)
    loss, phi = np.exp(-u), np.array([rate.phi(-v) for v in u])
    slopes = np.diff(phi) / np.diff(loss)
    # u rises and the loss falls, so that slopes fall along the grid.
    assert (np.diff(slopes) <= 1e-9 * np.abs(slopes[1:])).all()


def test_deep_starts_have_the_closed_form_alone():
    rate = TheoryRate(-50.0, LOG_NORM, 3.0, BOUNDS)
    for u in (50.0, 80.0):
        closed = math.log(u) - 50.0 * (1 / u + 1 / (6 * u**2))
        assert rate.phi(-u) == pytest.approx(closed, rel=1e-12)
