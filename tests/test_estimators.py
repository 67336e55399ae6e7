"""scikit-learn's own conformance checks, and its tools."""

import dataclasses
import pickle
import resource
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import netmargin as nm
from netmargin.core import memory
from netmargin.estimators import (
    NTKClassifier,
    ReLUKernelClassifier,
    VariationNormClassifier,
    VariationNormRegressor,
    variation_norm,
)
from netmargin.figures import neurons
from netmargin.figures.neurons import _draw_rows as draw_rows
from netmargin.kernels import ntk
from netmargin.solvers import fit_two_layer_net
from netmargin.solvers.pair_descent import descend


@pytest.mark.slow_cases("estimator2")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "estimator", [ReLUKernelClassifier(), NTKClassifier(), VariationNormClassifier(tol=0.1)]
)
def test_classifiers_conform(estimator):
    """Every check of scikit-learn, none of them expected to fail."""
    check_estimator(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        VariationNormClassifier(C=None, tol=1e-4, pricing="auto"),
        ReLUKernelClassifier(C=None),
        NTKClassifier(C=None),
    ],
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
    assert 0 <= getattr(soft, "local_gap_", soft.gap_) <= soft.tol
    assert set(soft.support_) >= {80, 81}  # these are on the wrong side


@pytest.mark.nightly
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


def test_weights_of_samples_and_classes_move_the_boundary():
    X, y = make_moons(80, noise=0.4, random_state=0)
    for make in (VariationNormClassifier, NTKClassifier):
        weighted = make(class_weight={0: 20.0, 1: 1.0}).fit(X, y)
        assert (weighted.predict(X) == 0).sum() > (make().fit(X, y).predict(X) == 0).sum()
        same = make().fit(X, y, sample_weight=np.where(y == 0, 20.0, 1.0))
        assert same.decision_function(X) == pytest.approx(weighted.decision_function(X), rel=1e-6)
        few = make(C=None).fit(X[:30], y[:30], sample_weight=np.arange(30) < 20)
        assert few.support_.max() < 20
        with pytest.raises(nm.ArgumentError, match="class_weight are factors of C"):
            make(C=None, class_weight="balanced").fit(X, y)
    with pytest.raises(nm.DataError, match="sample_weight must be 80 finite numbers >= 0"):
        NTKClassifier().fit(X, y, sample_weight=-np.ones(80))


@pytest.mark.slow_cases("VariationNormClassifier-None")
@pytest.mark.parametrize("C", [1.0, None])
@pytest.mark.parametrize("make", [NTKClassifier, ReLUKernelClassifier, VariationNormClassifier])
def test_a_class_without_weight_is_a_class_that_is_not_predicted(make, C):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    found = make(C=C).fit(X, y, sample_weight=y != "c")
    two = make(C=C).fit(X[y != "c"], y[y != "c"])  # one problem, where the other class is the rest
    scores = found.decision_function(X[y != "c"])
    assert found.classes_.tolist() == ["a", "b", "c"]
    assert scores[:, 1] == pytest.approx(two.decision_function(X[y != "c"]), abs=5e-2)
    assert (scores[:, 2] < 0).all()
    assert (found.predict(X) != "c").all()
    with pytest.raises(nm.DataError, match="All labels of samples with weight are 'a'"):
        make(C=C).fit(X, y, sample_weight=y == "a")
    with pytest.raises(nm.DataError, match="class_weight times sample_weight .*; got -2"):
        make(class_weight={"a": 1, "b": 1, "c": -2}).fit(X, y)


def test_probabilities_by_calibration():
    X, y = load_iris(return_X_y=True)
    calibrated = CalibratedClassifierCV(NTKClassifier(), cv=3).fit(X, y, sample_weight=np.ones(150))
    proba = calibrated.predict_proba(X)
    assert proba.sum(1) == pytest.approx(1)
    assert (proba.argmax(1) == y).mean() > 0.9


