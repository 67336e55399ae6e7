"""What a figure or table of a paper is: settings per scale, the runs it is made of, how they are
drawn, and what they should show.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.arguments import suggest_word
from ...core.records import short_repr
from ...errors import ArgumentError
from ..contents import import_figure, list_figures

Settings = Mapping[str, Any]
Row = dict[str, Any]
"""Parameters and results of one run, JSON values."""

SCALES = ("smoke", "laptop", "paper")


@dataclass(frozen=True)
class Check:
    """One sentence of the finding, with numbers, and whether it holds."""

    sentence: str
    holds: bool

    __repr__ = short_repr


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    title : of the paper's figure.
    finding : what to see.
    differs : from the paper, and why.
    scales : flat settings by scale, "smoke", "laptop", "paper".
    minutes : by scale on two cores, measured for "smoke" and "laptop", estimated for "paper".
    runs : the parameters of each run, from the settings.
    compute : one run, from its parameters, the settings and a folder of its own for checkpoints;
        results as JSON values; `seconds` among them replaces the measured time, where a run goes on
        after a kill.
    concerns : whether a run depends on a setting, all by default; `compute` gets no others.
    draw : a matplotlib figure of the settings and the rows of all runs.
    check : what the rows show of the finding.
    runs_of : whose folder keeps the runs, where several figures are drawn from the same ones, by
        the same settings and `compute`; its own id by default.
    needs : the figure whose runs have to be there before its own.
    """

    id: str
    title: str
    finding: str
    differs: str
    scales: Mapping[str, Settings]
    minutes: Mapping[str, float]
    runs: Callable[[Settings], list[Row]]
    compute: Callable[[Row, Settings, Path], Row]
    draw: Callable[[Settings, list[Row]], Any]
    check: Callable[[Settings, list[Row]], list[Check]]
    runs_of: str = ""
    needs: str = ""
    concerns: Callable[[Row, str], bool] = lambda run, setting: True

    __repr__ = short_repr


def figure(id: str) -> Figure:
    """The figure of that id. Raises ArgumentError where there is none."""
    known = list_figures()
    if not isinstance(id, str) or id not in known:
        guess = suggest_word(id, known)
        raise ArgumentError(
            f"id: there is no figure {id!r}. {guess + ' ' if guess else ''}Choose one of"
            f" {', '.join(known)}."
        )
    return import_figure(id).FIGURE
