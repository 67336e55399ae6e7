"""What scales how: degrees of every value of a forward pass, and what they say about the net."""

from .analysis import Blocker, Evidence, Homogeneity, Kind, analyse
from .scaling import ScalingCheck
from .trace import rule

__all__ = ["Blocker", "Evidence", "Homogeneity", "Kind", "ScalingCheck", "analyse", "rule"]
