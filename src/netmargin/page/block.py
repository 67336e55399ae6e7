"""The one JSON block of a page: rows with four significant digits, safe inside of a script."""

import json
import math
from dataclasses import asdict
from typing import Any

from .payload import Page, Radii

_DIGITS = 4
"""Significant digits of a number: charts resolve a thousandth of their width, a table shows three;
more would make a page of 100,000 rows twice as large.
"""
_INFINITE = "1e999"
"""A number that JSON allows and JSON.parse reads as Infinity."""


def make_block(page: Page) -> str:
    """Write the rows of a page as JSON, which `payload` describes.

    Parameters
    ----------
    page : Page
        The page.

    Returns
    -------
    str
        JSON in one line, in which `<` stands as `\\u003c`, so that no text of the caller ends the
        script that holds it.
    """
    block: dict[str, Any] = {"name": page.title}
    block["splits"] = {
        split.key: {
            "title": split.title,
            "noun": split.noun,
            "n": split.n,
            "columns": split.columns,
        }
        for split in page.splits
    }
    if page.images is not None:
        block["sprites"] = {
            "columns": 40,
            "per_sprite": page.images.per_sprite,
            "width": page.images.width,
            "height": page.images.height,
        }
    if (overview := page.overview) is not None:
        axis = overview.axis
        block["axis"] = {"name": axis.name, "unit": axis.unit, "label": str(axis.certainty)}
        block["histograms"] = overview.histograms | {
            "range": overview.range,
            "folded": overview.folded,
        }
    if (classes := page.classes) is not None:
        block |= {"names": classes.names, "pairs": classes.pairs, "classes": classes.rows}
    if (change := page.change) is not None:
        names = ("largest", "start", "per_input", "attacked", "proved")
        block["change"] = {name: getattr(change, name) for name in names}
        block["change"]["nets"] = list(map(_describe_radii, change.nets))
    if page.support is not None:
        block["support"] = page.support.curve
    if page.training is not None:
        block["training"] = page.training.rows | {"separated": page.training.separated}
    if page.comparison is not None:
        block["compare"] = page.comparison.distances
    return write_json(block)


def write_json(value: Any) -> str:
    """Write numbers, texts, lists and dicts as JSON for a script of a page.

    Examples
    --------
    >>> print(write_json({"d": [0.123456, float("inf"), float("nan"), None, 2.0, 1000000]}))
    {"d":[0.1235,1e999,null,null,2,1000000]}
    >>> print(write_json("</script>"))
    "\\u003c/script>"
    """
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, str):
        # U+2028 and U+2029 are escaped by json itself, as all that is not ASCII.
        return json.dumps(value).replace("<", "\\u003c")
    if isinstance(value, dict):
        return (
            "{" + ",".join(f"{write_json(str(k))}:{write_json(v)}" for k, v in value.items()) + "}"
        )
    return "[" + ",".join(map(write_json, value)) + "]"


def _write_float(value: float) -> str:
    """A float with four significant digits, as short as JSON has it."""
    if math.isnan(value):
        return "null"
    if math.isinf(value):
        return _INFINITE if value > 0 else f"-{_INFINITE}"
    if value == round(value) and abs(value) < 10**_DIGITS:
        return str(int(value))
    return f"{value:.{_DIGITS}g}".replace("e-0", "e-").replace("e+0", "e")


def _describe_radii(net: Radii) -> dict[str, Any]:
    """The radii of one net by name."""
    return {key: value for key, value in asdict(net).items() if key != "samples"}
