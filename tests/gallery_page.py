"""Writes docs/gallery.md, every figure that was reproduced beside its finding: `python -m
tests.gallery_page [folder of results]`.
"""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from netmargin.papers.contents import list_figures
from netmargin.papers.gallery.figure import Figure, figure
from netmargin.papers.gallery.reproduction import OUT, read_numbers

_HEAD = (
    "# Gallery\n\nFigures and tables of the five papers, each by one command. This page is written"
    " by `python -m tests.gallery_page`; numbers and PDFs are in the folder of each run. F_1 stands"
    " for two-layer nets with both layers trained, F_2 for the output layer over fixed random"
    " directions, gamma_1 and gamma_2 for the best margins of either. Bars reach two standard errors"
    " of a mean over runs to both sides; +- after a difference is one.\n\n"
)


def write_gallery(page: Path, out: Path) -> list[str]:
    """Write a Markdown page of all figures that were reproduced under `out`, or bring it up to
    date; return the ids of those whose entries were written anew.

    Each figure is shown at the largest scale that is complete and whose settings are still those of
    the figure. Its picture is copied to a folder of the page's name beside the page. Entries stay
    as they are where `out` has nothing of their figure.
    """
    entries, written = _split_entries(page), []
    for id in list_figures():
        known = figure(id)
        for scale in reversed(list(known.scales)):  # the largest that is complete
            numbers, drawn = read_numbers(known, scale, out), out / id / scale / "figure.png"
            if numbers is not None and drawn.exists():
                picture = page.with_suffix("") / f"{id.replace('/', '-')}.png"
                picture.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(drawn, picture)
                entries[id] = _write_entry(known, scale, numbers, picture.relative_to(page.parent))
                written.append(id)
                break
    # In the order of the list of figures, wherever an entry stood before.
    text = _HEAD + "\n".join(entries[id] for id in list_figures() if id in entries)
    page.write_text(text)
    return written


def _split_entries(page: Path) -> dict[str, str]:
    """Split a page that was written before into its entries, by id."""
    if not page.exists():
        return {}
    # The pattern captures the id: parts are the head, then an id and its entry in turn.
    parts = re.split(r"^(?=## (\S+): )", page.read_text(), flags=re.MULTILINE)
    return {id: text.rstrip("\n") + "\n" for id, text in zip(parts[1::2], parts[2::2], strict=True)}


def _write_entry(known: Figure, scale: str, numbers: dict[str, Any], picture: Path) -> str:
    """Write the entry of one figure: picture, finding, checks, command, and how it differs."""
    own, paper = known.scales[scale], known.scales["paper"]
    runs = known.runs(paper)
    changed = [
        f"{name} {_format_setting(own[name])} ({_format_setting(paper[name])})"
        for name in own
        if own[name] != paper[name]
        # Figures that share their runs share settings that are not theirs.
        and (not known.runs_of or any(known.concerns(run, name) for run in runs))
    ]
    lines = [f"## {known.id}: {known.title}", "", f"![{known.title}]({picture})", ""]
    lines += [f"**To see:** {known.finding}.", ""]
    lines += [
        f"- {'' if check['holds'] else '**not reproduced:** '}{check['sentence']}"
        for check in numbers["checks"]
    ]
    minutes = max(numbers["minutes"], 0.1)  # "0.0 minutes" would read as not computed
    command, took = f"netmargin reproduce {known.id} --scale {scale}", f"{minutes:.1f} minutes"
    lines += ["", f"`{command}`: {took} of computing, {numbers['hardware']}."]
    lines += [f"Differs from the paper: {known.differs}."] if known.differs else []
    lines += [f"Settings at this scale (at paper scale): {', '.join(changed)}."] if changed else []
    return "\n".join([*lines, ""])


def _format_setting(value: Any) -> str:
    """Format the value of a setting for a reader; long lists are cut short."""
    if isinstance(value, list):
        shown = list(map(_format_setting, value))
        if len(shown) > 10:
            shown = [*shown[:2], "...", shown[-1]]
        return f"[{', '.join(shown)}]"
    if isinstance(value, bool | str):
        return str(value)
    return f"{value:,.0f}" if value == round(value) else f"{value:.3g}"


if __name__ == "__main__":
    page = Path(__file__).parents[1] / "docs/gallery.md"
    written = write_gallery(page, Path(sys.argv[1]) if sys.argv[1:] else OUT)
    print(f"new entries for {', '.join(written) or 'no figure'}")
