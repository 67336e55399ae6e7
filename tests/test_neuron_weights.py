"""Weights of given neurons against the conditions of their optimum."""

import numpy as np
import pytest

from netmargin.solvers.neurons import losses
from netmargin.solvers.neurons.activations import LINEAR
from netmargin.solvers.neurons.labels import Signs
from netmargin.solvers.neurons.samples import Samples
from netmargin.solvers.neurons.weights import weigh

SIGNS = Signs(np.where(np.arange(20) % 3, 1.0, -1.0)[:, None])
LOSSES = {
    "squared": lambda cost: losses.squared_loss(
        np.random.default_rng(1).normal(size=(20, 1)), cost
    ),
    "squared hinge": lambda cost: losses.squared_hinge_loss(SIGNS, cost),
    "logistic": lambda cost: losses.LogisticLoss(SIGNS, cost[:, None]),
}


@pytest.mark.parametrize("cost", [3.0, 1e3])
@pytest.mark.parametrize("k", [5, 60])
@pytest.mark.parametrize("name", LOSSES)
def test_weights_are_optimal(name, k, cost):
    """A unit of weight is worth 1 where there is weight, and nowhere more, also where neurons are
    nearly equal; weights that do not pay are 0.
    """
    loss, random = LOSSES[name](np.full(20, cost)), np.random.default_rng(k)
    H = random.normal(size=(20, k))
    H[:, 1] = H[:, 0] * (1 + 1e-9 * random.normal(size=20))
    A = np.zeros((k, 1))
    for _ in range(9):  # those that stay at 0 have another sign each time, if that pays
        A = weigh(Samples(H, loss, LINEAR), np.eye(k), A)
    worth, used = H.T @ loss.slopes(H @ A), A != 0
    assert 0 < used.sum() <= min(k, 20)
    assert (worth * np.sign(A))[used] == pytest.approx(1, abs=1e-6)
    assert np.abs(worth).max() < 1 + 1e-6


def test_neurons_that_cost_too_much_get_none():
    loss = LOSSES["squared"](np.full(20, 1e-3))
    H = np.random.default_rng(0).normal(size=(20, 8))
    assert not weigh(Samples(H, loss, LINEAR), np.eye(8), np.ones((8, 1))).any()
