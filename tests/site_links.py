"""Follows every link of the built site to a file and its anchor: `python -m tests.site_links FOLDER`."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BY_SCRIPTS = ("_static/",)
"""Pages of other makers, whose links are not ours."""


class Links(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


def find_broken(site: Path) -> list[str]:
    """Links that lead nowhere, with the page that has them."""
    pages = {path: Links(path.read_text()) for path in sorted(site.rglob("*.html"))}
    assert pages, f"no page in {site}"
    broken = []
    for path, page in pages.items():
        # A page of `nm.page` makes anchors by its script, and loads nothing.
        made = "application/json" in path.read_text()
        if made or str(path.relative_to(site)).startswith(BY_SCRIPTS):
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            held = pages.get(target)
            if not target.exists() or (
                parts.fragment and held is not None and unquote(parts.fragment) not in held.anchors
            ):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


if __name__ == "__main__":
    found = find_broken(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "all links lead somewhere")
    sys.exit(bool(found))
