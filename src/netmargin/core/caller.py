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
_SAID: ContextVar[set[str] | None] = ContextVar("said", default=None)
"""What was warned of in the outermost call of a public function."""


@contextmanager
def hear_warnings() -> Iterator[list[str]]:
    """Keep the warnings of `warn_caller` in a block, in a list, for the block to say."""
    heard: list[str] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


@contextmanager
def warn_once() -> Iterator[None]:
    """Give each warning of `warn_caller` once in a block, of nested blocks in the outermost."""
    token = _SAID.set(set() if (said := _SAID.get()) is None else said)
    try:
        yield
    finally:
        _SAID.reset(token)


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of netmargin that led here."""
    if (heard := _HEARD.get()) is not None:
        heard.append(message)
        return
    if (said := _SAID.get()) is not None:
        if message in said:
            return
        said.add(message)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_OURS) or frame.f_code.co_filename.endswith(_DECORATOR)
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
