"""Full-batch gradient descent with a constant rate, or with the rate under which the theory proves
that the margin never falls.
"""

import math
from dataclasses import dataclass

import numpy as np
from torch import nn

from ..core import logspace
from ..core.batches import Data, as_arrays
from ..core.nets import float64_copy
from ..errors import DataError, NotHomogeneousError
from ..homogeneity import Kind
from ..losses import Exponential
from ..margins import MarginReport, measure, norms
from ..training.history import History
from .field import FlowField

_GRID = 20_001


@dataclass(frozen=True)
class SmoothnessBounds:
    """Upper bounds B_0, B_1, B_2 of q_n, |grad q_n| and |Hessian q_n| over the unit sphere of
    parameters (Lyu and Li 2019, E.2).
    """

    value: float
    gradient: float
    hessian: float

    @classmethod
    def two_layer(cls, X, power: int) -> "SmoothnessBounds":
        """Of sum_j a_j sigma(w_j . x), sigma(z) = z^p or max(z, 0)^p, p >= 2, without biases; for
        inputs X, shape (N, d).

        All three are sums over neurons of terms of degree p + 1, 2 p and p - 1 in (|a_j|, |w_j|),
        so one neuron attains the largest values: |x|^p sqrt(1 / (p + 1)) (p / (p + 1))^{p/2} and
        |x|^p sqrt(p) (p / (p + 1))^{(p-1)/2}; the Hessian is at most p^2 |x|^p.
        """
        if power < 2:
            raise ValueError(
                "power must be at least 2, for a net with continuous second derivatives; got"
                f" {power}"
            )
        size = float(np.linalg.norm(np.asarray(X, dtype=np.float64), axis=1).max()) ** power
        p = power / (power + 1)
        return cls(
            size * (1 - p) ** 0.5 * p ** (power / 2),
            size * power**0.5 * p ** ((power - 1) / 2),
            size * power**2,
        )


class TheoryRate:
    """Lyu and Li's condition (S5) and the margin gamma-hat, for the exponential loss from a time
    with Loss < 1.

    log_loss : natural log of the *summed* loss at the beginning, below 0.
    log_norm : log of ||theta|| there.
    order : L.

    With u = log 1/Loss: kappa = Loss u^{2 - 2/L} (its largest value below u = 2 - 2/L), mu = u_0 /
    (2 u), lambda = Loss u^{1 - 2/L} / (L kappa), and gamma-hat = e^phi / rho^L, phi = log u + I, I
    <= 0 an integral. Source: Lyu and Li 2019, Appendices E.1 and E.2.
    """

    def __init__(self, log_loss: float, log_norm: float, order: float, bounds: SmoothnessBounds):
        if not log_loss < 0:
            raise DataError(
                "The theory begins where the summed loss is below 1; here its log is"
                f" {log_loss:.4g}. Train further first, for instance by nm.gradient_flow."
            )
        self.order, self._start = order, -log_loss
        bend = 2 - 2 / order
        # I(u) = -int_u^inf (e^{-v} sup_{v' <= v} e^{v'} R(v') / v' - 1 / v) dv; above `tail` the
        # supremum is at v itself, and I is known.
        self._tail = max(self._start, bend, 2.0) + 1.0
        grid = np.linspace(self._start, self._tail, _GRID)
        own = np.log(self._ratio(grid)) + grid - np.log(grid)
        integrand = np.exp(np.maximum.accumulate(own) - grid) - 1 / grid
        pieces = 0.5 * (integrand[1:] + integrand[:-1]) * np.diff(grid)
        self._grid, self._integral = grid, np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
        gamma = math.exp(self.log_gamma_hat(log_loss, log_norm))
        rho_L = math.exp(-order * log_norm)
        self.log_C = math.log(
            0.5
            * (bounds.gradient**2 + rho_L * bounds.hessian)
            / gamma**2
            * bounds.value ** (2 / order)
        )

    def mu(self, log_loss: float) -> float:
        """mu(Loss), at most 1/2."""
        return self._start / (-2 * log_loss)

    def log_kappa(self, log_loss: float) -> float:
        """log kappa(Loss)."""
        bend = 2 - 2 / self.order
        u = -log_loss
        if bend > 0 and u < bend:
            u = bend
        return -u + bend * math.log(u)

    def log_rate(self, log_loss: float) -> float:
        """log H(Loss), the largest rate that (S5) allows on the summed loss."""
        return math.log(self.mu(log_loss)) - self.log_C - self.log_kappa(log_loss)

    def phi(self, log_loss: float) -> float:
        """phi(Loss) = log log 1/Loss + I, for losses up to that of the beginning."""
        u = -log_loss
        if u >= self._tail:
            return math.log(u) + self._beyond(u)
        return (
            math.log(u) - float(np.interp(u, self._grid, self._integral)) + self._beyond(self._tail)
        )

    def log_gamma_hat(self, log_loss: float, log_norm: float) -> float:
        """log of gamma-hat = e^phi / rho^L, which (S5) keeps from falling; below the smoothed
        margin.
        """
        return self.phi(log_loss) - self.order * log_norm

    def _ratio(self, u: np.ndarray) -> np.ndarray:
        """R(u) = 1 + 2 (1 + lambda) mu."""
        kappa = np.array([self.log_kappa(-v) for v in u])
        lam = np.exp(-u + (1 - 2 / self.order) * np.log(u) - kappa) / self.order
        return 1 + (1 + lam) * self._start / u

    def _beyond(self, u: float) -> float:
        return -self._start * (1 / u + 1 / (2 * self.order * u**2))


