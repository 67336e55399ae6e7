"""The projected interclass distance, and the generalization bound that rests on it.

The distance says how far apart two classes are in the best r-dimensional view.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING
from typing import Any

import numpy as np

from ..core.arguments import check_count, check_number, check_seed
from ..core.deadline import Deadline
from ..core.matrices import binary_data
from ..core.memory import require_memory
from ..core.records import Certainty, Row, Table, number
from ..core.saved_records import Record
from ..errors import DataError
from ..nets.model import with_gradients
from ..result import Bracket, Status
from .bound import INDEPENDENT_SAMPLES, Bound, check_delta, confidence_term
from .view_search import ViewSearch

_COPIES = 2
"""Arrays of the differences of all pairs that are held at once: they, and their squares."""


@dataclass(frozen=True)
class InterclassDistance(Record):
    """A view in which two classes are far apart, and a bound of how far they are in any other."""

    #: The least distance of samples of different class in the view, in the units of X; attained
    distance: float
    upper_bound: float  #: A proved upper bound of Delta_r
    basis: np.ndarray  #: (d, r): Orthonormal columns that span the view
    status: Status  #: FINISHED, TIME_LIMIT or INTERRUPTED; the bracket is valid in any case

    @property
    def bracket(self) -> Bracket:
        """The interval [distance, upper_bound] in which Delta_r lies."""
        return Bracket(self.distance, self.upper_bound)

    def _table(self) -> Table:
        """How far apart the classes are, and at most in any view."""
        d, r = self.basis.shape
        rows: list[Row] = [
            ("in the view found", (number(self.distance), Certainty.MEASURED)),
            ("in any view, at most", (number(self.upper_bound, ROUND_CEILING), Certainty.PROVED)),
            ("views", f"{r} of {d} dimensions"),
            ("status", str(self.status)),
        ]
        return Table("Distance of two classes, in the units of X", rows)


@with_gradients
def interclass_distance(
    X: Any,
    y: Any,
    r: int,
    *,
    starts: int = 6,
    iterations: int = 60,
    seed: int = 0,
    time_limit: float | None = None,
) -> InterclassDistance:
    """The projected interclass distance: the least distance of two classes in the best view.

    Delta_r = max over orthogonal projections P of rank r of min over pairs of different class of
    |P x_i - P x_j|. For r = d it is the least distance. Below, a smoothed minimum is ascended over
    subspaces, from the optimum of a convex relaxation and from random ones, with ever sharper
    smoothing; the attained value is that of all pairs. The upper bound: for any weights p of pairs,
    Delta_r^2 <= the sum of the r largest eigenvalues of sum p z z', z the differences.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Inputs.
    y : array_like, shape (n,)
        Labels {-1, +1} or {0, 1}, both present.
    r : int
        The dimension of the view, 1 to d.
    starts : int, default 6
        How many ascents there are; the first begins at the optimum of the relaxation.
    iterations : int, default 60
        Steps of each ascent, for each smoothing.
    seed : int, default 0
        Seed of the random starts.
    time_limit : float, optional
        Seconds after which the best view so far is returned, with a valid bracket, as at Ctrl-C.

    Returns
    -------
    InterclassDistance
        The view, its distance and the upper bound.

    Raises
    ------
    DataError
        The data have a wrong shape or kind, or are of one class.
    ArgumentError
        Another argument is out of its range.

    Examples
    --------
    The two first coordinates of this data alone tell the classes apart.

    >>> import netmargin as nm
    >>> X, y = nm.datasets.hypercube(60, 4)
    >>> found = nm.bounds.interclass_distance(X, y, 2)
    >>> found.distance >= 2**0.5 * (1 - 1e-3) and found.distance <= found.upper_bound
    True

    Source: Chizat and Bach 2020, (10).
    """
    deadline, seed = Deadline(time_limit), check_seed(seed)
    starts, iterations = check_count("starts", starts), check_count("iterations", iterations)
    data = binary_data(X, y, bias=False)
    d = data.Z.shape[1]
    r = check_count("r", r, at_most=d)
    positive = int((data.y > 0).sum())
    if not 0 < positive < len(data):
        raise DataError("All labels are the same: give samples of both classes.")
    # Squares of very large or small inputs would leave the range of float64.
    Z = data.Z / data.size
    require_memory(
        _COPIES * 8 * d * positive * (len(data) - positive),
        f"An interclass distance of {positive:,} and {len(data) - positive:,} samples",
        "Take a part of each class: the distance of a part is an upper bound.",
    )
    differences = (Z[data.y > 0][:, None] - Z[data.y < 0][None]).reshape(-1, d)
    squares = (differences**2).sum(1)
    scale = math.sqrt(float(squares.min()))
    # All of R^d is the best view, and no view parts two samples that coincide.
    if r == d or scale == 0:
        known = data.size * scale
        return InterclassDistance(known, known, np.eye(d)[:, :r], Status.FINISHED)
    search, status = ViewSearch(differences, squares, r, seed, deadline), Status.FINISHED
    try:
        search.run(starts, iterations)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except TimeoutError:
        status = Status.TIME_LIMIT
    found = data.size * math.sqrt(search.value)
    upper = data.size * math.sqrt(max(search.upper, search.value))
    return InterclassDistance(found, upper, search.best, status)


def interclass_bound(
    n: int,
    *,
    distance: float,
    radius: float,
    r: int,
    constant: float,
    epsilon: float = 0.5,
    delta: float = 0.05,
) -> Bound:
    """Bound the test error of the F_1-max-margin classifier by the interclass distance.

    C / sqrt n (R / Delta_r)^{(r + 3) / (2 - epsilon)} + sqrt(log B / n) + confidence, whatever the
    dimension d of the inputs, with B = log_2(4 (R + 1) C) + (r + 2) log_2(R / Delta_r). For r = d
    it holds for F_2 too. The paper does not give C: the bound is a rate, and its number as good as
    that choice.

    Parameters
    ----------
    n : int
        The number of training samples.
    distance : float
        Delta_r of the distribution, at most that of the samples.
    radius : float
        R >= |x| for all x of the distribution.
    r : int
        The dimension of the view.
    constant : float
        The paper's C_epsilon(r), taken for its C_2(r) in B as well.
    epsilon : float, default 0.5
        What the exponent lacks of (r + 3) / 2, between 0 and 1; C depends on it.
    delta : float, default 0.05
        The probability with which the bound may fail.

    Returns
    -------
    Bound
        Three terms: complexity, the union over all margins, confidence.

    Raises
    ------
    ArgumentError
        An argument is out of its range, such as a distance above 2 R.

    Examples
    --------
    >>> import netmargin as nm
    >>> bound = nm.bounds.interclass_bound(10**6, distance=1.0, radius=1.0, r=2, constant=10.0)
    >>> round(bound.terms["complexity"], 4), bound.assumptions[-1]
    (0.01, 'the constants C_epsilon(2) and C_2(2) are 10 (chosen)')

    Source: Chizat and Bach 2020, Theorem 8 (Theorem 21).
    """
    n, r, delta = check_count("n", n), check_count("r", r), check_delta(delta)
    radius = check_number("radius", radius, above=0)
    constant = check_number("constant", constant, above=0)
    distance = check_number("distance", distance, above=0, at_most=2 * radius)
    epsilon = check_number("epsilon", epsilon, above=0, below=1)
    ratio = radius / distance
    scales = math.log2(4 * (radius + 1) * constant) + (r + 2) * math.log2(ratio)
    terms = {
        "complexity": constant / math.sqrt(n) * ratio ** ((r + 3) / (2 - epsilon)),
        # B counts scales of the margin; below 1 its logarithm would be a negative term.
        "all margins at once": math.sqrt(math.log(max(scales, 1.0)) / n),
        "confidence": confidence_term(n, delta),
    }
    small = f"|x| <= {radius:.4g}; Delta_{r} of all is at most {distance:.4g}, and small enough"
    chosen = f"the constants C_epsilon({r}) and C_2({r}) are {constant:g} (chosen)"
    return Bound(terms, 1 - delta, (INDEPENDENT_SAMPLES, small, chosen))
