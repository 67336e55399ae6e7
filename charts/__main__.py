"""Compile all charts: `python -m charts`, or with a folder, into that folder."""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert

from .change import draw_change
from .histogram import draw_histogram
from .lines import draw_loss, draw_margin
from .spread import draw_spread

SHIPPED = Path(__file__).parent.parent / "src" / "netmargin" / "page" / "static" / "specs"

MADE_BY = "versions"
"""The file beside the charts that says which versions compiled them: others may differ."""

CHARTS = {
    "histogram": draw_histogram,
    "spread": draw_spread,
    "change": draw_change,
    "loss": draw_loss,
    "margin": draw_margin,
}


def compile_chart(name: str) -> Any:
    """The Vega specification of the chart `name`."""
    compiled = vl_convert.vegalite_to_vega(CHARTS[name]().to_dict(validate=True))
    return json.loads(compiled) if isinstance(compiled, str) else compiled


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    versions = {name: version(name) for name in ("altair", "vl-convert-python")}
    (folder / MADE_BY).write_text(json.dumps(versions) + "\n")
    for name in CHARTS:
        text = json.dumps(compile_chart(name), ensure_ascii=False, sort_keys=True)
        path = folder / f"{name}.json"
        path.write_text(text + "\n")
        print(f"{path}: {len(text):,} characters")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED)
