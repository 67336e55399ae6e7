"""The distance of a measure and weights of the samples from the optimality of the F_1 margin."""

from dataclasses import dataclass
from decimal import ROUND_CEILING
from typing import Any

import numpy as np

from ..core.arguments import check_instance, check_seed
from ..core.deadline import Deadline
from ..core.matrices import as_array, binary_data
from ..core.records import Certainty, Row, Table, number
from ..core.saved_records import Record
from ..errors import DataError
from ..result import Status
from ..solvers.neurons.samples import respond
from ..solvers.neurons.search import draw_starts, search_neurons, unit_rows
from ..solvers.pricing.bounds import PricingBound
from ..solvers.solution import ReLUMeasure

_SEARCH_STARTS = 256
"""Starts of the local search from the heaviest neurons, and as many random ones, beside the
samples. More of them matter only where no proof is affordable.
"""


@dataclass(frozen=True)
class Slackness(Record):
    """Both complementary slackness gaps of a probability measure nu and weights p of the samples.

    J'(theta) = sum_n p_n y_n phi(theta, x_n), and q_n = y_n int phi(., x_n) d nu.
    """

    neurons: float  #: max J' - int J' d nu, 0 if nu lives where J' is largest
    samples: float  #: sum_n p_n q_n - min_n q_n, 0 if p lives where q is least
    proved: bool  #: Whether the maximum over neurons is proved, and not the best of a search
    #: FINISHED; TIME_LIMIT or INTERRUPTED where the maximum is not proved for that reason
    status: Status

    @property
    def residual(self) -> float:
        """The sum of both gaps, max J' - min q: what the margin of nu lacks at most."""
        return self.neurons + self.samples

    def _table(self) -> Table:
        """What the margin of the measure lacks, and which of the two is not optimal."""
        sure = Certainty.PROVED if self.proved else Certainty.ESTIMATED
        rows: list[Row] = [
            ("the margin lacks at most", (number(self.residual, ROUND_CEILING), sure)),
            ("of this by the neurons", (number(self.neurons, ROUND_CEILING), sure)),
            ("and by the weights of the samples", (number(self.samples), Certainty.MEASURED)),
            ("status", str(self.status)),
        ]
        return Table("Distance of a measure from the largest margin: 0 is optimal", rows)


def slackness(
    measure: ReLUMeasure,
    X: Any,
    y: Any,
    dual: Any,
    *,
    time_limit: float | None = 5.0,
    seed: int = 0,
) -> Slackness:
    """Measure both complementary slackness conditions of the variation-norm margin.

    Both gaps are >= 0; the measure and the weights are optimal for the margin gamma_1 if and only
    if both are 0. The maximum over neurons is proved where `f1_max_margin` visits the whole
    arrangement (rank 3 up to 1,400 samples, rank 4 up to 125) within the time limit and before
    Ctrl-C; elsewhere it is the best of a local search.

    Parameters
    ----------
    measure : ReLUMeasure
        The neurons; divided by its mass.
    X : array_like, shape (n, d)
        Inputs.
    y : array_like, shape (n,)
        Labels {-1, +1} or {0, 1}.
    dual : array_like, shape (n,)
        Weights of the samples, >= 0, divided by their sum; of a training run, minus the slopes of
        the loss.
    time_limit : float, default 5.0
        Seconds after which the best of the search is returned, without a proof. None for no limit.
    seed : int, default 0
        Seed of the random starts of the search.

    Returns
    -------
    Slackness
        Both gaps, and whether they are proved.

    Raises
    ------
    DataError
        If the data have a wrong shape or labels, are not finite, or `dual` is not n numbers >= 0
        that are not all 0.
    ArgumentError
        If `measure` is none, or `time_limit` or `seed` is out of its range.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]
    >>> best = nm.solvers.f1_max_margin(X, y)
    >>> bool(nm.twolayer.slackness(best, X, y, best.dual).residual < 1e-6)
    True

    Source: Chizat and Bach 2020, Proposition 12.
    """
    deadline, seed = Deadline(time_limit), check_seed(seed)
    check_instance("measure", measure, ReLUMeasure, "one, such as ReLUMeasure.from_network(net)")
    data, measure = binary_data(X, y, bias=measure.bias), measure.normalized()
    p = as_array(dual, "dual")
    if p.shape != data.y.shape or not (p >= 0).all() or not 0 < p.sum() < np.inf:
        raise DataError(f"dual must be {len(data)} numbers >= 0, not all 0; got shape {p.shape}")
    p = p / p.sum()  # not in place: p may be the array of the caller
    # In units of the longest input. The best unit (a, b) in direction u has b phi(a . z) =
    # phi(u . z) / 2.
    Z, power = data.scaled, measure.power
    unit = 0.5 * data.longest if power == 1 else data.longest**2
    largest, proved, status = _price_neurons(Z, p * data.y, measure, deadline, seed)
    q = data.y * measure.decision_function(data.Z[:, : len(data.Z[0]) - measure.bias])
    return Slackness(
        neurons=max(unit * largest - float(p @ q), 0.0),
        samples=max(float(p @ q - q.min()), 0.0),
        proved=proved,
        status=status,
    )


def _price_neurons(
    Z: np.ndarray, prices: np.ndarray, measure: ReLUMeasure, deadline: Deadline, seed: int
) -> tuple[float, bool, Status]:
    """The largest |sum_n prices_n phi(u . z_n)| over unit u, whether proved, and how it ended."""
    random = np.random.default_rng(seed)
    heaviest = measure.atoms[np.argsort(-measure.weights)[:_SEARCH_STARTS], :-1]
    drawn = draw_starts(Z, random, samples=2 * len(Z), normal=_SEARCH_STARTS)
    starts = np.concatenate([unit_rows(heaviest), drawn])
    try:
        _, values = search_neurons(Z, prices, starts, count=1, activation=measure.activation)
    except KeyboardInterrupt:  # what the starts themselves attain is the best so far
        responses = respond(Z, prices, starts, measure.activation)
        return float(np.abs(responses).max(initial=0.0)), False, Status.INTERRUPTED
    largest = float(np.abs(values).max(initial=0.0))
    proved, status = False, Status.FINISHED
    try:
        pricing = PricingBound(Z, measure.activation, "auto", deadline.at)
        if pricing.exact:
            largest = pricing.largest_response(prices, largest)
            proved = True
    except TimeoutError:
        status = Status.TIME_LIMIT
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return largest, proved, status
