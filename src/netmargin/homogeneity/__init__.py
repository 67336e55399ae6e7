"""Homogeneity: how every value of a forward pass, and so the net, scales with the parameters."""

from .analysis import analyse
from .answer import Homogeneity
from .degree import Epsilon, scale_degree
from .registry import rule
from .scaling_check import ScalingCheck
from .vocabulary import Blocker, Evidence, Kind

__all__ = [
    "Blocker",
    "Epsilon",
    "Evidence",
    "Homogeneity",
    "Kind",
    "ScalingCheck",
    "analyse",
    "rule",
    "scale_degree",
]
