"""The definition of a figure or table of a paper, from its settings per scale to its checks."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from ...core.records import short_repr
from ..contents import import_figure, list_figures, require_known

Settings = Mapping[str, Any]
Row = dict[str, Any]
"""Parameters and results of one run, JSON values."""

SCALES = ("smoke", "laptop", "paper")
"""The sizes at which every figure can be computed: seconds, minutes, the paper's own settings. A
figure may have others, between the last two.
"""


def by_scale(**settings: Any) -> dict[str, Settings]:
    """Settings at each of SCALES: a tuple is one value for each, all else the same at all."""
    return {
        scale: {name: v[at] if isinstance(v, tuple) else v for name, v in settings.items()}
        for at, scale in enumerate(SCALES)
    }


def cross(**values: Iterable) -> list[Row]:
    """List runs with every combination of these values, those named last changing fastest."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def list_seeds(settings: Settings) -> list[Row]:
    """List as many `runs` as the settings say, or one, from their `seed` or 0 on."""
    first = settings.get("seed", 0)
    return cross(seed=range(first, first + settings.get("runs", 1)))


@dataclass(frozen=True)
class Check:
    """One sentence of the finding, with numbers, and whether it holds.

    Parameters
    ----------
    sentence : str
        The finding in words, with the numbers that were found.
    holds : bool
        Whether these numbers bear the finding out.

    Examples
    --------
    >>> from netmargin.papers import Check
    >>> Check("the margin rises from 0.1 to 0.2", 0.2 > 0.1).holds
    True
    """

    sentence: str
    holds: bool

    __repr__ = short_repr


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper: how it is computed, drawn and checked.

    Settings are flat, `dict[str, JSON value]`; a row holds the parameters and results of one run.

    Parameters
    ----------
    finding : str
        What a reader should see, without a period at the end.
    scales : mapping from scale to settings
        The settings at each of "smoke", "laptop" and "paper", such as `by_scale` makes, and at
        scales of its own, in order of size.
    minutes : mapping from scale to float
        The computing time on two cores, estimated for "paper", measured for the others.
    compute : function (run, settings) -> row
        Computes one run, from its parameters and the settings. The results are JSON values;
        `seconds` among them replaces the measured time, where a run goes on after a kill.
    draw : function (settings, rows) -> matplotlib figure
        Draws the rows of all runs.
    check : function (settings, rows) -> list of `Check`
        Says what the rows show of the finding.
    differs : str
        How the settings differ from the paper's and why; "" where they do not, the default.
    runs : function (settings) -> list of rows
        Lists the parameters of each run, such as by `cross`; `list_seeds` by default.
    runs_of : str
        The id whose folder keeps the runs, where several figures are drawn from the same ones, by
        the same settings and `compute`. "" by default: its own.
    needs : str
        The id of a figure whose runs have to be there before its own; "" by default: none.
    concerns : function (run, name of a setting) -> bool
        Says whether a run depends on a setting; `compute` gets no others. By default it depends on
        all of them.
    with_folder : bool
        Whether `compute` takes a third argument: the run's own folder, for checkpoints.
    id, title : str
        The paper and the module's name with hyphens, such as "lyu-li/fig1", and the title of the
        paper's figure, from the module's docstring; `figure` sets both.

    Examples
    --------
    >>> from netmargin.papers.gallery.figure import figure
    >>> known = figure("wei-2019/fig1")
    >>> known.runs(known.scales["smoke"])
    [{'seed': 0}]
    """

    finding: str
    scales: Mapping[str, Settings]
    minutes: Mapping[str, float]
    compute: Callable[..., Row]
    draw: Callable[[Settings, list[Row]], Any]
    check: Callable[[Settings, list[Row]], list[Check]]
    differs: str = ""
    runs: Callable[[Settings], list[Row]] = list_seeds
    runs_of: str = ""
    needs: str = ""
    concerns: Callable[[Row, str], bool] = lambda run, setting: True
    with_folder: bool = False
    id: str = ""
    title: str = ""

    __repr__ = short_repr


def figure(id: str) -> Figure:
    """Look up a figure or table of the papers by its id. Raises ArgumentError if there is none."""
    known = list_figures()
    require_known("figure", id, known, known)
    module = import_figure(id)
    _, _, title = " ".join((module.__doc__ or "").split()).partition(": ")  # "Figure 1: title."
    return replace(module.FIGURE, id=id, title=title.rstrip("."))