def test_kernels_are_computed_once_for_a_search_over_c(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "netmargin.kernels.ntk", lambda *args, **options: calls.append(1) or ntk(*args, **options)
    )
    X, y = make_moons(60, noise=0.3, random_state=0)
    cached = [NTKClassifier(C=C, memory=str(tmp_path)).fit(X, y) for C in (0.1, 1.0, 10.0)]
    assert len(calls) == 1
    plain = [NTKClassifier(C=C).fit(X, y) for C in (0.1, 1.0, 10.0)]
    for one, other in zip(cached, plain, strict=True):
        assert np.array_equal(one.dual_coef_, other.dual_coef_)


def test_a_warm_start_begins_where_the_last_fit_ended(monkeypatch):
    X, y = make_moons(200, noise=0.3, random_state=0)
    starts = []

    def recorded(K, labels, caps, weights, **options):
        starts.append(weights.copy())
        return descend(K, labels, caps, weights, **options)

    monkeypatch.setattr("netmargin.solvers.kernel_engine.descend", recorded)
    warm = NTKClassifier(C=1.0, tol=1e-6, warm_start=True).fit(X, y)
    at_cap = warm.solutions_[0].dual >= 1 - 1e-9
    for C in (3.0, None, 3.0):
        warm.set_params(C=C).fit(X, y)
        cold = NTKClassifier(C=C, tol=1e-6).fit(X, y)
        assert warm.decision_function(X) == pytest.approx(cold.decision_function(X), abs=1e-2)
    assert not starts[0].any()
    assert (starts[1][at_cap] == 3.0).all()
    assert starts[3].any()
    warm.fit(X[:100], y[:100])  # other samples: from the beginning
    assert not starts[-1].any()


def test_threads_and_names_of_features():
    X, y = load_iris(return_X_y=True, as_frame=True)
    one, two = NTKClassifier().fit(X, y), NTKClassifier(n_jobs=2).fit(X, y)
    assert np.array_equal(one.dual_coef_, two.dual_coef_)
    for odd in (0, "a"):  # two classes are one problem, which needs no second thread
        with pytest.raises(nm.ArgumentError, match="n_jobs must be None or an integer"):
            NTKClassifier(n_jobs=odd).fit(X[:100], y[:100])
    assert list(one.feature_names_in_) == list(X.columns)
    assert "NTKClassifier" in one._repr_html_()
    with pytest.raises(ValueError, match="feature names"):
        one.predict(X[X.columns[::-1]])


def test_sparse_inputs_are_refused_with_what_to_do():
    X, y = make_moons(20, random_state=0)
    for make in (VariationNormClassifier, NTKClassifier):
        with pytest.raises(TypeError, match="toarray"):
            make().fit(sparse.csr_array(X), y)


def test_features_whose_squares_are_beyond_float64_are_refused_with_what_to_do():
    X, y = make_moons(20, random_state=0)
    regressor = VariationNormRegressor()
    for one in (VariationNormClassifier(), NTKClassifier(), NTKClassifier(C=None), regressor):
        with pytest.raises(nm.DataError, match=r"as 2e\+200 are beyond float64\. Divide X by 2e"):
            one.fit(X * 1e200, y)


def test_many_samples_are_kept_in_float32_and_judged_in_float64(monkeypatch):
    X, y = make_moons(120, noise=0.3, random_state=0)
    exact = NTKClassifier().fit(X, y)
    monkeypatch.setattr("netmargin.estimators.kernel_classifiers._DOUBLE_SAMPLES", 100)
    single = NTKClassifier().fit(X, y)
    assert single.solutions_[0].certified
    assert single.decision_function(X) == pytest.approx(exact.decision_function(X), abs=2e-2)


def test_more_samples_than_memory_are_refused_before_anything_is_computed(monkeypatch):
    X, y = make_moons(120, noise=0.3, random_state=0)
    needed = 1.5 * 8 * 120**2
    monkeypatch.setattr("netmargin.core.memory.read_free_memory", lambda: needed)
    NTKClassifier().fit(X, y)
    monkeypatch.setattr("netmargin.core.memory.read_free_memory", lambda: needed - 1)
    monkeypatch.setattr("netmargin.kernels.ntk", None)
    with pytest.raises(nm.DataError, match=r"120 samples.* are free.*random_features"):
        NTKClassifier().fit(X, y)


