"""Inputs scaled otherwise than those that BatchNorm was trained on are told, and no others."""

import warnings

import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.nets.arrays import Arrays
from netmargin.nets.stored_scale import doubt_scale as doubt_of

X, y = nm.datasets.digits(limit=400)
X = (X - X.mean()) / X.std()
SAID = "scaled otherwise than in training: what enters BatchNorm '1' has"


def doubt_scale(net, inputs):
    """What is said of inputs that come as a loader's first batch, and all at once."""
    said = {doubt_of(net, None, inputs), doubt_of(net, Arrays(inputs, y[: len(inputs)]), None)}
    assert len({bool(sentence) for sentence in said}) == 1
    return min(said)


def trained(steps=30, **options):
    """A net whose second layer has stored statistics in so many steps."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 16), nn.BatchNorm1d(16, **options), nn.ReLU())
    net.append(nn.Linear(16, 10))
    for step in range(steps):
        net(X[torch.arange(100) + 100 * (step % 4)])
    return net


@pytest.mark.parametrize(
    ("scale", "ratio"), [(1.0, ""), (1.9, ""), (0.55, ""), (0.3, "0.09"), (100.0, "1e+04")]
)
def test_another_scale_is_told_with_its_factor(scale, ratio):
    said = doubt_scale(trained().eval(), scale * X)
    assert bool(said) == bool(ratio)
    if said:
        assert SAID in said
        told = float(said.split(" has ")[1].split()[0])
        assert told == pytest.approx(scale**2, rel=0.2)  # of 64 samples, all told: 400


def test_every_class_alone_has_the_scale_of_all():
    net = trained()
    net.eval()
    assert not any(doubt_scale(net, X[y == c]) for c in range(10))
    apart = torch.cat([X[:200] - 9, X[:200] + 9])  # of classes in a row the first one varies less
    net.train()
    for step in range(40):
        net(apart[step % 4 :: 4])
    net.eval()
    assert doubt_of(net, None, apart[:64])
    assert not doubt_of(net, Arrays(apart, y), apart[:64])


def test_statistics_that_no_training_made_tell_nothing():
    assert not doubt_scale(trained(0).eval(), 100 * X)
    assert not doubt_scale(trained(10).eval(), 100 * X)  # 0.35 of the first ones are left
    assert doubt_scale(trained(10, momentum=None).eval(), 100 * X)  # the mean of ten batches
    assert not doubt_scale(trained(track_running_stats=False).eval(), 100 * X)
    assert not doubt_scale(trained().train(), 100 * X)  # it takes those of the batch
    assert not doubt_scale(trained().eval(), 100 * X[:15])
    assert not doubt_scale(nn.Linear(64, 10), 100 * X)


def test_the_net_is_as_it_was():
    net = trained().eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    assert doubt_scale(net, 100 * X)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert not any(part._forward_pre_hooks for part in net.modules())


def test_all_that_measures_warns_of_it_and_reports_it():
    net, other = trained(), (0.2 * X, y)
    for measured in (
        lambda: nm.measure(net, other),
        lambda: nm.input_margins(net, other, progress=False),
        lambda: nm.compare({"a": net, "b": trained(31)}, heldout=other, progress=False),
        lambda: nm.robustness(net, (other[0][:20], y[:20]), attacks=False, progress=False),
    ):
        with pytest.warns(UserWarning, match="scaled otherwise than in training"):
            found = measured()
        assert SAID in " ".join(found.summary().split())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "otherwise" not in nm.measure(net, (X, y)).summary()
