"""The ledger as text: rows of a table, and a page of Markdown."""

import html
import math
from collections.abc import Sequence
from itertools import groupby

from .claim import Entry
from .slack import MOST

HEADER = (
    f"{'claim':36} {'instances':>9} {'worst':>9} {'tolerance':>9} {'slack':>8}"
    f" {'seconds':>8}  result"
)
"""The heading of the rows of text."""

_PAPERS = {
    "lyu-li": (
        "Lyu and Li 2019, Gradient Descent Maximizes the Margin of Homogeneous Neural Networks"
    ),
    "wei": (
        "Wei, Lee, Liu, Ma 2018 and 2019, On the Margin Theory of Feedforward Neural Networks;"
        " Regularization Matters"
    ),
    "chizat-bach": (
        "Chizat and Bach 2020, Implicit Bias of Gradient Descent for Wide Two-layer Neural Networks"
    ),
    "two-homogeneity": "The Ubiquity of 2-Homogeneity, 2024",
}
"""The titles of the papers, by the first part of a claim's id."""


def row(entry: Entry) -> str:
    """Format one line of the table of text."""
    claim = entry.claim
    return (
        f"{claim.id:36} {entry.instances:9,} {entry.worst:9.2g} {claim.tolerance:9.1g}"
        f" {_format_least_slack(entry):>8} {entry.seconds:8.1f}"
        f"  {'holds' if entry.holds else 'FAILS'}"
    )


def _format_least_slack(entry: Entry) -> str:
    """The smallest slack of a claim, or why it has none."""
    if entry.slack:
        return f"{min(slack.factor for slack in entry.slack):.3g}"
    return entry.claim.sharpen if isinstance(entry.claim.sharpen, str) else ""


def loose(entry: Entry) -> list[str]:
    """Say of every promise with a large slack which search found nothing sharper."""
    return [f"{entry.claim.id}: {slack.search()}" for slack in entry.slack if slack.search()]


def failure(entry: Entry) -> list[str]:
    """Say why a claim fails, with the command that repeats it; nothing for a claim that holds."""
    if entry.holds:
        return []
    lines = [] if entry.instances else [f"{entry.claim.id}: no trial met its hypotheses"]
    if entry.counterexample:
        lines += [f"{entry.claim.id}: {entry.counterexample}", f"  repeat it with: {entry.command}"]
    lines += [
        f"{entry.claim.id}: as printed, “{text}”, it was not refuted"
        for text, v, _ in entry.refuted
        if not v > entry.claim.tolerance  # also where v is NaN
    ]
    return lines


def write_markdown(entries: Sequence[Entry], conclusion: str) -> str:
    """Write statements, sources, what was found and the printed errors as a page of Markdown."""
    lines = [
        "# The ledger",
        "",
        (
            f"{len(entries)} claims of the five papers, in their symbols, examined by `netmargin"
            " verify`, which wrote this page. They are not all that the papers state: [the items of"
            " the papers](papers.md) say what no claim holds, and statement and instances what a"
            " claim leaves out. A violation is how far an instance"
            " is from satisfying the statement; the worst one is 0 where all satisfy it. Trends"
            " and rates say in their tolerance what counts as holding. A slack is the largest"
            f" factor, up to {MOST:.0e}, by which a promise can be stronger and still hold on every"
            " instance; instances are also mutated, to make it smaller."
        ),
        "",
        conclusion + ".",
        "",
    ]
    # Entries are in the order of their papers.
    for paper, own in groupby(entries, title_of_paper):
        lines += [f"## {paper}", ""]
        lines += ["| claim | statement | source | result |", "|---|---|---|---|"]
        for entry in own:
            claim = entry.claim
            notes = (
                f"*Instances:* {_escape_cell(claim.hypotheses)}.",
                f"*Tolerance {claim.tolerance:g}:* {_escape_cell(claim.because)}.",
            )
            statement = "<br>".join((f"{_escape_cell(claim.statement)}.", *notes))
            source, result = _escape_cell(claim.source), _format_result(entry)
            lines.append(f"| `{claim.id}` | {statement} | {source} | {result} |")
        lines.append("")
    lines += ["## Printed errors", ""]
    lines += ["| claim | as printed | counterexample | violation |", "|---|---|---|---|"]
    for entry in entries:
        for text, violation, at in entry.refuted:
            shown = "" if violation > entry.claim.tolerance else " **not shown**"
            text, at = _escape_cell(text), _escape_cell(at)
            lines.append(f"| `{entry.claim.id}` | {text} | {at} | {violation:.3g}{shown} |")
    return "\n".join([*lines, ""])


def title_of_paper(entry: Entry) -> str:
    """The title of the paper that a claim is from."""
    name = entry.claim.id.split("/")[0]
    return _PAPERS.get(name, name)


def _format_result(entry: Entry) -> str:
    """Format the last cell of a row of Markdown: whether the claim holds, and by how much."""
    worst = f"{entry.worst:.2g}" if math.isfinite(entry.worst) else "infinite"
    lines = [entry.measured] if entry.measured else []
    lines += [slack.search() or f"slack {slack}" for slack in entry.slack]
    if not entry.slack and _format_least_slack(entry):
        lines.append(f"no slack: {_format_least_slack(entry)}")
    said = "".join(f"<br>{_escape_cell(line)}" for line in lines)
    return (
        f"{'holds' if entry.holds else '**fails**'}: worst {worst} in {entry.instances:,}"
        f" instances{said}"
    )


def _escape_cell(text: str) -> str:
    """Escape a text so that it fits into one cell of a Markdown table."""
    # Markdown takes < for HTML, and | for the end of a cell.
    return html.escape(text, quote=False).replace("|", "\\|").replace("\n", " ")
