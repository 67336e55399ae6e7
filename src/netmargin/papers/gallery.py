"""A page with every figure that was reproduced, beside its finding."""

import json
import shutil
from pathlib import Path

from ..training.checkpoint import write_atomically
from .figure import IDS, SCALES, figure


def write_gallery(page: Path, out: str | Path) -> None:
    """Markdown for all figures under `out`, each at the largest scale that is complete; pictures are copied to a folder of the page's name beside it."""
    page, out = Path(page), Path(out)
    lines = [
        "# Gallery",
        "",
        "Figures and tables of the five papers, each by one command. This page was written by `netmargin reproduce .. --gallery`; numbers and PDFs are in the folder of each run.",
        "",
    ]
    for id in IDS:
        folder = next((out / id / scale for scale in reversed(SCALES) if (out / id / scale / "numbers.json").exists()), None)
        if folder is None:
            continue
        known, numbers = figure(id), json.loads((folder / "numbers.json").read_text())
        picture = page.with_suffix("") / f"{id.replace('/', '-')}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder / "figure.png", picture)
        lines += [
            f"## {id}: {known.title}",
            "",
            f"![{known.title}]({picture.relative_to(page.parent)})",
            "",
            f"**To see:** {known.finding}.",
            "",
        ]
        lines += [f"- {'' if check['holds'] else '**not reproduced:** '}{check['sentence']}" for check in numbers["checks"]]
        lines += [
            "",
            f"`netmargin reproduce {id} --scale {numbers['scale']}`: {max(numbers['minutes'], 0.1):.1f} minutes of computing, {numbers['hardware']}.",
        ]
        lines += [f"Differs from the paper: {known.differs}.", ""] if known.differs else [""]
    write_atomically(page, "\n".join(lines).encode())
