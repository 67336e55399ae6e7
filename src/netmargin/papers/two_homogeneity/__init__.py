"""*The Ubiquity of 2-Homogeneity* (2024), which has no figures: its nets and its claims."""

from ._early_margin import EarlyMargin, early_margin
from ._fast_rate import fast_rate_bound
from ._measures import spread_measure
from ._normalized_nets import AttentionFeatures, NormalizedNet, NormalizedReLU, mirror_flow

__all__ = [
    "AttentionFeatures",
    "EarlyMargin",
    "NormalizedNet",
    "NormalizedReLU",
    "early_margin",
    "fast_rate_bound",
    "mirror_flow",
    "spread_measure",
]