def test_free_memory_is_the_least_of_the_machine_and_the_container(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    assert memory.read_free_memory() is None
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   4000 kB\n")
    assert memory.read_free_memory() == 4_096_000
    for name, text in (("current", "900000"), ("stat", "anon 1\ninactive_file 50000\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.read_free_memory() == 4_096_000
    (tmp_path / "memory.max").write_text("1000000\n")
    assert memory.read_free_memory() == 150_000
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (taken + 90_000_000, -1))
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "meminfo").write_text("MemAvailable: 900000 kB\n")
    assert memory.read_free_memory() == pytest.approx(90_000_000, abs=30_000_000)


@pytest.mark.slow
def test_random_state_is_what_scikit_learn_takes():
    X, y = make_moons(40, noise=0.2, random_state=0)
    for state in (3, np.random.RandomState(3), None):
        assert VariationNormClassifier(C=20, random_state=state).fit(X, y).score(X, y) > 0.8
    with pytest.raises(nm.ArgumentError, match="random_state must be a whole number"):
        VariationNormClassifier(random_state="x").fit(X, y)


@pytest.mark.slow_cases("hinge", "squared_hinge")
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "logistic"])
def test_one_net_of_the_variation_norm_fits_all_classes(loss):
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = VariationNormClassifier(loss=loss).fit(X, y)
    (net,) = fitted.solutions_
    assert net.outputs.shape == (fitted.n_neurons_, 3)
    assert fitted.decision_function(X) == pytest.approx(net.decision_function(X))
    assert fitted.score(X, y) > 0.9
    assert 0 <= fitted.local_gap_ <= fitted.tol < fitted.gap_
    assert (net.loss, fitted.margin_ == net.margin) == (loss, True)


def test_neither_units_nor_a_scale_of_weights_but_their_root_change_the_variation_norm():
    X, y = make_moons(60, noise=0.3, random_state=0)
    classifier = VariationNormClassifier(C=5.0, bias=False)
    found = classifier.fit(X, y).decision_function(X)
    assert np.array_equal(found, classifier.fit(1024 * X, y).decision_function(1024 * X))
    weighted = VariationNormClassifier(C=10.0, bias=False).fit(
        X, y, sample_weight=np.full(60, 0.25)
    )
    assert weighted.decision_function(X) == pytest.approx(found, rel=1e-6)


@pytest.mark.slow
def test_a_path_of_the_variation_norm_begins_where_the_last_fit_ended(monkeypatch):
    X, y = make_moons(60, noise=0.3, random_state=0)
    starts = []

    def recorded(*args, start, **options):
        starts.append(start)
        return fit_two_layer_net(*args, start=start, **options)

    monkeypatch.setattr(variation_norm, "fit_two_layer_net", recorded)
    path = VariationNormClassifier(warm_start=True).fit(X, y)
    first = path.solutions_[0]
    path.set_params(C=6.0).fit(X, y).fit(X[:, :1], y)
    cold = VariationNormClassifier(C=6.0).fit(X, y)
    assert starts == [None, first, None, None]
    assert path.set_params(C=6.0).fit(X, y).score(X, y) == cold.score(X, y)


def test_a_proof_of_the_variation_norm_is_had_on_request_for_two_classes():
    X, y = make_moons(30, noise=0.3, random_state=0)
    proved = VariationNormClassifier(C=2.0, loss="hinge", pricing="auto").fit(X, y)
    assert 0 <= proved.gap_ <= proved.tol
    local = VariationNormClassifier(C=2.0, loss="hinge").fit(X, y)
    lower, upper = proved.solutions_[0].lower_bound, proved.solutions_[0].objective
    assert lower <= local.solutions_[0].objective <= 1.01 * upper
    assert local.solutions_[0].lower_bound <= upper
    for refused in ({"loss": "squared_hinge"}, {"loss": "hinge", "y": np.arange(30) % 3}):
        labels = refused.pop("y", y)
        with pytest.raises(nm.ArgumentError, match="proves two classes with loss='hinge'"):
            VariationNormClassifier(pricing="auto", **refused).fit(X, labels)
    with pytest.raises(nm.ArgumentError, match="squared_hinge"):
        VariationNormClassifier(loss="squared-hinge").fit(X, y)


