"""Two-layer nets as measures over neurons, and their dynamics."""

from .both_layers import TwoLayerRuns, train_both_layers
from .early_margin import EarlyMargin, early_margin
from .fixed_features import FixedFeatureRun, train_magnitudes, train_output_layer
from .normalized_nets import NormalizedNet, NormalizedReLU, mirror_flow

__all__ = [
    "EarlyMargin",
    "FixedFeatureRun",
    "NormalizedNet",
    "NormalizedReLU",
    "TwoLayerRuns",
    "early_margin",
    "mirror_flow",
    "train_both_layers",
    "train_magnitudes",
    "train_output_layer",
]
