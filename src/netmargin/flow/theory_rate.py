"""The rate of gradient descent that the theory allows: under it the margin provably never falls."""

import math
from dataclasses import dataclass

import numpy as np

from ..core.arguments import check_count
from ..core.batches import as_inputs
from ..core.saved_records import Record
from ..errors import DataError

_GRID_POINTS = 20_001
"""Points of the trapezoidal rule for the integral I. Measured against ten times as many: they leave
1e-9 where the summed loss begins at e^-1, 1e-7 at e^-0.1, 2e-5 at e^-0.01.
"""


@dataclass(frozen=True)
class SmoothnessBounds(Record):
    """Upper bounds of margins and their derivatives over the unit sphere of parameters.

    Source: Lyu and Li 2019, Appendix E.2.

    Parameters
    ----------
    value : float
        Bound B_0 of the margins q_n.
    gradient : float
        Bound B_1 of the Euclidean norms |grad q_n|.
    hessian : float
        Bound B_2 of the spectral norms of the Hessians of q_n.

    Examples
    --------
    >>> import netmargin as nm
    >>> bounds = nm.flow.SmoothnessBounds.two_layer([[1.0, 0.0]], power=2)
    >>> round(bounds.value, 6), round(bounds.gradient, 6), bounds.hessian
    (0.3849, 1.154701, 4.0)
    """

    value: float
    gradient: float
    hessian: float

    @classmethod
    def two_layer(cls, X, power: int) -> "SmoothnessBounds":
        """Compute the bounds of f(x) = sum_j a_j sigma(w_j . x), without biases.

        Parameters
        ----------
        X : array_like of shape (n, d)
            The inputs.
        power : int
            p >= 2, where sigma(z) = z^p or max(z, 0)^p.

        Returns
        -------
        SmoothnessBounds
            Bounds that hold for every number of neurons.

        Raises
        ------
        ArgumentError
            `power` is no whole number of at least 2, from which second derivatives are continuous.
        DataError
            The inputs are no matrix of finite numbers.

        Notes
        -----
        All three are sums over neurons of terms of degree p + 1, 2 p and p - 1 in (|a_j|, |w_j|),
        so one neuron attains the largest values: |x|^p sqrt(1 / (p + 1)) (p / (p + 1))^{p/2} and
        |x|^p sqrt(p) (p / (p + 1))^{(p-1)/2}; the Hessian is at most p^2 |x|^p.
        """
        power = check_count("power", power, at_least=2)
        X = as_inputs(X).double().cpu().numpy()
        if X.ndim != 2:
            raise DataError(f"X must have shape (n, d), one row per sample; got {X.shape}")
        size = float(np.linalg.norm(X, axis=1).max()) ** power
        p = power / (power + 1)
        return cls(
            size * (1 - p) ** 0.5 * p ** (power / 2),
            size * power**0.5 * p ** ((power - 1) / 2),
            size * power**2,
        )


class TheoryRate:
    """The largest rate of gradient descent that condition (S5) allows, and the margin gamma-hat.

    For the exponential loss, from a time with Loss < 1. With u = log 1/Loss: kappa = Loss u^{2 -
    2/L} (its largest value below u = 2 - 2/L), mu = u_0 / (2 u), lambda = Loss u^{1 - 2/L} / (L
    kappa), and gamma-hat = e^phi / rho^L, phi = log u + I, I <= 0 an integral.

    Source: Lyu and Li 2019, Appendices E.1 and E.2.

    Parameters
    ----------
    log_loss : float
        Natural log of the *summed* loss at the beginning, below 0.
    log_norm : float
        Natural log of ||theta|| there.
    order : float
        Homogeneity order L of the net.
    bounds : SmoothnessBounds
        Bounds of the net's margins and their derivatives.

    Raises
    ------
    DataError
        The summed loss is not below 1.

    Examples
    --------
    >>> import netmargin as nm
    >>> bounds = nm.flow.SmoothnessBounds.two_layer([[1.0, 0.0]], power=2)
    >>> rate = nm.flow.TheoryRate(log_loss=-1.0, log_norm=0.5, order=3.0, bounds=bounds)
    >>> rate.mu(-1.0), rate.mu(-2.0)
    (0.5, 0.25)
    >>> rate.log_rate(-20.0) > rate.log_rate(-10.0)  # larger steps where the loss is smaller
    True
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
        grid = np.linspace(self._start, self._tail, _GRID_POINTS)
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
        """mu(Loss) = u_0 / (2 u), at most 1/2."""
        return self._start / (-2 * log_loss)

    def log_kappa(self, log_loss: float) -> float:
        """Natural log of kappa(Loss)."""
        bend = 2 - 2 / self.order
        u = -log_loss
        if bend > 0 and u < bend:
            u = bend
        return -u + bend * math.log(u)

    def log_rate(self, log_loss: float) -> float:
        """Natural log of H(Loss), the largest rate that (S5) allows on the summed loss."""
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
        """Natural log of gamma-hat = e^phi / rho^L, which (S5) keeps from falling.

        It is below the smoothed margin.
        """
        return self.phi(log_loss) - self.order * log_norm

    def _ratio(self, u: np.ndarray) -> np.ndarray:
        """R(u) = 1 + 2 (1 + lambda) mu."""
        kappa = np.array([self.log_kappa(-v) for v in u])
        lam = np.exp(-u + (1 - 2 / self.order) * np.log(u) - kappa) / self.order
        return 1 + (1 + lam) * self._start / u

    def _beyond(self, u: float) -> float:
        """I(u) in closed form, for u above the tail."""
        return -self._start * (1 / u + 1 / (2 * self.order * u**2))
