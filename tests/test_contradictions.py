"""Samples that no function can label as asked are named, with a soft margin that copes."""

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

import netmargin as nm
from netmargin import solvers
from netmargin.core.matrices import binary_data
from netmargin.estimators import NTKClassifier, ReLUKernelClassifier, VariationNormClassifier
from netmargin.result import Status
from netmargin.solvers.contradictions import Contradictions, contradicting_pairs

MOONS, SIDES = make_moons(80, noise=0.05, random_state=0)
X, Y = np.vstack([MOONS, MOONS[7:8]]), np.append(SIDES, 1 - SIDES[7])
RAYS, ON_RAYS = np.vstack([MOONS, 4 * MOONS[7:8]]), Y
ZERO, WITH_ZERO = np.vstack([MOONS, np.zeros((1, 2))]), Y


def kernel_of(inputs, bias):
    return nm.kernels.arc_cosine(inputs, bias=bias)


@pytest.mark.parametrize(
    ("rows", "labels", "pairs"),
    [
        ([[1, 2], [2, 1], [1, 2]], [1, 1, 1], []),
        ([[1, 2], [2, 1], [1, 2]], [1, 1, -1], [(0, 2)]),
        ([[0.0], [-0.0], [1]], [1, -1, 1], [(0, 1)]),
        ([[1], [1], [1], [2], [1]], [1, 1, -1, 1, -1], [(0, 2), (0, 4)]),
        ([[1], [2], [2], [1]], [3, 1, 2, 4], [(1, 2), (0, 3)]),
        ([[1], [1 + 1e-15]], [1, -1], []),
    ],
)
def test_pairs_of_equal_rows_with_different_labels(rows, labels, pairs):
    found = contradicting_pairs(np.array(rows, dtype=float), np.array(labels))
    assert {tuple(pair) for pair in found} == set(pairs)


@pytest.mark.parametrize(
    ("solve", "told"),
    [
        (lambda: solvers.f1_max_margin(X, Y), "Samples 7 and 80 are equal .* f1_soft_margin\\(X, y, C=7, bias=True\\)"),
        (lambda: solvers.f1_max_margin(X, Y, bias=False), "Samples 7 and 80 are equal .* bias=False\\)"),
        (lambda: solvers.f1_max_margin(X, Y, power=2), "Samples 7 and 80 are equal .* f1_logistic\\("),
        (lambda: solvers.f1_max_margin(RAYS, ON_RAYS, bias=False), "Samples 7 and 80 are positive multiples"),
        (lambda: solvers.f1_max_margin(ZERO, WITH_ZERO, bias=False), "Sample 80 is 0.* add a bias"),
        (lambda: solvers.f2_max_margin(X, Y), "Samples 7 and 80 are equal .* kernel_soft_margin\\(kernels.arc_cosine"),
        (lambda: solvers.f2_max_margin(RAYS, ON_RAYS, bias=False), "Samples 7 and 80 are positive multiples"),
        (lambda: solvers.f2_max_margin(ZERO, WITH_ZERO, bias=False), "Sample 80 is 0"),
        (lambda: solvers.ntk_max_margin(X, Y), "Samples 7 and 80 are equal .* kernel_soft_margin\\(kernels.ntk"),
        (lambda: solvers.ntk_max_margin(RAYS, ON_RAYS, bias=False), "Samples 7 and 80 are positive multiples"),
        (lambda: solvers.kernel_max_margin(kernel_of(X, True), Y), "Samples 7 and 80 are equal in the space .*\\(K, y, C="),
        (lambda: solvers.kernel_max_margin(kernel_of(ZERO, False), WITH_ZERO), "Sample 80 is 0"),
        (lambda: solvers.kernel_max_margin(kernel_of(RAYS, False), ON_RAYS), "Samples 7 and 80 are multiples of each other in the space"),
        (lambda: solvers.kernel_max_margin(MOONS @ MOONS.T, SIDES), "No two samples contradict each other, but the [2-9] samples of `support`"),
        (lambda: solvers.linear_max_margin(X, Y), "Samples 7 and 80 are equal"),
        (lambda: solvers.linear_max_margin(X, Y, norm="l1", bias=True), "Samples 7 and 80 are equal"),
        (lambda: solvers.linear_max_margin(RAYS, ON_RAYS), "Samples 7 and 80 are positive multiples"),
        (lambda: solvers.linear_max_margin(MOONS, SIDES, bias=True), "No two samples contradict each other, but the [234] samples of `support`"),
    ],
)  # fmt: skip
def test_solvers_name_the_samples_and_prove_it(solve, told):
    found = solve()
    assert found.status is Status.NOT_SEPARABLE
    assert found.certified
    assert found.margin == 0.0
    assert found.upper_bound <= 1e-4
    assert found.dual.sum() == pytest.approx(1)
    assert re.search(told, found.note), found.note


def test_separable_samples_have_no_note():
    assert (
        solvers.f1_max_margin(MOONS, SIDES).note == solvers.f2_max_margin(MOONS, SIDES).note == ""
    )
    assert not Contradictions.among(binary_data(MOONS, SIDES, bias=False), bias=False).note(
        np.array([], dtype=int), ""
    )


def test_the_weights_on_a_contradiction_prove_it():
    for inputs in (X, ZERO):
        data = binary_data(inputs, Y, bias=False)
        weights = Contradictions.among(data, bias=False).weights
        assert weights.sum() == 1
        assert not (
            weights * data.y @ np.maximum(data.Z @ np.random.default_rng(0).normal(size=(2, 50)), 0)
        ).any()


@pytest.mark.parametrize("make", [VariationNormClassifier, ReLUKernelClassifier, NTKClassifier])
@pytest.mark.parametrize("names", [["a", "b"], [3, 5]])
def test_classifiers_name_the_pair_and_a_cost_that_works(make, names):
    labels = np.array(names)[Y]
    with pytest.warns(ConvergenceWarning) as caught:
        hard = make(C=None).fit(X, labels)
    assert len(caught) == 1
    assert len(set(hard.decision_function(X))) == 1  # constant
    message = str(caught[0].message)
    assert (
        f"Samples 7 and 80 are equal, but their labels are {labels[7]} and {labels[80]}: correct or"
        " drop" in message
    )
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        soft = make(C=float(re.search(r"C=([0-9.e+-]+):", message)[1])).fit(X, labels)
    assert soft.score(X, labels) == 80 / 81


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_the_recommended_cost_follows_the_scale(scale):
    with pytest.warns(ConvergenceWarning) as caught:
        ReLUKernelClassifier(C=None, bias=False).fit(scale * X, Y)
    C = float(re.search(r"C=([0-9.e+-]+):", str(caught[0].message))[1])
    assert C * scale**2 * np.diag(kernel_of(X, False)).mean() == pytest.approx(10, rel=0.5)


@pytest.mark.slow
def test_of_three_classes_those_that_contradict_are_counted():
    three = np.append(np.arange(80) % 2 + SIDES, 0)
    three[80] = three[7] + 1 if three[7] < 2 else 0
    with pytest.warns(
        ConvergenceWarning, match="Scores of 2 of 3 classes are constant.*Samples 7 and 80"
    ):
        ReLUKernelClassifier(C=None).fit(X, three)
    with pytest.warns(ConvergenceWarning, match="Scores are constant.*Samples 7 and 80"):
        assert VariationNormClassifier(C=None).fit(X, three).margin_ == 0
