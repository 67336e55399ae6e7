"""The record of a training run: one row per accepted epoch, as JSON lines."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.files import explain_unreadable
from ..core.progress import Progress
from ..core.records import Cell, Certainty, Table, number, short_repr
from ..core.saved_records import Record
from ..result import Status

_SHOWN = 6
"""Epochs of the table, evenly over the run: the last one is among them."""
_COLUMNS = {
    "log10_mean_loss": "log10 of mean loss",
    "accuracy": "right",
    "heldout_log10_mean_loss": "of held-out samples",
    "heldout_accuracy": "right of these",
    "q_min": "smallest margin",
    "normalized_margin": "normalized margin",
}


@dataclass
class History(Record):
    """The rows of a training run, one per accepted epoch, and how it ended.

    Keys of `rows`: epoch (0 is before training), attempts (tries that this epoch took),
    gradient_samples (samples that went through a backward pass so far), relative_rate (alpha of the
    accepted try) and those of `MarginReport.to_dict()`.

    Examples
    --------
    >>> import netmargin as nm
    >>> history = nm.History([{"epoch": 0, "q_min": -1.0}, {"epoch": 1, "q_min": 0.5}])
    >>> len(history), history.column("q_min")
    (2, [-1.0, 0.5])
    """

    rows: list[dict[str, Any]] = field(default_factory=list)  #: With the keys above
    #: How the run ended, after the last row; RUNNING until then, and where it was read from a file,
    #: which does not say it
    status: Status = Status.RUNNING
    message: str = ""  #: A sentence on where and why it ended
    _title = "Training"  # of its table
    _over = "epoch", "epoch"  # what rows are over: key, head

    def __repr__(self) -> str:
        shown = [f"{len(self.rows)} rows"]
        if self.rows:
            last = self._describe_end()
            keys = ("log10_mean_loss", "normalized_margin", "accuracy", "q_min")
            values = ((key, _shown(last, key)) for key in keys)
            shown += [f"{key}={value:.6g}" for key, value in values if value is not None]
        return (
            f"<{type(self).__name__} {' '.join(shown)}"
            f" {short_repr(self, 'message' if self.message else 'status').split(' ', 1)[1]}"
        )

    def _table(self) -> Table:
        """Some epochs, evenly over the run, and how it ended."""
        first, last = self.rows[0] if self.rows else {}, len(self.rows) - 1
        chosen = sorted({round(last * k / (_SHOWN - 1)) for k in range(_SHOWN)}) if first else []
        columns = {key: name for key, name in _COLUMNS.items() if key in first}
        known = self.rows and _shown(self.rows[-1], "normalized_margin") is not None
        columns.pop("q_min" if known else "normalized_margin", None)
        if "temperature" in first:  # an ascent, whose rows have a norm of its own
            del columns["log10_mean_loss"]
        over, head = self._over
        rows = []
        for index in chosen:
            at = self.rows[index].get(over, index)
            place = str(at) if isinstance(at, int) else number(at)
            rows.append((place, *(number(_shown(self.rows[index], key)) for key in columns)))
        heads: list[Cell] = [head] * bool(rows)
        heads += [(name, Certainty.MEASURED) for name in columns.values()]
        notes = [self.message or str(self.status), self._describe_wrong()]
        notes.append(describe_heldout(self.rows))
        return Table(self._title, rows, heads, list(filter(None, notes)))

    def _describe_wrong(self) -> str:
        """How many samples are wrong at the end and by how much; "" where none is."""
        last = self.rows[-1] if self.rows else {}
        if not _is_wrong(last) or "q_min" not in last:
            return ""
        has_norm = last.get("normalized_margin") is not None
        later = " Normalized margins are shown once all are right." * has_norm
        if self.status is Status.STALLED or last["q_min"] == 0:  # no unit is active, as a rule
            later += (
                " More steps will not help: look for equal inputs with different labels, and take"
                " another start or more units."
            )
        return (
            f"{1 - last['accuracy']:.2%} of the samples are wrong at the end, the worst by"
            f" {number(-last['q_min'])} in the net's scores.{later}"
        )

    def _describe_end(self) -> dict[str, Any]:
        """Numbers of the net at the end of the run."""
        return self.rows[-1]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def separated(self) -> float | None:
        """The first epoch from which on all samples are right; None where the last has errors."""
        wrong = [index for index, row in enumerate(self.rows) if row["accuracy"] < 1]
        after = wrong[-1] + 1 if wrong else 0
        return self.rows[after]["epoch"] if after < len(self.rows) else None

    def column(self, name: str) -> list[Any]:
        """The values of one key over all rows."""
        return [row[name] for row in self.rows]

    def frame(self) -> Any:
        """The rows as a pandas DataFrame, one column per key."""
        import pandas

        return pandas.DataFrame(self.rows)

    @classmethod
    def load(cls, path: str | Path) -> "History":
        """Read the history.jsonl of a folder of checkpoints, also of a run that goes on.

        A last line that was cut off by a crash is left out. What `save` wrote is read by
        `netmargin.load`.

        Raises CheckpointError for a file that cannot be read or holds no JSON lines.
        """
        path = Path(path)
        with explain_unreadable(path, "not a history of JSON lines", ValueError):
            lines = path.read_text().splitlines(keepends=True)
            rows = [json.loads(line) for line in lines if line.endswith("\n")]
        return cls(rows, message="read from a file")


def _shown(row: dict[str, Any], key: str) -> Any:
    """A number of a row; no normalized margin where a sample is wrong, whose it would be."""
    return None if key == "normalized_margin" and _is_wrong(row) else row.get(key)


def _is_wrong(row: dict[str, Any]) -> bool:
    """Whether some sample is wrong, where the row says it."""
    return bool(row.get("accuracy", 1) < 1)


def describe_heldout(rows: list[dict[str, Any]]) -> str:
    """Where the held-out samples of a watch were best, and whether that is past; "" without any."""
    seen = [row for row in rows if row.get("heldout_log10_mean_loss") is not None]
    if not seen:
        return ""
    least, last = min(seen, key=lambda row: row["heldout_log10_mean_loss"]), seen[-1]
    most = max(seen, key=lambda row: row["heldout_accuracy"])
    said = (
        f"Of the held-out samples that were watched {last['heldout_accuracy']:.1%} are right at the"
        f" end; their loss was smallest at epoch {least['epoch']:g}, and most were right at epoch"
        f" {most['epoch']:g}, {most['heldout_accuracy']:.1%}"
    )
    better = most["heldout_accuracy"] > last["heldout_accuracy"] and most is not seen[0]
    return f"{said}: a checkpoint from there may serve better." if better else f"{said}."


def show_row(
    display: Progress, row: dict[str, Any], epochs_left: float | None, trying: int = 0
) -> None:
    """Show the last accepted epoch, and how many tries the next one has taken."""
    line = describe_row(row)
    display.draw(row["epoch"], epochs_left, line, f"  try {trying}" if trying > 1 else "")


def describe_row(row: dict[str, Any]) -> str:
    """One line about a row."""
    margin = row["normalized_margin"] if row["accuracy"] == 1 else None
    shown = f"  margin {margin:.4g}" if margin is not None else f"  q_min {row['q_min']:.4g}"
    return (
        f"epoch {row['epoch']}  log10-loss {row['log10_mean_loss']:.3f}  correct"
        f" {100 * row['accuracy']:.2f}%{shown}"
    )


def json_line(row: dict[str, Any]) -> str:
    """One row as a line of JSON, in which floats are written so that they read back bit for bit."""
    return json.dumps(row) + "\n"
