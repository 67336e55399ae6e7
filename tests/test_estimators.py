"""scikit-learn's own conformance checks, and its tools."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import netmargin as nm
from netmargin.estimators import NTKClassifier, ReLUKernelClassifier, VariationNormClassifier


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [ReLUKernelClassifier(), NTKClassifier()])
def test_kernel_classifiers_conform(estimator):
    check_estimator(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_variation_norm_classifier_conforms():
    check_estimator(VariationNormClassifier())


@pytest.mark.parametrize(
    "estimator",
    [VariationNormClassifier(C=None), ReLUKernelClassifier(C=None), NTKClassifier(C=None)],
)
def test_two_moons(estimator):
    X, y = make_moons(60, noise=0.05, random_state=0)
    fitted = estimator.fit(X, y)
    assert fitted.score(X, y) == 1.0
    margins = np.where(y == 1, 1, -1) * fitted.decision_function(X)
    assert margins.min() == pytest.approx(fitted.margin_, rel=1e-6)
    assert 0 <= fitted.gap_ <= estimator.tol
    assert len(fitted.support_) < 60
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("make", [VariationNormClassifier, ReLUKernelClassifier, NTKClassifier])
def test_soft_margins_fit_what_does_not_separate(make):
    X, y = make_moons(80, noise=0.3, random_state=0)
    X, y = np.vstack([X, X[:2]]), np.append(y, 1 - y[:2])  # contradictions
    with pytest.warns(ConvergenceWarning, match="no hard margin exists"):
        assert make(C=None).fit(X, y).margin_ == 0.0
    soft = make(C=3.0).fit(X, y)
    assert soft.score(X, y) > 0.8
    assert soft.margin_ < 0
    assert 0 <= soft.gap_ <= soft.tol
    assert set(soft.support_) >= {80, 81}  # these are on the wrong side


def test_pipelines_searches_and_several_classes():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ReLUKernelClassifier()),
        {"relukernelclassifier__C": [None, 10.0]},
        cv=3,
    )
    assert search.fit(X[y < 2], y[y < 2]).best_score_ == 1.0
    three = VariationNormClassifier(C=None).fit(X[::10, 2:], y[::10])
    assert three.decision_function(X[:, 2:]).shape == (150, 3)
    assert three.score(X[::10, 2:], y[::10]) == 1.0
    assert three.n_neurons_ >= 3


def test_one_class_is_refused_and_contradictions_have_margin_0():
    with pytest.raises(nm.DataError, match="more than one class"):
        VariationNormClassifier().fit([[1.0], [2.0]], [1, 1])
    with pytest.warns(ConvergenceWarning, match="no hard margin exists"):
        assert VariationNormClassifier(C=None).fit([[1.0], [1.0], [2.0]], [0, 1, 1]).margin_ == 0.0
