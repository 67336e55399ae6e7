"""`netmargin reproduce`."""

import argparse
import sys

from ..errors import CheckpointError, DataError, NetmarginError
from .inputs import require_writable


def reproduce(options: argparse.Namespace) -> int:
    """Figures by id, of a paper, or all. Returns 1 if `--check` finds one that does not show its finding."""
    from .. import papers

    if options.list:
        print("\n".join(_listed(papers, options)))
        return 0
    if not options.ids:
        raise DataError(
            f"Which figure? Give its id, a paper, or all: {', '.join(papers.IDS)}. `netmargin reproduce --list` says more."
        )
    chosen = [id for id in papers.IDS if {"all", id, id.split("/")[0]} & set(options.ids)]
    unknown = [
        id for id in options.ids if id != "all" and id not in papers.IDS and id not in {known.split("/")[0] for known in papers.IDS}
    ]
    if unknown:
        raise DataError(f"There is no figure {unknown[0]!r}. Choose from {', '.join(papers.IDS)}.")
    if options.gallery:
        require_writable(options.gallery)
        if options.gallery.suffix != ".md":
            raise DataError(
                f"The gallery is a Markdown page with a folder of that name beside it: give --gallery NAME.md, not {options.gallery}."
            )
    found, broken = [], []
    for id in chosen:
        if options.scale == "paper":
            print(
                f"{id}: about {_duration(papers.figure(id).minutes['paper'])} on 2 cores; what is finished survives an interruption",
                file=sys.stderr,
            )
        try:
            found.append(papers.reproduce(id, options.scale, out=options.out, jobs=options.jobs, progress=not options.quiet))
        except CheckpointError:  # nothing can be kept
            raise
        except NetmarginError as error:  # such as data that are not at hand: the other figures do not need them
            broken.append(id)
            print(f"netmargin: {id}: {error}", file=sys.stderr)
            continue
        print(found[-1].summary(), flush=True)
    if options.gallery:
        written = papers.write_gallery(options.gallery, options.out)
        print(f"Written: {options.gallery}, with new entries for {', '.join(written) or 'no figure'}", file=sys.stderr)
    missing = [result.figure.id for result in found if not result.holds]
    if options.check and missing:
        print(f"netmargin: the finding was not reproduced: {', '.join(missing)}", file=sys.stderr)
    if broken and len(chosen) > 1:
        print(f"netmargin: not done: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken or (options.check and missing) else 0


def _duration(minutes: float) -> str:
    return f"{minutes:g} minutes" if minutes < 120 else f"{minutes / 60:,.0f} hours"


def _listed(papers, options: argparse.Namespace) -> list[str]:
    lines = [
        f"{'id':24} {'smoke':>6} {'laptop':>7} {'paper':>9}  {'last run':28} title",
        f"{'':24} {'min':>6} {'min':>7} {'min':>9}",
    ]
    for id in papers.IDS:
        known = papers.figure(id)
        minutes = [format(known.minutes[scale], "g" if known.minutes[scale] < 1000 else ",.0f") for scale in papers.SCALES]
        last = next(
            (
                f"{scale}: {state}"
                for scale in reversed(papers.SCALES)
                if (state := papers.status(id, scale, out=options.out)) != "-"
            ),
            "-",
        )
        lines.append(f"{id:24} {minutes[0]:>6} {minutes[1]:>7} {minutes[2]:>9}  {last:28} {known.title}")
    return lines
