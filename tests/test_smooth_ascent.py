"""The net whose smooth margin is ascended to begin a search for neurons."""

import numpy as np
import pytest
import torch

from netmargin.datasets import clusters
from netmargin.solvers import f1_max_margin
from netmargin.solvers.columns.master import Constraints
from netmargin.solvers.columns.restricted_problem import RestrictedProblem
from netmargin.solvers.columns.smooth_ascent import _find_gradient, ascend_margin

X, Y = (part.numpy().astype(float) for part in clusters(96, 9, k=3, seed=2))
Z = np.column_stack([X, np.ones(len(X))])
Z /= np.linalg.norm(Z, axis=1).max()


@pytest.mark.parametrize("slope", [0.0, 0.3, -1.0])
def test_the_gradient_is_that_of_the_smooth_margin(slope):
    inputs, labels = (torch.from_numpy(part).float() for part in (Z / 0.7, Y))
    a = torch.from_numpy(np.random.default_rng(0).normal(size=(30, Z.shape[1]))).float()
    a, s = a / a.norm(), torch.ones(30)
    s[::2] = -1.0
    found, _ = _find_gradient(a, s, inputs, labels, 50.0, slope)
    a.requires_grad_()
    hidden = torch.nn.functional.leaky_relu(inputs @ a.T, slope)
    outputs = hidden @ (s * a.norm(dim=1)) / a.square().sum()
    softmin = -torch.logsumexp(-50.0 * labels * outputs, 0) / 50.0
    (expected,) = torch.autograd.grad(softmin, a)
    assert float(expected.norm()) > 0.01
    assert torch.allclose(found, expected, atol=1e-5 * float(expected.abs().max()) + 1e-7)


@pytest.mark.slow
def test_the_neurons_of_the_net_come_near_the_largest_margin():
    """They attain most of the largest margin: unit vectors with signs, no more than samples."""
    U, s, dual = ascend_margin(Z, Y, np.random.default_rng(0))
    assert np.linalg.norm(U, axis=1) == pytest.approx(1)
    assert len(U) == len(s) <= len(Z)
    assert set(s) == {-1.0, 1.0}
    assert dual.min() >= 0
    assert dual.sum() == pytest.approx(1)
    restricted = RestrictedProblem(Z, Constraints(Y, np.ones(len(Z))))
    restricted.add(U, s)
    restricted.solve()
    best = f1_max_margin(Z, Y, bias=False, pricing="local", tol=1e-3).margin
    assert 0.9 * best < 0.5 * restricted.t < best * (1 + 1e-3)


def test_an_ascent_ends_at_its_deadline_and_has_few_neurons_where_time_is_short(monkeypatch):
    looks = []
    monkeypatch.setattr("time.monotonic", lambda: looks.append("a look at the clock") or 0.0)
    whole, short = (
        ascend_margin(Z, Y, np.random.default_rng(0), deadline=end) for end in (np.inf, 0.02)
    )
    looks.clear()
    late = ascend_margin(Z, Y, np.random.default_rng(0), deadline=-1.0)
    assert len(looks) == 2  # before the first step and after it
    assert len(late[0]) <= len(short[0]) < len(whole[0])
    assert all(np.isfinite(part).all() for part in late)


def test_samples_of_length_0_and_of_any_size_do_no_harm():
    sizes = np.geomspace(1e-9, 1e9, len(Z))[:, None]
    inputs = np.concatenate([np.zeros((1, Z.shape[1])), Z * sizes])
    U, _, dual = ascend_margin(inputs, np.append(1.0, Y), np.random.default_rng(0))
    assert np.isfinite(U).all()
    assert np.isfinite(dual).all()
