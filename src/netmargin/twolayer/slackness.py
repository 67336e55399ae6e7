"""How far a measure and weights of the samples are from the optimality conditions of the
variation-norm margin.
"""

import time
from dataclasses import dataclass

import numpy as np

from ..core.matrices import as_array, binary_data
from ..errors import DataError
from ..solvers.pricing.bounds import Prover
from ..solvers.pricing.local import price_locally
from ..solvers.solution import ReLUMeasure

_STARTS = 256


@dataclass(frozen=True)
class Slackness:
    """For a probability measure nu and dual weights p of the samples, with J'(theta) = sum_n p_n
    y_n phi(theta, x_n).

    neurons : max J' - int J' d nu, 0 if nu lives where J' is largest.
    samples : sum_n p_n q_n - min_n q_n, q_n = y_n int phi(., x_n) d nu, 0 if p lives where q is
        least.
    residual : their sum, max J' - min q: p proves gamma_1 <= max J', so that it bounds what the
        margin of nu lacks.
    proved : whether the maximum is proved, and not the best of a search.
    """

    neurons: float
    samples: float
    proved: bool

    @property
    def residual(self) -> float:
        """neurons + samples."""
        return self.neurons + self.samples


def slackness(
    measure: ReLUMeasure, X, y, dual, *, time_limit: float = 5.0, seed: int = 0
) -> Slackness:
    """Both complementary slackness conditions, >= 0; the measure and the weights are optimal for
    the margin gamma_1 if and only if both are 0.

    measure : divided by its mass.
    X : (n, d).
    y : (n,) labels {-1, +1} or {0, 1}.
    dual : (n,), >= 0, divided by its sum: of a run, minus the slopes of the loss. The maximum over
        neurons is proved where `f1_max_margin` visits the whole arrangement (rank 3 up to 1,400
        samples, rank 4 up to 125) within time_limit seconds; elsewhere it is the best of a local
        search.

    Raises DataError.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]
    >>> best = nm.solvers.f1_max_margin(X, y)
    >>> bool(nm.twolayer.slackness(best, X, y, best.dual).residual < 1e-6)
    True

    Source: Chizat and Bach 2020, Proposition 12.
    """
    data, measure = binary_data(X, y, bias=measure.bias), measure.normalized()
    p = as_array(dual, "dual")
    if p.shape != data.y.shape or not (p >= 0).all() or not 0 < p.sum() < np.inf:
        raise DataError(f"dual must be {len(data)} numbers >= 0, not all 0; got shape {p.shape}")
    p = p / p.sum()
    # In units of the longest input; a unit (a, b) has b relu(a . z) = relu(u . z) / 2 at best, of
    # unit u.
    Z, power = data.Z / data.size / (data.longest / data.size), measure.power
    unit = 0.5 * data.longest if power == 1 else data.longest**2
    prices = p * data.y
    random = np.random.default_rng(seed)
    starts = np.concatenate(
        [
            measure.atoms[np.argsort(-measure.weights)[:_STARTS], :-1],
            Z,
            random.normal(size=(_STARTS, Z.shape[1])),
        ]
    )
    starts = starts[np.linalg.norm(starts, axis=1) > 0]
    _, values = price_locally(Z, prices, starts, count=1, power=power)
    largest = float(np.abs(values).max(initial=0.0))
    prover = Prover(Z, power, "auto", time.monotonic() + time_limit)
    proved = prover.exact
    if proved:
        try:
            found = prover.price(
                prices,
                floor=0.0,
                found=largest,
                tol=1e-9,
                count=1,
                thoroughly=False,
                report=lambda _: None,
            )
            largest = max(largest, found.upper_bound)
        except TimeoutError:
            proved = False
    q = data.y * measure.decision_function(data.Z[:, : len(data.Z[0]) - measure.bias])
    return Slackness(
        neurons=max(unit * largest - float(p @ q), 0.0),
        samples=max(float(p @ q - q.min()), 0.0),
        proved=proved,
    )
