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


def door(call, data, **arguments):
    """A function, its data, and its other arguments with proper values."""
    return call, data, arguments


XY, KY, Q = {"X": X, "y": Y}, {"K": K, "y": Y}, {"q": [0.1] * 4}
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
    "f1_max_margin": door(
        solvers.f1_max_margin, XY | {"neurons": None}, **SEARCH, power=1, n_jobs=2
    ),
    "f1_soft_margin": door(
        solvers.f1_soft_margin, XY | {"neurons": None}, **SEARCH, C=1.0, n_jobs=2
    ),
    "f1_logistic": door(solvers.f1_logistic, XY, **SEARCH, regularization=0.1, power=1, n_jobs=2),
    "f2_max_margin": door(solvers.f2_max_margin, XY, **KERNEL, bias=True),
    "ntk_max_margin": door(solvers.ntk_max_margin, XY, **KERNEL, bias=True, r_w=1.0, r_u=1.0),
    "kernel_max_margin": door(solvers.kernel_max_margin, KY, **KERNEL),
    "kernel_soft_margin": door(solvers.kernel_soft_margin, KY, **KERNEL, C=1.0),
    "linear_max_margin": door(solvers.linear_max_margin, XY, norm="l1", bias=True, tol=1e-6),
    "narrow_max_margin": door(
        solvers.narrow_max_margin, XY, width=1, bias=False, tol=1e-6, time_limit=1.0
    ),
    "VariationNormClassifier": door(
        fitted(VariationNormClassifier),
        XY,
        C=None,
        bias=True,
        tol=1e-3,
        time_limit=None,
        pricing="local",
        random_state=0,
    ),
    "ReLUKernelClassifier": door(fitted(ReLUKernelClassifier), XY, **KERNEL, C=None, bias=True),
    "NTKClassifier": door(fitted(NTKClassifier), XY, **KERNEL, C=None, bias=True, r_w=1.0, r_u=1.0),
    "margin_bound": door(
        bounds.margin_bound, {"q": [0.5, 0.7]}, rademacher=0.1, largest=1.0, margin=0.5, delta=0.05
    ),
    "two_layer_bound": door(
        bounds.two_layer_bound, Q | {"X": X}, radius=2.0, margin=0.1, delta=0.05
    ),
    "kernel_bound": door(bounds.kernel_bound, Q | {"K": K}, largest=1.0, margin=0.1, delta=0.05),
    "deep_bound": door(bounds.deep_bound, Q, depth=2, radius=2.0, delta=0.05),
    "fast_rate_bound": door(fast_rate_bound, Q, radius=2.0, delta=0.05, constant=1.0),
    "regression_bound": door(
        bounds.regression_bound,
        {"losses": [0.1] * 4, "X": X},
        norm=1.0,
        largest_loss=1.0,
        lipschitz=1.0,
        kernel=False,
        delta=0.05,
    ),
    "truncated_squares": door(
        bounds.truncated_squares, {"predictions": [0.1], "y": [0.2]}, largest=1.0
    ),
    "interclass_distance": door(
        bounds.interclass_distance, XY, r=1, starts=1, iterations=2, seed=0, time_limit=None
    ),
    "interclass_bound": door(
        bounds.interclass_bound,
        {},
        n=10,
        distance=1.0,
        radius=2.0,
        r=2,
        constant=1.0,
        epsilon=0.5,
        delta=0.05,
    ),
    "variation_ball": door(bounds.variation_ball, {"X": X}, bias=True, draws=3, seed=0),
    "kernel_ball": door(bounds.kernel_ball, {"X": X}, bias=True, draws=3, seed=0),
    "ReLUMeasure.to_network": door(MEASURE.to_network, {}, width=5),
    "ReLUMeasure.decision_function": door(MEASURE.decision_function, {"X": X}),
    "ReLUMeasure.normalized_margin": door(MEASURE.normalized_margin, XY),
    "KernelSolution.decision_function": door(
        solvers.kernel_max_margin(K, Y).decision_function, {"K": K}
    ),
    "SoftKernelSolution.decision_function": door(
        solvers.kernel_soft_margin(K, Y).decision_function, {"K": K}
    ),
    "LinearSolution.decision_function": door(
        solvers.linear_max_margin(X, Y).decision_function, {"X": X}
    ),
    "ReLUMeasure.projected": door(
        solvers.ReLUMeasure.projected,
        {"positions": np.ones((2, 4)), "weights": None},
        bias=True,
        power=1,
    ),
    "early_margin": door(
        lambda **options: early_margin(NET, (X[:3], Y[:3]), **options), {}, time=1e4
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
