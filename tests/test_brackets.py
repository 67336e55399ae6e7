"""What a bracket says about how far a problem is solved, and promises that are kept or not made."""

import math

import pytest
import torch

import netmargin as nm
from netmargin.result import Bracket
from netmargin.twolayer import NormalizedNet, NormalizedReLU, early_margin

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("lower", "upper", "gap"),
    [
        (0.0, 0.0, 0.0), (2.0, 2.0, 0.0), (-2.0, -2.0, 0.0), (INF, INF, 0.0),
        (3.0, 4.0, 0.25), (0.0, 1e-9, 1.0), (-1.0, -0.5, 0.5), (-1.0, 0.0, 1.0), (-1.0, 1.0, 2.0), (-1.0, 4.0, 1.25),
        (-1e308, 1e308, 2.0), (1e-320, 2e-320, 0.5),
        (0.0, INF, INF), (1.0, INF, INF), (-INF, 1.0, INF), (-INF, INF, INF), (NAN, 1.0, INF), (1.0, NAN, INF),
    ],
)  # fmt: skip
def test_a_gap_is_0_only_where_both_ends_are_equal(lower, upper, gap):
    assert Bracket(lower, upper).gap == pytest.approx(gap, rel=1e-3)


class TwoFixed(torch.nn.Module):
    """Two features that are the inputs themselves."""

    def forward(self, x):
        return x


def moving_features():
    return NormalizedNet(NormalizedReLU(2, 50), 50), [[1.0, 0.5], [-0.3, 1.0], [0.2, -1.0]], [1, -1, 1]


def fixed_features():
    """Nearly all the weight is on the feature that does not separate."""
    net = NormalizedNet(TwoFixed(), 2)
    with torch.no_grad():
        for part in (net.a, net.b):
            part.copy_(torch.tensor([0.1, 3.0]))
    return net, [[1.0, 0.1], [-1.0, 0.5]], [1, -1]


@pytest.mark.parametrize("make", [moving_features, fixed_features])
@pytest.mark.parametrize(("time", "says"), [(2.0, False), (30.0, False), (100.0, False), (1e4, True), (1e6, True)])
def test_an_early_margin_is_promised_and_kept_or_not_promised(make, time, says):
    """At early times the formula of the proof gives negative numbers, which are above the truth."""
    net, X, y = make()
    data = (torch.tensor(X, dtype=torch.float64), torch.tensor(y))
    promised = early_margin(net, data, time=time).guarantee
    found = nm.gradient_flow(net, data, time=time / len(X)).rows[-1]["partial_normalized_margin"]
    assert (promised is not None) == says
    assert promised is None or 0 < promised <= found


def test_nothing_is_promised_once_the_features_have_drifted():
    net, X, y = moving_features()
    turned = {f"inner.{name}": -v.detach() for name, v in net.inner.named_parameters()}
    assert early_margin(net, (X, y), time=3e5).guarantee > 0
    assert early_margin(net, (X, y), time=3e5, states=[turned]).guarantee is None
