"""What a judge says of one answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from .rational import SLACK, exceeds, root, shown

TOLERANCE = Fraction(1, 10**6) * (1 + SLACK)
"""Of all solvers, as judged."""


@dataclass
class Verdict:
    """Of one instance.

    status : as the answer names it, or the name of the error with which it was refused.
    certified : as the answer says.
    faults : the statements that are false, each a sentence; none where all is true.
    """

    status: str
    certified: bool
    faults: list[str] = field(default_factory=list)

    def blame(self, false: bool, sentence: str) -> None:
        """Add a fault where a statement is false."""
        if false:
            self.faults.append(sentence)

    def check_closed(self, found) -> None:
        """A certified optimum has a bracket in order, and as narrow as the tolerance."""
        if self.status == "OPTIMAL":
            lower, upper = Fraction(found.bracket.lower), Fraction(found.bracket.upper)
            closed = upper - lower <= TOLERANCE * max(abs(lower), abs(upper))
            self.blame(not closed, f"{found.bracket} is called optimal")

    def check_attained(self, margin: float, least: Fraction, square: Fraction) -> None:
        """A function of squared norm `square` with the least margin `least` attains `margin`."""
        if square <= 0:
            return self.blame(margin > 0, f"margin {margin!r} of a function of norm {square}")
        attained = least / root(square)
        return self.blame(
            exceeds(Fraction(margin), least, square),
            f"margin {margin!r} is not attained, but {shown(attained)}, less by a part of"
            f" {shown(1 - attained / Fraction(margin)) if margin else ''}",
        )

    def check_proved(self, bound: float, square: Fraction) -> bool:
        """What dual weights prove, given by its square, is at most `bound`; else say so."""
        true = not exceeds(root(square), Fraction(bound))
        self.blame(
            not true,
            f"upper bound {bound!r}: the dual weights prove {shown(root(square))}, more by a part"
            f" of {shown(root(square) / Fraction(bound) - 1) if bound else 'infinity'}",
        )
        return true

    def check_objective(self, objective: float, attained: Fraction) -> None:
        """What is returned has at most `objective`."""
        self.blame(
            exceeds(attained, Fraction(objective)),
            f"objective {objective!r} is not attained, but {shown(attained)}, more by a part of"
            f" {shown(attained / Fraction(objective) - 1) if objective else 'infinity'}",
        )

    def check_residual(self, residual: float, values, targets) -> None:
        """The values miss their targets by `residual` at most, to 1e-9 of the largest target."""
        missed = max(abs(v - y) for v, y in zip(values, targets, strict=True))
        self.blame(
            missed > Fraction(residual) + max(map(abs, targets)) / 10**9,
            f"residual {residual!r}, but {shown(missed)}",
        )

    def check_lower(self, bound: float, proved: Fraction, square: Fraction = Fraction(1)) -> None:
        """The weights prove proved / sqrt(square), at least `bound`, or anything if square is 0."""
        settled = bound <= 0 or proved > 0
        false = not settled if square <= 0 else exceeds(Fraction(bound), proved, square)
        value = proved / (root(square) or 1)
        self.blame(
            false,
            f"lower bound {float(bound)!r}: the dual weights prove {shown(value)}, less by a part of"
            f" {shown(1 - value / Fraction(bound)) if bound else ''}",
        )


@dataclass(frozen=True)
class Entry:
    """A function of the library, and who judges it.

    draw : arguments of one call, from a generator of numbers.
    judge : calls the library with them and judges its answer.
    share : how often it is drawn, relative to the others: dear ones are rare.
    """

    name: str
    draw: Callable[[np.random.Generator], dict[str, Any]]
    judge: Callable[[dict[str, Any]], Verdict]
    share: float
