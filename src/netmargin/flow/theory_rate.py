"""The rate of gradient descent that the theory allows: under it the margin provably never falls."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING
from typing import Any

import numpy as np
from scipy.integrate import quad

from ..core.arguments import check_count
from ..core.records import Table, number
from ..core.saved_records import Record
from ..errors import DataError
from ..nets.arrays import as_inputs

_QUADRATURE = 1e-13
"""Relative error of the one piece of the integral I that has no closed form."""
_PIECES = 200
"""Intervals of its quadrature at most: it is smooth, and few are used."""


@dataclass(frozen=True)
class SmoothnessBounds(Record):
    """Upper bounds of margins and their derivatives over the unit sphere of parameters.

    Source: Lyu and Li 2019, Appendix E.2.

    Examples
    --------
    >>> import netmargin as nm
    >>> bounds = nm.flow.SmoothnessBounds.of_layers([[1.0, 0.0]], power=2)
    >>> round(bounds.value, 6), round(bounds.gradient, 6), round(bounds.hessian, 6)
    (0.3849, 1.154701, 2.309401)
    """

    value: float  #: B_0, of the margins q_n
    gradient: float  #: B_1, of the Euclidean norms |grad q_n|
    hessian: float  #: B_2, of the spectral norms of the Hessians of q_n

    def _table(self) -> Table:
        """The three bounds."""
        names = ("margins", "norms of their gradients", "spectral norms of their Hessians")
        bounds = (number(b, ROUND_CEILING) for b in (self.value, self.gradient, self.hessian))
        return Table("On the unit sphere, proved to be at most", [*zip(names, bounds, strict=True)])

    @classmethod
    def of_layers(cls, X: Any, power: int, layers: int = 2) -> "SmoothnessBounds":
        """Compute the bounds of a net f(x) = W_m s(.. s(W_1 x)) with one output, without biases, of
        `layers` = m matrices, for inputs X (n, d); s(z) = z^p or max(z, 0)^p, p = `power` >= 1.

        They hold for all widths, that of the Hessian not at the kinks of ReLUs, p = 1. A bias of
        the first layer is the weight of an input that is always 1. Raises ArgumentError, DataError.
        """
        # |s(z)| <= |z|^p, and likewise for derivatives of s, so the margin, its derivatives and its
        # second derivatives by the layers are at most those of F(r) = |x|^{k_1} r_1^{k_1} .. r_m,
        # k_i = p^{m - i}, at the layers' Frobenius norms r. On the sphere F is largest at r_i^2 =
        # k_i / L. A form of degree L has B_1 = L B_0 and B_2 = L (L - 1) B_0 (Banach 1938).
        power, layers = check_count("power", power), check_count("layers", layers)
        X = as_inputs(X).double().cpu().numpy()
        if X.ndim != 2:
            raise DataError(f"X must have shape (n, d), one row per sample; got {X.shape}")
        k = float(power) ** np.arange(layers)[::-1]
        L = float(k.sum())
        size = float(np.linalg.norm(X, axis=1).max()) ** k[0]
        value = float(size * np.exp(k @ np.log(k / L) / 2))
        return cls(value, L * value, L * (L - 1) * value)


class TheoryRate:
    """The largest rate of gradient descent that condition (S5) allows, and the margin gamma-hat.

    Take each step at `log_rate` of the loss before it, and `log_gamma_hat` never falls.

    For the exponential loss, from a time with Loss < 1. With u = log 1/Loss: kappa = Loss u^{2 -
    2/L} (its largest value below u = 2 - 2/L), mu = u_0 / (2 u), lambda = Loss u^{1 - 2/L} / (L
    kappa), and gamma-hat = e^phi / rho^L, phi = log u + I, I <= 0 an integral.

    `log_loss` and `log_norm` are natural logs of the *summed* loss at the beginning, and of
    ||theta|| there. Lyu and Li 2019, Appendices E.1 and E.2.
    """

    def __init__(
        self, log_loss: float, log_norm: float, order: float, bounds: SmoothnessBounds
    ) -> None:
        if not log_loss < 0:
            raise DataError(
                "The theory begins where the summed loss is below 1; here its log is"
                f" {log_loss:.4g}. Train further first, for instance by nm.gradient_flow."
            )
        self.order, self._start = order, -log_loss
        self._bend = max(2 - 2 / order, self._start)
        # phi' = -S, where S(u) is the supremum of g(v) = e^v R(v) / v over start <= v <= u, and
        # I(u) is minus the integral of e^-v S(v) - 1 / v from u on. Below the bend, where kappa is
        # constant, and above it g is a sum of terms c e^v v^-k and c v^-k with k > 0, whose
        # logarithms are convex. So on each side g is largest at an end, and where it has once
        # passed its value at the left end it rises for good:
        #   S = g(start) up to `rise`, then S = g up to the bend; there S = M, the larger one of
        #   g(start) and g(bend), up to `tail`, beyond which S = g.
        self._log_first = self._log_g(self._start)
        self._rise = self._last_below(self._log_first, self._start, self._bend)
        self._log_most = max(self._log_first, self._log_g(self._bend))
        self._tail = self._last_below(self._log_most, self._bend, math.inf)
        log_gamma = self.log_gamma_hat(log_loss, log_norm)
        bent = math.log(bounds.hessian) if bounds.hessian else -math.inf  # 0 for a linear net
        curvature = np.logaddexp(2 * math.log(bounds.gradient), bent - order * log_norm)
        self.log_C = float(
            math.log(0.5) + curvature - 2 * log_gamma + 2 / order * math.log(bounds.value)
        )

    def mu(self, log_loss: float) -> float:
        """mu(Loss) = u_0 / (2 u), at most 1/2."""
        return self._start / (-2 * log_loss)

    def log_kappa(self, log_loss: float) -> float:
        """Natural log of kappa(Loss)."""
        bend = 2 - 2 / self.order
        u = max(-log_loss, bend)
        return -u + bend * math.log(u)

    def log_rate(self, log_loss: float) -> float:
        """Natural log of H(Loss), the largest rate that (S5) allows on the summed loss."""
        return math.log(self.mu(log_loss)) - self.log_C - self.log_kappa(log_loss)

    def phi(self, log_loss: float) -> float:
        """phi(Loss) = log log 1/Loss + I, for losses up to that of the beginning."""
        # I piece by piece: in closed form but for what S = g is below the bend.
        u = -log_loss
        found, v = 0.0, u
        for log_value, end in (
            (self._log_first, self._rise),
            (None, self._bend),
            (self._log_most, self._tail),
        ):
            if v >= end:
                continue
            if log_value is None:
                rest = lambda w: (1 + self._lambda(w)) * self._start / w**2  # noqa: E731
                found += quad(rest, v, end, epsabs=0.0, epsrel=_QUADRATURE, limit=_PIECES)[0]
            else:
                found += math.exp(log_value - v) * -math.expm1(v - end) - math.log(end / v)
            v = end
        return math.log(u) - found - self._start * (1 / v + 1 / (2 * self.order * v**2))

    def slope_of_phi(self, log_loss: float) -> float:
        """The derivative of phi by log 1/Loss, e^-u S(u)."""
        u = -log_loss
        if u <= self._rise:
            log_value = self._log_first
        elif self._bend < u <= self._tail:
            log_value = self._log_most
        else:
            log_value = self._log_g(u)
        return math.exp(log_value - u)

    def log_gamma_hat(self, log_loss: float, log_norm: float) -> float:
        """Natural log of gamma-hat = e^phi / rho^L, which (S5) keeps from falling.

        It is below the smoothed margin.
        """
        return self.phi(log_loss) - self.order * log_norm

    def _lambda(self, v: float) -> float:
        """lambda = Loss v^(1 - 2 / L) / (L kappa) at Loss = e^-v."""
        return math.exp(-v + (1 - 2 / self.order) * math.log(v) - self.log_kappa(-v)) / self.order

    def _log_g(self, v: float) -> float:
        """Natural log of g(v) = e^v R(v) / v with R = 1 + 2 (1 + lambda) mu."""
        return v - math.log(v) + math.log1p((1 + self._lambda(v)) * self._start / v)

    def _last_below(self, log_value: float, low: float, high: float) -> float:
        """The last place from `low` to `high` up to which g does not exceed a value."""
        if math.isinf(high):
            high = 2 * low
            while self._log_g(high) <= log_value:
                high *= 2
        if self._log_g(high) <= log_value:
            return high
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if self._log_g(middle) > log_value else (middle, high)
        return low
