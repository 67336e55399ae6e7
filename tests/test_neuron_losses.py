"""Activations and losses of neurons: closed forms, finite differences, Fenchel and Young."""

import numpy as np
import pytest

from netmargin.solvers.neurons import losses
from netmargin.solvers.neurons.activations import ABSOLUTE, LINEAR, RELU, Activation, squared
from netmargin.solvers.neurons.labels import Rivals, Signs, Values

BASE = {
    "relu": RELU,
    "leaky": Activation(0.1),
    "steep": Activation(-3.0),
    "abs": ABSOLUTE,
    "linear": LINEAR,
}
ACTIVATIONS = BASE | {f"{name} squared": squared(phi) for name, phi in BASE.items()}
N, K = 7, 3


def random() -> np.random.Generator:
    return np.random.default_rng(0)


def make_losses() -> dict:
    costs = random().uniform(0.5, 2, N)
    signs = Signs(np.where(np.arange(N) % 2, 1.0, -1.0)[:, None])
    rivals = Rivals(np.arange(N) % K, K)
    made = {}
    for name, labels in (("two", signs), ("several", rivals)):
        made[f"hinge {name}"] = losses.hinge_loss(labels, costs)
        made[f"squared hinge {name}"] = losses.squared_hinge_loss(labels, costs)
    made["logistic"] = losses.LogisticLoss(signs, costs[:, None])
    made["softmax"] = losses.LogisticLoss(rivals, costs[:, None])
    for outputs in (1, K):
        Y = random().normal(size=(N, outputs))
        made[f"squared {outputs}"] = losses.squared_loss(Y, costs)
    smooth = made["hinge several"]
    made["smoothed hinge"] = smooth.smoothed(0.3 * smooth.high, 2.5)
    return made


LOSSES = make_losses()
each_loss = pytest.mark.parametrize("name", LOSSES)


def outputs_of(loss) -> np.ndarray:
    return random().normal(size=(N, loss.labels.outputs))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    phi = ACTIVATIONS[name]
    t = np.array([-2.0, -0.5, 0.25, 3.0])
    below = BASE[name.removesuffix(" squared")].slope
    assert phi.feature(t).tolist() == pytest.approx(np.where(t > 0, t, below * t) ** phi.power)
    step = 1e-6
    differences = (phi.feature(t + step) - phi.feature(t - step)) / (2 * step)
    assert phi.derivative(t) == pytest.approx(differences, rel=1e-6, abs=1e-9)
    inside = np.linspace(-1, 1, 2001)
    assert np.abs(phi.feature(inside)).max() == pytest.approx(phi.largest)
    if phi.power == 1:
        assert phi.feature(t) == pytest.approx(phi.line * t + phi.kink / 2 * np.abs(t))
        slopes = np.abs(np.diff(phi.feature(inside)) / np.diff(inside))
        assert slopes.max() == pytest.approx(phi.largest)
    else:
        assert phi.kink == 0
    assert phi.feature(t.astype(np.float32)).dtype == np.float32
    assert phi.derivative(t.astype(np.float32)).dtype == np.float32


@each_loss
def test_slopes_are_derivatives(name):
    loss = LOSSES[name]
    F, step = outputs_of(loss), 1e-6
    if getattr(loss, "exact", False):
        loss = loss.smoothed(np.zeros_like(loss.high), 3.0)
    for index in np.ndindex(F.shape):
        moved = np.zeros_like(F)
        moved[index] = step
        fall = (loss.value(F - moved) - loss.value(F + moved)) / (2 * step)
        assert loss.slopes(F)[index] == pytest.approx(fall, abs=1e-6)
        if F.shape[1] == 1:
            bend = (loss.slopes(F - moved) - loss.slopes(F + moved))[index] / (2 * step)
            assert loss.curvatures(F)[index[0]] == pytest.approx(bend, abs=1e-5)


@each_loss
def test_fenchel_and_young(name):
    loss = LOSSES[name]
    F, others = outputs_of(loss), random().normal(size=(50, N, loss.labels.outputs))
    if getattr(loss, "exact", False):  # a subgradient: all that is short has the full weight
        short = loss.target - loss.labels.margins(F)
        C = loss.labels.combine(np.where(short > 0, loss.high, 0.0))
    else:
        C = loss.slopes(F)
    # Equality at the outputs that the slopes belong to, and a lower bound at all others.
    assert loss.bound(C) == pytest.approx(loss.value(F) + (C * F).sum(), rel=1e-12)
    for G in others:
        assert loss.bound(C) <= loss.value(G) + (C * G).sum() + 1e-9


@each_loss
def test_scale_is_the_best_factor(name):
    loss = LOSSES[name]
    F = outputs_of(loss)
    exact = getattr(loss, "exact", False)
    C = loss.labels.combine(0.4 * loss.high) if exact else loss.slopes(F)
    for most in (0.3, 1.0, 5.0):
        s = loss.scale(C, most)
        assert 0 <= s <= most
        tried = [loss.bound(t * C) for t in np.linspace(0, min(most, 2.5), 401)]
        if "logistic" in name or "softmax" in name:  # from 1 on it is left alone
            tried = [loss.bound(t * C) for t in np.linspace(0, s, 3)]
            assert np.isfinite(loss.bound(s * C))
        else:
            assert loss.bound(s * C) >= max(tried) - 1e-9


