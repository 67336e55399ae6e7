"""The definition of a figure or table of a paper, from its settings per scale to its checks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ...core.records import Shown
from ..contents import import_figure, list_figures, require_known

Settings = Mapping[str, Any]
Row = dict[str, Any]
"""Parameters and results of one run, JSON values."""

SCALES = ("smoke", "laptop", "paper")
"""Seconds, minutes, the paper's own settings; a figure may have others between the last two."""


def by_scale(**settings: Any) -> dict[str, Settings]:
    """Settings at each of SCALES: a tuple is one value for each, all else the same at all."""
    return {
        scale: {name: v[at] if isinstance(v, tuple) else v for name, v in settings.items()}
        for at, scale in enumerate(SCALES)
    }


def cross(**values: Iterable[Any]) -> list[Row]:
    """List runs with every combination of these values, those named last changing fastest."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def list_seeds(settings: Settings) -> list[Row]:
    """List as many `runs` as the settings say, or one, from their `seed` or 0 on."""
    first = settings.get("seed", 0)
    return cross(seed=range(first, first + settings.get("runs", 1)))


@dataclass(frozen=True)
class Check(Shown):
    """One sentence of the finding, with numbers, and whether they bear it out."""

    sentence: str
    holds: bool


@dataclass(frozen=True)
class Figure(Shown):
    """A figure or table of a paper: how it is computed, drawn and checked.

    Settings are flat; a row holds the parameters and results of one run. Both have JSON values.
    docs/extending.md makes a figure.
    """

    finding: str  # what a reader should see, without a period at the end
    scales: Mapping[str, Settings]  # such as `by_scale` makes; those of its own in order of size
    minutes: Mapping[str, float]  # by scale, on two cores; estimated for "paper"
    compute: Callable[..., Row]  # of a run and the settings; `seconds` replace the measured ones
    draw: Callable[[Settings, list[Row]], Any]  # a matplotlib figure
    check: Callable[[Settings, list[Row]], list[Check]]
    differs: str = ""  # how the settings differ from the paper's, and why
    runs: Callable[[Settings], list[Row]] = list_seeds  # the parameters of each run
    runs_of: str = ""  # the id whose folder keeps the runs, where figures of these settings share
    # Whether a run depends on a setting, by its name; `compute` gets no others.
    concerns: Callable[[Row, str], bool] = lambda run, setting: True
    with_folder: bool = False  # whether `compute` gets the run's own folder, too, for checkpoints
    id: str = ""  # such as "lyu-li/fig1"; `figure` sets it, and the title
    title: str = ""

    _shown = ("id", "title", "finding", "differs")


def figure(id: str) -> Figure:
    """Look up a figure or table of the papers by its id. Raises ArgumentError if there is none."""
    known = list_figures()
    require_known("figure", id, known, known)
    module = import_figure(id)
    _, _, title = " ".join((module.__doc__ or "").split()).partition(": ")  # "Figure 1: title."
    found: Figure = replace(module.FIGURE, id=id, title=title.rstrip("."))
    return found
