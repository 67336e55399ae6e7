"""Chizat and Bach 2020, *Implicit Bias of Gradient Descent for Wide Two-layer Neural Networks
Trained with the Logistic Loss*, Section 7, and its training with fixed directions.
"""

from ._features import FeatureMeasure
from ._fixed_features import FixedFeatureRun, train_magnitudes, train_output_layer
from ._lazy import tangent_margin, tangent_max_margin
from ._projected_flow import ProjectedFlow, projected_flow

__all__ = [
    "FeatureMeasure",
    "FixedFeatureRun",
    "ProjectedFlow",
    "projected_flow",
    "tangent_margin",
    "tangent_max_margin",
    "train_magnitudes",
    "train_output_layer",
]
