"""netmargin measures, maximizes and certifies the margins of neural networks."""

import importlib
from typing import TYPE_CHECKING

from . import datasets, kernels, losses, models
from .errors import (
    ArgumentError,
    CheckpointError,
    DataError,
    DivergenceError,
    Interrupted,
    MissingLibraryError,
    ModelError,
    NetmarginError,
    NotHomogeneousError,
    NotSeparatedError,
)
from .homogeneity import Homogeneity, analyse
from .margins import MarginReport, measure
from .training import (
    AnnealedLR,
    ConstantLR,
    Epochs,
    History,
    LogLossBelow,
    LossBasedLR,
    MarginGrowthBelow,
    Separated,
    load_weights,
    train,
)

if TYPE_CHECKING:
    from . import bounds, estimators, figures, papers, solvers, theory, twolayer
    from .kkt import KKTCertificate, TangentSVM, certify, tangent_svm
    from .l2_robustness import RobustnessReport, robustness
    from .training.gradient_flow import Trajectory, gradient_flow
    from .training.maximize_margin import MarginAscent, maximize_margin
    from .training.regularization_path import RegularizationPath, interpolation_path, regularization_path
    from .training.weak_regularization import WeakRegularization, weak_regularization

_ON_DEMAND = {
    "certify": "kkt",
    "KKTCertificate": "kkt",
    "TangentSVM": "kkt",
    "tangent_svm": "kkt",
    "robustness": "l2_robustness",
    "RobustnessReport": "l2_robustness",
    "gradient_flow": "training.gradient_flow",
    "Trajectory": "training.gradient_flow",
    "MarginAscent": "training.maximize_margin",
    "maximize_margin": "training.maximize_margin",
    "RegularizationPath": "training.regularization_path",
    "regularization_path": "training.regularization_path",
    "interpolation_path": "training.regularization_path",
    "WeakRegularization": "training.weak_regularization",
    "weak_regularization": "training.weak_regularization",
}


def __getattr__(name: str):
    # The LP and cone solvers, plots and scikit-learn take a second to import: load them when they are first used.
    if name in ("bounds", "estimators", "figures", "papers", "solvers", "theory", "twolayer"):
        return importlib.import_module(f".{name}", __name__)
    if name in _ON_DEMAND:
        return getattr(importlib.import_module(f".{_ON_DEMAND[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AnnealedLR",
    "ArgumentError",
    "CheckpointError",
    "ConstantLR",
    "DataError",
    "DivergenceError",
    "Epochs",
    "History",
    "Homogeneity",
    "Interrupted",
    "KKTCertificate",
    "LogLossBelow",
    "LossBasedLR",
    "MarginAscent",
    "MarginGrowthBelow",
    "MarginReport",
    "MissingLibraryError",
    "ModelError",
    "NetmarginError",
    "NotHomogeneousError",
    "NotSeparatedError",
    "RegularizationPath",
    "RobustnessReport",
    "Separated",
    "TangentSVM",
    "Trajectory",
    "WeakRegularization",
    "analyse",
    "bounds",
    "certify",
    "datasets",
    "estimators",
    "figures",
    "gradient_flow",
    "interpolation_path",
    "kernels",
    "load_weights",
    "losses",
    "maximize_margin",
    "measure",
    "models",
    "papers",
    "regularization_path",
    "robustness",
    "solvers",
    "tangent_svm",
    "theory",
    "train",
    "twolayer",
    "weak_regularization",
]
