"""Margins in every training loop: a watch for loops of your own, and callbacks of Lightning and of
Hugging Face's Trainer around it. A framework is imported when its callback is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .watch import Watch as Watch

if TYPE_CHECKING:
    from .lightning import LightningMarginMonitor as LightningMarginMonitor
    from .transformers import TransformersMarginCallback as TransformersMarginCallback

__all__ = ["LightningMarginMonitor", "TransformersMarginCallback"]


_FILES = {"LightningMarginMonitor": ".lightning", "TransformersMarginCallback": ".transformers"}


def __getattr__(name: str) -> Any:
    """Load a callback, and its framework with it."""
    if name in _FILES:
        return getattr(import_module(_FILES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
