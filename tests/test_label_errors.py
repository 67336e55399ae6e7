"""Wrong labels: the closed form against refits, flips that must be found, calibration, bad input."""

import re

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.label_errors.calibration import (
    bound_share_wrong,
    draw_flips,
    score_labels,
)
from netmargin.label_errors.evidence import find_wrong
from netmargin.label_errors.images import shrink_images
from netmargin.label_errors.leave_one_out import (
    RIDGES,
    encode_labels,
    laplace_kernel,
    median_distance,
    predict_approximately,
    predict_exactly,
    squared_errors,
)
from netmargin.label_errors.patches import _respond, patch_features
from tests.words import words_of


def flip(y, share, seed, classes=10):
    """Labels of which a share is replaced by random other ones, and which those are."""
    rng = np.random.default_rng(seed)
    wrong = rng.choice(len(y), round(share * len(y)), replace=False)
    flipped = y.numpy().copy()
    flipped[wrong] = (flipped[wrong] + rng.integers(1, classes, size=len(wrong))) % classes
    return flipped, np.isin(np.arange(len(y)), wrong)


@pytest.fixture(scope="module")
def digits():
    """600 digits with 10% flipped labels, which those are, and what was found."""
    X, y = nm.datasets.digits(limit=600)
    y, wrong = flip(y, 0.1, seed=0)
    return X, y, wrong, nm.label_errors((X, y))


