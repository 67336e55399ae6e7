"""netmargin measures, maximizes and certifies the margins of neural networks."""

import importlib
import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import bounds, datasets, estimators, figures, kernels, losses, models, papers, solvers, theory, twolayer
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
    from .kkt import KKTCertificate, TangentSVM, certify, tangent_svm
    from .l2_robustness import RobustnessReport, robustness
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
    from .training.gradient_flow import Trajectory, gradient_flow
    from .training.maximize_margin import MarginAscent, maximize_margin
    from .training.regularization_path import RegularizationPath, interpolation_path, regularization_path
    from .training.weak_regularization import WeakRegularization, weak_regularization

_HOMES = {
    "errors": (
        "ArgumentError",
        "CheckpointError",
        "DataError",
        "DivergenceError",
        "Interrupted",
        "MissingLibraryError",
        "ModelError",
        "NetmarginError",
        "NotHomogeneousError",
        "NotSeparatedError",
    ),
    "homogeneity": ("Homogeneity", "analyse"),
    "kkt": ("KKTCertificate", "TangentSVM", "certify", "tangent_svm"),
    "l2_robustness": ("RobustnessReport", "robustness"),
    "margins": ("MarginReport", "measure"),
    "training": (
        "AnnealedLR",
        "ConstantLR",
        "Epochs",
        "History",
        "LogLossBelow",
        "LossBasedLR",
        "MarginGrowthBelow",
        "Separated",
        "load_weights",
        "train",
    ),
    "training.gradient_flow": ("Trajectory", "gradient_flow"),
    "training.maximize_margin": ("MarginAscent", "maximize_margin"),
    "training.regularization_path": ("RegularizationPath", "interpolation_path", "regularization_path"),
    "training.weak_regularization": ("WeakRegularization", "weak_regularization"),
}
_ON_DEMAND = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str):
    # torch takes seconds to import, the solvers one more: each is loaded when it is first used, and the command line can be
    # interrupted from its first moment on.
    if name in _ON_DEMAND:
        return getattr(importlib.import_module(f".{_ON_DEMAND[name]}", __name__), name)
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f".{name}", __name__)
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
