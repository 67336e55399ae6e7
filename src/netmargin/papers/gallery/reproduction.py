"""Reproduce a figure or table: compute, draw, write the numbers, and check the finding."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.arguments import check_choice, check_count, check_flag, check_optional, check_path
from ...core.files import write_atomically
from ...core.records import Shown
from ...figures.style import save_drawings
from ...nets.shared import alone
from ...version import __version__
from .figure import Check, Figure, Row, figure
from .runs import plan_runs, read_rows
from .sweep import sweep

OUT = Path("runs/reproduce")


@dataclass(frozen=True)
class Reproduction(Shown):
    """A figure or table that was computed, drawn and checked."""

    figure: Figure  #: What was reproduced
    scale: str  #: "smoke", "laptop", "paper", or one of the figure's own
    rows: list[Row]  #: Parameters and results of every run, with its `seconds` and `hardware`
    checks: list[Check]  #: What the rows show of the finding
    folder: Path  #: Holds figure.png, figure.pdf, numbers.csv, numbers.json and the runs

    _shown = ("scale", "holds", "minutes", "rows", "checks")

    @property
    def minutes(self) -> float:
        """The computing time of all runs, added up."""
        return float(sum(row["seconds"] for row in self.rows)) / 60

    @property
    def holds(self) -> bool:
        """Whether every check holds, so that the finding is reproduced."""
        return all(check.holds for check in self.checks)

    def summary(self) -> str:
        """Write the finding, each check and the time as a few lines of text."""
        lines = [
            f"{self.figure.id} at {self.scale} scale: {self.figure.title}",
            f"to see: {self.figure.finding}",
        ]
        lines += [f"  {'yes' if check.holds else 'NO '}  {check.sentence}" for check in self.checks]
        took = f"{len(self.rows)} runs, {self.minutes:.1f} minutes of computing"
        return "\n".join([*lines, f"{took}; written: {self.folder}/"])

    __str__ = summary


@alone()
def reproduce(
    id: str,
    scale: str = "smoke",
    *,
    out: str | Path = OUT,
    jobs: int | None = None,
    progress: bool = True,
) -> Reproduction:
    """Compute, draw and check a figure or table of the papers.

    It writes figure.png and .pdf, numbers.csv and .json to the folder `out`/`id`/`scale`, and a
    file for every run as soon as it is done. What was computed before is not computed again. Within
    `split_samples` each process does that by itself, and takes what another one has left in files.
    Source: the paper and the figure that `id` names.

    Parameters
    ----------
    id : str
        One of the ids that `list_figures` lists, such as "lyu-li/fig1".
    scale : str
        "smoke" (seconds, the default), "laptop" (minutes), "paper" (the paper's own settings), or
        one that the figure has besides, such as "deep" (an hour or two).
    out : str or Path, default "runs/reproduce"
        Folder for all figures and their runs, made where it is not there.
    jobs : int or None, default None
        The number of processes. None: one for each core, or what `joblib.parallel_config` says, on
        a cluster too (docs/cluster.md).
    progress : bool, default True
        Whether to show the runs that are done as they come.

    Returns
    -------
    Reproduction
        The rows of all runs and what they show of the finding.

    Raises
    ------
    ArgumentError, CheckpointError
        If an argument cannot be used, `out` be written, or workers on other machines write
        elsewhere.
    Interrupted
        If Ctrl-C came. The runs that are done are kept, and the same call goes on.
    DataError, NetmarginError
        If a run found a number that is not finite, or a process was killed.

    Examples
    --------
    >>> import tempfile, netmargin as nm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = nm.papers.reproduce("chizat-bach/fig2a", out=folder, jobs=1, progress=False)
    >>> result.holds, sorted(result.rows[0])
    (True, ['X', 'distance', 'hardware', 'seconds', 'seed', 'upper_bound', 'y'])
    """
    chosen = figure(id)
    settings = chosen.scales[check_choice("scale", scale, chosen.scales)]
    jobs, progress = check_optional(check_count, "jobs", jobs), check_flag("progress", progress)
    out = check_path("out", out)
    folder = Path(out) / id / scale
    for _, error in sweep([id], scale, out=Path(out), jobs=jobs, progress=progress):
        if error is not None:
            raise error
    rows = read_rows(plan_runs(id, scale, out))
    result = Reproduction(chosen, scale, rows, chosen.check(settings, rows), folder)
    save_drawings({"figure": chosen.draw(settings, rows)}, folder)
    numbers = {
        "id": id,
        "scale": scale,
        "settings": dict(settings),
        "checks": [{"sentence": c.sentence, "holds": bool(c.holds)} for c in result.checks],
        "minutes": result.minutes,
        "hardware": "; ".join(sorted({row["hardware"] for row in rows})),
        "netmargin": __version__,
        "rows": rows,
    }
    text = json.dumps(numbers, indent=1, allow_nan=False)
    write_atomically(folder / "numbers.json", text.encode())
    write_atomically(folder / "numbers.csv", _write_table(rows).encode())
    return result


def describe_status(id: str, scale: str, out: Path) -> str:
    """Say how far a figure is: "-", "3 of 8 runs", "computed" alone, "holds" or "DOES NOT HOLD"."""
    known, runs = figure(id), plan_runs(id, scale, out)
    done = sum(planned.is_done for planned in runs)
    if done < len(runs):
        return f"{done} of {len(runs)} runs" if done else "-"
    numbers = read_numbers(known, scale, out)
    if numbers is None:
        return "computed"
    return "holds" if all(check["holds"] for check in numbers["checks"]) else "DOES NOT HOLD"


def read_numbers(known: Figure, scale: str, out: str | Path) -> dict[str, Any] | None:
    """Read the numbers that a reproduction wrote; None where none are, or of other settings."""
    try:
        numbers = json.loads((Path(out) / known.id / scale / "numbers.json").read_text())
    except (OSError, ValueError):
        return None
    told = {"settings", "checks", "minutes", "hardware"}
    whole = isinstance(numbers, dict) and told <= numbers.keys()
    return numbers if whole and numbers["settings"] == known.scales[scale] else None


def _write_table(rows: list[Row]) -> str:
    """Write the columns of numbers and words as CSV; curves are in the JSON file."""
    columns = [
        name for name in rows[0] if not any(isinstance(row[name], list | dict) for row in rows)
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
