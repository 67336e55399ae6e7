"""The numbers behind each picture of a page as a table, for those who do not see the picture."""

from collections.abc import Sequence
from typing import Any

from ..core.records import Table
from .numbers import distance, percent, power_of_ten, significant
from .payload import Columns, Overview, Page, Radii, Split, Training

_LINES = 50
"""Lines of a table: enough to follow a curve, few enough to be read out."""
_SIZES = 21
"""Sizes of change in a table: twenty equal steps from 0."""


def write_tables(page: Page) -> dict[str, Table]:
    """The tables by the name of the chart; those of the classes by "classes-" and the split."""
    tables: dict[str, Table] = {}
    if page.overview is not None and page.overview.histograms:
        tables["histogram"] = _write_histogram(page.overview, page.splits)
    if page.classes is not None:
        for key, rows in page.classes.rows.items():
            names = [page.classes.names[label] for label in rows["label"]]
            tables[f"classes-{key}"] = _write_spread(names, rows)
    if page.change is not None:
        tables["change"] = _write_change(page.change.nets, page.change.largest)
    if page.labels is not None:
        heads = ("sample", "given", "suggested", "score", "probably wrong")
        tables["labels"] = Table("The most suspicious labels", page.labels.lines, heads)
    if page.training is not None:
        tables["training"] = _write_training(page.training)
    return tables


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table("Numbers behind this picture", rows, heads)


def _write_histogram(overview: Overview, splits: tuple[Split, ...]) -> Table:
    """How many samples of each split lie in each bar."""
    columns = [overview.histograms[split.key] for split in splits]
    bars = zip(columns[0]["from"], columns[0]["to"], strict=True)
    ranges = [f"{distance(low)} to {distance(high)}" for low, high in bars]
    if overview.folded[0]:
        ranges[0] = f"below {distance(columns[0]['to'][0])}"
    if overview.folded[1]:
        ranges[-1] = f"from {distance(columns[0]['from'][-1])}"
    heads = ("distance", *(f"{split.title.lower()} {split.noun}".strip() for split in splits))
    counts = [map("{:,}".format, column["count"]) for column in columns]
    return _table(heads, list(zip(ranges, *counts, strict=True)))


def _write_spread(names: Sequence[str], rows: Columns) -> Table:
    """The quantiles of distances by class."""
    quantiles = [map(distance, rows[key]) for key in ("low", "first", "median", "third", "high")]
    heads = ("class", "10%", "25%", "median", "75%", "90%")
    return _table(heads, list(zip(names, *quantiles, strict=True)))


def _write_change(nets: tuple[Radii, ...], largest: float) -> Table:
    """The shares that are proved safe and flipped, at sizes in equal steps."""
    heads = ["size"]
    for net in nets:
        before = f"{net.name}: " if net.name else ""
        heads += [f"{before}proved safe", f"{before}flipped"]
    lines = []
    for step in range(_SIZES):
        size = step * largest / (_SIZES - 1)
        cells = [distance(size)]
        for net in nets:
            at = sum(x <= size for x in net.curve["x"]) - 1
            cells += [percent(net.curve[name][at] / 100) for name in ("proved", "flipped")]
        lines.append(tuple(cells))
    return _table(tuple(heads), lines)


def _write_training(training: Training) -> Table:
    """Epoch, loss, share of right samples, and the normalized margin where there is one."""
    rows = training.rows
    columns = [rows[name] for name in ("epoch", "log10_loss", "right", "heldout", "margin")]
    held = any(share is not None for share in rows["heldout"])
    lines = []
    for epoch, loss, right, share, margin in _thin(list(zip(*columns, strict=True))):
        line = [f"{epoch:,}", power_of_ten(loss), percent(right / 100, 1)]
        line += ["–" if share is None else percent(share / 100, 1)] * held
        line += ["–" if margin is None else significant(margin)] * training.has_margin
        lines.append(tuple(line))
    heads = ["epoch", "loss", "right", *["held-out right"] * held]
    heads += ["normalized margin"] * training.has_margin
    return _table(tuple(heads), lines)


def _thin(rows: list[Any]) -> list[Any]:
    """At most about 50 rows, evenly over all, the last one among them."""
    step = max(1, -(-len(rows) // _LINES))
    return rows[::step] + rows[-1:] * ((len(rows) - 1) % step != 0)
