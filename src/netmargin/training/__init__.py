"""Training that goes on where floats underflow: loop, learning-rate rules, stopping rules,
checkpoints, history.
"""

from .checkpoint import load_weights
from .history import History
from .learning_rate import AnnealedLR, ConstantLR, LearningRate, LossBasedLR
from .loop import train
from .notebook import describe_history as describe_history
from .stopping import Epochs, LogLossBelow, MarginGrowthBelow, Separated, StoppingRule

__all__ = [
    "AnnealedLR",
    "ConstantLR",
    "Epochs",
    "History",
    "LearningRate",
    "LogLossBelow",
    "LossBasedLR",
    "MarginGrowthBelow",
    "Separated",
    "StoppingRule",
    "load_weights",
    "train",
]
