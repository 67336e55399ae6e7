"""Copies among samples: left out together, counted, and told from rows that are equal by chance."""

import numpy as np
import pandas
import pytest
import torch

import netmargin as nm
from netmargin.label_errors import near_copies
from netmargin.label_errors.groups import fill_a_grid, labels_differ, make_groups, number_equal_rows
from netmargin.label_errors.near_copies import join_near_copies
from tests.words import words_of


def wrong_digits(n=400, share=0.1):
    """Digits of which a share has wrong labels, and which those are."""
    X, y = nm.datasets.digits(limit=n)
    rng = np.random.default_rng(0)
    wrong = np.zeros(n, dtype=bool)
    wrong[rng.choice(n, round(share * n), replace=False)] = True
    flipped = np.where(wrong, (y.numpy() + rng.integers(1, 10, n)) % 10, y.numpy())
    return X.double().numpy(), flipped, wrong


def found_share(found, wrong):
    """The share of wrong labels among as many worst ones."""
    return wrong[found.order[: wrong.sum()].numpy()].mean()


@pytest.mark.slow_cases("3")
@pytest.mark.parametrize("times", [2, 3])
def test_whole_copies_change_nothing(times):
    X, y, _ = wrong_digits()
    once, often = (nm.label_errors((np.tile(X, (k, 1)), np.tile(y, k))) for k in (1, times))
    assert often.scores.numpy() == pytest.approx(np.tile(once.scores.numpy(), times), abs=1e-12)
    assert often.wrong.numpy() == pytest.approx(np.tile(once.wrong.numpy(), times), abs=1e-12)
    assert (often.share, often.at_most) == pytest.approx((once.share, once.at_most), abs=1e-12)
    assert once.copies == ""
    assert (
        f"{400 * times:,} of {400 * times:,} samples are left out in groups of equal or nearly equal"
        in words_of(often.summary())
    )
    assert often.groups.tolist() == list(range(400)) * times


@pytest.mark.slow_cases("5% twins", "half twins", "bootstrap")
@pytest.mark.parametrize("kind", ["half twins", "5% twins", "bootstrap", "a class four times"])
def test_wrong_labels_that_occur_twice_do_not_vouch_for_themselves(kind):
    X, y, wrong = wrong_digits()
    rng = np.random.default_rng(1)
    every = np.arange(400)
    rows = {
        "half twins": np.r_[every, every[::2]],
        "5% twins": np.r_[every, every[::20]],
        "bootstrap": rng.integers(400, size=400),
        "a class four times": np.r_[every, np.tile(every[y == 0], 3)],
    }[kind]
    once, found = nm.label_errors((X, y)), nm.label_errors((X[rows], y[rows]))
    assert found_share(found, wrong[rows]) > found_share(once, wrong) - 0.03
    assert found.count / wrong[rows].sum() > 0.75 * once.count / wrong.sum()


def test_patients_are_left_out_whole():
    """Each patient has a place of its own, and labels are drawn: only its own rows predict them."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(40), 6)
    X = 5 * rng.normal(size=(40, 8))[patients] + 0.5 * rng.normal(size=(240, 8))
    y = (rng.random(40) < 0.5).astype(int)[patients]
    names = np.array([f"patient {p}" for p in patients])
    alone, found = (nm.label_errors((X, y), groups=groups) for groups in (False, names))
    assert (alone.scores > 0).double().mean() > 0.95
    assert 0.3 < (found.scores > 0).double().mean() < 0.7
    assert found.groups.tolist() == patients.tolist()
    column = pandas.Series(names, dtype=object, index=range(7, 247))
    assert (nm.label_errors((X, y), groups=column).scores == found.scores).all()
    assert "240 of 240 samples are left out in given groups, 40 in all" in words_of(found.summary())
    assert alone.copies == ""


def test_a_group_weighs_as_one_sample_and_members_of_given_ones_each():
    of, equal = np.array([0, 0, 1, 2, 2, 2, 3, 2]), np.array([0, 0, 2, 3, 3, 5, 6, 3])
    classes = np.array([0, 0, 0, 1, 1, 1, 1, 0])
    groups = make_groups(of, equal, classes)
    assert np.bincount(of, groups.weights) == pytest.approx(np.ones(4))
    assert groups.rows.tolist() == [0, 2, 3, 5, 6]
    assert [rows.tolist() for rows in groups.together()] == [[2, 3]]
    assert groups.together(np.array([0, 1, 2, 4])) == []
    # Equal members are merged, with their mean target.
    weights, targets = groups.merge(np.eye(2)[classes])
    assert weights == pytest.approx([1, 1, 0.75, 0.25, 1])
    assert targets[2] == pytest.approx([1 / 3, 2 / 3])
    assert groups.units.tolist() == [0, 2, 3, 6]
    given = make_groups(of, equal, classes, given=True)
    assert given.merge(np.eye(2)[classes])[0] == pytest.approx(np.ones(5))
    assert given.units.tolist() == given.rows.tolist()  # labels differ in a group
    alike = make_groups(of, equal, of, given=True)
    assert alike.units.tolist() == [0, 2, 3, 6]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_equal_rows_are_numbered_by_first_occurrence(dtype):
    X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, -0.0], [0.0, 0.0], [0.0, 1.0]], dtype=dtype)
    assert number_equal_rows(X).tolist() == [0, 1, 0, 2, 1]


def grids():
    """Tables whose rows are equal by chance."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (300, 3))
    yield "cells", bits.astype(float), bits.sum(1) % 2
    ordinal = rng.integers(1, 11, (400, 2))
    yield "ordinal", ordinal.astype(float), (ordinal.sum(1) > 11).astype(int)
    kinds = rng.integers(0, 6, (300, 2))
    yield "one-hot", np.eye(6)[kinds].reshape(300, -1), (kinds.sum(1) > 5).astype(int)
    ages = rng.integers(0, 30, 300)
    yield "one column", ages[:, None].astype(float), ages % 3


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y, id=i) for i, X, y in grids()])
def test_rows_that_are_equal_by_chance_are_evidence(X, y):
    wrong = np.arange(len(y)) % 10 == 0
    y = np.where(wrong, (y + 1) % (y.max() + 1), y)
    found, alone = nm.label_errors((X, y)), nm.label_errors((X, y), groups=False)
    assert (found.scores == alone.scores).all()
    assert fill_a_grid(torch.from_numpy(X), number_equal_rows(torch.from_numpy(X)))
    assert found.copies == ""
    assert found_share(found, wrong) > 0.8


