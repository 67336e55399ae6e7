"""Two-layer nets as measures over neurons, and their dynamics."""

from .both_layers import train_both_layers
from .early_margin import EarlyMargin, early_margin
from .fixed_features import FixedFeatureRun, train_magnitudes, train_output_layer
from .functionals import Functional, Regularity, regularized_logistic
from .lazy import tangent_margin, tangent_max_margin
from .normalized_nets import AttentionFeatures, NormalizedNet, NormalizedReLU, mirror_flow
from .perturbation_schedule import Schedule, perturbation_schedule
from .perturbed_flow import PerturbedFlow, perturbed_flow
from .projected_flow import ProjectedFlow, projected_flow
from .slackness import Slackness, slackness
from .two_layer_runs import Snapshot, TwoLayerRuns

__all__ = [
    "AttentionFeatures",
    "EarlyMargin",
    "FixedFeatureRun",
    "Functional",
    "NormalizedNet",
    "NormalizedReLU",
    "PerturbedFlow",
    "ProjectedFlow",
    "Regularity",
    "Schedule",
    "Slackness",
    "Snapshot",
    "TwoLayerRuns",
    "early_margin",
    "mirror_flow",
    "perturbation_schedule",
    "perturbed_flow",
    "projected_flow",
    "regularized_logistic",
    "slackness",
    "tangent_margin",
    "tangent_max_margin",
    "train_both_layers",
    "train_magnitudes",
    "train_output_layer",
]
