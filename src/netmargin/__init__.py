"""netmargin measures, maximizes and certifies the margins of neural networks."""

from . import datasets, losses, models
from .errors import (
    CheckpointError,
    DataError,
    DivergenceError,
    Interrupted,
    ModelError,
    NetmarginError,
    NotHomogeneousError,
)
from .homogeneity import Homogeneity, analyse
from .margins import MarginReport, measure
from .training import (
    ConstantLR,
    Epochs,
    History,
    LogLossBelow,
    LossBasedLR,
    MarginGrowthBelow,
    load_weights,
    train,
)

__all__ = [
    "CheckpointError",
    "ConstantLR",
    "DataError",
    "DivergenceError",
    "Epochs",
    "History",
    "Homogeneity",
    "Interrupted",
    "LogLossBelow",
    "LossBasedLR",
    "MarginGrowthBelow",
    "MarginReport",
    "ModelError",
    "NetmarginError",
    "NotHomogeneousError",
    "analyse",
    "datasets",
    "load_weights",
    "losses",
    "measure",
    "models",
    "train",
]
