"""Two-layer nets as measures over neurons, and their dynamics."""

from .both_layers import TwoLayerRuns, train_both_layers
from .fixed_features import FixedFeatureRun, train_magnitudes, train_output_layer

__all__ = ["FixedFeatureRun", "TwoLayerRuns", "train_both_layers", "train_magnitudes", "train_output_layer"]
