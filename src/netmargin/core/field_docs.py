"""Docstrings of records: `help` says what each field is, from the comments at the fields."""

import dataclasses
import inspect
import re
import sys
from typing import Any

_FIELD = re.compile(
    r"^((?:    #:? .*\n)*)    (\w+): ([^=#\n]+?)(?: = [^#\n]*)?(?:  #:? (.*))?$", re.MULTILINE
)
"""A field: the comments above it, its name, its type, and the comment beside it."""


class FieldDocs:
    """The docstring of a class, with a section about its fields that is made when it is read."""

    def __init__(self, text: str | None) -> None:
        self._text = inspect.cleandoc(text or "")

    def __get__(self, record: Any, kind: type) -> str:
        # `dataclass` asks as well: no source is read before the class is in its module.
        if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is not kind:
            return self._text
        bases: list[Any] = [*filter(dataclasses.is_dataclass, reversed(kind.__mro__))]
        try:
            source = "".join(map(inspect.getsource, bases))
        except (OSError, TypeError):  # a program without it, a session
            return self._text
        fields, lines = getattr(kind, "__dataclass_fields__", {}), []
        told = {name: (above, of, beside) for above, name, of, beside in _FIELD.findall(source)}
        for name, (above, of, beside) in told.items():
            if name in fields and not name.startswith("_"):
                meaning = re.findall("#:? (.*)", above) + [beside] * bool(beside)
                lines += [f"{name} : {of}", *(f"    {line}" for line in meaning)]
        if not lines:
            return self._text
        head, examples, rest = self._text.partition("\n\nExamples\n")
        return "\n".join([head, "", "Attributes", "-" * 10, *lines]) + examples + rest
