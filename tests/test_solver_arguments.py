"""Every argument of every solver, estimator and bound, given odd values: an answer, or an error of
our own that names the argument.
"""

import math
import warnings

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin import bounds, solvers
from netmargin.estimators import NTKClassifier, ReLUKernelClassifier, VariationNormClassifier
from netmargin.papers.two_homogeneity import (
    NormalizedNet,
    NormalizedReLU,
    early_margin,
    fast_rate_bound,
)

ODD = [
    None, "x", "1", b"1", -1, 0, 1, 2.5, math.nan, math.inf, -math.inf, 1e-320, [], [1.0], {}, object(), int, len, True, 1j,
    np.float64(0.5), np.int64(3), np.array(2), np.array([1.0, 2.0]), torch.tensor(0.5), torch.tensor([1.0, 2.0]), torch.nn.Linear,
]  # fmt: skip
X, Y = np.array([[1.0, 0.5], [-0.3, 1.0], [0.2, -1.0], [-1.0, -0.2]]), np.array([1, -1, 1, -1])
K = nm.kernels.arc_cosine(X)
MEASURE = solvers.f1_max_margin(X, Y)
NET = NormalizedNet(NormalizedReLU(2, 20), 20)


def fitted(make):
    def fit(X, y, **options):
        return make(**options).fit(X, y)

    return fit


