"""Support vector machines without an intercept by steps of two samples: the engine of the kernel
solvers. Its answers are candidates: callers recompute what they prove in float64.
"""

from .descent import descend
from .newton import take_newton_step

__all__ = ["descend", "take_newton_step"]
