"""Pictures of pages, to be looked at: `python -m tests.page_screenshots [folder] [file.html ...]`.

Without files it takes those of the tests. Each is shown 1280 and 390 pixels wide, in light and in
dark, as colour-blind readers and grey printers have it, and as a PDF.
"""

import sys
from pathlib import Path

from netmargin.page.render import render
from tests.browser import open_browser, open_page
from tests.page_fixture import full_page, plain_page, table_page

VISIONS = ("deuteranopia", "protanopia", "achromatopsia")


def take_pictures(browser, path: Path, folder: Path) -> None:
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            with open_page(browser, path, width=width, color_scheme=scheme) as tab:
                tab.screenshot(path=folder / f"{path.stem}-{width}-{scheme}.png", full_page=True)
    with open_page(browser, path) as tab:
        tab.screenshot(path=folder / f"{path.stem}-top.png")
        tab.pdf(path=folder / f"{path.stem}.pdf", format="A4")
        session = tab.context.new_cdp_session(tab)
        for vision in VISIONS:
            session.send("Emulation.setEmulatedVisionDeficiency", {"type": vision})
            tab.screenshot(path=folder / f"{path.stem}-{vision}.png")
    with open_page(browser, path, forced_colors="active") as tab:
        tab.screenshot(path=folder / f"{path.stem}-forced.png")


def main(folder: Path, files: list[Path]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not files:
        for name, page in (("full", full_page), ("plain", plain_page), ("table", table_page)):
            files.append(folder / f"{name}.html")
            files[-1].write_text(render(page()), encoding="utf-8")
    with open_browser() as browser:
        for path in files:
            take_pictures(browser, path.resolve(), folder)
    print(f"{len(files)} pages in pictures: {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/page"), list(map(Path, sys.argv[2:])))
