"""The record of a comparison of nets: a table of them, and the differences of all pairs."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import torch

from ..core.records import Certainty, Row, Table, json_ready, number, plural, values_of
from ..core.saved_records import Record
from ..nets.labels import ClassNames
from .intervals import ERROR, WEIGHTED_ERROR, Interval, Z, count_samples_that_tell
from .mistakes import doubt_split
from .quantiles import LEVEL_NAMES
from .report import MarginReport

_CLASSES = 3
"""Classes in which nets differ that a summary names, as that of one net does."""


@dataclass(frozen=True)
class Difference(Record):
    """A number of two nets on the same samples, and what chance could make of its difference."""

    data: str  #: "held-out", "these" or "training"
    number: str  #: "error", "z", "margin-weighted error" or "input margin 25%"
    first: str  #: The name of the first net
    second: str  #: The name of the second net
    #: The number of the first net minus that of the second; None where one has none
    value: float | None
    #: 95% interval of the difference on all samples of this kind
    interval: Interval | None
    #: Why a difference of this number does not say which of the two nets is better, or ""
    note: str = ""

    _shown = ("data", "number", "first", "second", "value", "real", "note")

    @property
    def more_than_chance(self) -> bool:
        """Whether the interval leaves out 0: other samples of this kind would hardly turn it."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]

    @property
    def real(self) -> bool:
        """Whether it is more than chance, and no note says what else may have made it."""
        return self.more_than_chance and not self.note

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON-ready values; what is not finite is None."""
        low, high = self.interval or (None, None)
        ends: dict[str, Any] = json_ready({"difference": self.value, "low": low, "high": high})
        names = values_of(self, "data", "number", "first", "second")
        return names | ends | values_of(self, "real", "note")

    def _table(self) -> Table:
        return Table(self._tell(), ())

    def _tell(self, *, turned: bool = False) -> str:
        """The difference in words; `turned`, the second net minus the first."""
        value, interval, names = self.value, self.interval, [self.first, self.second]
        what = f"{'training ' * (self.data == 'training')}{self.number}"
        if value is None or interval is None:
            return f"{what}: {' and '.join(names)}: {self.note or 'no difference'}"
        if turned:
            names, value, interval = names[::-1], -value, (-interval[1], -interval[0])
        verdict = "more than chance" if self.more_than_chance else "not more than chance"
        verdict = "real" if self.real else verdict
        note = f" ({self.note})" if self.note else ""
        return (
            f"{what}: {' minus '.join(names)} {value:+.4g}, 95% {interval[0]:+.4g} to"
            f" {interval[1]:+.4g}: {verdict}{note}"
        )


@dataclass(frozen=True)
class Comparison(Record):
    """Several nets on the same samples, as `compare` returns them."""

    names: tuple[str, ...]  #: The names of the nets
    #: A report for each net on the samples that compare them: the held-out ones, where given
    reports: tuple[MarginReport, ...]
    #: A report for each net on training data, where they were given beside held-out ones
    training: tuple[MarginReport, ...]
    #: For each pair of nets and each number that may compare them
    differences: tuple[Difference, ...]

    @property
    def kind(self) -> str:
        """What the samples that compare the nets are called: "held-out" or "these"."""
        return "held-out" if self.reports[0].heldout else "these"

    @property
    def warning(self) -> str:
        """What is wrong with the scores of some nets, as `MarginReport.warning` says it, or ""."""
        warned = zip(self.names, self.reports, strict=True)
        return " ".join(name_together((name, r.warning) for name, r in warned if r.warning))

    @property
    def verdict(self) -> list[str]:
        """A sentence for each net but the one with the fewest errors: what tells the two apart."""
        best = min(range(len(self.names)), key=lambda index: self.reports[index].error)
        others = (index for index in range(len(self.names)) if index != best)
        return [self._tell_apart(best, other) for other in others]

    def frame(self) -> Any:
        """Return a pandas DataFrame with one row per net.

        The columns are pairs of "held-out", "these" or "training" and the name of a number.
        """
        import pandas

        rows = [self._row(index) for index in range(len(self.names))]
        frame = pandas.DataFrame(rows, index=pandas.Index(self.names, name="net"))
        frame.columns = pandas.MultiIndex.from_tuples(rows[0], names=["data", "number"])
        return frame

    def class_frame(self) -> Any:
        """Return a pandas DataFrame of the samples per class, and how many each net gets wrong."""
        import pandas

        labels, missed = self.reports[0].labels, [report.q <= 0 for report in self.reports]
        classes = labels.unique().tolist()
        rows = [
            [int((labels == c).sum()), *(int((labels[own] == c).sum()) for own in missed)]
            for c in classes
        ]
        index = pandas.Index(map(self._called.of, classes), name="class")
        return pandas.DataFrame(rows, index, ["samples", *self.names])

    def disagreements(self) -> Any:
        """Return a pandas DataFrame of label and answers where not all nets answer alike."""
        import pandas

        answers = torch.stack([report.answers for report in self.reports])
        rows = torch.nonzero((answers != answers[0]).any(0))[:, 0]
        columns = torch.stack([self.reports[0].labels, *answers])[:, rows]
        named = [list(map(self._called.of, column)) for column in columns.tolist()]
        index = pandas.Index(rows.tolist(), name="sample")
        return pandas.DataFrame(dict(zip(["label", *self.names], named, strict=True)), index)

    def to_dict(self) -> dict[str, Any]:
        """Return the table and the differences as JSON-ready values; infinite ones are None."""
        nets = {
            name: {f"{data} {number}": value for (data, number), value in self._row(i).items()}
            for i, name in enumerate(self.names)
        }
        differences = [difference.to_dict() for difference in self.differences]
        return {"verdict": self.verdict, "nets": json_ready(nets), "differences": differences}

    @property
    def _called(self) -> ClassNames:
        """What the classes are called."""
        return ClassNames(self.reports[0].class_names)

    def _tell_apart(self, best: int, other: int) -> str:
        """What the errors of two nets say, of which the first makes no more."""
        names, n = (self.names[best], self.names[other]), len(self.reports[0].labels)
        missed = [(self.reports[index].q <= 0) for index in (best, other)]
        if torch.equal(*(self.reports[index].q for index in (best, other))):
            return f"{names[0]} and {names[1]} have the same margins: is it one net, given twice?"
        difference = next(
            d for d in self.differences if d.number == ERROR and {d.first, d.second} == {*names}
        )
        assert difference.interval is not None  # errors always have one
        fewer = int(missed[1].sum()) - int(missed[0].sum())
        low, high = (round(n * end) for end in sorted(map(abs, difference.interval)))
        if difference.more_than_chance:
            return f"{names[0]}: {fewer:,} fewer errors than {names[1]} (95%: {low:,} to {high:,})."
        told = f"{names[0]} and {names[1]} cannot be told apart with these samples:"
        if not fewer:
            return f"{told} they make as many errors."
        needed = count_samples_that_tell((missed[0] != missed[1]).double().mean().item(), fewer / n)
        return (
            f"{told} the {fewer:,} fewer errors of {names[0]} may be chance. About"
            f" {float(f'{needed:.1g}'):,.0f} would do, if the difference is what it seems."
        )

    def _list_classes(self) -> list[str]:
        """A sentence on the classes in which the errors of two nets differ by more than chance."""
        from scipy.stats import binomtest  # late: scipy.stats takes half a second to load

        said: list[tuple[int, str]] = []
        classes = self.reports[0].labels.unique().tolist()
        for i, j in combinations(range(len(self.names)), 2):
            missed = [self.reports[index].q <= 0 for index in (i, j)]
            for c in classes:
                own = self.reports[0].labels == c
                only = [int((own & missed[k] & ~missed[1 - k]).sum()) for k in (0, 1)]
                # McNemar's exact test, at 95% for all classes together (Bonferroni).
                if sum(only) and binomtest(only[0], sum(only)).pvalue * len(classes) <= 0.05:
                    counts = [int((own & wrong).sum()) for wrong in missed]
                    told = (
                        f"class {self._called.of(c)}: {self.names[i]} gets {counts[0]} of"
                        f" {int(own.sum())} wrong, {self.names[j]} {counts[1]}: more than chance"
                    )
                    said.append((abs(counts[0] - counts[1]), told))
        said.sort(key=lambda found: -found[0])
        more = [f"{len(said) - _CLASSES} more classes differ as clearly: see class_frame()."]
        return [told for _, told in said[:_CLASSES]] + more * (len(said) > _CLASSES)

    def _table(self) -> Table:
        """The verdict, a column for each net, and what is said of the other differences."""
        held, measured = self.reports[0].heldout, self.training or self.reports
        rows: list[Row] = []
        name = f"ON {'HELD-OUT' if held else 'THESE'} SAMPLES"
        columns = [self._row(index) for index in range(len(self.names))]
        for data, heading in (
            (self.kind, name),
            ("training", "ON THE TRAINING SAMPLES: only for nets of one kind that fit them"),
        ):
            keys = [key for key in columns[0] if key[0] == data and not key[1].startswith("error ")]
            rows += [(heading,)] if keys else []
            for key in keys:
                certain = not key[1].startswith("input margin")
                certainty = Certainty.MEASURED if certain else Certainty.ESTIMATED
                cells = [number(column[key]) for column in columns]
                if key == (self.kind, ERROR):
                    ends = [[f"{end:.2%}" for end in r.error_interval] for r in self.reports]
                    errors = zip(self.reports, ends, strict=True)
                    cells = [f"{r.error:.2%} ({' to '.join(own)})" for r, own in errors]
                rows.append(((key[1], certainty), *cells))
        # The net with fewer errors first, as in the verdict.
        error = {name: r.error for name, r in zip(self.names, self.reports, strict=True)}
        others = [d for d in self.differences if d.number != ERROR]
        notes = [d._tell(turned=error[d.first] > error[d.second]) for d in others]
        said = "z is the mean margin over its standard deviation: larger is better."
        pairs = zip(self.names, self.training, self.reports, strict=False)
        swapped = ((name, doubt_split(old.q <= 0, new.q <= 0)) for name, old, new in pairs)
        doubts = [f"{name}: {doubt}" for name, doubt in swapped if doubt]
        notes = [*doubts, *self._list_classes(), said, *notes]
        if different := len(self.disagreements()):
            notes.append(
                f"Their answers differ on {plural(different, 'sample')}: see disagreements()."
            )
        if any("calibration" in difference.note for difference in self.differences):
            notes.append(
                "A change of calibration, by label smoothing or another loss, moves z,"
                " margin-weighted errors and input margins while every answer stays. Where the"
                " error does not say the same, they compare nets trained by one loss only."
            )
        left_out = [r.input_margins.left_out for r in measured if r.input_margins]
        notes += filter(None, left_out[:1])
        if not held:
            notes.append("All this holds where no net was trained on these samples.")
        notes.append(
            "Each interval covers 95% on its own: of 20 pairs of equal nets one may look different."
        )
        what = plural(len(self.reports[0].labels), f"{'held-out ' * bool(held)}sample")
        title = " ".join([f"{len(self.names)} nets on {what}.", *self.verdict])
        return Table(title, rows, ("", *self.names), notes, self.warning)

    def _row(self, index: int) -> dict[tuple[str, str], float | None]:
        """The numbers of one net, by data and name."""
        report = self.reports[index]
        low, high = report.error_interval
        found: dict[str, float | None] = {"wrong": int((report.q <= 0).sum()), ERROR: report.error}
        found |= {"error from": low, "error to": high, **_near_share(report)}
        found |= {Z: report.z, WEIGHTED_ERROR: report.margin_weighted_error}
        found |= _quarters(report)
        row = {(self.kind, name): value for name, value in found.items()}
        if self.training:
            report = self.training[index]
            # Normalized margins of a net that is wrong somewhere are negative, and say nothing.
            margin = report.normalized_margin if report.q_min > 0 else None
            found = {"wrong": int((report.q <= 0).sum()), **_near_share(report)}
            found |= {"log10 mean loss": report.log10_mean_loss, "normalized margin": margin}
            found |= _quarters(report)
            row |= {("training", name): value for name, value in found.items()}
        return row


def name_together(said: Iterable[tuple[str, str]]) -> list[str]:
    """Each sentence about some nets once, after the names of all that it is said of."""
    names: dict[str, dict[str, None]] = {}
    for name, sentence in said:
        names.setdefault(sentence, {})[name] = None
    return [f"{', '.join(of)}: {sentence}" for sentence, of in names.items()]


def _quarters(report: MarginReport) -> dict[str, float]:
    """The quantiles of distances by their names, where they were measured."""
    if report.input_margins is None:
        return {}
    names = (f"input margin {level}" for level in LEVEL_NAMES)
    return dict(zip(names, report.input_margins.quantiles(), strict=True))


def _near_share(report: MarginReport) -> dict[str, float]:
    """The share of right or nearly right answers by its name, where it was measured."""
    share = report.near_accuracy
    return {} if share is None else {"right or nearly right": share}
