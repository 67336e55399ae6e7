"""Training that goes on where floats underflow: loop, learning-rate rules, stopping rules,
checkpoints, history.
"""

from .history import History
from .learning_rate import AnnealedLR, ConstantLR, LearningRate, LossBasedLR
from .loop import train
from .relative_criterion import RelativeLoss

# For other packages, and not public: what a run keeps of single samples.
from .sample_margins import (
    fingerprint as fingerprint,
    has_sample_margins as has_sample_margins,
    read_sample_margins as read_sample_margins,
)
from .stopping import Epochs, LogLossBelow, MarginGrowthBelow, Separated, StoppingRule
from .weights import load_weights, save_weights

__all__ = [
    "AnnealedLR",
    "ConstantLR",
    "Epochs",
    "History",
    "LearningRate",
    "LogLossBelow",
    "LossBasedLR",
    "MarginGrowthBelow",
    "RelativeLoss",
    "Separated",
    "StoppingRule",
    "load_weights",
    "save_weights",
    "train",
]
