"""The printed form of records: the class and its important numbers in one line, never arrays."""

import dataclasses
import numbers
from typing import Any

import numpy as np
from torch import Tensor

_LONGEST, _LONGEST_TEXT = 280, 90
"""Characters of a whole line, and of one piece of text in it: a line and a half of a notebook."""


def short_repr(record: Any, *names: str) -> str:
    """Return one line about a record, for its `__repr__`.

    Parameters
    ----------
    record : object
        An instance of a dataclass.
    *names : str
        Attributes and properties to show, the important ones first. By default all fields that are
        numbers, words or None; arrays and lists show their shape or length; other objects and
        private fields are left out.

    Returns
    -------
    str
        At most 300 characters without a line break; what does not fit is left out, the last names
        first.

    Examples
    --------
    >>> import dataclasses, numpy
    >>> @dataclasses.dataclass
    ... class Found:
    ...     margin: float
    ...     status: str
    ...     dual: numpy.ndarray
    ...     __repr__ = short_repr
    >>> Found(0.123456789, "optimal", numpy.zeros((60, 2)))
    <Found margin=0.123457 status='optimal' dual: 60 x 2>
    """
    shown = names or [
        field.name for field in dataclasses.fields(record) if not field.name.startswith("_")
    ]
    line = f"<{type(record).__name__}"
    for name in shown:
        text = _describe(getattr(record, name))
        # A long field is passed over, and a shorter one after it may still fit.
        if text is not None and len(line) + len(name) + len(text) < _LONGEST:
            line += f" {name}{text}"
    return line + ">"


def _describe(value: Any) -> str | None:
    """The text after a field's name, or None for a value that no line can show."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return f"={value}"
    if isinstance(value, str):
        text = " ".join(value.split())
        return f"={text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 4] + ' ...'!r}"
    # Whole numbers and fractions are shown exactly, floats with six digits.
    if isinstance(value, numbers.Real):
        return f"={value}" if isinstance(value, numbers.Rational) else f"={float(value):.6g}"
    if isinstance(value, (np.ndarray, Tensor)):
        return (
            f"={value.item():.6g}" if value.ndim == 0 else f": {' x '.join(map(str, value.shape))}"
        )
    if isinstance(value, (list, tuple, dict)):
        return f": {len(value)}"
    return None