SEARCH = {
    "bias": True,
    "tol": 1e-3,
    "time_limit": None,
    "pricing": "auto",
    "seed": 0,
    "progress": False,
}
KERNEL = {"tol": 1e-6, "time_limit": None}
DOORS = {
    # name: (function, its data, its other arguments with proper values)
    "f1_max_margin": (
        solvers.f1_max_margin,
        {"X": X, "y": Y, "neurons": None},
        SEARCH | {"power": 1, "n_jobs": 2},
    ),
    "f1_soft_margin": (
        solvers.f1_soft_margin,
        {"X": X, "y": Y, "neurons": None},
        SEARCH | {"C": 1.0, "n_jobs": 2},
    ),
    "f1_logistic": (
        solvers.f1_logistic,
        {"X": X, "y": Y},
        SEARCH | {"regularization": 0.1, "power": 1, "n_jobs": 2},
    ),
    "f2_max_margin": (solvers.f2_max_margin, {"X": X, "y": Y}, KERNEL | {"bias": True}),
    "ntk_max_margin": (
        solvers.ntk_max_margin,
        {"X": X, "y": Y},
        KERNEL | {"bias": True, "r_w": 1.0, "r_u": 1.0},
    ),
    "kernel_max_margin": (solvers.kernel_max_margin, {"K": K, "y": Y}, KERNEL),
    "kernel_soft_margin": (solvers.kernel_soft_margin, {"K": K, "y": Y}, KERNEL | {"C": 1.0}),
    "linear_max_margin": (
        solvers.linear_max_margin,
        {"X": X, "y": Y},
        {"norm": "l1", "bias": True, "tol": 1e-6},
    ),
    "narrow_max_margin": (
        solvers.narrow_max_margin,
        {"X": X, "y": Y},
        {"width": 1, "bias": False, "tol": 1e-6, "time_limit": 1.0},
    ),
    "VariationNormClassifier": (
        fitted(VariationNormClassifier),
        {"X": X, "y": Y},
        {
            "C": None,
            "bias": True,
            "tol": 1e-3,
            "time_limit": None,
            "pricing": "local",
            "random_state": 0,
        },
    ),
    "ReLUKernelClassifier": (
        fitted(ReLUKernelClassifier),
        {"X": X, "y": Y},
        KERNEL | {"C": None, "bias": True},
    ),
    "NTKClassifier": (
        fitted(NTKClassifier),
        {"X": X, "y": Y},
        KERNEL | {"C": None, "bias": True, "r_w": 1.0, "r_u": 1.0},
    ),
    "margin_bound": (
        bounds.margin_bound,
        {"q": [0.5, 0.7]},
        {"rademacher": 0.1, "largest": 1.0, "margin": 0.5, "delta": 0.05},
    ),
    "two_layer_bound": (
        bounds.two_layer_bound,
        {"q": [0.1] * 4, "X": X},
        {"radius": 2.0, "margin": 0.1, "delta": 0.05},
    ),
    "kernel_bound": (
        bounds.kernel_bound,
        {"q": [0.1] * 4, "K": K},
        {"largest": 1.0, "margin": 0.1, "delta": 0.05},
    ),
    "deep_bound": (bounds.deep_bound, {"q": [0.1] * 4}, {"depth": 2, "radius": 2.0, "delta": 0.05}),
    "fast_rate_bound": (
        fast_rate_bound,
        {"q": [0.1] * 4},
        {"radius": 2.0, "delta": 0.05, "constant": 1.0},
    ),
    "regression_bound": (
        bounds.regression_bound,
        {"losses": [0.1] * 4, "X": X},
        {"norm": 1.0, "largest_loss": 1.0, "lipschitz": 1.0, "kernel": False, "delta": 0.05},
    ),
    "truncated_squares": (
        bounds.truncated_squares,
        {"predictions": [0.1], "y": [0.2]},
        {"largest": 1.0},
    ),
    "interclass_distance": (
        bounds.interclass_distance,
        {"X": X, "y": Y},
        {"r": 1, "starts": 1, "iterations": 2, "seed": 0, "time_limit": None},
    ),
    "interclass_bound": (
        bounds.interclass_bound,
        {},
        {
            "n": 10,
            "distance": 1.0,
            "radius": 2.0,
            "r": 2,
            "constant": 1.0,
            "epsilon": 0.5,
            "delta": 0.05,
        },
    ),
    "variation_ball": (bounds.variation_ball, {"X": X}, {"bias": True, "draws": 3, "seed": 0}),
    "kernel_ball": (bounds.kernel_ball, {"X": X}, {"bias": True, "draws": 3, "seed": 0}),
    "ReLUMeasure.to_network": (MEASURE.to_network, {}, {"width": 5}),
    "ReLUMeasure.decision_function": (MEASURE.decision_function, {"X": X}, {}),
    "ReLUMeasure.normalized_margin": (MEASURE.normalized_margin, {"X": X, "y": Y}, {}),
    "KernelSolution.decision_function": (
        solvers.kernel_max_margin(K, Y).decision_function,
        {"K": K},
        {},
    ),
    "SoftKernelSolution.decision_function": (
        solvers.kernel_soft_margin(K, Y).decision_function,
        {"K": K},
        {},
    ),
    "LinearSolution.decision_function": (
        solvers.linear_max_margin(X, Y).decision_function,
        {"X": X},
        {},
    ),
    "ReLUMeasure.projected": (
        solvers.ReLUMeasure.projected,
        {"positions": np.ones((2, 4)), "weights": None},
        {"bias": True, "power": 1},
    ),
    "early_margin": (
        lambda **options: early_margin(NET, (X[:3], Y[:3]), **options),
        {},
        {"time": 1e4},
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_odd_values_get_an_answer_or_an_error_of_our_own(door):
    call, data, arguments = DOORS[door]
    foreign = []
    for name in [*data, *arguments]:
        for value in ODD:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call(**data | arguments | {name: value})
            except nm.NetmarginError as error:
                # An argument that contradicts another one, such as a margin beyond the radius:
                # either may be named.
                if name in arguments and not any(word in str(error) for word in arguments):
                    foreign.append(f"{name}={value!r}: not named in: {error}")
            except Exception as error:
                if not (
                    door.endswith("Classifier") and name in data
                ):  # scikit-learn checks these itself
                    foreign.append(f"{name}={value!r}: {type(error).__name__}: {error}")
    assert not foreign, "\n".join(foreign)