@each_loss
def test_samples_can_be_taken(name):
    loss = LOSSES[name]
    F = outputs_of(loss)
    parts = [np.array([0, 3, 4]), np.array([1, 2, 5, 6])]
    assert sum(loss.take(p).value(F[p]) for p in parts) == pytest.approx(loss.value(F))
    C = loss.labels.combine(0.4 * loss.high) if getattr(loss, "exact", False) else loss.slopes(F)
    for p in parts:
        if not getattr(loss, "exact", False):
            assert loss.take(p).slopes(F[p]) == pytest.approx(C[p])
        assert loss.take(p).near(F[p]).tolist() == loss.near(F)[p].tolist()


def test_closed_forms():
    y, C = Signs(np.array([[1.0], [-1.0]])), np.array([2.0, 3.0])
    F = np.array([[0.25], [0.5]])  # margins .25 and -.5
    assert losses.hinge_loss(y, C).value(F) == 2 * 0.75 + 3 * 1.5
    assert losses.squared_hinge_loss(y, C).value(F) == (2 * 0.75**2 + 3 * 1.5**2) / 2
    assert losses.LogisticLoss(y, C[:, None]).value(F) == pytest.approx(
        2 * np.log1p(np.exp(-0.25)) + 3 * np.log1p(np.exp(0.5))
    )
    assert losses.squared_loss(np.array([[1.0], [0.0]]), C).value(F) == (2 * 0.75**2 + 3 * 0.25) / 2
    several = Rivals(np.array([0, 2]), 3)
    G = np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.0]])  # margins .5, 1 and -1, 0
    assert several.margins(G).tolist() == [[0, 0.5, 1], [-1, 0, 0]]
    assert losses.hinge_loss(several, C).value(G) == 2 * 0.5 + 3 * (2 + 1)
    assert losses.squared_hinge_loss(several, C).value(G) == (2 * 0.25 + 3 * (4 + 1)) / 2


@pytest.mark.parametrize("labels", [Signs(np.ones((1, 1))), Rivals(np.array([1]), 3)])
def test_large_margins_have_losses_and_bounds(labels):
    """Losses e^-50 for each rival, and the entropy 51 e^-50 for each."""
    loss, rivals = losses.LogisticLoss(labels, np.ones((1, 1))), labels.wanted.sum()
    F = 50.0 * np.eye(3)[1:2] if labels.outputs == 3 else np.full((1, 1), 50.0)
    q = rivals * np.exp(-50.0)
    assert loss.value(F) == pytest.approx(q, rel=1e-12)
    assert loss.bound(loss.slopes(F)) == pytest.approx(51 * q, rel=1e-12)


def test_constraints():
    hard = losses.hinge_loss(Signs(np.array([[1.0], [-1.0]])), np.full(2, np.inf))
    assert hard.exact
    assert hard.value(np.array([[1.0], [-1.5]])) == 0
    assert hard.value(np.array([[1.0], [-0.5]])) == np.inf
    C = np.array([[2.0], [-3.0]])
    assert 5 - 1e-11 < hard.bound(C) <= 5
    assert hard.bound(-C) == -np.inf
    assert hard.scale(C, 7.0) == 7
    equal = losses.squared_loss(np.array([[1.0], [-2.0]]), np.full(2, np.inf))
    assert equal.value(equal.target) == 0
    assert equal.value(equal.target + 1e-9) == np.inf
    assert 8 - 1e-11 < equal.bound(C) <= 8
    assert -8 - 1e-11 < equal.bound(-C) <= -8


def test_multipliers_that_are_not_allowed_bound_nothing():
    for name in ("hinge two", "hinge several"):
        loss = LOSSES[name]
        assert np.isfinite(loss.bound(loss.labels.combine(loss.high)))
        assert loss.bound(loss.labels.combine(loss.high * (1 + 1e-6))) == -np.inf
        assert loss.bound(loss.labels.combine(-1e-6 * loss.high)) == -np.inf


def test_two_classes_are_rivals():
    """Two outputs with f = F_1 - F_0 have the margins of the signs."""
    y, F = np.array([0, 1, 1]), random().normal(size=(3, 2))
    two, one = Rivals(y, 2), Signs(np.where(y > 0, 1.0, -1.0)[:, None])
    f = F[:, 1:] - F[:, :1]
    assert two.margins(F).sum(1) == pytest.approx(one.margins(f)[:, 0])
    for make in (losses.hinge_loss, losses.squared_hinge_loss):
        assert make(two, np.ones(3)).value(F) == pytest.approx(make(one, np.ones(3)).value(f))
    assert losses.LogisticLoss(two, np.ones((3, 1))).value(F) == pytest.approx(
        losses.LogisticLoss(one, np.ones((3, 1))).value(f)
    )


@pytest.mark.parametrize("labels", [Values(3), Rivals(np.arange(4) % 3, 3)])
def test_combine_is_the_transpose_of_margins(labels):
    F, p = random().normal(size=(2, 4, 3))
    p = p * getattr(labels, "wanted", 1.0)
    assert (labels.combine(p) * F).sum() == pytest.approx((p * labels.margins(F)).sum())
    assert labels.split(labels.combine(p)) == pytest.approx(p)
