"""The kernel classifiers with all classes as one problem."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import netmargin as nm
from netmargin.estimators import NTKClassifier
from netmargin.kernels import ntk
from netmargin.solvers.class_descent import descend_classes


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_the_joint_problem_conforms():
    check_estimator(NTKClassifier(multi_class="joint"))


def test_several_classes_in_one_problem():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    joint = NTKClassifier(multi_class="joint", tol=1e-5).fit(X, names)
    (solution,) = joint.solutions_
    scores = joint.decision_function(X)
    assert scores.shape == (150, 3)
    assert scores.sum(1) == pytest.approx(0, abs=1e-9)
    assert joint.score(X, names) > 0.95
    assert solution.certified
    # The primal objective, from the scores of a stranger.
    own = np.eye(3)[y] == 1
    hinges = np.maximum(1 - scores[own] + np.where(own, -np.inf, scores).max(1), 0.0)
    square = np.sum(solution.coefficients * (ntk(X) @ solution.coefficients))
    assert 0.5 * square + hinges.sum() == pytest.approx(solution.objective, rel=1e-6)
    # Two classes are one problem in either case.
    two, same = (NTKClassifier(multi_class=m).fit(X[:100], y[:100]) for m in ("joint", "ovr"))
    assert np.array_equal(two.dual_coef_, same.dual_coef_)
    with pytest.raises(nm.ArgumentError, match="multi_class"):
        NTKClassifier(multi_class="ovo").fit(X, y)


def test_the_hard_margin_of_several_classes_in_one_problem():
    X, y = load_iris(return_X_y=True)
    hard = NTKClassifier(multi_class="joint", C=None, tol=1e-4).fit(X, y)
    (solution,) = hard.solutions_
    scores, own = hard.decision_function(X), np.eye(3)[y] == 1
    margins = scores[own] - np.where(own, -np.inf, scores).max(1)
    assert solution.certified
    assert hard.score(X, y) == 1.0
    assert margins.min() == pytest.approx(hard.margin_, rel=1e-4)
    assert np.sum(solution.coefficients * (ntk(X) @ solution.coefficients)) == pytest.approx(1)
    # The soft margin with a C that no weight reaches is the same function, in another scale.
    soft = NTKClassifier(multi_class="joint", C=1e5, tol=1e-4).fit(X, y)
    assert soft.solutions_[0].dual.max() < 1e5
    assert soft.margin_ == pytest.approx(hard.margin_, rel=1e-3)
    # Warm: it begins where the other ended, and the other way round.
    warm = NTKClassifier(multi_class="joint", C=1e5, tol=1e-4, warm_start=True).fit(X, y)
    assert warm.set_params(C=None).fit(X, y).margin_ == pytest.approx(hard.margin_, rel=2e-4)
    again = warm.set_params(C=1e5).fit(X, y).solutions_[0]
    assert again.objective == pytest.approx(soft.solutions_[0].objective, rel=2e-4)


@pytest.mark.parametrize("bias", [True, False])
def test_contradictions_of_several_classes_are_told_as_those_of_two(bias):
    X, y = load_iris(return_X_y=True)
    X, y = np.vstack([X, X[0] if bias else 3 * X[0]]), np.append(y, 2)
    said = []
    for multi_class in ("ovr", "joint"):
        with pytest.warns(ConvergenceWarning, match="no hard margin exists") as caught:
            fitted = NTKClassifier(C=None, multi_class=multi_class, bias=bias).fit(X, y)
        said.append(str(caught[0].message))
    assert "0 and 150 are" in said[0]
    assert said[0].partition("exists. ")[2] == said[1].partition("exists. ")[2]
    assert fitted.margin_ == 0
    assert fitted.solutions_[0].certified
    assert not fitted.decision_function(X).any()


def test_a_sample_that_is_0_separates_no_classes_without_a_bias():
    zero = NTKClassifier(C=None, multi_class="joint", bias=False)
    with pytest.warns(ConvergenceWarning, match="Sample 0 is 0, and so is every function"):
        zero.fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0, 1, 2])
    assert zero.solutions_[0].certified


def test_the_joint_problem_starts_from_the_last_c(monkeypatch):
    X, y = load_iris(return_X_y=True)
    starts = []

    def recorded(K, labels, caps, weights, **options):
        starts.append(weights.copy())
        return descend_classes(K, labels, caps, weights, **options)

    monkeypatch.setattr("netmargin.solvers.joint_kernel.descend_classes", recorded)
    warm = NTKClassifier(multi_class="joint", warm_start=True).fit(X, y)
    warm.set_params(C=2.0).fit(X, y)
    cold = NTKClassifier(multi_class="joint", C=2.0).fit(X, y)
    assert not starts[0].any()
    assert starts[1].max() == pytest.approx(2.0)
    assert not starts[2].any()
    assert warm.solutions_[0].objective == pytest.approx(cold.solutions_[0].objective, rel=2e-3)


def test_a_joint_problem_that_has_no_time_says_so():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        late = NTKClassifier(multi_class="joint", C=1e4, time_limit=0.0).fit(X, y)
    assert late.decision_function(X).shape == (150, 3)