def gradient_descent(
    model: nn.Module,
    data: Data,
    *,
    steps: int,
    rate: float | SmoothnessBounds,
    relative: float = 1.0,
) -> History:
    """theta <- theta - eta grad of the *summed* exponential loss, over all samples, in float64; the
    model is changed in place.

    rate : eta, or bounds on the net's smoothness, with which eta is `relative` times the largest
        rate that (S5) allows: then gamma-hat, in every row as log_gamma_hat, never falls (Lyu and
        Li 2019, Theorem E.2). The net must then be C^2 away from 0.

    Rows: those of `train`, with log_rate, log_time (log of the sum of rates) and, with bounds,
    log_gamma_hat. Raises DataError where the summed loss is not below 1 with bounds,
    NotHomogeneousError for a net without an order, and as `measure`.
    """
    twin, samples, loss = float64_copy(model), as_arrays(data), Exponential()
    homogeneity = measure(twin, samples, loss=loss).homogeneity
    if homogeneity.kind not in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS) or homogeneity.ignored:
        raise NotHomogeneousError(
            "The theory is about homogeneous nets."
            f" {homogeneity.bias_sentence or f'This one is {homogeneity.kind}.'}"
        )
    assert homogeneity.order is not None
    field, history, rule = FlowField(twin, samples, loss), History(), None
    theta, log_time = field.start, -math.inf
    for index in range(steps + 1):
        here = field(theta, field.pattern(theta))
        point = field.named(theta)
        twin.load_state_dict(point, strict=False)
        norm, log_norms = norms(twin, homogeneity)
        report = MarginReport(here.q, here.log_loss, homogeneity, norm, loss, log_norms)
        if index == 0 and isinstance(rate, SmoothnessBounds):
            rule = TheoryRate(here.log_loss, math.log(norm), float(homogeneity.order), rate)
        over = (
            rule is not None and not here.log_loss < 0
        )  # only far beyond the rate that (S5) allows
        log_rate = -math.inf
        if not over:
            log_rate = math.log(relative) + rule.log_rate(here.log_loss) if rule else math.log(rate)  # type: ignore[arg-type]
        row = {"epoch": index, "log_rate": log_rate, "log_time": log_time} | report.to_dict()
        if rule and here.log_loss < 0:
            row["log_gamma_hat"] = rule.log_gamma_hat(
                min(here.log_loss, history.rows[0]["log_loss"] if history.rows else 0.0),
                math.log(norm),
            )
        history.rows.append(row)
        if over:
            break
        log_time = logspace.log_add(log_time, log_rate)
        # The field is -grad / Loss, times its pace.
        theta = theta + here.direction * math.exp(log_rate - here.log_time_rate)
    model.load_state_dict(point, strict=False)
    history.status = (
        f"stopped after {index} steps, where the summed loss was above 1"
        if over
        else f"ran {steps} steps"
    )
    return history
