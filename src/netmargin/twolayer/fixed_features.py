"""Training with fixed directions: only the magnitudes of the neurons, or only the output layer.

Both come with the rates of convergence that are proved for them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.special import softmax

from ..core.matrices import binary_data
from ..core.records import short_repr
from ..core.saved_records import Record
from ..errors import DataError
from ..result import Status
from ..solvers.linear import linear_max_margin
from .step_sizes import step_sizes

_LARGEST_LOG_SIZE = 690.0
"""Weights enter the softmax with a size of e^690 at most: float64 ends at e^709, and the shares of
the samples are those of the least margin alone long before.
"""


@dataclass(frozen=True)
class FixedFeatureRun(Record):
    """A run of t = 0 .. steps, beside the optimum and the rate that is proved.

    Attributes
    ----------
    margins : ndarray, shape (steps + 1,)
        min_n z_n . a_bar(t), margins of the normalized weights.
    log_sizes : ndarray, shape (steps + 1,)
        Natural logs of the size beta(t) by which weights were divided.
    weights : ndarray, shape (m,)
        The normalized weights a_bar at the end.
    optimum : float
        gamma, the largest margin of any weights, as attained.
    proved : float
        An upper bound of gamma by linear or convex duality.
    guarantee : ndarray, shape (steps,)
        What the proposition says that the best margin among the first t = 1 .. steps iterates is at
        least, with `optimum` for gamma; proved at every t, at early ones a negative number, which
        is true but weak.
    status : Status
        FINISHED, or INTERRUPTED after the last margin; `optimum` is then the best margin so far
        where the search for gamma was not over.
    """

    margins: np.ndarray
    log_sizes: np.ndarray
    weights: np.ndarray
    optimum: float
    proved: float
    guarantee: np.ndarray
    status: Status

    __repr__ = short_repr

    @property
    def best(self) -> np.ndarray:
        """The best margin among the first t = 1 .. steps iterates, which the guarantee is about."""
        return np.maximum.accumulate(self.margins[:-1])


def train_magnitudes(
    features, y, *, steps: int, rate: Callable[[np.ndarray], np.ndarray] | None = None
) -> FixedFeatureRun:
    """Train only the magnitudes of the neurons of a two-layer net, by ascent of the smooth margin.

    r(t + 1) = r(t) + eta(t) m grad F(r(t)) with F(r) = -log mean_n exp(-z_n . a), a_j = r_j^2 / m,
    from r(0) = (1, .., 1): neurons move along fixed rays. The normalized weights a_bar = a / |a|_1
    follow mirror ascent in the simplex towards gamma_1 = max over the simplex of min_n z_n . a, at
    rate log(t) / sqrt(t). Ctrl-C returns the steps so far, with `Status.INTERRUPTED`.

    Parameters
    ----------
    features : array_like, shape (n, m)
        phi(theta_j, x_n), the outputs of the neurons.
    y : array_like, shape (n,)
        Labels {-1, +1} or {0, 1}; z_nj = y_n phi(theta_j, x_n).
    steps : int
        Iterations, at least 1.
    rate : callable, optional
        eta as a function of the array of times t; by default the proposition's 1 / (16 |z|_inf
        sqrt(t + 1)), for which alone the guarantee is proved.

    Returns
    -------
    FixedFeatureRun
        Margins over time, gamma_1 and the guarantee, all in float64.

    Raises
    ------
    DataError
        If the data have a wrong shape or labels, are not finite, or all features are 0.
    ValueError
        If `steps` is below 1, or step sizes are not positive.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> features = np.random.default_rng(0).normal(size=(8, 30))
    >>> run = nm.twolayer.train_magnitudes(features, np.tile([1, -1], 4), steps=2000)
    >>> bool((run.best >= run.guarantee).all()), bool(run.best[-1] > 0.5 * run.optimum)
    (True, True)

    Source: Chizat and Bach 2020, Proposition 6 with the partial sum of Proposition 16 (15).
    """
    z, largest = _multiply_by_labels(features, y)
    eta = step_sizes(steps, rate or (lambda t: 1 / (16 * largest * np.sqrt(t + 1))))
    n, m = z.shape

    def move(mean: np.ndarray, shares: np.ndarray, rate: float) -> tuple[np.ndarray, float]:
        grown = mean * (1 + 2 * rate * (shares @ z)) ** 2
        return grown, float(grown.sum())

    margins, log_sizes, weights, status = _ascend(z, np.full(m, 1 / m), eta, move)
    # Any iterate attains its margin, and equal weights of the samples prove a bound, too: that is
    # what is known of the optimum where Ctrl-C comes before it is found.
    optimum, proved = float(margins.max()), float(z.mean(0).max())
    if status is not Status.INTERRUPTED:
        try:
            _, optimum, proved = matrix_game(z)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
    t = np.arange(1, len(margins))
    sums = np.cumsum(np.exp(-log_sizes[:-1]) / np.sqrt(t))
    slack = (
        largest / np.sqrt(t) * (8 * math.log(m) + np.log(t) + 1)
        + 4 * math.log(n) / np.sqrt(t) * sums
    )
    return FixedFeatureRun(
        margins=margins,
        log_sizes=log_sizes,
        weights=weights,
        optimum=optimum,
        proved=proved,
        guarantee=optimum - slack,
        status=status,
    )


def train_output_layer(
    features, y, *, steps: int, rate: Callable[[np.ndarray], np.ndarray] | None = None
) -> FixedFeatureRun:
    """Train only the output layer of a two-layer net, by ascent of the smooth margin.

    r(t + 1) = r(t) + eta(t) m grad F(r(t)) with F(r) = -log mean_n exp(-z_n . a), a = r / m, from
    r(0) = 0. With beta(t) = max(1, max_s sqrt(m) |a(s)|_2), the weights a_bar = a / beta follow
    projected gradient ascent in a ball towards gamma_2 = max over sqrt(m) |a|_2 <= 1 of min_n
    z_n . a, at rate 1 / sqrt(t). Ctrl-C returns the steps so far, with `Status.INTERRUPTED`.

    Parameters
    ----------
    features : array_like, shape (n, m)
        phi(theta_j, x_n), the outputs of the neurons.
    y : array_like, shape (n,)
        Labels {-1, +1} or {0, 1}; z_nj = y_n phi(theta_j, x_n).
    steps : int
        Iterations, at least 1.
    rate : callable, optional
        eta / beta as a function of the array of times t; by default the proposition's sqrt(2) /
        (|z|_inf sqrt(t + 1)), for which alone the guarantee is proved.

    Returns
    -------
    FixedFeatureRun
        Margins over time, gamma_2 and the guarantee, all in float64.

    Raises
    ------
    DataError
        If the data have a wrong shape or labels, are not finite, all features are 0, or gamma_2
        = 0, about which nothing is claimed.
    ValueError
        If `steps` is below 1, or step sizes are not positive.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> features = np.random.default_rng(0).normal(size=(8, 30))
    >>> run = nm.twolayer.train_output_layer(features, np.tile([1, -1], 4), steps=2000)
    >>> bool((run.best >= run.guarantee).all()), bool(run.best[-1] > 0.9 * run.optimum)
    (True, True)

    Source: Chizat and Bach 2020, Proposition 7.
    """
    z, largest = _multiply_by_labels(features, y)
    eta = step_sizes(steps, rate or (lambda t: math.sqrt(2) / (largest * np.sqrt(t + 1))))
    n, m = z.shape
    # The max margin without labels: z holds y already.
    solution = linear_max_margin(z, np.ones(n))
    if solution.status is Status.INTERRUPTED:  # Ctrl-C is meant for all of it
        eta = eta[:0]
    if solution.status is Status.NOT_SEPARABLE:
        raise DataError(
            "No output weights classify all samples correctly, so gamma_2 = 0. Take more features."
        )
    optimum, proved = solution.margin / math.sqrt(m), solution.upper_bound / math.sqrt(m)

    # From 0 the weights stay in the span of the samples: a = z' c, for which n x n products are
    # enough.
    products = z @ z.T

    def move(mean: np.ndarray, shares: np.ndarray, rate: float) -> tuple[np.ndarray, float]:
        moved = mean + rate / m * shares
        return moved, max(1.0, math.sqrt(m * max(float(moved @ (products @ moved)), 0.0)))

    margins, log_sizes, coefficients, status = _ascend(products, np.zeros(n), eta, move)
    if solution.status is Status.INTERRUPTED:
        status = Status.INTERRUPTED
    weights = coefficients @ z
    t = np.arange(1, len(margins))
    # An optimum that is not known to be positive guarantees nothing: a division by nearly 0.
    known = max(optimum, np.finfo(float).tiny)
    slack = largest / np.sqrt(t) * (2 * math.sqrt(2) + math.sqrt(3) * math.log(n) / known)
    return FixedFeatureRun(
        margins=margins,
        log_sizes=log_sizes,
        weights=weights,
        optimum=optimum,
        proved=proved,
        guarantee=optimum - slack,
        status=status,
    )


def _multiply_by_labels(features, y) -> tuple[np.ndarray, float]:
    """The matrix z_nj = y_n phi(theta_j, x_n) and its largest absolute entry. Raises DataError."""
    data = binary_data(features, y, bias=False)
    z = data.y[:, None] * data.Z
    if not z.any():
        raise DataError(
            "All features are 0, so every weight has margin 0. Choose neurons that are active on"
            " some sample."
        )
    return z, data.size


def _ascend(
    z: np.ndarray, mean: np.ndarray, eta: np.ndarray, move: Callable
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Status]:
    """Ascend the smooth margin of a = beta a_bar from a_bar = mean, beta(0) = 1.

    Returns the margins z a_bar, log beta, the last a_bar and how it ended. `move` gets a_bar, the
    weights of the samples in the gradient of the smooth margin at a, and the step size; it gives
    a_bar(t + 1) before it is divided by beta(t + 1) / beta(t), and that ratio. beta is kept as its
    log, because it grows like exp(sqrt t).
    """
    margins, log_sizes, log_size = np.empty(len(eta) + 1), np.empty(len(eta) + 1), 0.0
    margins[0], log_sizes[0] = (z @ mean).min(), log_size
    done, reached, status = 1, mean, Status.FINISHED
    try:
        # One pass more than there are steps measures the last iterate.
        for t, rate in enumerate(np.append(eta, 0.0)):
            values = z @ mean
            margins[t], log_sizes[t] = values.min(), log_size
            done, reached = t + 1, mean
            if t < len(eta):
                # Relative to the least value, so that what overflows has share 0.
                size = math.exp(min(log_size, _LARGEST_LOG_SIZE))
                moved, growth = move(mean, softmax(-size * (values - margins[t])), rate)
                mean, log_size = moved / growth, log_size + math.log(growth)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return margins[:done], log_sizes[:done], reached, status


def matrix_game(z: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Solve the matrix game of z, shape (n, m), by a linear program.

    Returns a in the simplex that maximizes min_n z_n . a, that value as recomputed in float64, and
    an upper bound: the largest mean feature under the dual weights of the samples.
    """
    n, m = z.shape
    found = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.hstack([-z, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(m), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
        method="highs",
    )
    # The point of the solver may be off the simplex by its tolerance; bounds hold for points on it.
    weights, dual = np.maximum(found.x[:m], 0.0), np.maximum(-found.ineqlin.marginals, 0.0)
    weights /= weights.sum()
    return weights, float((z @ weights).min()), float((dual / dual.sum() @ z).max())
