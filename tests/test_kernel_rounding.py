"""Kernels whose entries are rounded: brackets of margins hold what 40 digits say."""

import mpmath
import numpy as np
import pytest

from netmargin import Status, kernels, solvers
from netmargin.kernels.two_layer import bound_entry_errors


def _exact_entry(a, b, r_w: float) -> mpmath.mpf:
    """The tangent kernel with r_u = 1, or with r_w = 0 that of F_2, in the digits of mpmath."""
    dimension = len(a)
    a, b = (np.asarray(row)[:3].tolist() for row in (a, b))  # all others are 0
    inner, first, second = (mpmath.fdot(p, q) for p, q in ((a, b), (a, a), (b, b)))
    size = mpmath.sqrt(first * second)
    sine = mpmath.sqrt(size**2 - inner**2)
    angle = mpmath.pi - mpmath.atan2(sine, inner)
    return ((sine + angle * inner) / dimension + r_w**2 * angle * inner) / (2 * mpmath.pi)


def _best_margin(X, r_w: float) -> mpmath.mpf:
    """Of two samples with different labels, where the angle of their features is acute."""
    first, second = _exact_entry(X[0], X[0], r_w), _exact_entry(X[1], X[1], r_w)
    both = _exact_entry(X[0], X[1], r_w)
    return mpmath.sqrt((first * second - both**2) / (first + second + 2 * both))


@pytest.mark.slow_cases("1000")
@pytest.mark.parametrize("dimension", [2, 50, 1000])
def test_brackets_of_tangent_kernels_hold_the_margin_at_small_angles(dimension):
    for angle in 0.00142 + 1e-6 * np.arange(40):
        X = np.zeros((2, dimension))
        X[:, :2] = [[1.0, 0.0], [np.cos(angle), np.sin(angle)]]
        found = solvers.ntk_max_margin(X, [1, -1], bias=False)
        with mpmath.workdps(40):
            best = _best_margin(X, 1.0)
            assert found.margin <= best <= found.upper_bound, angle
        assert found.certified, angle


def test_entries_are_as_exact_as_they_say():
    rng = np.random.default_rng(0)
    for angle in 10 ** rng.uniform(-3, 0, 100):
        u, w = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
        X = np.array([u, np.cos(angle) * u + np.sin(angle) * w])
        with mpmath.workdps(40):
            off = kernels.ntk(X, bias=False)[0, 1] - _exact_entry(*X, 1.0)
        assert abs(off) <= bound_entry_errors(3) * 2 / 3, angle  # k(x, x) = 2 / 3


@pytest.mark.parametrize("size", [5e-324, 1.5e-323, 1e-310, 1e-300])
@pytest.mark.parametrize("kernel", ["f2", "ntk"])
def test_brackets_hold_the_margin_of_a_sample_near_the_least_float(kernel, size):
    solve = solvers.f2_max_margin if kernel == "f2" else solvers.ntk_max_margin
    with mpmath.workdps(40):
        best = size * mpmath.sqrt(0.5 if kernel == "f2" else 1.0)
        for limit in None, 1e-9:
            found = solve([[size]], [1], bias=False, time_limit=limit)
            assert found.margin <= best <= found.upper_bound
            assert found.status is not Status.NOT_SEPARABLE
            assert np.isfinite(found.coefficients).all()
    assert size < 1e-300 or solve([[size]], [1], bias=False).certified


def test_samples_are_called_equal_only_where_they_are():
    X = np.array([[94906265.0, 0.0], [94906265.0, 1.0]])
    near = solvers.kernel_max_margin(X @ X.T, [1, -1])
    assert near.note.startswith(
        "Samples 0 and 1 are equal within the rounding of the entries in the space of the kernel"
    )
    assert "no function provably separates" in near.note
    for K in np.ones((2, 2)), np.outer([3.0, 7.0], [3.0, 7.0]):
        equal = solvers.kernel_max_margin(K, [1, -1])
        assert "rounding" not in equal.note
        assert "no function separates them" in equal.note


def test_margin_and_bound_are_those_of_the_mean_of_a_kernel_and_its_transpose():
    K = np.array([[1.0, 0.3 * (1 + 9e-10), 0.1], [0.3, 2.0, 0.2], [0.1, 0.2, 1.0]])
    found = solvers.kernel_max_margin(K, [1, -1, 1], tol=1e-12)
    mean, f = (K + K.T) / 2, found.coefficients
    attained = ([1, -1, 1] * (mean @ f)).min() / np.sqrt(f @ mean @ f)
    assert found.certified
    assert found.margin <= attained * (1 + 1e-15)
