"""The margin bound that most generalization bounds are instances of, and the record they return."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING
from typing import Any

import numpy as np

from ..core.arguments import check_number, check_optional
from ..core.matrices import Floats, as_array, finite_rows
from ..core.records import Table, number
from ..core.saved_records import Record
from ..errors import DataError

# Assumptions that several bounds share, as they are listed in `Bound.assumptions`.
INDEPENDENT_SAMPLES = "samples drawn independently from one distribution"
SAMPLE_MOMENT = (
    "mean |x|^2 of the distribution is at most that of the samples (its expected value stands in"
    " the theorem)"
)


@dataclass(frozen=True)
class Bound(Record):
    """An upper bound of a test error or loss that holds with high probability over the samples."""

    terms: Mapping[str, float]  #: The summands by name
    #: 1 - delta, the probability over the draw of the training samples with which it holds
    confidence: float
    assumptions: tuple[str, ...]  #: What must hold, and constants that had to be chosen
    #: The largest value that the bounded quantity can have in any case, 1 for errors; a bound that
    #: is not below it is vacuous
    largest: float = 1.0

    @property
    def value(self) -> float:
        """The bound itself, the sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing, because it is not below `largest`."""
        return not self.value < self.largest

    def _table(self) -> Table:
        """Value, terms and assumptions."""
        verdict = "vacuous" if self.vacuous else f"with probability at least {self.confidence:g}"
        return Table(
            f"at most {number(self.value, ROUND_CEILING)} ({verdict})",
            [(name, number(value)) for name, value in self.terms.items()],
            notes=[f"assumes: {text}" for text in self.assumptions],
        )


def margin_bound(
    q: Any,
    *,
    rademacher: float,
    largest: float,
    margin: float | None = None,
    delta: float = 0.05,
    assumptions: tuple[str, ...] = (),
) -> Bound:
    """Bound the test error of one function of a class by its training margins.

    For all f of the class and all gamma at once, Pr[y f(x) <= 0] <= mean ramp loss + 4 Rad / gamma
    + sqrt(log log_2(4 C / gamma) / n) + sqrt(log(1 / delta) / 2n), where the ramp loss of a sample
    is min(1, max(0, 1 - q / gamma)).

    Parameters
    ----------
    q : array_like, shape (n,)
        Training margins y_n f(x_n) of one f in the class.
    rademacher : float
        Rad, the *expected* Rademacher complexity of the class for n samples, or an upper bound.
    largest : float
        C >= |f(x)| for all f in the class and all x.
    margin : float, optional
        gamma, at most 2 C; min q by default, where the ramp loss is 0.
    delta : float, default 0.05
        The probability with which the bound may fail.
    assumptions : tuple of str
        What else must hold; listed in the result behind "samples drawn independently".

    Returns
    -------
    Bound
        Four terms: ramp loss, complexity, the union over all margins, confidence.

    Raises
    ------
    DataError
        If q is empty, not finite or above C, or if its least entry is not positive and no `margin`
        is given.
    ArgumentError
        If another argument is out of its range, such as gamma above 2 C.

    Examples
    --------
    >>> from netmargin.bounds import margin_bound
    >>> bound = margin_bound([1.0] * 10_000, rademacher=0.01, largest=2.0)
    >>> round(bound.value, 3), bound.vacuous
    (0.063, False)

    Source: Kakade, Sridharan, Tewari 2009, Theorem 2; Wei et al. 2018, Theorem C.1, which writes
    the empirical complexity for the expected one; Chizat and Bach 2020, Theorem 22.
    """
    q = finite_array(q, "q")
    rademacher = check_number("rademacher", rademacher, at_least=0)
    largest, delta = check_number("largest", largest, above=0), check_delta(delta)
    # Margins may come from float32 nets, so that rounding may bring them a little above C.
    if np.abs(q).max() > largest * (1 + 1e-6):
        raise DataError(
            f"A margin of {np.abs(q).max():.4g} is impossible for |f(x)| <= {largest:.4g}. Are"
            " margins divided by the norm, such as report.q / report.norm**2?"
        )
    gamma = check_optional(check_number, "margin", margin, above=0, at_most=2 * largest)
    if gamma is None and q.min() <= 0:
        raise DataError(
            f"The least margin in q is {q.min():.4g}, not positive: some sample is wrong. Where the"
            " bound takes a `margin`, give a positive one, below which samples count as errors."
        )
    gamma, n = gamma or float(q.min()), len(q)
    terms = {
        "training margins below gamma (ramp loss)": float(np.clip(1 - q / gamma, 0, 1).mean()),
        "complexity, 4 Rad / gamma": 4 * rademacher / gamma,
        "all margins at once": math.sqrt(math.log(math.log2(4 * largest / gamma)) / n),
        "confidence": confidence_term(n, delta),
    }
    return Bound(terms, 1 - delta, (INDEPENDENT_SAMPLES, *assumptions))


def finite_array(values: Any, name: str) -> Floats:
    """Numbers as a flat float64 array. Raises DataError where it is empty or not finite."""
    found = as_array(values, name).reshape(-1)
    if not found.size or not np.isfinite(found).all():
        raise DataError(f"{name} must hold at least one number, all finite.")
    return found


def bounded_inputs(X: Any, radius: float) -> Floats:
    """Inputs as a finite float64 array of shape (n, d). Raises DataError, for longer rows too."""
    rows = finite_rows(X)
    longest = float(np.linalg.norm(rows, axis=1).max())
    if longest > radius * (1 + 1e-12):
        raise DataError(
            f"radius must bound |x|, but a sample has |x| = {longest:.6g} > {radius:.6g}"
        )
    return rows


def confidence_term(n: int, delta: float) -> float:
    """Hoeffding's term sqrt(log(1 / delta) / 2n) for losses in [0, 1]."""
    return math.sqrt(math.log(1 / delta) / (2 * n))


def check_delta(delta: float) -> float:
    """The probability with which a bound may fail, above 0 and below 1. Raises ArgumentError."""
    return check_number("delta", delta, above=0, below=1)
