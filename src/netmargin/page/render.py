"""A page as HTML: templates with autoescape, and the styles, scripts and charts beside them.

What is wrapped in `Markup` stands as it is; everything else is escaped where it is shown.
"""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from .block import make_block
from .payload import Page
from .tables import write_tables

_HERE = Path(__file__).parent


def render(page: Page) -> str:
    """Write a page as one self-contained text of HTML."""
    from markupsafe import Markup

    return _template("page.html.j2")(
        page=page,
        tables=write_tables(page),
        # Names of classes that are words need more room than numbers do.
        named=" named" * bool(page.classes and max(map(len, page.classes.names)) > 3),
        # What can be filtered and sorted by: the columns in which some sample has a value.
        known={
            name
            for split in page.splits
            for name, values in split.columns.items()
            if any(value is not None for value in values)
        },
        block=Markup(make_block(page)),
        css=Markup(_join("*.css")),
        js=Markup(_join_scripts()),
        vega=Markup(_join("vega/vega.min.js")),
        specs=Markup(_specs()),
    )


@cache
def _template(name: str) -> Callable[..., str]:
    """What fills a template, by its name: a name in it that is not defined is an error."""
    import jinja2  # late: a third of the time of importing this package otherwise

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render


@cache
def _join(pattern: str) -> str:
    """The texts of static files, in the order of their names."""
    files = sorted((_HERE / "static").glob(pattern))
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@cache
def _join_scripts() -> str:
    """The scripts without indents and without lines that are comments, a fifth of them."""
    lines = (line.strip() for line in _join("*.js").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/**")))


@cache
def _specs() -> str:
    """The compiled charts by name, as JSON without spaces."""
    found = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((_HERE / "static" / "specs").glob("*.json"))
    }
    return json.dumps(found, separators=(",", ":")).replace("<", "\\u003c")
