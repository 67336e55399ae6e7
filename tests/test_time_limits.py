"""A time limit is one for the whole call; what it cuts off is the best answer so far, and said."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import netmargin as nm
from netmargin import DataError, bounds, solvers
from netmargin.bounds import view_search
from netmargin.core.deadline import Deadline
from netmargin.estimators import (
    NTKClassifier,
    ReLUKernelClassifier,
    VariationNormClassifier,
    variation_norm,
)
from netmargin.result import Status
from netmargin.solvers.pair_descent import descend

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(400, 12))
LABELS = {2: RANDOM.integers(2, size=400), 3: RANDOM.integers(3, size=400)}
SIGNS = 2 * LABELS[2] - 1


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("netmargin.core.deadline.time", clock)
    return clock


def test_a_deadline_is_what_is_left_of_one_limit(clock):
    whole, none = Deadline(10), Deadline(None)
    assert (whole.left, whole.share(4), whole.passed) == (10, 2.5, False)
    clock.now += 8
    assert (whole.left, whole.share(2), whole.passed) == (2, 1, False)
    clock.now += 3
    assert (whole.left, whole.share(2), whole.passed) == (0, 0, True)
    assert (none.left, none.share(2), none.passed) == (math.inf, None, False)
    assert Deadline(0).passed
    with pytest.raises(nm.ArgumentError, match="time_limit"):
        Deadline("soon")


@pytest.mark.parametrize("C", [None, 1.0])
def test_classes_share_the_limit_of_a_kernel_fit(C, clock, monkeypatch):
    takes, few, seen = [1.0, 6.0, 0.0], ([[0.0], [1.0], [3.0]], ["a", "b", "c"]), []

    def recorded(*args, deadline, **options):
        seen.append(deadline - clock.now)
        clock.now += takes[len(seen) - 1]
        return descend(*args, **options)

    monkeypatch.setattr("netmargin.solvers.kernel_engine.descend", recorded)
    NTKClassifier(C=C, time_limit=9.0).fit(*few)
    assert seen == [3.0, 4.0, 2.0]


@pytest.mark.slow_cases("3")
@pytest.mark.parametrize("C", [None, 10.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_fit_that_runs_out_of_time_warns_and_predicts(C, classes, clock, monkeypatch):
    def tick():
        clock.now += 1
        return clock.now

    clock.monotonic = tick
    monkeypatch.setattr("netmargin.solvers.neurons.sliding.time", clock)
    few, y = X[:120], LABELS[classes][:120]
    with pytest.warns(
        ConvergenceWarning,
        match="time limit ended the search.*best solution so far. Raise time_limit",
    ):
        fitted = VariationNormClassifier(C=C, time_limit=3).fit(few, y)
    assert fitted.local_gap_ > fitted.tol
    if C is not None:  # no net separates these samples yet
        assert fitted.n_neurons_ >= classes
        assert fitted.score(few, y) > 1.1 / classes


@pytest.mark.parametrize("make", [ReLUKernelClassifier, NTKClassifier])
def test_kernel_fits_warn_too(make):
    with pytest.warns(ConvergenceWarning, match="time limit"):
        make(time_limit=0).fit(X, LABELS[2])


def test_a_fit_in_time_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = VariationNormClassifier(C=None, time_limit=600).fit(
            [[0.0], [1.0], [3.0]], ["a", "b", "c"]
        )
    assert fitted.margin_ > 0


@pytest.mark.parametrize("pricing", ["local", "auto"])
def test_ctrl_c_ends_a_fit(pricing, monkeypatch):
    """The solver returns what it has; a fit must not keep it for the optimum."""
    fits = {"local": "fit_two_layer_net", "auto": "f1_max_margin"}
    found = getattr(solvers, fits[pricing])([[1.0], [-1.0]], [1, -1])
    interrupted = replace(found, status=Status.INTERRUPTED)
    monkeypatch.setattr(variation_norm, fits[pricing], lambda *args, **options: interrupted)
    fitted = VariationNormClassifier(C=None, pricing=pricing)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[:30], LABELS[2][:30])
    assert not hasattr(fitted, "solutions_")


@pytest.mark.slow_cases("False-1", "True-2")
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("bias", [True, False])
def test_a_net_that_separates_nothing_yet_is_the_best_so_far(power, bias):
    """Its margin is what its neurons attain, negative, and most samples are right."""
    few, y = X[:, :6], 2 * LABELS[2] - 1
    stopped = solvers.f1_max_margin(few, y, time_limit=0, power=power, bias=bias)
    assert stopped.mass == pytest.approx(1)
    assert stopped.margin == pytest.approx((y * stopped.decision_function(few)).min(), rel=1e-9)
    assert stopped.margin < 0 < stopped.upper_bound
    assert (y * stopped.decision_function(few) > 0).mean() > 0.7
    assert stopped.gap > 1


def test_a_soft_margin_that_is_stopped_at_once_is_far_better_than_no_net():
    stopped = solvers.f1_soft_margin(X[:100], SIGNS[:100], C=10.0, time_limit=0)
    assert stopped.status is Status.TIME_LIMIT
    assert stopped.lower_bound < stopped.objective < 0.1 * 10.0 * 100


def test_an_interclass_distance_that_is_stopped_is_a_valid_bracket():
    Z, y = X[:60, :5], SIGNS[:60]
    stopped = bounds.interclass_distance(Z, y, 2, time_limit=0)
    found = bounds.interclass_distance(Z, y, 2, starts=2, time_limit=600)
    assert (stopped.status, found.status) == (Status.TIME_LIMIT, Status.FINISHED)
    assert 0 < stopped.distance <= found.distance <= found.upper_bound <= stopped.upper_bound
    assert found.bracket.gap < stopped.bracket.gap


def test_an_ascent_over_pairs_ends_within_a_step_of_the_deadline(monkeypatch):
    evaluations, original = [], view_search.minimize

    def minimize(parameters, loss, iterations):
        def counted():
            evaluations.append(1)
            monkeypatch.setattr(Deadline, "passed", property(lambda self: len(evaluations) >= 3))
            return loss()

        original(parameters, counted, iterations)

    monkeypatch.setattr(view_search, "minimize", minimize)
    found = bounds.interclass_distance(X[:60, :5], SIGNS[:60], 2, time_limit=600)
    assert (found.status, len(evaluations)) == (Status.TIME_LIMIT, 3)
    assert 0 < found.distance <= found.upper_bound


def test_an_interclass_distance_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("netmargin.core.memory.read_free_memory", lambda: 8 * 5 * 30 * 30)
    with pytest.raises(DataError, match="a part of each class"):
        bounds.interclass_distance(X[:60, :5], SIGNS[:60], 2)


@pytest.mark.slow
def test_relaxing_over_the_nearest_pairs_alone_proves_a_bound_too(monkeypatch):
    Z, y = X[:60, :5], SIGNS[:60]
    found = bounds.interclass_distance(Z, y, 2, starts=2)
    monkeypatch.setattr("netmargin.bounds.view_search._RELAXED_PAIRS", 50)
    hurried = bounds.interclass_distance(Z, y, 2, starts=2)
    assert found.distance <= hurried.upper_bound * (1 + 1e-9)
    assert hurried.distance <= found.upper_bound * (1 + 1e-9)
