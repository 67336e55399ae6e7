"""What scales how: degrees of every value of a forward pass, and what they say about the net."""

from .analysis import analyse
from .answer import Blocker, Evidence, Homogeneity, Kind
from .scaling import ScalingCheck
from .trace import rule, scale_degree

__all__ = ["Blocker", "Evidence", "Homogeneity", "Kind", "ScalingCheck", "analyse", "rule", "scale_degree"]
