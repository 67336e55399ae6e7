"""Classes whose score is minus infinity are not offered; a label of one is an error in words."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm

X = torch.randn(30, 5, generator=torch.Generator().manual_seed(2))
OFF = torch.tensor([False, False, False, True])


class Masked(nn.Module):
    """A net of four classes, whose last one a function takes away."""

    def __init__(self, mask):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(
            nn.Linear(5, 8, bias=False), nn.ReLU(), nn.Linear(8, 4, bias=False)
        )
        self.mask = mask
        self.register_buffer("added", torch.where(OFF, -math.inf, 0.0))

    def forward(self, x):
        return self.mask(self, self.net(x), x)


def by_index(net, z, x):
    z = z.clone()
    z[:, 3] = -math.inf
    return z


def by_sample(net, z, x):
    """Of samples with a positive first entry the third class is missing, too."""
    return z.masked_fill(
        torch.stack([x[:, 0] < -99, x[:, 0] < -99, x[:, 0] > 0, x[:, 0] < 99], 1), -math.inf
    )


CUT = Masked(lambda net, z, x: z[:, :3])
Y = CUT(X).argmax(1)
FORMS = {
    "filled": lambda net, z, x: z.masked_fill(OFF, -math.inf),
    "added": lambda net, z, x: z + net.added,
    "where": lambda net, z, x: torch.where(OFF, -math.inf, z),
    "joined": lambda net, z, x: torch.cat([z[:, :3], torch.full_like(z[:, :1], -math.inf)], 1),
    "by index": by_index,
}
CALLS = {
    "measure": lambda net: nm.measure(net, (X, Y)).q,
    "normalized": lambda net: nm.measure(net, (X, Y)).margins["layers"].value,
    "input_margins": lambda net: nm.input_margins(net, (X, Y), progress=False).distances,
    "analyse": lambda net: list(nm.analyse(net, X).groups.values()),
    "certify": lambda net: nm.certify(net, (X, Y)).relative_epsilon,
    "completeness": lambda net: str(nm.certify(net, (X, Y)).completeness),
    "tangent_svm": lambda net: nm.tangent_svm(net, (X, Y)).margin,
    "robustness": lambda net: nm.robustness(net, (X[:3], Y[:3]), progress=False).upper.round(3),
    "compare": lambda net: nm.compare([CUT, net], (X, Y), progress=False).reports[1].q,
    "train": lambda net: nm.train(net, (X, Y), until=nm.Epochs(1), progress=False).rows[-1][
        "q_min"
    ],
    "Watch": lambda net: nm.Watch(net, (X, Y)).report.q,
    "RelativeLoss": lambda net: nm.RelativeLoss()(net(X), Y).item(),
}


@pytest.mark.slow_cases("certify", "completeness", "compare", "tangent_svm")
@pytest.mark.nightly_cases("robustness", "train")
@pytest.mark.parametrize("call", CALLS)
def test_numbers_are_those_of_the_net_without_the_class(call):
    right = CALLS[call](Masked(CUT.mask))
    for name, mask in FORMS.items():
        found = CALLS[call](Masked(mask))
        assert np.array_equal(np.asarray(found), np.asarray(right)), name


def test_a_class_may_be_absent_for_some_samples():
    net = Masked(by_sample)
    z, y = net(X).double(), net(X).argmax(1)
    others = z.scatter(1, y[:, None], -math.inf)
    right = (z.gather(1, y[:, None]) - others.amax(1, keepdim=True))[:, 0].detach()
    assert torch.equal(nm.measure(net, (X, y)).q, right)
    absent = (z == -math.inf).sum()
    assert 30 < absent < 60
    assert nm.certify(net, (X, y)).completeness is nm.Completeness.ALL


@pytest.mark.parametrize("call", ["measure", "input_margins", "Watch", "RelativeLoss", "certify"])
def test_a_label_of_an_absent_class_is_an_error_in_words(call):
    net, y = Masked(FORMS["filled"]), Y.clone()
    y[4] = 3
    calls = {
        "measure": lambda: nm.measure(net, (X, y)),
        "input_margins": lambda: nm.input_margins(net, (X, y), progress=False),
        "Watch": lambda: nm.Watch(net, (X, y)),
        "RelativeLoss": lambda: nm.RelativeLoss()(net(X), y),
        "certify": lambda: nm.certify(net, (X, y)),
    }
    with pytest.raises(
        nm.DataError, match=r"label of sample 4 is 3, a class that the model does n"
    ):
        calls[call]()


def test_one_class_alone_has_no_margin_and_nan_is_none():
    alone = torch.tensor([False, True, True, True])
    with pytest.raises(nm.DataError, match="offers sample 0 one class alone, and no rival"):
        nm.measure(Masked(lambda net, z, x: z.masked_fill(alone, -math.inf)), (X, 0 * Y))
    for wrong in (math.nan, math.inf):
        with pytest.raises(nm.NetmarginError, match="outputs .* NaN"):
            nm.measure(Masked(lambda net, z, x, wrong=wrong: z.masked_fill(OFF, wrong)), (X, Y))
