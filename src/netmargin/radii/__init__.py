"""Robustness in L2: certified and attacked radii of samples."""

from ..core.public import guard
from .evaluation import robustness
from .lipschitz import score_lipschitz
from .report import RobustnessReport

__all__ = ["RobustnessReport", "robustness", "score_lipschitz"]
guard(globals())