@pytest.fixture
def problem():
    """Features, targets and scale of a small problem of three classes."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(24, 4))
    return features, encode_labels(rng.integers(3, size=24), 3), median_distance(features)


ALONE, TOGETHER = (), ([1, 5, 7], [2, 11], [12, 18, 20, 21])
WEIGHTS = np.random.default_rng(4).uniform(0.3, 3, 24)


def groups_of(together):
    """The group of each of 24 samples."""
    groups = np.arange(24)
    for rows in together:
        groups[rows] = rows[0]
    return groups


@pytest.mark.parametrize(
    ("together", "weights"), [(ALONE, np.ones(24)), (TOGETHER, WEIGHTS)], ids=["alone", "groups"]
)
def test_predictions_are_those_of_refits_without_the_group(problem, together, weights):
    features, Y, scale = problem
    K, groups = laplace_kernel(features, features, scale), groups_of(together)
    found = predict_exactly(K.copy(), Y, 0.3, weights, together)
    for n in range(len(Y)):
        rest = np.flatnonzero(groups != groups[n])
        system = K[np.ix_(rest, rest)] + 0.3 * np.diag(1 / weights[rest])
        assert found[n] == pytest.approx(K[n, rest] @ np.linalg.solve(system, Y[rest]), abs=1e-12)
    errors = squared_errors(K, Y, weights, together)
    expected = weights @ np.square(found - Y).mean(axis=1) / weights.sum()
    assert errors[RIDGES.index(0.3)] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("together", "weights"), [(ALONE, np.ones(24)), (TOGETHER, WEIGHTS)], ids=["alone", "groups"]
)
def test_few_centres_give_the_predictions_of_refits(problem, together, weights):
    features, Y, scale = problem
    centres, groups = np.array([2, 5, 11, 12, 20]), groups_of(together)
    found = predict_approximately(features, Y, scale, centres, 0.1, weights, together)
    for n in range(len(Y)):
        rest = np.flatnonzero(groups != groups[n])
        # A centre is left out as such, too.
        points = features[centres[groups[centres] != groups[n]]]
        inner = laplace_kernel(points, points, scale)
        cross = laplace_kernel(features, points, scale)
        heavy = weights[rest, None] * cross[rest]
        fit = np.linalg.solve(heavy.T @ cross[rest] + 0.1 * inner, heavy.T @ Y[rest])
        assert found[n] == pytest.approx(cross[n] @ fit, abs=1e-7)


def test_all_samples_as_centres_give_the_exact_predictions(problem):
    features, Y, scale = problem
    K = laplace_kernel(features, features, scale)
    exact = predict_exactly(K, Y, 0.1, WEIGHTS, TOGETHER)
    found = predict_approximately(features, Y, scale, np.arange(24), 0.1, WEIGHTS, TOGETHER)
    assert found == pytest.approx(exact, abs=1e-6)


def test_flips_are_found_and_counted(digits):
    _, y, wrong, found = digits
    worst = found.order[: wrong.sum()].numpy()
    assert wrong[worst].mean() > 0.9
    # An estimate from the lowest quarter of the flips: 15 wrong labels, give or take four.
    assert 0.5 * wrong.sum() < found.count < 1.5 * wrong.sum() <= 1.5 * found.count_at_most
    assert found.count_at_most < 2 * wrong.sum()
    # The score of a flipped sample speaks for another label; the probabilities follow the scores.
    assert (found.scores[worst[:20]] < 0).all()
    assert (np.diff(found.wrong[found.order].numpy()) <= 1e-12).all()
    assert found.wrong[wrong].mean() > 0.6 > 0.1 > found.wrong[~wrong].mean()
    assert (found.suggested != torch.from_numpy(y)).all()


def test_tables_say_the_same(digits, tmp_path):
    _, y, _, found = digits
    frame, table = found.frame(), found.cleanlab()
    assert frame["sample"].tolist() == found.order.tolist()
    assert (frame["given"] == y[frame["sample"]]).all()
    assert frame["wrong_if_apart"].iloc[-1] == pytest.approx(found.wrong.mean().item())
    assert table["is_label_issue"].sum() == len(found.flagged) <= found.count
    assert table.index[table["is_label_issue"]].tolist() == sorted(found.flagged.tolist())
    again = nm.load(found.save(tmp_path / "labels.zip"))
    assert again.frame().equals(frame)
    lines = found.write_csv(tmp_path / "labels.csv").read_text().splitlines()
    assert lines[0] == "sample,given,suggested,score,wrong_if_apart"
    assert lines[1].startswith(f"{found.order[0]},")
    assert found.verdict in words_of(found.summary())
    said = f"About {found.count} of 600 labels are wrong, at most {found.count_at_most} (95% "
    assert found.verdict.startswith(said)
    assert "worst first" in found._repr_html_()


@pytest.mark.parametrize("size", [2.0**-700, 2.0**-66, 2.0**66, 2.0**700])
def test_no_unit_of_images_changes_a_score(digits, size):
    """Squares of these numbers are beyond float32, and those of the ends beyond float64."""
    X, y, _, _ = digits
    X, y = X[:200].double().reshape(-1, 1, 8, 8), y[:200]
    found, plain = nm.label_errors((X * size, y)), nm.label_errors((X, y))
    assert found.basis == plain.basis
    assert torch.equal(found.scores, plain.scores)


@pytest.mark.parametrize("top", [-1, 2.5, "a"])
def test_a_table_of_no_number_of_rows_is_refused(digits, top):
    with pytest.raises(nm.ArgumentError, match="top must be a whole number of at least 0 or None"):
        digits[3].frame(top)


def test_the_worst_images_are_drawn(digits, tmp_path):
    X, _, _, found = digits
    (png,) = nm.figures.draw_label_errors(found, X, tmp_path, count=7)
    assert png.stat().st_size > 5000
    assert png.with_suffix(".pdf").exists()
    with pytest.raises(nm.DataError, match="no images"):
        nm.figures.draw_label_errors(found, X[:, :10], tmp_path)
    with pytest.raises(nm.DataError, match="600"):
        nm.figures.draw_label_errors(found, X[:10], tmp_path)


@pytest.mark.slow
def test_scores_do_not_depend_on_order_scale_or_names_of_classes(digits):
    X, y, _, _ = digits
    X, y = X[:200], y[:200]
    found = nm.label_errors((X, y))
    order = np.random.default_rng(1).permutation(len(y))
    moved = nm.label_errors((4 * X[order], 7 - 2 * y[order]))
    if found.basis.startswith("the inputs"):  # patches are drawn by place, and so by order
        assert moved.scores.numpy() == pytest.approx(found.scores.numpy()[order], abs=1e-9)
    # Features of each image are its own, whatever the range of values.
    images = X.reshape(-1, 8, 8)
    assert patch_features(images) == pytest.approx(patch_features(1000 * images), abs=1e-3)


@pytest.mark.slow_cases("0.05", "0.2-1.0", "0.0")
@pytest.mark.parametrize("apart", [1.0, 4.0])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_at_most_so_many_labels_are_wrong_whether_classes_overlap(apart, share):
    """Two Gaussian classes; each case may fail once in 20: 4 of 20 is a chance of 1.6%."""
    held, bounds = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=200)
        X = rng.normal(size=(200, 2))
        X[:, 0] += apart * y
        wrong = rng.random(200) < share
        found = nm.label_errors((X, np.where(wrong, 1 - y, y)))
        held += found.count_at_most >= wrong.sum()
        bounds.append(found.at_most)
        if apart == 1 and not share:
            assert "there may be none" in words_of(found.summary())
    assert held >= 17
    if apart == 4:  # where classes do not overlap it is not far from the truth
        assert np.mean(bounds) < share + 0.08


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
def test_share_of_a_known_mixture(share):
    rng = np.random.default_rng(0)
    n, classes = 4000, 10
    wrong = rng.random(n) < share
    given = np.where(wrong, rng.normal(-2, 0.7, n), rng.normal(2, 0.7, n))
    # A wrong label flipped at random becomes right once in nine times.
    lucky = wrong & (rng.random(n) < 1 / (classes - 1))
    flipped = np.where(lucky, rng.normal(2, 0.7, n), rng.normal(-2, 0.7, n))
    assert share <= bound_share_wrong(given, flipped, classes) < share + 0.03


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("classes", [2, 10])
def test_wrong_labels_are_told_from_classes_that_overlap(classes, share):
    """Labels drawn with known probabilities, of which a share is replaced by random ones."""
    rng = np.random.default_rng(1)
    n, rows = 4000, np.arange(4000)
    F = rng.normal(0, 0.15, (n, classes))
    F[rows, rng.integers(classes, size=n)] += rng.uniform(0.2, 1, n)
    p = np.exp(8 * F) / np.exp(8 * F).sum(axis=1, keepdims=True)
    right = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    wrong = rng.random(n) < share
    y = np.where(wrong, (right + rng.integers(1, classes, n)) % classes, right)
    assert 0.05 < (F.argmax(axis=1) != right).mean() < 0.35
    margins = score_labels(F)[rows, y]
    found, untold = find_wrong(F, y, rows, rng)
    assert untold.size == 0
    assert found.mean() == pytest.approx(share, abs=0.006 + 0.1 * share)
    assert (np.diff(found[margins.argsort()]) <= 1e-12).all()
    # What is said to be wrong with probability 60% to 90% is so about as often.
    unsure = (found > 0.6) & (found < 0.9)
    if unsure.sum() > 50:
        assert wrong[unsure].mean() == pytest.approx(found[unsure].mean(), abs=0.12)


def far_classes(n, classes, unheld=()):
    """Gaussian classes that do not overlap; samples of those in `unheld` lie among the others."""
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=n)
    at = np.where(np.isin(y, unheld), rng.integers(classes - len(unheld), size=n), y)
    return 2.5 * rng.normal(size=(classes, 16))[at] + rng.normal(size=(n, 16)), y


def noise(n, columns, classes):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, columns)), rng.integers(classes, size=n)


def overlapping(n, classes, apart):
    rng = np.random.default_rng(0)
    y = rng.integers(classes, size=n)
    return rng.normal(size=(n, 4)) + apart * np.eye(classes, 4)[y], y


def raw_waves(n):
    """Tones a semitone apart, out of tune and of any phase."""
    rng = np.random.default_rng(0)
    y, time = rng.integers(5, size=n), np.arange(1000) / 1000
    pitch = 100 * 2 ** (y[:, None] / 12) * (1 + 0.02 * rng.normal(size=(n, 1)))
    waves = np.sin(2 * np.pi * (pitch * time + rng.random((n, 1))))
    return waves + 0.5 * rng.normal(size=waves.shape), y


@pytest.mark.parametrize(
    ("data", "untold"),
    [
        (noise(300, 5, 2), {0, 1}),
        (noise(600, 20, 3), {0, 1, 2}),
        (noise(400, 50, 10), set(range(10))),
        (overlapping(300, 2, 0.3), {0, 1}),
        (overlapping(300, 2, 1.0), set()),
        (overlapping(300, 2, 2.0), set()),
        (overlapping(400, 4, 1.5), set()),
        (overlapping(400, 4, 3.0), set()),
        (raw_waves(300), set()),
        (far_classes(600, 10), set()),
        (far_classes(600, 10, (9,)), {9}),
        (far_classes(300, 3, (2,)), {2}),
    ],
    ids=[
        *(
            "noise2",
            "noise3",
            "noise10",
            "near2",
            "beside2",
            "far2",
            "near4",
            "far4",
            "waves",
            "apart",
        ),
        "one not held",
        "one of three",
    ],
)
def test_where_no_label_is_wrong_nothing_is_claimed(data, untold):
    found = nm.label_errors(data)
    assert found.wrong.max() <= 0.2
    assert found.count == len(found.flagged) == 0
    assert set(found.untold) == untold
    said = words_of(found.summary())
    assert "there may be none" in said
    assert found.tells_nothing == ("cannot be told" in said) == (len(untold) == data[1].max() + 1)
    assert ("Nothing can be told of labels" in said) == (bool(untold) and not found.tells_nothing)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_where_prediction_is_perfect_the_count_is_the_count(classes):
    X, y = far_classes(600, classes)
    flipped, wrong = flip(torch.from_numpy(y), 0.05, 1, classes)
    found = nm.label_errors((X, flipped))
    assert found.count == wrong.sum() == 30
    assert sorted(found.flagged.tolist()) == np.flatnonzero(wrong).tolist()
    assert found.wrong[wrong].min() > 0.9 > 0.1 > found.wrong[~wrong].max()


def test_wrong_labels_are_counted_beside_a_class_that_nothing_tells():
    X, y = far_classes(1000, 10, (9,))
    flipped, wrong = flip(torch.from_numpy(y), 0.05, 1)
    found = nm.label_errors((X, flipped))
    assert found.untold == (9,)
    others = wrong & (flipped != 9)
    assert found.count == pytest.approx(others.sum(), abs=4)
    assert others[found.flagged.numpy()].mean() > 0.95
    assert others[found.order[:20].numpy()].all()
    assert (found.given[found.order[-(flipped == 9).sum() :]] == 9).all()


def test_scores_of_every_label_are_margins():
    F = np.random.default_rng(0).normal(size=(50, 4))
    found = score_labels(F)
    for j in range(4):
        rest = np.delete(F, j, axis=1).max(axis=1)
        assert found[:, j] == pytest.approx(F[:, j] - rest)
    given = np.arange(50) % 4
    flips = draw_flips(found, given, np.random.default_rng(0)).reshape(50, 3)
    for row, scores, own in zip(flips, found, given, strict=True):
        assert sorted(row) == sorted(np.delete(scores, own))


def test_conflicting_copies_are_named():
    X, y = nm.datasets.digits(limit=60)
    X, y = torch.cat([X, X[5:6], X[5:6], X[9:10]]), torch.cat([y, y[5:6], y[5:6] + 1, y[9:10]])
    found = nm.label_errors((X, y % 10))
    assert found.conflicts == ((5, 60, 61),)
    assert "equal samples" in found.summary()


def test_no_count_is_shown_where_nothing_can_be_counted():
    found = nm.label_errors(nm.datasets.digits(limit=100))
    assert found.count == 0
    assert "there may be none: the scores show no more" in words_of(found.summary())
    assert "there may be none" in found._repr_html_()


def test_binary_labels_and_names():
    X, y = nm.datasets.clusters(80, 4, k=3, seed=0)
    signs = torch.as_tensor(y).clone()
    signs[3] *= -1
    found = nm.label_errors((X, signs), class_names=["no", "yes"])
    assert set(found.given.tolist()) == {-1, 1}
    assert (found.suggested == -found.given).all()
    assert set(found.frame()["given"]) == {"no", "yes"}
    assert found.frame()["given"][0] == ("no" if found.given[found.order[0]] < 0 else "yes")
    with pytest.raises(nm.ArgumentError, match="class_names"):
        nm.label_errors((X, (signs + 1) * 3), class_names=["no", "yes"])


@pytest.mark.slow
def test_mirror_images_count_where_errors_fall_with_them():
    """Rising and falling strokes are mirror images of each other, and here two classes."""
    rng = np.random.default_rng(0)
    strokes, labels = np.stack([np.eye(5), np.eye(5)[:, ::-1]]), np.arange(200) % 2
    images = 0.3 * rng.normal(size=(200, 1, 16, 16))
    for image, label, (top, left) in zip(images, labels, rng.integers(2, 9, (200, 2)), strict=True):
        image[0, top : top + 5, left : left + 5] += 3 * strokes[label]
    found = nm.label_errors((torch.from_numpy(images).float(), torch.from_numpy(labels)))
    assert found.basis.startswith("patches")
    assert "mirror" not in found.basis
    both = torch.from_numpy(np.concatenate([images, images[..., ::-1]])[:, 0])
    rows = patch_features(both, mirrored=True)
    assert rows[:200] == pytest.approx(rows[200:], abs=1e-5)


def test_convolutions_of_a_net_are_compared_too():
    X, y = nm.datasets.digits(limit=60)
    images = X.reshape(-1, 1, 8, 8)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
    assert "of 5 representations" in nm.label_errors((images, y), model=net).basis
    with pytest.raises(nm.ModelError, match="no dense layer behind a convolution"):
        nm.label_errors((X, y), model=nm.models.mlp([64, 16, 10]))
    with pytest.raises(nm.DataError, match="labels"):
        nm.label_errors((images, y + 1), model=net)


def test_what_takes_long_is_shown(digits, monkeypatch, capsys):
    monkeypatch.setattr("netmargin.core.progress._LOG_EVERY_SECONDS", -1.0)
    X, y, *_ = digits
    nm.label_errors((X, y), progress=False)
    assert not capsys.readouterr().err
    found = nm.label_errors((X, y))
    said = capsys.readouterr().err.splitlines()
    assert said[0] == f"label errors: looking for copies among {len(y):,} samples"
    assert sum(line.startswith("label errors: trying") for line in said) == 4
    assert (
        said[-1] == f"label errors: predicting {len(y):,} samples from {found.basis.split(' (')[0]}"
    )


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (([[0.0], [1.0]], [1, 1]), nm.DataError, "two classes"),
        (([[0.0], [float("nan")]], [0, 1]), nm.DataError, "NaN"),
        (([[0.0], [1.0]], [0.5, 1]), nm.DataError, "whole numbers"),
        (([[0.0], [1.0]], [0, 1, 1]), nm.DataError, "one label per"),
        (torch.zeros(3), nm.DataError, "batch"),
        (
            ([torch.ones(8 + i, 8) for i in range(3)], [0, 1, 0]),
            nm.DataError,
            "^X holds samples of diff",
        ),
        (([0.0, 1.0], [0, 1]), nm.DataError, r"shape \(2,\), one number .* X.reshape\(-1, 1\)"),
        (([[5, 7], [3, 1]], [0, 1]), nm.DataError, "whole numbers .* X.float.* embeddings"),
    ],
)
def test_bad_data(data, error, message):
    with pytest.raises(error, match=message):
        nm.label_errors(data)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((6, 3)),
        np.ones((6, 1, 9, 9)),
        np.random.default_rng(0).random((6, 3, 7, 11)),
        np.arange(6)[:, None] * 1e200,
        np.arange(6.0)[:, None],
    ],
    ids=["all equal", "one colour", "odd shape", "large", "whole numbers"],
)
def test_odd_inputs_give_finite_scores(X):
    found = nm.label_errors((X, [0, 1, 2, 0, 1, 2]))
    assert torch.isfinite(found.scores).all()
    assert 0 <= found.share <= found.at_most <= 1


def test_responses_are_those_of_patches_normalized_one_by_one():
    torch.manual_seed(0)
    pixels, filters = torch.randn(2, 3, 9, 8) + 1, torch.randn(4, 3, 3, 3)
    mean, floor, step = torch.randn(3, 3, 3), 0.3, 2
    found = _respond(pixels, filters, mean, floor, step)
    for row in range(found.shape[2]):
        for column in range(found.shape[3]):
            top, left = step * row, step * column
            patch = pixels[:, :, top : top + 3, left : left + 3].flatten(1)
            centred = patch - patch.mean(1, keepdim=True)
            normal = centred / (centred.square().mean(1, keepdim=True) + floor).sqrt()
            expected = (normal - mean.flatten()) @ filters.flatten(1).T
            assert found[:, :, row, column] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3, 64, 64), (3, 32, 32)),
        ((1, 32, 32), (1, 32, 32)),
        ((20, 60), (18, 55)),
        ((2, 22, 1000), (2, 6, 216)),
        ((4, 3000), (4, 876)),
        ((4096,), (4096,)),
        ((20, 64, 64), (20, 64, 64)),
    ],
)
def test_images_are_shrunk_to_as_many_pixels_as_patches_need(shape, expected):
    X = torch.rand(3, *shape)
    assert shrink_images(X).shape[1:] == expected
    if expected == shape:
        assert torch.equal(shrink_images(X), 2 * X)  # of a size near 1


def test_shrunk_images_are_averages_and_reports_say_so():
    X, y = nm.datasets.digits(limit=60)
    large = X.reshape(-1, 1, 8, 8).repeat_interleave(16, 2).repeat_interleave(16, 3)
    large = large + torch.rand_like(large)
    means = large.reshape(60, 1, 32, 4, 32, 4).mean((3, 5))
    assert shrink_images(large) == pytest.approx(means, abs=1e-6)
    small, found = nm.label_errors((means, y)), nm.label_errors((large, y))
    assert found.scores.numpy() == pytest.approx(small.scores.numpy(), abs=1e-4)
    assert "shrunk to 32 x 32" in found.basis
    assert "shrunk" not in small.basis
    # Vectors of square length may be embeddings: as such, they keep their numbers.
    flat = nm.label_errors((large.flatten(1), y))
    assert ("shrunk" in flat.basis) == flat.basis.startswith("patches")


@pytest.mark.parametrize(
    "give", [np.asarray, torch.tensor, list, pd.Series, lambda y: pd.Series(y, dtype="boolean")]
)
def test_truth_values_are_shown_as_they_were_given(give):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > 0
    y[:3] = ~y[:3]
    found = nm.label_errors((X, give(y)))
    table = found.frame()
    assert table["given"].dtype == bool
    assert (table["given"] == y[table["sample"]]).all()
    assert re.search(r"\n +2 +(True +False|False +True) ", str(found))
    net = torch.nn.Linear(3, 2)
    said = nm.measure(net, (X, give(y)), heldout=True).summary()
    assert re.search(r"most frequent mistake +(False taken for True|True taken for False): ", said)
    # Where the net has other classes, or names are given, these are not truth values.
    assert "False: " not in nm.measure(torch.nn.Linear(3, 3), (X, give(y))).summary()
    named = nm.label_errors((X, give(y)), class_names=["no", "yes"]).frame()
    assert (named["given"] == np.where(y, "yes", "no")[named["sample"]]).all()
