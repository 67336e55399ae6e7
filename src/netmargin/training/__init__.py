"""Training past underflow: loop, learning-rate rules, stopping rules, checkpoints, history."""

from .history import History
from .learning_rate import AnnealedLR, ConstantLR, LearningRate, LossBasedLR
from .loop import train
from .relative_criterion import RelativeLoss
from .run_files import fingerprint as fingerprint  # for other packages, and not public
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
