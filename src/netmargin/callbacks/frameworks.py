"""Frameworks that may be installed or not, and what all their callbacks have in common."""

import importlib
import sys
from typing import Any

from ..core.arguments import check_choice, check_count, check_instance
from ..errors import MissingLibraryError

UNITS = ("epoch", "step")


def find_base(modules: tuple[str, ...], name: str) -> type:
    """The class of a framework that a callback is made of: of the first module that is in use
    already, or else installed; `object` where none is, so that this package can be read.
    """
    in_use = [module for module in modules if module in sys.modules]
    for module in in_use or modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):  # not installed, or of a version without it
            continue
    return object


def require_base(base: type, library: str) -> None:
    """Raise MissingLibraryError where `find_base` found none."""
    if base is object:
        raise MissingLibraryError(
            f"This callback needs {library}, in a version that has its callbacks. Install it: pip"
            " install 'netmargin[integrations]'"
        )


def check_rhythm(every: Any, unit: Any, name: Any) -> tuple[int, str, str]:
    """How often a callback looks, and how it calls its values. Raises ArgumentError."""
    return (
        check_count("every", every),
        check_choice("unit", unit, UNITS),
        check_instance("name", name, str, 'a word such as "margins"'),
    )


def values_of(row: dict, name: str) -> dict[str, float]:
    """The numbers of a row under the names that a logger is given."""
    return {
        f"{name}/{key}": float(value)
        for key, value in row.items()
        if value is not None and key not in UNITS
    }
