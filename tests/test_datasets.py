"""Loaders on real files where they are, on damaged and hostile ones, and without any."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import netmargin as nm
from netmargin.datasets import cifar10, digits, mnist
from netmargin.datasets.selection import FOLDER_VARIABLE, select

DATA = os.environ.get(FOLDER_VARIABLE)
needs_data = pytest.mark.skipif(
    not DATA, reason=f"{FOLDER_VARIABLE} is not set: the real files are not here"
)


@settings(max_examples=15, deadline=None)
@given(y=st.lists(st.integers(0, 4), min_size=1, max_size=60), data=st.data())
def test_subsets_are_balanced_as_far_as_the_classes_allow(y, data):
    y = np.array(y)
    limit = data.draw(st.integers(1, len(y)))
    X, chosen = select(np.arange(len(y)), y, limit, scale=1)
    assert len(chosen) == limit
    assert torch.equal(X, X.sort().values)
    assert np.array_equal(y[X.long().numpy()], chosen.numpy())
    taken, there = np.bincount(chosen, minlength=5), np.bincount(y, minlength=5)
    for a in range(5):
        for b in range(5):
            assert taken[a] >= taken[b] - 1 or taken[a] == there[a]


def test_digits_splits_are_disjoint_and_complete():
    (X, y), (X_test, y_test) = digits("train"), digits("test")
    assert (len(X), len(X_test)) == (1438, 359)
    assert X.dtype is torch.float32
    assert (X.min(), X.max()) == (0, 1)
    assert set(y.tolist()) == set(y_test.tolist()) == set(range(10))
    for wrong in (lambda: digits("valid"), lambda: digits(limit=0), lambda: digits(limit=10**6)):
        with pytest.raises(nm.ArgumentError):
            wrong()


@needs_data
def test_mnist_is_read_whole_and_balanced():
    X, y = mnist("test")
    assert X.shape == (10000, 1, 28, 28)
    assert y.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert X.max() == 1
    X, y = mnist(limit=1000)
    assert y.bincount().tolist() == [100] * 10
    assert X.mean().item() == pytest.approx(0.13, abs=0.01)


@needs_data
def test_cifar10_uses_the_batches_it_finds():
    with pytest.warns(UserWarning, match="using the 1 of 5 training batches"):
        X, y = cifar10(limit=200)
    assert X.shape == (200, 3, 32, 32)
    assert y.bincount().tolist() == [20] * 10
    assert cifar10("test")[1].bincount().tolist() == [1000] * 10
    with pytest.raises(nm.ArgumentError, match="limit of at most 10000"):
        cifar10()


def test_damaged_and_foreign_files(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"):
        (tmp_path / name).write_bytes(b"\x00\x00\x08\x03")
    with pytest.raises(nm.DataError, match="Cannot read.*IDX"):
        mnist()
    (tmp_path / "train-images-idx3-ubyte").write_bytes(
        bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 7])
    )
    with pytest.raises(nm.DataError, match="checksum differs"):
        mnist()
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    (folder / "test_batch.bin").write_bytes(b"too short")
    with pytest.raises(nm.DataError, match="9 bytes instead of 30730000"):
        cifar10("test")
    (folder / "test_batch.bin").write_bytes(bytes(30730000))
    with pytest.raises(nm.DataError, match="checksum differs"):
        cifar10("test")
    with pytest.raises(nm.DataError, match="holds none of data_batch_1"):
        cifar10("train")


@pytest.mark.parametrize("load", [mnist, cifar10])
def test_without_files_and_network_the_error_says_both_ways(load, tmp_path, monkeypatch):
    def offline(*_, **__):
        raise OSError("no network")

    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(nm.DataError, match=f"(?s)OpenML.*set {FOLDER_VARIABLE}.*reach OpenML"):
        load(limit=10)


def test_a_download_with_other_content_is_refused(tmp_path, monkeypatch):
    class Fake:
        data, target = np.zeros((70000, 784)), np.array(["1"] * 70000)

    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *_, **__: Fake)
    with pytest.raises(nm.DataError, match="MNIST from OpenML does not hold the canonical data"):
        mnist()
