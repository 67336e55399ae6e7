"""Robustness in L2: certified and attacked radii of samples."""

from .evaluation import robustness
from .lipschitz import score_lipschitz
from .notebook import describe_radii as describe_radii
from .report import RobustnessReport

__all__ = ["RobustnessReport", "robustness", "score_lipschitz"]
