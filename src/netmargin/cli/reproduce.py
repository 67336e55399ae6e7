"""The verb `netmargin reproduce`: compute and draw figures and tables of the papers."""

import argparse
from pathlib import Path
from typing import Any

from ..core.files import make_folder
from ..core.progress import say
from ..core.records import Table
from ..errors import ArgumentError, CheckpointError, NetmarginError
from .inputs import add_json, add_options, add_workers, folder
from .printing import as_json

HELP = "Figures and tables of the papers: compute, draw, write the numbers, and say what they show."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: which figures, how large, and where to."""
    ids = "figures, such as chizat-bach/fig2d, papers, such as chizat-bach, or all"
    parser.add_argument("ids", nargs="*", metavar="ID", help=ids)
    add_workers(parser)
    scales = ("smoke", "laptop", "wide", "deep", "paper")
    times = "seconds, minutes, for some figures hours in two ways, or the paper's own settings"
    add_options(
        parser,
        ("--scale", scales, times, "smoke"),
        ("--list", bool, "ids, titles, minutes per scale, and the last run"),
        ("--check", bool, "fail if a finding is not reproduced"),
        ("--out", folder, "folder of all results", Path("runs/reproduce")),
        ("--quiet", bool, "no progress line"),
    )
    add_json(parser, "what was found")


def run(options: argparse.Namespace) -> int:
    """Reproduce figures by id, of a paper, or all; the exit code is 1 if one fails."""
    from .. import papers
    from ..core.parallel import on_cluster
    from ..papers.gallery.figure import figure

    if options.list:
        chosen = _choose_figures(papers, options.ids or ["all"])
        listed = [_describe_figure(id, options.out) for id in chosen]
        print(as_json(listed) if options.json else _write_table(listed))
        return 0
    chosen = _choose_figures(papers, options.ids)
    chosen = [id for id in chosen if options.scale in figure(id).scales]
    if not chosen:
        raise ArgumentError(
            f"None of these figures has the scale {options.scale}; `--list --json` names theirs."
        )
    make_folder(options.out)
    with on_cluster(options.cluster):
        found, broken = _reproduce_figures(papers, chosen, options)
    if options.json:
        lacking = [{"id": id, "holds": None} for id in broken]
        print(as_json([*map(_describe_result, found), *lacking]))
    missing = [result.figure.id for result in found if not result.holds]
    if options.check and missing:
        say(f"netmargin: the finding was not reproduced: {', '.join(missing)}")
    if broken and len(chosen) > 1:
        say(f"netmargin: not done: {', '.join(broken)}")
    return 1 if broken or (options.check and missing) else 0


def _reproduce_figures(
    papers: Any, chosen: list[str], options: argparse.Namespace
) -> tuple[list[Any], list[str]]:
    """Reproduce figures side by side: what was found, and the ids of those that failed."""
    from ..core.parallel import WorkerKilledError
    from ..papers.gallery.figure import figure
    from ..papers.gallery.sweep import sweep

    if options.scale not in ("smoke", "laptop"):
        minutes = sum(figure(id).minutes[options.scale] for id in chosen)
        duration = f"{minutes:g} minutes" if minutes < 120 else f"{minutes / 60:,.0f} hours"
        most = "at most " if len(chosen) > 1 else ""  # figures may share runs
        say(f"{', '.join(chosen)}: {most}about {duration} on 2 cores; what is finished is kept")
    outcomes: dict[str, Any] = {}
    try:
        shared = {"out": options.out, "jobs": options.jobs, "progress": not options.quiet}
        # The sweep of a single figure shows its own progress.
        for id, error in sweep(chosen, options.scale, **shared) if len(chosen) > 1 else ():
            outcomes[id] = _reproduce_figure(papers, id, options, error, progress=False)
    except WorkerKilledError as error:
        # Which run was to blame shows where each figure has processes of its own.
        say(f"netmargin: {error}; now one figure after the other")
    for id in chosen:
        if id not in outcomes:
            outcomes[id] = _reproduce_figure(papers, id, options, None, progress=not options.quiet)
    found = [outcomes[id] for id in chosen if outcomes[id] is not None]
    return found, [id for id in chosen if outcomes[id] is None]


def _reproduce_figure(
    papers: Any,
    id: str,
    options: argparse.Namespace,
    failed: NetmarginError | None,
    *,
    progress: bool,
) -> Any:
    """Reproduce a figure and print what was found; None, and why, where it cannot be computed."""
    try:
        if failed is not None:
            raise failed
        found = papers.reproduce(
            id, options.scale, out=options.out, jobs=options.jobs, progress=progress
        )
    except CheckpointError:  # nothing can be kept, so that the other figures would fail as well
        raise
    except NetmarginError as error:
        # Such as data that are not at hand: the other figures do not need them.
        say(f"netmargin: {id}: {error}")
        return None
    if not options.json:
        print(found.summary(), flush=True)
    return found


def _choose_figures(papers: Any, ids: list[str]) -> list[str]:
    """The ids of the figures that ids of figures or papers mean. Raises ArgumentError."""
    from ..papers.contents import choose

    if not ids:
        raise ArgumentError(
            f"Which figure? Give its id, a paper, or all: {', '.join(papers.list_figures())}."
            " `netmargin reproduce --list` says more."
        )
    return choose("figure", ids, papers.list_figures())


def _describe_result(result: Any) -> dict[str, Any]:
    """The entry of a reproduction for JSON."""
    checks = [{"sentence": check.sentence, "holds": bool(check.holds)} for check in result.checks]
    return {
        "id": result.figure.id,
        "scale": result.scale,
        "holds": bool(result.holds),
        "checks": checks,
        "runs": len(result.rows),
        "minutes": result.minutes,
        "folder": result.folder,
    }


def _describe_figure(id: str, out: Path) -> dict[str, Any]:
    """The entry of a figure in the list: title, minutes per scale, and how the last run ended."""
    from ..papers.gallery.figure import figure
    from ..papers.gallery.reproduction import describe_status

    known = figure(id)
    done = ((scale, describe_status(id, scale, out)) for scale in reversed(list(known.scales)))
    last = next((f"{scale}: {state}" for scale, state in done if state != "-"), None)
    return {"id": id, "title": known.title, "minutes": dict(known.minutes), "last_run": last}


def _write_table(listed: list[dict[str, Any]]) -> str:
    """The list of figures as text."""
    rows = []
    for row in listed:
        each = (row["minutes"][scale] for scale in ("smoke", "laptop", "paper"))
        minutes = [format(m, "g" if m < 1000 else ",.0f") for m in each]
        rows.append([row["id"], *minutes, row["last_run"] or "-", row["title"]])
    heads = ["id", "smoke", "laptop", "paper", "last run", "title"]
    return Table("figures, and minutes at each scale", rows, heads).text()
