"""Robustness in L2: certified and attacked radii of samples."""

from ..core.public import guard
from .evaluation import robustness
from .report import RobustnessReport

__all__ = ["RobustnessReport", "robustness"]
guard(globals())
