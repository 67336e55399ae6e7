"""The one JSON block of a page: rows with four significant digits, safe inside of a script."""

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

from .payload import Page, Split

_DIGITS = 4
"""Significant digits of a number: charts resolve a thousandth of their width, a table shows three;
more would make a page of 100,000 rows twice as large.
"""
_INFINITE = "1e999"
"""A number that JSON allows and JSON.parse reads as Infinity."""


def make_block(page: Page) -> str:
    """The fields of a page that scripts read, as JSON in one line.

    In it `<` stands as `\\u003c`, so that no text of the caller ends the script that holds it.
    """
    return write_json(_collect(page))


def _collect(record: Any) -> dict[str, Any]:
    """What a record and its sections send, by their places in the block."""
    found: dict[str, Any] = {}
    for each in fields(record):
        value, place = getattr(record, each.name), each.metadata.get("block")
        if place is None and is_dataclass(value):
            found |= _collect(value)
        elif place is not None:
            inside = found
            for name in place[:-1]:
                inside = inside.setdefault(name, {})
            inside[place[-1]] = _unfold(value)
    return found


def _unfold(value: Any) -> Any:
    """A value without records: splits by their keys, other records in a list."""
    if isinstance(value, dict):
        return dict(value)  # to which other fields may add
    if isinstance(value, tuple) and value and isinstance(value[0], Split):
        return {split.key: _collect(split) for split in value}
    if isinstance(value, tuple):
        return [_collect(one) if is_dataclass(one) else one for one in value]
    return value


def write_json(value: Any) -> str:
    """Write numbers, texts, lists and dicts as JSON for a script of a page."""
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
