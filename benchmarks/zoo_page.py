"""The page of the zoo: one row a net, and what the rows have in common."""

import statistics
from pathlib import Path

_SHOWN = 3
"""Kinds of blockers in a row; the others are counted."""


def write_page(
    path: Path, results: list[dict], absent: list[str], before: dict[str, dict], reports: str
) -> None:
    """Write the results as a page of markdown.

    Parameters
    ----------
    path : Path
        The file to replace.
    results : list of dict
        The results in the order of the table, from `zoo_net.measure_net`.
    absent : list of str
        Names of nets that were skipped, since their library is not installed.
    before : dict of str to dict
        Results of an earlier version by name, for a column of their times.
    reports : str
        Reports of trained nets in markdown, for the end of the page; "" for none.
    """
    good = [row for row in results if "error" not in row]
    lines = [
        "# The zoo",
        "",
        "What `nm.analyse` says of classification nets of torchvision, timm and transformers with"
        " random weights,",
        "in evaluation mode, with the statistics that normalization layers begin with; written by"
        " `python -m benchmarks.zoo` (`pip install 'netmargin[zoo]'`).",
        "",
        *_summarize(results, good),
        "",
        "*passes*: time of `analyse` over the time of one forward pass of the same batch (16"
        " samples, or 4 where marked);",
        "*MB*: peak memory beyond the model and the batch;",
        "*groups*: sets of layers that can be scaled on their own, with a positive exponent + with"
        " exponent 0 (scale-invariant);",
        "*covered*: their share of all parameters; *blocked by*: modules that no exponent covers,"
        " by reason.",
        "",
        *_table(good, before),
    ]
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
    unknown = [row["name"] for row in good if row["kind"] == "unknown"]
    contradicted = [row["name"] for row in good if row["evidence"] == "contradicted"]
    observed = [row["name"] for row in good if row["evidence"] == "numerical"]
    residual = [row for row in good if row["family"] == "residual" and row["batch_norm"]]
    reached = [row for row in residual if row["streams"]]
    hidden = [row["name"] for row in residual if row.get("streams_without_eps")]
    left = [row["name"] for row in residual if row not in reached and row["name"] not in hidden]
    lines = [
        f"{len(results)} nets; failed: {len(results) - len(good)}; kind unknown:"
        f" {_name_all(unknown)}; derivation and check disagree: {_name_all(contradicted)}; observed"
        f" numerically only: {_name_all(observed)}.",
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
        f"Forward passes of {batch} samples, {words} ({len(rows)}): {_spread(passes, '.1f')}"
        f" (the largest: {slowest})" + (f"; MB: {_spread(memory, '.0f')}." if memory else ".")
    ]


def _spread(values: list[float], form: str) -> str:
    """Smallest, median and largest of some values."""
    return " / ".join(
        f"{value:{form}}" for value in (min(values), statistics.median(values), max(values))
    )


def _table(rows: list[dict], before: dict[str, dict]) -> list[str]:
    """The rows as a table of markdown."""
    head = [
        "net",
        "family",
        "million parameters",
        "kind",
        "order",
        "groups",
        "covered",
        "margin",
        "passes",
    ]
    head += ["before"] * bool(before) + ["MB", "blocked by"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in rows:
        cells = [
            f"{row['name']} ({row['library']})",
            row["family"] + (", BatchNorm" if row["batch_norm"] else ""),
            f"{row['parameters'] / 1e6:.1f}",
            row["kind"],
            row["order"] or "none",
            f"{row['scaled']} + {row['invariant']}",
            f"{row['covered']:.0%}",
            row["margin"],
            _passes(row),
        ]
        cells += [_passes(before.get(row["name"], {}))] * bool(before)
        cells += [
            "" if row["memory"] is None else f"{row['memory'] / 2**20:.0f}",
            _blockers(row["blockers"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _passes(row: dict) -> str:
    """The time of `analyse` in forward passes, '' where there is no such result."""
    if "analyse_seconds" not in row:
        return row.get("error", "")
    passes = row["analyse_seconds"] / row["forward_seconds"]
    return f"{passes:.1f}" + (" (4)" if row["batch"] == 4 else "")


def _blockers(counts: dict[str, int]) -> str:
    """The most frequent reasons with their numbers of modules."""
    shown = [f"{count} x {reason}" for reason, count in list(counts.items())[:_SHOWN]]
    rest = sum(list(counts.values())[_SHOWN:])
    return "; ".join(shown + [f"{rest} more"] * bool(rest))


def _name_all(names: list[str]) -> str:
    """Names, or 'none'."""
    return ", ".join(names) or "none"