@pytest.mark.parametrize(("measured", "counted"), [(2, 0), (1, 6), (3, 5)])
def test_copies_of_rows_that_differ_in_few_columns_are_copies(measured, counted):
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(300, measured)), rng.integers(0, 2, (300, counted))])
    for times in (1, 2):
        rows = torch.from_numpy(np.tile(X, (times, 1)))
        assert not fill_a_grid(rows, number_equal_rows(rows))


def test_bursts_with_labels_given_one_by_one_are_evidence():
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(80), 5)
    X, y = rng.normal(size=(80, 12))[of], rng.integers(3, size=80)[of]
    wrong = rng.random(400) < 0.1
    flipped = np.where(wrong, (y + rng.integers(1, 3, 400)) % 3, y)
    assert labels_differ(of, np.arange(400), flipped, 0.1)
    assert not labels_differ(of, np.arange(400), y, 0.1)
    # Equal rows in each burst: all alike, or within .05.
    for noise in (0, 0.05):
        found = nm.label_errors((X + noise * rng.normal(size=X.shape), flipped))
        assert found_share(found, wrong) > 0.9


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (True, "one number or name for each of 20"),
        ([0, 1, 2], "each of 20 samples.*got list"),
        (np.zeros((20, 2)), "one number or name"),
        ([None] * 20, "one number or name"),
        ([1.0, float("nan")] * 10, "one number or name"),
        (["a"] * 20, "two of them at least"),
    ],
)
def test_groups_that_cannot_be_used_are_refused(groups, message):
    with pytest.raises(nm.ArgumentError, match=message):
        nm.label_errors(nm.datasets.digits(limit=20), groups=groups)


def shifted(images):
    """Images moved by a pixel; what is pushed out comes in at the other side."""
    return np.roll(images, 1, axis=-1)


CHANGES = {
    "noise": lambda images: images + 0.02 * np.random.default_rng(2).normal(size=images.shape),
    "mirrored": lambda images: images[..., ::-1],
    "moved": shifted,
    "moved and mirrored": lambda images: shifted(images)[..., ::-1],
    "brighter": lambda images: 1.2 * images,
}


@pytest.mark.slow_cases("mirrored", "noise", "moved")
@pytest.mark.parametrize("change", CHANGES)
def test_changed_copies_of_images_are_found(change):
    X, y, wrong = wrong_digits()
    images = X.reshape(-1, 1, 8, 8)
    rows = np.r_[np.arange(400), np.arange(0, 400, 4)]
    more = np.concatenate([images, CHANGES[change](images[::4])])
    found = nm.label_errors((more, y[rows]))
    of = found.groups.numpy()
    assert (of[400:] == of[:400:4]).mean() > 0.95
    assert len(np.unique(of)) > 390
    assert found_share(found, wrong[rows]) > 0.85
    assert "groups of equal or nearly equal ones" in words_of(found.summary())


@pytest.mark.parametrize("spread", [lambda z: z, lambda z: np.abs(z) ** 3, np.tanh])
@pytest.mark.parametrize("columns", [2, 4, 30, 300])
def test_near_copies_are_told_from_neighbours(columns, spread):
    rng = np.random.default_rng(columns)
    X = spread(rng.normal(size=(500, columns)))
    alone = torch.from_numpy(X)
    near, _ = join_near_copies(alone, np.arange(500))
    assert len(np.unique(near)) >= 499
    if columns == 2:  # honest neighbours are as near there
        return
    twins = X[:200] + 0.002 * X.std(axis=0) * rng.normal(size=(200, columns))
    near, sure = join_near_copies(torch.from_numpy(np.concatenate([X, twins])), np.arange(700))
    for of, share, honest in ((near, 0.8, 40), (sure, 0.6, 10)):
        assert (of[500:] == of[:200]).mean() > share
        assert len(np.unique(of)) >= 500 - honest


def test_principal_directions_are_those_of_each_row_once(monkeypatch):
    given, svd = [], np.linalg.svd
    monkeypatch.setattr(
        np.linalg, "svd", lambda a, **options: given.append(len(a)) or svd(a, **options)
    )
    rows = np.random.default_rng(0).standard_normal((40, 9)).astype(np.float32)
    near_copies.pair_near_copies(rows)
    assert given == [40]  # as many rows as there are: of 40 long signals, 500 took 20 s
