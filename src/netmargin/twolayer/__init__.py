"""Two-layer nets as measures over neurons, and their dynamics."""

from .fixed_features import FixedFeatureRun, train_magnitudes, train_output_layer

__all__ = ["FixedFeatureRun", "train_magnitudes", "train_output_layer"]
