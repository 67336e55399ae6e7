"""Nets that overwrite their inputs are called on copies: the same answers, bit for bit."""

import copy
import functools
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.flow import gradient_descent


class Halving(nn.Module):
    """A net on halved inputs, which it halves in place or not."""

    def __init__(self, in_place: bool, outputs: int = 3):
        super().__init__()
        self.in_place = in_place
        self.inner = nm.models.mlp([4, 8, outputs], bias="none").double()

    def forward(self, x):
        return self.inner(x.mul_(0.5) if self.in_place else x * 0.5)


@functools.cache
def train(in_place: bool) -> Halving:
    torch.manual_seed(3)
    net = Halving(in_place)
    nm.train(
        net, draw(), until=nm.Epochs(30), lr=nm.ConstantLR(0.3), batch_size=None, progress=False
    )
    assert nm.measure(net, draw()).q_min > 0
    return net


def make(in_place: bool) -> Halving:
    return copy.deepcopy(train(in_place))


def draw() -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.arange(12) % 3
    X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X[torch.arange(12), y] += 4
    return X, y


def run_train(net, data):
    nm.train(net, data, until=nm.Epochs(2), batch_size=5, progress=False)
    return [p.detach() for p in net.parameters()]


def run_watch(net, data):
    watch = nm.Watch(net, data)
    return [watch.report.q, watch.step()["q_min"]]


def run_robustness(net, data):
    found = nm.robustness(net, data[:1], effort="quick", progress=False)
    return [found.lower, found.upper]


def run_path(net, data):
    torch.manual_seed(3)
    path = nm.regularization_path(
        lambda: Halving(net.in_place), data, lambdas=[1e-3], starts=1, iterations=5, progress=False
    )
    return [path.rows[-1]["normalized_margin"]]


CALLS = {
    "measure": lambda net, data: [nm.measure(net, data).q, nm.measure(net, data).q],
    "input margins": lambda net, data: [nm.input_margins(net, data, progress=False).distances],
    "analyse": lambda net, data: [nm.analyse(net, data).order],
    "certify": lambda net, data: [nm.certify(net, data).epsilon],
    "tangent_svm": lambda net, data: [nm.tangent_svm(net, data).cosine],
    "robustness": run_robustness,
    "compare": lambda net, data: [str(nm.compare([net, net], data).reports[0].q)],
    "gradient_flow": lambda net, data: [
        nm.gradient_flow(net, data, time=1.0, progress=False).rows[-1]["q_min"]
    ],
    "proximal": lambda net, data: [
        nm.gradient_flow(net, data, time=1.0, method="proximal", progress=False).rows[-1]["q_min"]
    ],
    "gradient_descent": lambda net, data: [
        gradient_descent(net, data, steps=3, rate=0.1).rows[-1]["q_min"]
    ],
    "maximize_margin": lambda net, data: [
        nm.maximize_margin(
            net, data, temperatures=(0.1,), iterations=5, progress=False
        ).report.normalized_margin
    ],
    "regularization_path": run_path,
    "train": run_train,
    "Watch": run_watch,
}


@pytest.mark.slow_cases(
    "proximal",
    "robustness",
    "gradient_flow",
    "maximize_margin",
    "regularization_path",
    "compare",
    "train",
    "tangent_svm",
)
@pytest.mark.parametrize("call", CALLS)
def test_a_net_that_overwrites_its_inputs_is_as_good_as_one_that_does_not(call):
    def read(in_place):
        X, y = draw()
        data = [(X[:4], y[:4]), (X[4:], y[4:])]  # of one dtype: what is read are views of X
        found = CALLS[call](make(in_place), X if call == "analyse" else data)
        assert torch.equal(X, draw()[0])
        return found

    for got, wanted in zip(read(True), read(False), strict=True):
        same = got == wanted
        assert same if isinstance(same, bool) else same.all(), (got, wanted)


def test_an_overwriting_net_has_the_same_kernel():
    X, _ = draw()
    ours, theirs = (nm.kernels.empirical_ntk(make(in_place), X) for in_place in (True, False))
    assert (ours == theirs).all()
    assert torch.equal(X, draw()[0])


def test_nobody_else_calls_a_net():
    """A call of a net, as `net(x)` or `self._twin(x)`, outside of the one place for it."""
    calls = re.compile(r"(?<![\w.>])(self\._?)?(model|net|twin)\((self\.)?_?(x|X|inputs|samples)\b")
    found = [
        f"{path.name}: {line.strip()}"
        for path in Path(nm.__file__).parent.rglob("*.py")
        if "papers" not in path.parts
        for line in path.read_text().splitlines()
        if calls.search(line) and not re.search(r"\.\.\. |>>>|[\"']|^    [A-Z]", line)
    ]
    assert not found
