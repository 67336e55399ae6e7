"""The record that `robustness` returns."""

from dataclasses import dataclass
from decimal import ROUND_FLOOR
from typing import Any

import numpy as np

from ..core.records import Certainty, Row, Table, json_ready, number, plural, values_of
from ..core.saved_records import Record
from ..result import Status


@dataclass(frozen=True)
class RobustnessReport(Record):
    """The L2 robustness of a net on samples, as `robustness` returns it.

    Radii are in the units of the inputs. Both radii of a misclassified sample are 0. They are about
    the net in exact arithmetic, of which float64 scores tell no more than their rounding leaves.

    Source: Lyu and Li 2019, Appendix J.2.
    """

    lower: np.ndarray  #: (n,): Certified radii: no input nearer than this is misclassified
    #: (n,): Distances of the nearest misclassified inputs found; infinite where nothing was found
    upper: np.ndarray
    #: (n,): The margins of the samples, in float64. A sample whose margin is not positive, but may
    #: be so in exact arithmetic, has no certificate and a small upper radius.
    q: np.ndarray
    #: (n,): What the certified radius rests on: "Lipschitz constant", "relaxation" (a bound of the
    #: whole ball), "tree of regions", or "misclassified"; "" where nothing is certified, and the
    #: radius of 0 says nothing
    certified_by: np.ndarray
    #: (n,): What found the nearest input: "walk", "random search" or "search for proofs"; "" for
    #: none
    found_by: np.ndarray
    attacks: bool  #: Whether misclassified inputs were looked for
    scale: float  #: The median margin of right samples, or 1; attacks saw scores over a tenth of it
    #: The smallest and the largest value of an input; None for all of R^d
    box: tuple[float, float] | None
    effort: str  #: "quick", "standard" or "exact": which certificates were tried
    tol: float  #: The largest share of `upper` that a closed radius leaves open
    no_lower: str  #: Why no radius is certified (lower is 0 then), or ""
    #: Why relaxations and trees were not tried, or "": another net, or too many hidden units
    no_chain: str
    #: FINISHED; TIME_LIMIT, which kept some radii from being closed; or INTERRUPTED: of the samples
    #: from `examined` on no more is known than their margin. Their radii are 0 and infinite.
    status: Status
    examined: int  #: The number of samples whose radii were computed, the first ones
    #: (k, ...): The nearest misclassified inputs found, of the first k samples: at distance
    #: `upper`, NaN where nothing was found. k is the number of examined samples, or fewer, so that
    #: they are at most 2 million numbers. None where nothing was looked for.
    flips: np.ndarray | None = None
    warning: str = ""  #: As in `MarginReport`
    #: Whether `upper` is proved as well: every input found, and every sample with both radii 0, is
    #: misclassified by more than rounding. Where nothing bounds the rounding of the net, as with
    #: products of activations, they are misclassified in float64.
    upper_proved: bool = False

    _shown = ("n", "accuracy", "largest", "attacks", "box", "no_lower", "status")

    @property
    def n(self) -> int:
        """The number of samples, misclassified ones included."""
        return len(self.q)

    @property
    def accuracy(self) -> float:
        """The share of samples that are classified correctly, between 0 and 1."""
        return float((self.q > 0).mean())

    @property
    def not_found(self) -> int:
        """The number of samples that no attack could turn; 0 if none ran."""
        return int(np.isinf(self.upper[: self.examined]).sum()) if self.attacks else 0

    @property
    def closed(self) -> np.ndarray:
        """Which radii are known to `tol`: bool array, (n,); misclassified samples are."""
        return self.lower >= (1 - self.tol) * self.upper

    @property
    def largest(self) -> float:
        """The largest finite radius; 1 if none is positive."""
        both = np.concatenate([self.lower, self.upper])
        return float(both[np.isfinite(both)].max(initial=0.0)) or 1.0

    def curve(self, epsilons: Any = None) -> Any:
        """Compute the robust accuracy over epsilon, as a pandas DataFrame.

        The columns are `epsilon` and the shares of samples with radius above it, `certified` (by
        lower radii) and `attacked` (by upper ones, if there were attacks); the truth lies between.

        epsilons : array_like, radii; None takes 101 from 0 to the largest.
        """
        import pandas

        if epsilons is None:
            epsilons = np.linspace(0, self.largest, 101)
        epsilons = np.asarray(epsilons, dtype=float)
        ends = {"certified": self.lower, "attacked": self.upper}
        shares = {name: (radii > epsilons[:, None]).mean(1) for name, radii in ends.items()}
        return pandas.DataFrame({"epsilon": epsilons} | shares)

    def frame(self) -> Any:
        """Return a pandas DataFrame with one row per sample.

        The columns are q, lower, upper, certified_by, found_by and closed; lower is missing where
        nothing is certified.
        """
        import pandas

        return pandas.DataFrame(
            {
                "q": self.q,
                "lower": np.where(self.certified_by == "", np.nan, self.lower),
                "upper": self.upper,
                "certified_by": self.certified_by,
                "found_by": self.found_by,
                "closed": self.closed,
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-ready values; infinite radii are None. Medians are of the
        examined samples that are right, if there are any, as the summary has them.
        """
        ends = {"median_lower": self.lower, "median_upper": self.upper}
        medians = {name: np.median(radii[self._right]) for name, radii in ends.items()}
        totals: dict[str, Any] = json_ready(medians | {"closed": self.closed.sum()})
        return (
            values_of(self, "n", "accuracy", "not_found", "upper_proved", "attacks", "scale", "box")
            | values_of(self, "effort", "tol", "no_lower", "no_chain", "status", "examined")
            | values_of(self, "lower", "upper", "certified_by", "found_by")
            | totals
        )

    @property
    def _right(self) -> np.ndarray:
        """The samples of medians, bool (n,): the examined ones that are right, or else all."""
        right = (self.q > 0) & (np.arange(self.n) < self.examined)
        return right | ~right.any()

    def _table(self) -> Table:
        """The medians of what is proved and of what was found, and what limits them."""
        inputs = "R^d" if self.box is None else f"[{self.box[0]:g}, {self.box[1]:g}]^d"
        rows: list[Row] = [("right", (f"{self.accuracy:.2%}", Certainty.MEASURED))]
        rows.append(("inputs in", inputs))
        if self.examined:
            rows += self._describe_certified()
        if self.attacks and self.examined:
            middle = number(float(np.median(self.upper[self._right])))
            rows += [
                ("a flip is found at, median", (middle, Certainty.MEASURED)),
                ("found by", _count(self.found_by)),
                ("flips are", "proved" if self.upper_proved else "computed in float64"),
                ("no flip is found for", plural(self.not_found, "sample")),
            ]
        rows.append(("status", str(self.status)))
        if self.status is Status.INTERRUPTED:
            rows.append(("examined", f"{self.examined} of {plural(self.n, 'sample')}"))
        if not self._right[: self.examined].all():
            rows.append("The radii of a wrong sample are 0: medians are of the others.")
        return Table(f"Radii of {plural(self.n, 'sample')}", rows, warning=self.warning)

    def _describe_certified(self) -> list[Row]:
        """Rows about certified radii: what they rest on; what is not certified, and why."""
        if self.no_lower:
            missing = (("no radius is proved", self.no_lower), ("no relaxations", self.no_chain))
            return [row for row in missing if row[1]]
        middle = number(float(np.median(self.lower[self._right])), ROUND_FLOOR)
        closed = f"{int(self.closed[self._right].sum())} of {plural(self._right.sum(), 'sample')}"
        rows: list[Row] = [
            ("the answer stays up to, median", (middle, Certainty.PROVED)),
            ("proved by", _count(self.certified_by)),
            (f"both within {100 * self.tol:g}% for", closed),
        ]
        if self.no_chain:
            rows.append(("Lipschitz constants alone", self.no_chain))
        elif left := int((~self.closed[: self.examined]).sum()):
            rows.append(("left open", f"{plural(left, 'sample')}: {self._explain_open()}"))
        nothing = int((self.certified_by[: self.examined] == "").sum())
        if nothing:
            why = "the time limit" if self.status is Status.TIME_LIMIT else "rounding"
            rows.append(("nothing certified", f"{plural(nothing, 'sample')}: stopped by {why}"))
        return rows

    def _explain_open(self) -> str:
        """Say what kept samples open that were searched, and what would close them."""
        if self.effort == "quick":
            why = 'effort="quick" tries Lipschitz constants alone'
        elif self.status is Status.TIME_LIMIT:
            why = "stopped by the time limit"
        elif np.isinf(self.upper[: self.examined][~self.closed[: self.examined]]).all():
            why = "no misclassified input was found"
        elif self.effort == "standard":
            why = 'whole balls were not proved; effort="exact" splits them into regions'
        else:
            why = "rounding stopped the search"
        return f"{why}; certified radii ignore the box" if self.box else why


def _count(names: np.ndarray) -> str:
    """For how many samples each name stands, "" left out."""
    found, counts = np.unique(names[names != ""], return_counts=True)
    told = zip(found, counts, strict=True)
    return ", ".join(f"{name} for {plural(n, 'sample')}" for name, n in told) or "none"
