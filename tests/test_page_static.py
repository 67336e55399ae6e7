"""What a page is made of beside its numbers: charts, scripts, styles, and what others wrote."""

import hashlib
import json
import re
import shutil
import subprocess
from importlib.metadata import version

import pytest

from netmargin.page.render import _HERE, _join_scripts
from tests.browser import AXE

STATIC = _HERE / "static"
VEGA = STATIC / "vega"

TEXT = ("ink", "ink2", "muted", "right", "wrong", "proved", "estimated", "weight", "link")
GROUND = ("bg", "surface", "open")


def charts():
    """The module that compiles the charts, and whether the shipped ones come from its versions."""
    pytest.importorskip("altair", reason="altair is not installed")
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    from charts import __main__ as compiling

    return compiling


@pytest.mark.slow
def test_shipped_charts_are_what_altair_compiles():
    compiling = charts()
    written = json.loads((compiling.SHIPPED / compiling.MADE_BY).read_text())
    installed = {name: version(name) for name in written}
    if written != installed:
        pytest.skip(f"the charts were compiled by {written}, and {installed} are installed")
    assert {path.stem for path in compiling.SHIPPED.glob("*.json")} == set(compiling.CHARTS)
    for name in compiling.CHARTS:
        shipped = json.loads((compiling.SHIPPED / f"{name}.json").read_text(encoding="utf-8"))
        assert shipped == compiling.compile_chart(name), name


@pytest.mark.parametrize("folder", [VEGA, AXE.parent], ids=["vega", "axe"])
def test_what_others_wrote_is_theirs(folder):
    """Vendored files are as their authors published them, with their licence."""
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert "copyright" in (folder / "LICENSE").read_text().lower()


def test_own_scripts_are_small_and_have_no_slip():
    joined = _join_scripts()
    assert len(joined.encode()) <= 25 * 1024
    for path in STATIC.glob("*.js"):
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 110, path.name
    assert "innerHTML" not in joined  # every text goes in as text
    assert not re.search(r"https?:|import\(|\bfetch\(", joined)
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    wrapped = f'(() => {{"use strict";{joined}}})'
    subprocess.run([node, "--check", "-"], input=wrapped, text=True, check=True, timeout=60)


def test_no_style_asks_for_a_file():
    for path in STATIC.glob("*.css"):
        assert "url(" not in path.read_text()
        assert "@import" not in path.read_text()


@pytest.mark.parametrize(("scheme", "least"), [("light", 4.8), ("dark", 6.4)])
def test_texts_stand_out_from_what_is_behind_them(scheme, least):
    style = (STATIC / "1_palette.css").read_text()
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    colours = {name: {"light": light, "dark": dark}[scheme] for name, light, dark in pairs}
    for text in TEXT:
        for ground in GROUND:
            assert contrast(colours[text], colours[ground]) >= least - 0.05, (text, ground)
    assert contrast(colours["on-proved"], colours["proved"]) >= 4.8


def contrast(first: str, second: str) -> float:
    """The ratio of luminances that WCAG defines."""
    high, low = sorted(map(luminance, (first, second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
