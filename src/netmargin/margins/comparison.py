"""The record of a comparison of nets: a table of them, and the differences of all pairs."""

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.records import Certainty, Row, Table, json_ready, number, values_of
from ..core.saved_records import Record
from .intervals import ERROR, WEIGHTED_ERROR, Interval, Z
from .quantiles import quantile_names
from .report import MarginReport


@dataclass(frozen=True)
class Difference(Record):
    """A number of two nets on the same samples, and what chance could make of its difference.

    Attributes
    ----------
    data, number : str
        "training" or "held-out"; "error", "z", "margin-weighted error" or "input margin 25%".
    first, second : str
        The names of the nets.
    value : float or None
        The number of the first net minus that of the second; None where one has none.
    interval : (float, float) or None
        95% interval of the difference on all samples of this kind.
    note : str
        Why a difference of this number does not say which of the two nets is better, or "".
    """

    data: str
    number: str
    first: str
    second: str
    value: float | None
    interval: Interval | None
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

    def to_dict(self) -> dict:
        """Return the difference as JSON-ready values; what is not finite is None."""
        low, high = self.interval or (None, None)
        ends = json_ready({"difference": self.value, "low": low, "high": high})
        names = values_of(self, "data", "number", "first", "second")
        return names | ends | values_of(self, "real", "note")


@dataclass(frozen=True)
class Comparison(Record):
    """Several nets on the same data, as `compare` returns them.

    Attributes
    ----------
    names : tuple of str
        The names of the nets.
    training, heldout : tuple of MarginReport
        A report for each net on the training data, and on held-out data; empty without such.
    differences : tuple of Difference
        For each pair of nets and each number that may compare them.
    z_intervals : tuple of (float, float) or None
        95% intervals of z on held-out data, net by net; empty without such.
    """

    names: tuple[str, ...]
    training: tuple[MarginReport, ...]
    heldout: tuple[MarginReport, ...]
    differences: tuple[Difference, ...]
    z_intervals: tuple[Interval | None, ...]

    _shown = ("names", "training", "heldout", "differences")

    @property
    def warning(self) -> str:
        """What is wrong with the scores of some nets, as `MarginReport.warning` says it, or ""."""
        warned = zip(self.names, self.training, strict=True)
        return " ".join(name_together((name, r.warning) for name, r in warned if r.warning))

    def frame(self):
        """Return a pandas DataFrame with one row per net.

        The columns are pairs of "training" or "held-out" and the name of a number.
        """
        import pandas

        columns: dict[tuple[str, str], list] = {}
        for index in range(len(self.names)):
            for key, value in self._row(index).items():
                columns.setdefault(key, []).append(value)
        frame = pandas.DataFrame(columns, index=pandas.Index(self.names, name="net"))
        frame.columns = pandas.MultiIndex.from_tuples(frame.columns, names=["data", "number"])
        return frame

    def difference_frame(self):
        """Return a pandas DataFrame with one row per pair of nets and number."""
        import pandas

        return pandas.DataFrame([difference.to_dict() for difference in self.differences])

    def to_dict(self) -> dict:
        """Return the table and the differences as JSON-ready values; infinite ones are None."""
        nets = {
            name: {f"{data} {number}": value for (data, number), value in self._row(i).items()}
            for i, name in enumerate(self.names)
        }
        return json_ready({"nets": nets, "differences": [d.to_dict() for d in self.differences]})

    def _table(self) -> Table:
        """A column for each net, held-out data first, and what is said of the differences."""
        rows: list[Row] = []
        notes: list[str] = []
        columns = [self._row(index) for index in range(len(self.names))]
        for data, heading in (
            ("held-out", "ON HELD-OUT SAMPLES ({} of them): this is what compares nets"),
            ("training", "ON THE TRAINING SAMPLES ({}): only for nets of one kind that fit them"),
        ):
            reports = self.heldout if data == "held-out" else self.training
            if not reports:
                notes.append(
                    "No held-out data: training data alone do not say which net is better."
                )
                continue
            rows.append((heading.format(reports[0].n),))
            for key in columns[0]:
                if key[0] == data:
                    estimated = key[1].startswith("input margin")
                    certainty = Certainty.ESTIMATED if estimated else Certainty.MEASURED
                    rows.append(((key[1], certainty), *(number(column[key]) for column in columns)))
            notes += [f"{data} {_sentence(d)}" for d in self.differences if d.data == data]
        if any("calibration" in difference.note for difference in self.differences):
            notes.append(
                "A change of calibration, by label smoothing or another loss, moves z,"
                " margin-weighted errors and input margins while every answer stays. Where the"
                " error does not say the same, they compare nets trained by one loss only."
            )
        measured = [r.input_margins.left_out for r in self.training if r.input_margins]
        notes += filter(None, measured[:1])
        notes.append(
            "Each interval covers 95% of data sets on its own: of 20 pairs of equal nets one may"
            " look different."
        )
        return Table(f"{len(self.names)} nets", rows, ("", *self.names), notes, self.warning)

    def _row(self, index: int) -> dict[tuple[str, str], float | None]:
        """The numbers of one net, by data and name."""
        report = self.training[index]
        numbers: dict[str, float | None] = {
            "error": report.error,
            **_near_share(report),
            "log10 mean loss": report.log10_mean_loss,
            "normalized margin": report.normalized_margin,
        }
        if report.input_margins is not None:
            names = (f"input margin {level}" for level in quantile_names())
            numbers |= zip(names, report.input_margins.quantiles(), strict=True)
        row = {("training", name): value for name, value in numbers.items()}
        if self.heldout:
            report, z_interval = self.heldout[index], self.z_intervals[index]
            low, high = report.error_interval
            z_low, z_high = z_interval or (None, None)
            numbers = {ERROR: report.error, "error from": low, "error to": high}
            numbers |= {**_near_share(report), Z: report.z}
            numbers |= {"z from": z_low, "z to": z_high}
            numbers[WEIGHTED_ERROR] = report.margin_weighted_error
            row |= {("held-out", name): value for name, value in numbers.items()}
        return row


def name_together(said: Iterable[tuple[str, str]]) -> list[str]:
    """Each sentence about some nets once, after the names of all that it is said of."""
    names: dict[str, dict[str, None]] = {}
    for name, sentence in said:
        names.setdefault(sentence, {})[name] = None
    return [f"{', '.join(of)}: {sentence}" for sentence, of in names.items()]


def _near_share(report: MarginReport) -> dict[str, float]:
    """The share of right or nearly right answers by its name, where it was measured."""
    share = report.near_accuracy
    return {} if share is None else {"right or nearly right": share}


def _sentence(difference: Difference) -> str:
    """A difference in words."""
    value, interval = difference.value, difference.interval
    if value is None or interval is None:
        why = difference.note or "no difference"
        return f"{difference.number}: {difference.first} and {difference.second}: {why}"
    verdict = "more than chance" if difference.more_than_chance else "not more than chance"
    verdict = "real" if difference.real else verdict
    note = f" ({difference.note})" if difference.note else ""
    return (
        f"{difference.number}: {difference.first} minus {difference.second} {value:+.4g}, 95%"
        f" {interval[0]:+.4g} to {interval[1]:+.4g}: {verdict}{note}"
    )
