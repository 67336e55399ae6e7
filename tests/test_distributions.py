"""The papers' distributions: margins against the exact solver, supports, and seeds."""

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin import datasets
from netmargin.solvers import f1_max_margin

DRAWN = {
    "clusters": lambda seed: datasets.clusters(60, 4, seed=seed),
    "gaussian_xor": lambda seed: datasets.gaussian_xor(60, 4, seed=seed),
    "hypercube": lambda seed: datasets.hypercube(60, 4, seed=seed),
    "teacher": lambda seed: datasets.teacher(60, 4, margin=0.2, seed=seed),
    "parity": lambda seed: datasets.parity(5, 2, 60, seed=seed),
}


@pytest.mark.parametrize("name", DRAWN)
def test_samples_are_those_of_their_seed(name):
    X, y = DRAWN[name](0)
    again, other = DRAWN[name](0), DRAWN[name](1)
    assert torch.equal(X, again[0])
    assert torch.equal(y, again[1])
    assert not torch.equal(X, other[0])
    assert (X.dtype, y.dtype, len(X)) == (torch.float64, torch.int64, 60)
    assert (
        set(y.tolist()) == {-1, 1} or name == "teacher"
    )  # a random net may find all samples of one class
    assert set(y.tolist()) <= {-1, 1}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (3, 3), (4, 4)])
def test_parity_margins_are_exact(d, k, bias):
    """The closed form against complete pricing, in at most 4 dimensions with the bias."""
    X, y = datasets.parity(d, k)
    found = f1_max_margin(X, y, bias=bias, pricing="complete" if d + bias <= 4 else "auto")
    expected = datasets.parity_margin(d, k, bias=bias)
    if k % 2 == 0 and bias:
        assert found.margin >= expected * (1 - 1e-6)  # a bias is useless for even k, by symmetry
    assert found.margin == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_clusters_lie_in_their_disks():
    X, y = datasets.clusters(2000, 3, k=3)
    scaled = (X[:, :2].numpy() + 0.5) * 8 - 1  # centres at multiples of 3, radius 1
    cell = np.round(scaled / 3)
    distance = np.linalg.norm(scaled - 3 * cell, axis=1)
    assert distance.max() <= 1 + 1e-9
    assert (distance < 0.5).mean() == pytest.approx(0.25, abs=0.05)  # uniform on the disk
    labels = {}
    for key, label in zip(map(tuple, cell), y.tolist(), strict=True):
        assert labels.setdefault(key, label) == label
    assert len(labels) == 9


def test_teachers_margin():
    net = datasets.teacher_net(4, units=3, seed=7)
    X, y = datasets.teacher(200, 4, units=3, margin=0.5, seed=7)
    assert (y * net(X)[:, 0]).min() >= 0.5
    report = nm.measure(net, (X, y))
    assert report.normalized_margin >= 0.5 / report.norm**2


def test_parities_of_a_skewed_marginal():
    """Corners come with their probabilities; those of probability 0 never."""
    corners, labels = datasets.parity(3, 2)
    marginal = np.array([0.5, 0.0, 0.25, 0.0, 0.125, 0.0, 0.125, 0.0])
    X, y = datasets.parity(3, 2, 4000, seed=1, marginal=marginal)
    which = (X[:, None] == corners).all(2).double()
    assert torch.equal(y.double(), which @ labels.double())
    assert np.abs(which.mean(0).numpy() - marginal).max() < 0.03
    assert not which[:, marginal == 0].any()


def test_alternating_needs_its_kinks():
    X, y = datasets.alternating(5)
    best = f1_max_margin(X, y)
    assert best.certified
    assert len(best.support) == 5


@pytest.mark.slow
def test_bad_input():
    for wrong in (
        lambda: datasets.clusters(0, 3),
        lambda: datasets.hypercube(5, 1),
        lambda: datasets.parity(2, 3),
        lambda: datasets.parity(20, 3),
        lambda: datasets.parity(20, 3, 5, marginal=[1.0]),
        lambda: datasets.parity(2, 2, 5, marginal=[0.5, 0.5, 0.5, -0.5]),
        lambda: datasets.parity(2, 2, marginal=[0.25] * 4),
        lambda: datasets.parity_margin(2, 3),
        lambda: datasets.teacher(5, 3, margin=-1.0),
        lambda: datasets.teacher(5, 1, units=1, margin=1e9),
        lambda: datasets.alternating(0),
    ):
        with pytest.raises((nm.ArgumentError, nm.DataError)):
            wrong()
