"""Warnings that point at the caller's own line, however deep below it they arise."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_OURS = str(Path(__file__).parent.parent)
_DECORATOR = str(Path("torch", "utils", "_contextlib.py"))
"""The file in which torch's `inference_mode` calls what it decorates."""

_HEARD: ContextVar[list[str] | None] = ContextVar("heard", default=None)
"""The warnings that a block keeps for itself, where one does."""


@contextmanager
def hear_warnings() -> Iterator[list[str]]:
    """Keep the warnings of `warn_caller` in a block, in a list, for the block to say."""
    heard: list[str] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of netmargin that led here."""
    if (heard := _HEARD.get()) is not None:
        heard.append(message)
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_OURS) or frame.f_code.co_filename.endswith(_DECORATOR)
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
