"""Answers that are nearly right: within a number of ordered classes, or in one group of classes."""

import pytest
import torch
from torch import nn

import netmargin as nm
from tests.words import words_of

NAMES = ["a", "b", "c", "d", "e"]
ANSWERS = [0, 1, 2, 3, 4, 0, 2, 4, 1, 3]
LABELS = torch.tensor([0, 1, 2, 3, 4, 1, 4, 0, 2, 3])  # off by 0 x 6, 1, 2, 4, 1
X = torch.eye(5)[ANSWERS] + 0.1
NET = nn.Linear(5, 5, bias=False)
NET.weight.data = torch.eye(5)


@pytest.mark.parametrize(
    ("options", "share"),
    [
        ({"within": 0}, 0.7 - 0.1),
        ({"within": 1}, 0.8),
        ({"within": 2}, 0.9),
        ({"within": 4}, 1.0),
        ({"groups": {"low": [0, 1], "high": [2, 4]}}, 0.8),
        ({"groups": {"low": ["a", "e"]}, "class_names": NAMES}, 0.7),
        ({"groups": {"ends": [0, 4]}, "within": 1}, 0.9),
        ({}, None),
    ],
)
def test_both_shares_are_reported(options, share):
    report = nm.measure(NET, (X, LABELS), batch_size=3, **options)
    assert report.accuracy == 0.6
    assert report.near_accuracy == (share if share is None else pytest.approx(share, abs=1e-15))
    said = f"right or nearly right {100 * (share or 0):.2f}% (measured)"
    assert (said in words_of(report.summary())) == (share is not None)


def test_a_tie_is_wrong_and_may_be_near():
    net = nn.Linear(5, 5, bias=False).double()
    net.weight.data.zero_()
    net.weight.data[0, 0] = 1e-100  # a parameter must not be 0
    report = nm.measure(net, (X.double() * 0, LABELS), within=1)
    # All scores are 0: the answer is the first class that is not the label.
    off = torch.where(LABELS == 0, 1, LABELS)
    assert (report.accuracy, report.near_accuracy) == (0, (off <= 1).double().mean().item())


def test_of_one_output_the_sign_is_the_answer():
    net = nn.Linear(5, 1, bias=False)
    for y in ([0, 1] * 5, [-1, 1] * 5):
        report = nm.measure(net, (X, y), groups={"both": [0, 1]})
        assert report.near_accuracy == 1
        assert nm.measure(net, (X, y), within=0).near_accuracy == report.accuracy


def test_compare_and_the_page_show_both_shares(tmp_path):
    found = nm.compare([NET, nn.Linear(5, 5)], (X, LABELS), (X, LABELS), within=1, progress=False)
    for data in ("training", "held-out"):
        assert found.frame()[data, "right or nearly right"].iloc[0] == 0.8
    assert "right or nearly right (measured) 0.8" in words_of(found.summary())
    page = nm.page(NET, (X, LABELS), out=tmp_path / "page.html", within=1)
    assert "Right on 6 of 10 samples. Right or nearly right on 80%." in page.path.read_text()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"within": -1}, "within must be"),
        ({"groups": [[0, 1]]}, "groups must be"),
        ({"groups": {"x": 0}}, r"a group of classes must be a list, such as \[0, 1\]; got 0"),
        ({"groups": {"x": ["a"]}}, "groups has the class 'a', which is unknown"),
        ({"groups": {"x": [0, 1], "y": [1]}}, "groups has the class 1, which is unknown, or in tw"),
        ({"groups": {"x": [0, 5]}}, "groups has the class 5, and the net 5 classes, from 0"),
    ],
)
def test_groups_that_name_no_class_are_refused(options, words):
    with pytest.raises(nm.ArgumentError, match=words):
        nm.measure(NET, (X, LABELS), **options)
