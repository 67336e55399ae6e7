"""What every generalization bound returns, and the margin bound that most are instances of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..core.arguments import check_number
from ..core.matrices import as_array
from ..core.records import short_repr
from ..errors import DataError


@dataclass(frozen=True)
class Bound:
    """An upper bound of a test error (or loss) that holds with a probability over the draw of the
    training samples.

    terms : its summands by name.
    confidence : 1 - delta.
    assumptions : what must hold, and constants that had to be chosen.
    largest : what the quantity can be at most in any case, 1 for errors; a bound above that is
        vacuous.
    """

    terms: Mapping[str, float]
    confidence: float
    assumptions: tuple[str, ...]
    largest: float = 1.0

    __repr__ = short_repr

    @property
    def value(self) -> float:
        """The sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing."""
        return not self.value < self.largest

    def summary(self) -> str:
        """Value, terms and assumptions, one per line."""
        verdict = "vacuous" if self.vacuous else f"with probability at least {self.confidence:g}"
        lines = [
            f"at most {self.value:.4g} ({verdict})",
            *(f"  {value:12.4g}  {name}" for name, value in self.terms.items()),
        ]
        return "\n".join(lines + [f"  assumes: {text}" for text in self.assumptions])


def margin_bound(
    q,
    *,
    rademacher: float,
    largest: float,
    margin: float | None = None,
    delta: float = 0.05,
    assumptions: tuple[str, ...] = (),
) -> Bound:
    """Pr[y f(x) <= 0] <= mean ramp loss + 4 Rad / gamma + sqrt(log log_2(4 C / gamma) / n) +
    sqrt(log(1 / delta) / 2n), for all f of a class and all gamma at once.

    q : (n,), training margins y_n f(x_n) of one f in the class.
    rademacher : Rad, the *expected* Rademacher complexity of the class for n samples, or an upper
        bound.
    largest : C >= |f(x)| for all f in the class and all x.
    margin : gamma; min q by default, where the ramp loss, min(1, max(0, 1 - q / gamma)), is 0.

    Raises
    ------
    DataError : margins that are not finite or above C, a least margin that is not positive.
    ArgumentError : the other arguments, such as gamma above 2 C.

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
    if np.abs(q).max() > largest * (1 + 1e-6):
        raise DataError(
            f"A margin of {np.abs(q).max():.4g} is impossible for |f(x)| <= {largest:.4g}, as"
            " `largest` or `radius` says. Are margins divided by the norm, such as report.q /"
            " report.norm**2?"
        )
    if margin is None and q.min() <= 0:
        raise DataError(
            f"The least margin is {q.min():.4g}, not positive: some sample is wrong. Give a"
            " positive `margin` below which samples count as errors."
        )
    gamma = (
        float(q.min())
        if margin is None
        else check_number("margin", margin, above=0, at_most=2 * largest)
    )
    n = len(q)
    return Bound(
        {
            "training margins below gamma (ramp loss)": float(
                np.clip(1 - q / gamma, 0.0, 1.0).mean()
            ),
            "complexity, 4 Rad / gamma": 4 * rademacher / gamma,
            "all margins at once": math.sqrt(math.log(math.log2(4 * largest / gamma)) / n),
            "confidence": confidence_term(n, delta),
        },
        1 - delta,
        ("samples drawn independently from one distribution", *assumptions),
    )


def finite_array(values, name: str) -> np.ndarray:
    """A flat float64 array, of tensors too. Raises DataError where it is empty or not finite."""
    found = as_array(values, name).reshape(-1)
    if not found.size or not np.isfinite(found).all():
        raise DataError(f"{name} must hold at least one number, all finite.")
    return found


def confidence_term(n: int, delta: float) -> float:
    """sqrt(log(1 / delta) / 2n)."""
    return math.sqrt(math.log(1 / delta) / (2 * n))


def check_delta(delta: float) -> float:
    """The probability at which a bound may fail, above 0 and below 1. Raises ArgumentError."""
    return check_number("delta", delta, above=0, below=1)
