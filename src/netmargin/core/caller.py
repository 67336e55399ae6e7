"""Warnings that point at the caller's own line, however deep below it they arise."""

import sys
import warnings
from pathlib import Path

_OURS = str(Path(__file__).parent.parent)
_DECORATOR = str(Path("torch", "utils", "_contextlib.py"))
"""The file in which torch's `inference_mode` calls what it decorates."""


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of netmargin that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_OURS) or frame.f_code.co_filename.endswith(_DECORATOR)
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
