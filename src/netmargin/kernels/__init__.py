"""Kernels of ReLU nets: in closed form, by random features, of your own net, for scikit-learn."""

from typing import TYPE_CHECKING, Any

from ..core.public import guard
from .empirical import empirical_ntk
from .two_layer import arc_cosine, ntk, random_features

if TYPE_CHECKING:
    from .deep import NTK

__all__ = ["NTK", "arc_cosine", "empirical_ntk", "ntk", "random_features"]
guard(globals())


def __getattr__(name: str) -> Any:
    """Load the kernel for scikit-learn when it is asked for: it brings scikit-learn with it."""
    if name == "NTK":
        from .deep import NTK

        return NTK
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
