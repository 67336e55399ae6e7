"""The page of the zoo: one row a net, and what the rows have in common."""

import statistics
from collections import Counter
from pathlib import Path

_HEAD = """\
# The zoo

`nm.analyse` finds which weights of a net scale its scores, and how. This is what it says of
classification nets of torchvision, timm and transformers with random weights, in evaluation mode,
with the statistics that normalization layers begin with; written by `python -m benchmarks.zoo`
(`pip install 'netmargin[zoo]'`).
"""
_LEGEND = """\
In the tables:

* *margin*: the [normalization](margins.md#what-each-number-means) that applies;
* *groups*: sets of layers that can be scaled on their own: those that scale the scores + those that
  do not change them (exponent 0);
* *covered*: the share of all parameters that is in these groups;
* *passes*: time of `analyse` over the time of one forward pass of the same batch (16 samples, or 4
  where marked);
* *MB*: peak memory beyond the model and the batch;
* *blocked by*: modules that are in no group, by reason: a *bias* that scales unlike what it is
  added to; *unlike* branches, values or an addend, which scale with different powers of the
  parameters; a *cut-off* or *filled number* that does not scale; and operations that are not
  homogeneous."""
_SHOWN = 3
"""Kinds of blockers in a row; the others are counted."""
_WORDS = {
    "bias scales differently from the signal it is added to": "bias",
    "combines two branches that scale with different powers of the parameters": "unlike branches",
    "joins values that scale with different powers of the parameters": "unlike values",
    "adds a value that scales with another power of the parameters": "unlike addend",
    "cuts off at a level that does not scale": "cut-off",
    "fills with a number that does not scale": "filled number",
}
"""Reasons of blockers that are written in fewer words, so that the table fits on a page."""


def write_page(path: Path, results: list[dict], absent: list[str], reports: str) -> None:
    """Write the results as a page of markdown.

    Parameters
    ----------
    path : Path
        The file to replace.
    results : list of dict
        The results in the order of the table, from `zoo_net.measure_net`.
    absent : list of str
        Names of nets that were skipped, since their library is not installed.
    reports : str
        Reports of trained nets in markdown, for the end of the page; "" for none.
    """
    good = [row for row in results if "error" not in row]
    lines = [_HEAD, *_summarize(results, good), "", _LEGEND, *_tables(good)]
    lines += [
        line for row in results if "error" in row for line in ("", f"{row['name']}: {row['error']}")
    ]
    if absent:
        lines += ["", f"Not measured, since their library is not installed: {', '.join(absent)}."]
    if reports:
        lines += ["", reports.rstrip()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _summarize(results: list[dict], good: list[dict]) -> list[str]:
    """Sentences about all rows."""
    if not good:
        return ["No net was measured."]
    kinds = Counter(f"{row['kind']} of order {row['order']}" for row in good)
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    contradicted = [row["name"] for row in good if row["evidence"] == "contradicted"]
    observed = [row["name"] for row in good if row["evidence"] == "numerical"]
    residual = [row for row in good if row["family"] == "residual" and row["batch_norm"]]
    reached = [row for row in residual if row["streams"]]
    hidden = [row["name"] for row in residual if row.get("streams_without_eps")]
    left = [row["name"] for row in residual if row not in reached and row["name"] not in hidden]
    lines = [
        f"{len(results)} nets; failed: {len(results) - len(good)}; {shown} (*partial*: only some"
        " weights scale the scores); derivation and numerical check disagree:"
        f" {_name_all(contradicted)}; observed numerically only: {_name_all(observed)}.",
        f"Of {len(residual)} residual nets with BatchNorm {len(reached)} have an order whose"
        " scalings include residual streams (layers that write to one sum scale together);"
        f" {len(hidden)} more would without the eps of BatchNorm, which at these random weights"
        f" changes the scores by over 1% ({_name_all(hidden)}); the others: {_name_all(left)}.",
    ]
    for words, rows in (
        ("all nets", good),
        ("5 to 90 million parameters", [r for r in good if 5e6 <= r["parameters"] <= 90e6]),
    ):
        for batch in (16, 4):
            lines += _spread_of(words, [row for row in rows if row["batch"] == batch], batch)
    return [f"- {line}" for line in lines]


def _spread_of(words: str, rows: list[dict], batch: int) -> list[str]:
    """Smallest, median and largest time and memory of some rows, as one line; none of no rows."""
    if not rows:
        return []
    passes = [row["analyse_seconds"] / row["forward_seconds"] for row in rows]
    memory = [row["memory"] / 2**20 for row in rows if row["memory"] is not None]
    slowest = max(rows, key=lambda row: row["analyse_seconds"] / row["forward_seconds"])["name"]
    return [
        f"Time in forward passes of {batch} samples, {words} ({len(rows)}), smallest / median /"
        f" largest: {_spread(passes, '.1f')} (the largest: {slowest})"
        + (f"; MB: {_spread(memory, '.0f')}." if memory else ".")
    ]


def _spread(values: list[float], form: str) -> str:
    """Smallest, median and largest of some values."""
    return " / ".join(
        f"{value:{form}}" for value in (min(values), statistics.median(values), max(values))
    )


def _tables(rows: list[dict]) -> list[str]:
    """A table of markdown for each family of nets."""
    head = ["net", "10^6 weights", "margin", "groups", "covered", "passes", "MB", "blocked by"]
    families: dict[str, list[dict]] = {}
    for row in rows:
        family = row["family"].capitalize() + (", BatchNorm" if row["batch_norm"] else "")
        families.setdefault(family, []).append(row)
    lines = []
    for family, own in families.items():
        lines += ["", f"## {family}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        lines += [f"| {' | '.join(_cells(row))} |" for row in own]
    return lines


def _cells(row: dict) -> list[str]:
    """One net as the cells of its row."""
    return [
        f"{row['name']} ({row['library']})",
        f"{row['parameters'] / 1e6:.1f}",
        row["margin"],
        f"{row['scaled']} + {row['invariant']}",
        f"{row['covered']:.0%}",
        _passes(row),
        "" if row["memory"] is None else f"{row['memory'] / 2**20:.0f}",
        _blockers(row["blockers"]),
    ]


def _passes(row: dict) -> str:
    """The time of `analyse` in forward passes."""
    passes = row["analyse_seconds"] / row["forward_seconds"]
    return f"{passes:.1f}" + (" (4)" if row["batch"] == 4 else "")


def _blockers(counts: dict[str, int]) -> str:
    """The most frequent reasons with their numbers of modules."""
    shown = [
        f"{count} x {_WORDS.get(reason, reason).removesuffix(' is not homogeneous')}"
        for reason, count in list(counts.items())[:_SHOWN]
    ]
    rest = sum(list(counts.values())[_SHOWN:])
    return "; ".join(shown + [f"{rest} more"] * bool(rest))


def _name_all(names: list[str]) -> str:
    """Names, or 'none'."""
    return ", ".join(names) or "none"
