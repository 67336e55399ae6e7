"""Regression in the variation norm: the solver against its own bound, and scikit-learn's checks."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

import netmargin as nm
from netmargin.estimators import VariationNormRegressor
from netmargin.solvers.neurons import sliding
from netmargin.solvers.neurons.losses import squared_loss
from netmargin.solvers.regularized import f1_squared

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(12, 1)), RANDOM.normal(size=12)
ANGLES = np.linspace(0, 2 * np.pi, 20_000)
NEURONS = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


@pytest.mark.nightly  # the checks of the classifier of the same solver are in `make test-slow`
@pytest.mark.filterwarnings("ignore")
def test_the_regressor_conforms():
    """Every check of scikit-learn, none of them expected to fail."""
    check_estimator(VariationNormRegressor(tol=0.1, alpha=1.0))


@pytest.mark.parametrize("price", [1e-3, 0.05, 0.5, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_bracket_is_attained_and_proved(price, weighted):
    weights = RANDOM.uniform(0.5, 2, 12) if weighted else None
    found = f1_squared(X, Y, regularization=price, sample_weight=weights)
    w = np.ones(12) if weights is None else weights / weights.mean()
    residuals = Y - found.decision_function(X)
    value = (w * residuals**2).mean() / 2 + price * found.mass / 2
    assert found.certified
    assert value == pytest.approx(found.objective, rel=1e-9)
    # The dual: |sum_n p_n relu(u . x~_n)| <= price for all unit u, seen from 20,000 of them.
    response = np.maximum(np.hstack([X, np.ones((12, 1))]) @ NEURONS.T, 0)
    assert np.abs(found.dual @ response).max() <= price * (1 + 1e-9)
    bound = found.dual @ Y - 12 / 2 * (found.dual**2 / w).sum()
    assert bound == pytest.approx(found.lower_bound, rel=1e-9)
    assert found.lower_bound <= value * (1 + 1e-12)


@pytest.mark.nightly
def test_without_a_price_the_net_goes_through_all_points():
    through = VariationNormRegressor(alpha=0, tol=1e-4, fit_intercept=False).fit(X, Y)
    assert through.predict(X) == pytest.approx(Y, abs=1e-6)
    least = nm.solvers.min_norm_interpolation(X, Y, norm="l1")
    norm = through.solutions_[0].norm * through.scale_[0]
    assert norm == pytest.approx(least.norm, rel=1e-3)
    proved = VariationNormRegressor(alpha=0, tol=1e-4, pricing="auto").fit(X, Y)
    assert proved.gap_ <= 1e-4
    cheap = f1_squared(X, Y, regularization=1e-7, pricing="local")
    assert cheap.mass / 2 == pytest.approx(least.norm, rel=1e-2)
    with pytest.raises(nm.DataError, match="Pass an alpha above 0"):
        VariationNormRegressor(alpha=0).fit([[1.0], [1.0], [2.0]], [0.0, 1.0, 2.0])


@pytest.mark.parametrize("alpha", [0, 1e-2])
def test_a_proved_net_says_what_search_believes(alpha):
    proved = VariationNormRegressor(alpha=alpha, tol=1e-4, pricing="auto").fit(X, Y)
    assert 0 <= proved.local_gap_ <= proved.gap_ <= 1e-4


@pytest.mark.slow
def test_several_targets_share_their_neurons():
    Z, y = make_friedman1(80, 5, random_state=0)
    one = VariationNormRegressor().fit(Z, y)
    both = VariationNormRegressor().fit(Z, np.column_stack([y, -2 * y]))
    assert (both.predict(Z).shape, one.predict(Z).shape) == ((80, 2), (80,))
    assert both.predict(Z)[:, 1] == pytest.approx(-2 * both.predict(Z)[:, 0], abs=0.02 * np.ptp(y))
    # At the root of 2 times the price two equal targets are the problem of one.
    same = VariationNormRegressor(alpha=0.01 * 2**0.5).fit(Z, np.column_stack([y, -2 * y]))
    assert same.predict(Z)[:, 0] == pytest.approx(one.predict(Z), abs=0.04 * np.ptp(y))
    assert one.score(Z, y) > 0.9
    assert one.n_neurons_ < 80
    (net,) = both.solutions_
    assert net.outputs.shape == (both.n_neurons_, 2)
    with pytest.raises(nm.ArgumentError, match="one target"):
        VariationNormRegressor(pricing="auto").fit(Z, np.column_stack([y, y]))


def test_a_weight_is_a_number_of_copies():
    weights = np.arange(12) % 3
    copies = np.repeat(np.arange(12), weights)
    weighted = VariationNormRegressor().fit(X, Y, sample_weight=weights)
    repeated = VariationNormRegressor().fit(X[copies], Y[copies])
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), rel=1e-9)


@pytest.mark.parametrize("alpha", [0, 1e-2])
def test_a_fit_that_float64_ends_warns(alpha, monkeypatch):
    monkeypatch.setattr(sliding, "_MOST_ROUNDS", 40)  # of 400: nothing is gained after these
    with pytest.warns(ConvergenceWarning, match=r"gap of \d.*e-.*, above tol=1e-16: raise tol"):
        VariationNormRegressor(alpha=alpha, tol=1e-16).fit(X, Y)


@pytest.mark.parametrize("unit", [2.0**900, 2.0**-900])
def test_units_of_the_targets_change_nothing_where_their_squares_are_beyond_float64(unit):
    plain, moved = (VariationNormRegressor().fit(X, Y * size) for size in (1, unit))
    assert (moved.predict(X) == plain.predict(X) * unit).all()
    assert moved.scale_ == plain.scale_ * unit


def test_a_fit_that_runs_out_of_time_warns():
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        VariationNormRegressor(time_limit=0).fit(X, Y)


def exact_squared_objective(found, X, y, regularization):
    """Of the measure that is returned, without a bias, in rationals."""
    total = Fraction(0)
    for x, value in zip(X, y, strict=True):
        f = Fraction(0)
        for atom, weight in zip(found.atoms, found.weights, strict=True):
            product = sum(Fraction(a) * Fraction(t) for a, t in zip(atom[:-1], x, strict=True))
            f += Fraction(weight) * Fraction(atom[-1]) * max(product, Fraction(0))
        total += (f - Fraction(value)) ** 2
    mass = sum(
        (Fraction(w) * sum(Fraction(a) ** 2 for a in atom))
        for atom, w in zip(found.atoms, found.weights, strict=True)
    )
    return total / (2 * len(y)) + Fraction(regularization) * mass / 2


@pytest.mark.parametrize("scale", [1.0, 1e60, 1e-150])
def test_the_objective_is_that_of_what_is_returned(scale):
    """Also where a sample is lost beside a longer one."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(6, 2)), random.normal(size=6)
    X[:3] *= scale
    price = 0.01 * float(np.abs(X).max())
    found = f1_squared(X, y, regularization=price, bias=False)
    attained = exact_squared_objective(found, X, y, price)
    assert attained <= Fraction(found.objective) * (1 + Fraction(1, 10**14))
    assert Fraction(found.objective) <= attained * (1 + Fraction(1, 10**9))
    assert found.certified


