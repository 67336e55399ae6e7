"""Support vector machines without an intercept by steps of two samples: candidates for a judge."""

from .descent import descend
from .newton import take_newton_step

__all__ = ["descend", "take_newton_step"]
