"""Kernels of ReLU nets: in closed form, by random features, of your own net, for scikit-learn."""

from typing import TYPE_CHECKING

import lazy_loader

from ..core.public import guard
from .empirical import empirical_ntk
from .two_layer import arc_cosine, ntk, random_features

if TYPE_CHECKING:
    from .deep import NTK

__all__ = ["NTK", "arc_cosine", "empirical_ntk", "ntk", "random_features"]
# Loaded when it is asked for: it brings scikit-learn with it.
__getattr__, *_ = lazy_loader.attach(__name__, submod_attrs={"deep": ["NTK"]})
guard(globals())