def test_rounding_of_a_short_sample_is_no_loss_of_a_long_one():
    """What fits the second sample is 1e135 off at the first: f = 0 is better."""
    rays = np.array(
        [[-4.403546833538727, 8.41222813739741], [3.6596603069547995, -11.0115606192699]]
    )
    X, price = rays * np.array([[1e72], [1e-90]]), 2.8539880720460476e71
    for seed in range(20):
        y = np.random.default_rng(seed).normal(size=2)
        found = f1_squared(X, y, regularization=price, bias=False)
        attained = exact_squared_objective(found, X, y, price)
        assert attained <= Fraction(found.objective) * (1 + Fraction(1, 10**14))


def test_dual_values_of_losses_are_below_the_exact_ones():
    """Where their terms cancel, and where they do not."""
    random = np.random.default_rng(1)
    for _ in range(50):
        y = random.normal(size=20)
        p = y * np.where(random.random(20) < 0.5, 2.0, 1 + 1e-9 * random.normal(size=20))
        pairs = [(Fraction(a), Fraction(b)) for a, b in zip(p, y, strict=True)]
        exact = sum(a * b - a**2 / 2 for a, b in pairs)
        bound = squared_loss(y[:, None], np.ones(20)).bound(p[:, None])
        assert exact - Fraction(1, 10**9) < bound < exact
