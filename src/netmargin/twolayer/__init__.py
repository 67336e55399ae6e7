"""Wide two-layer nets: training of both layers, and how far a net is from the largest margin.

Other dynamics lie with their papers: `netmargin.papers.chizat_bach`, `wei_2018`, `two_homogeneity`.
"""

from ..core.public import guard
from .both_layers import train_both_layers
from .slackness import Slackness, slackness
from .two_layer_runs import Snapshot, TwoLayerRuns

__all__ = ["Slackness", "Snapshot", "TwoLayerRuns", "slackness", "train_both_layers"]
guard(globals())
