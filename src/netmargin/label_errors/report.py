"""The labels of a data set, each with how suspicious it is."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..core.arguments import check_count, check_optional, check_path
from ..core.files import write_atomically
from ..core.records import Certainty, Table, number, values_of
from ..core.saved_records import Record
from ..nets.labels import name_labels

_SHOWN = 10
"""Samples in the summary and in a notebook: what fits on a screen beside their description."""


@dataclass(frozen=True)
class LabelErrors(Record):
    """Labels that may be wrong, as `label_errors` finds them.

    Tensors are in the order of the samples; `order` and the tables put the worst first.
    """

    given: Tensor  #: (n,), int64: The label of each sample, as given
    suggested: Tensor  #: (n,), int64: The label that all other samples predict, of those not given
    #: (n,), float64: How much more the given label is predicted than the suggested one; negative
    #: where the others speak against it, and the lower the more suspicious
    scores: Tensor
    #: (n,), float64: Estimated probability that the label is wrong, as far as classes that overlap
    #: do not explain it; 0 where nothing can be told
    wrong: Tensor
    share: float  #: Estimated share of wrong labels among all, the mean of `wrong`
    #: The share that wrong labels do not exceed, with confidence 95%, whether classes overlap or
    #: not, if they are drawn at random among the other classes. There may be none.
    at_most: float
    basis: str  #: What the scores rest on, in words
    #: Groups of samples that are equal and have different labels: at least one of each is wrong
    conflicts: tuple[tuple[int, ...], ...] = ()
    #: The names of the classes, where they were given; tables show them in place of numbers
    class_names: tuple[str, ...] | None = None
    #: (n,), int64: The group of each sample, whose members were left out together when one was
    #: predicted; or None
    groups: Tensor | None = None
    copies: str = ""  #: How many groups have several members, in words, or ""
    #: Labels of the classes of which nothing can be told, as the samples hardly tell them from
    #: others: of none of their samples a label is called wrong, and they are last in the order
    untold: tuple[int, ...] = ()
    #: What the rows are called, where inputs or labels came with an index: so are those of tables
    index: tuple[int | str, ...] | None = None

    _shown = ("n", "share", "at_most", "basis", "conflicts")

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.given)

    @property
    def count(self) -> int:
        """The estimated number of wrong labels, beyond what classes that overlap explain."""
        return round(self.share * self.n)

    @property
    def count_at_most(self) -> int:
        """The number that wrong labels do not exceed, with confidence 95%."""
        return math.floor(self.at_most * self.n)

    @property
    def tells_nothing(self) -> bool:
        """Whether the samples say too little about the labels to call any of them wrong."""
        return set(self.given.tolist()) <= set(self.untold)

    @property
    def verdict(self) -> str:
        """How many labels are wrong: about, and at most, with confidence 95%."""
        most, n = f"at most {self.count_at_most:,}", f"{self.n:,} labels"
        if self.tells_nothing:
            return (
                f"Of {n} {most} are wrong (95% confidence), and there may be none. Which ones"
                " cannot be told: the samples say little about the labels, whose prediction is"
                " hardly better than the commonest one."
            )
        said = f"About {self.count:,} of {n} are wrong, {most} (95% confidence)."
        if not self.count:
            none = "there may be none: the scores show no more"
            said = f"Of {n} {most} are wrong (95% confidence), and {none}."
        if not self.untold:
            return said
        few = ", ".join(map(str, self._name(torch.tensor(self.untold[:6], device="cpu"))))
        return f"{said} Nothing can be told of labels {few}: they are hardly told from others."

    @property
    def order(self) -> Tensor:
        """Indices of all samples, the most suspicious first, shape (n,)."""
        order = torch.argsort(self.scores, stable=True)
        untold = torch.isin(self.given, torch.tensor(self.untold, dtype=torch.int64, device="cpu"))
        return order[torch.argsort(untold[order].long(), stable=True)]

    @property
    def flagged(self) -> Tensor:
        """Indices of the samples whose labels are to be looked at, the most suspicious first.

        They are as many as are estimated to be wrong, less those whose own label is predicted.
        """
        worst = self.order[: self.count]
        return worst[self.scores[worst] < 0]

    def frame(self, top: int | None = None) -> Any:
        """Return a pandas DataFrame, worst first: one row for each of the `top` samples, or of all.

        Its columns are `sample`, the number of the row, `given`, `suggested`, `score`, and
        `wrong_if_apart`, the estimated share of wrong labels from the first row to this one. Of
        rows with names these are its index, `row`.
        """
        import pandas

        order = self.order[: check_optional(check_count, "top", top, at_least=0)]
        shares = self.wrong[order].cumsum(0) / torch.arange(1, len(order) + 1, device="cpu")
        columns = {
            "sample": order.numpy(),
            "given": self._name(self.given[order]),
            "suggested": self._name(self.suggested[order]),
            "score": self.scores[order].numpy(),
            "wrong_if_apart": shares.numpy(),
        }
        rows = self.index and pandas.Index([self.index[n] for n in order], name="row")
        return pandas.DataFrame(columns, rows)

    def _name(self, labels: Tensor) -> Any:
        """Labels as tables show them: names where there are some."""
        # Of labels -1 and 1 the former has the first name.
        return name_labels(labels.clamp(min=0) if self.class_names else labels, self.class_names)

    def cleanlab(self) -> Any:
        """Return a pandas DataFrame with the columns of cleanlab's, one row for each sample.

        They are `is_label_issue`, `label_quality` (1 less the probability that the label is wrong),
        `given_label` and `predicted_label`, in the order of the samples.
        """
        import pandas

        predicted = torch.where(self.scores < 0, self.suggested, self.given)
        return pandas.DataFrame(
            {
                "is_label_issue": pandas.RangeIndex(self.n).isin(self.flagged.numpy()),
                "label_quality": (1 - self.wrong).numpy(),
                "given_label": self._name(self.given),
                "predicted_label": self._name(predicted),
            },
            self.index,
        )

    def write_csv(self, path: str | Path) -> Path:
        """Write the table of `frame` to a file, whole or not at all, and return its path.

        Raises ArgumentError for what is no path, CheckpointError where it cannot be written.
        """
        file = check_path("path", path)
        write_atomically(file, self.frame().to_csv(index=self.index is not None).encode())
        return file

    def to_dict(self) -> dict[str, Any]:
        """Return the main numbers, and the flagged samples, as JSON-ready values."""
        names = "n share at_most count basis flagged conflicts copies untold"
        return values_of(self, *names.split())

    def _table(self) -> Table:
        """How many labels are wrong, and the worst ten."""
        worst = self.frame(_SHOWN).drop(columns="wrong_if_apart")
        named = ("row",) if self.index else ()
        rows = [
            (*map(str, row[:-1]), number(row[-1])) for row in worst.itertuples(index=bool(named))
        ]
        spread = "That holds where wrong labels are spread over the other classes at random."
        notes = [self.verdict, spread, f"Scores from {self.basis}."]
        if self.copies:
            notes.insert(0, self.copies)
        if self.conflicts:
            notes.append(
                f"Groups of equal samples with different labels: {len(self.conflicts):,}, the first"
                f" {', '.join(map(str, self.conflicts[0][:6]))}."
            )
        heads = (*named, "sample", "given", "suggested", ("score", Certainty.MEASURED))
        return Table("Labels that may be wrong, worst first", rows, heads, notes)
