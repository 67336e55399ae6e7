"""Margins in every training loop: a watch for loops of your own, and callbacks of Lightning and of
Hugging Face's Trainer around it. A framework is imported when its callback is first used.
"""

from typing import TYPE_CHECKING

import lazy_loader

from .watch import Watch as Watch

if TYPE_CHECKING:
    from .lightning import LightningMarginMonitor as LightningMarginMonitor
    from .transformers import TransformersMarginCallback as TransformersMarginCallback

_CALLBACKS = {
    "lightning": ["LightningMarginMonitor"],
    "transformers": ["TransformersMarginCallback"],
}
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs=_CALLBACKS)