@pytest.mark.slow
def test_the_neurons_of_a_sparse_net_are_drawn(tmp_path, monkeypatch):
    iris = load_iris()
    X, y = iris.data[50::5], iris.target[50::5] == 2
    net = VariationNormClassifier(tol=0.1).fit(X, y).solutions_[0]
    drawn = []

    def record(outputs, units, labels, head):
        drawn.append((outputs, units, labels, head))
        return draw_rows(outputs, units, labels, head)

    monkeypatch.setattr(neurons, "_draw_rows", record)
    (png,) = nm.figures.draw_neurons(net, tmp_path, feature_names=iris.feature_names)
    assert png.stat().st_size > 5000
    outputs, units, labels, head = drawn[0]
    # All that is drawn is the net.
    assert len(outputs) == len(net.neurons)
    scores = np.maximum(np.column_stack([X, np.ones(len(X))]) @ units.T, 0.0) @ outputs
    assert scores == pytest.approx(net.decision_function(X), rel=1e-9)
    assert (np.diff(np.abs(outputs)) <= 0).all()
    assert labels == [*iris.feature_names, "bias"]
    assert f"{len(outputs)} of {len(outputs)} neurons" in head
    with pytest.raises(nm.ArgumentError, match="4 names"):
        nm.figures.draw_neurons(net, tmp_path, feature_names=["a"])
    with pytest.raises(nm.ArgumentError, match="solution of the variation norm"):
        nm.figures.draw_neurons("net", tmp_path)
    nm.figures.draw_neurons(net, tmp_path, count=1)
    assert len(drawn[1][0]) == 1
    proved = VariationNormClassifier(C=None, pricing="auto").fit(X[:6], y[:6] | (X[:6, 0] > 6))
    assert [path.name for path in nm.figures.draw_neurons(proved.solutions_[0], tmp_path)]
    three = VariationNormClassifier(tol=0.1).fit(iris.data, iris.target).solutions_[0]
    paths = nm.figures.draw_neurons(three, tmp_path, count=2)
    assert [path.name for path in paths] == [f"neurons-{k}.png" for k in range(3)]
    strongest = np.argsort(-np.abs(three.outputs[:, 2]), kind="stable")[:2]
    assert np.array_equal(drawn[-1][0], three.outputs[strongest, 2])


KINDS = {
    "soft": NTKClassifier(),
    "hard": NTKClassifier(C=None),
    "variation norm": VariationNormClassifier(tol=0.1),
    "regressor": VariationNormRegressor(tol=0.1),
}
"""An estimator for each kind of what `fit` keeps."""
PLAIN = (np.ndarray, np.generic, str, float, int, bool, type(None))


def parts_of(value) -> list:
    """Everything that a fitted attribute holds: lists and our records are opened."""
    if isinstance(value, list):
        return [part for item in value for part in parts_of(item)]
    if dataclasses.is_dataclass(value):
        return [part for item in vars(value).values() for part in parts_of(item)]
    return [value]


@pytest.mark.parametrize("estimator", KINDS.values(), ids=KINDS)
def test_fitted_estimators_are_kept_without_pickled_nets(estimator):
    X, y = load_iris(return_X_y=True)
    fitted = estimator.fit(X[::3], y[::3])
    held = parts_of(list(vars(fitted).values()))
    assert all(isinstance(part, PLAIN) for part in held), {type(part) for part in held}
    assert all(part.dtype != object for part in held if isinstance(part, np.ndarray))
