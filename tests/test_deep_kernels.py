"""The tangent kernel of deep nets, against nets of great width, in the hands of scikit-learn."""

import itertools

import mpmath
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVR

import netmargin as nm

X = np.random.default_rng(0).normal(size=(6, 4))


class Scale(torch.nn.Module):
    """A factor between layers."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


def wide_net(depth: int, width: int) -> torch.nn.Sequential:
    """Normal weights of variance 1, signals over the root of half the width, as in the source."""
    sizes = [4, *[width] * depth, 1]
    layers = []
    for before, after in itertools.pairwise(sizes):
        linear = torch.nn.Linear(before, after, bias=False)
        torch.nn.init.normal_(linear.weight)
        layers += [linear, torch.nn.ReLU(), Scale((2 / after) ** 0.5)]
    return torch.nn.Sequential(*layers[:-2])


@pytest.mark.parametrize("depth", [1, 2])
def test_a_wide_net_has_this_kernel(depth):
    torch.manual_seed(0)
    empirical = np.mean([nm.kernels.empirical_ntk(wide_net(depth, 300), X) for _ in range(8)], 0)
    exact = nm.kernels.NTK(depth=depth, bias=False)(X)
    assert empirical == pytest.approx(exact, abs=0.1 * exact.max())


@pytest.mark.parametrize("depth", [1, 4])
def test_the_kernel_is_symmetric_positive_and_has_its_diagonal(depth):
    kernel = nm.kernels.NTK(depth=depth)
    K = kernel(X)
    assert pytest.approx(K.T) == K
    assert np.linalg.eigvalsh(K)[0] > 0
    assert np.diag(K) == pytest.approx(kernel.diag(X))
    assert kernel(X, X[:2]) == pytest.approx(K[:, :2])
    assert kernel(3 * X, X)[0, 1] != K[0, 1]


def test_one_hidden_layer_is_the_two_layer_kernel_in_other_units():
    ours = nm.kernels.ntk(X, r_w=1.0, r_u=2.0, bias=False)  # D = 4: 2^2 / 4 = 1
    assert nm.kernels.NTK(depth=1, bias=False)(X) == pytest.approx(2 * ours)


def deep_kernel_to_50_digits(x, z, depth):
    """The recursion of the source in numbers of 50 digits."""
    with mpmath.workdps(50):
        x, z = mpmath.matrix(list(map(float, x))), mpmath.matrix(list(map(float, z)))
        size = mpmath.norm(x) * mpmath.norm(z)
        cosine = kernel = (x.T * z)[0] / size
        for _ in range(depth):
            angle = mpmath.acos(min(cosine, mpmath.mpf(1)))
            active = (mpmath.pi - angle) / mpmath.pi
            cosine = mpmath.sin(angle) / mpmath.pi + active * cosine
            kernel = kernel * active + cosine
        return size * kernel


@pytest.mark.parametrize("apart", [1e-13, 1e-8, 1e-4, 0.2, 0.3])
def test_nearly_equal_inputs_keep_their_digits(apart):
    A = np.array([[1.0, 2.0, -0.5], [1.0, 2.0 + apart, -0.5], [-1.0, -2.0, 0.5 + apart]])
    for depth in (1, 3, 8):
        K = nm.kernels.NTK(depth=depth, bias=False)(A)
        for i, j in itertools.combinations(range(3), 2):
            exact = deep_kernel_to_50_digits(A[i], A[j], depth)
            assert abs(K[i, j] - exact) < 1e-13 * K[0, 0]


def test_regressors_of_scikit_learn_take_it():
    Z, y = make_friedman1(200, 5, random_state=0)
    kernel = nm.kernels.NTK(depth=3)
    for regressor in (
        KernelRidge(kernel=kernel, alpha=1.0),
        SVR(kernel=kernel, C=10.0),
        GaussianProcessRegressor(kernel + WhiteKernel(1.0), normalize_y=True),
    ):
        assert clone(regressor).fit(Z[:150], y[:150]).score(Z[150:], y[150:]) > 0.8


def test_what_is_no_depth_is_refused():
    with pytest.raises(nm.ArgumentError, match="depth"):
        nm.kernels.NTK(depth=0)(X)
    with pytest.raises(nm.DataError, match="columns"):
        nm.kernels.NTK()(X, X[:, :2])
