"""What scales how: degrees of every value of a forward pass, and what they say about the net."""

from .analysis import analyse
from .answer import Blocker, Evidence, Homogeneity, Kind, ScalingCheck
from .degree import Epsilon, scale_degree
from .registry import rule

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
