"""What a few samples show of a net: samples that see each other, weights that it does not hold."""

import contextlib
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import netmargin as nm

X = torch.randn(24, 6, generator=torch.Generator().manual_seed(3))


class Own(nn.Module):
    """A net of two layers around a function of hidden values (N, 8)."""

    def __init__(self, forward, *parts: nn.Module):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.last = nn.Linear(6, 8, bias=False), nn.Linear(8, 3, bias=False)
        self.parts, self.act = nn.ModuleList(parts), forward

    def forward(self, x):
        return self.last(self.act(self, F.relu(self.first(x))))


def on_scores(function) -> nn.Module:
    """A net whose scores pass through a function."""

    class Net(Own):
        def forward(self, x):
            return function(super().forward(x))

    return Net(lambda _, h: h)


def attention(**options) -> nn.Module:
    return Own(lambda net, h: net.parts[0](h[:, None], h[:, None], h[:, None])[0][:, 0],
               nn.MultiheadAttention(8, 2, **options))  # fmt: skip


def on_inputs(function) -> nn.Module:
    """A net whose inputs pass through a function."""
    net = Own(lambda _, h: h)
    net.register_forward_pre_hook(lambda _, inputs: (function(inputs[0]),))
    return net


def part(module: nn.Module, shape=(-1, 8)) -> nn.Module:
    """A net with a module in the middle, which takes values of a shape."""

    def act(net, h):
        found = net.parts[0](h.reshape(shape))
        return (found[0] if isinstance(found, tuple) else found).reshape(len(h), 8)

    return Own(act, module)


def half_attention(net, h):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return net.parts[0](h[:, None], h[:, None], h[:, None])[0][:, 0].to(h.dtype)


SEEING = {
    "attention": attention,
    "attention without an axis": lambda: Own(
        lambda net, h: net.parts[0](h, h, h)[0], nn.MultiheadAttention(8, 2)
    ),
    "attention in bfloat16": lambda: Own(half_attention, nn.MultiheadAttention(8, 2)),
    "transformer layer": lambda: part(nn.TransformerEncoderLayer(8, 2, 16), (-1, 1, 8)),
    "recurrent over samples": lambda: part(nn.GRU(8, 8), (-1, 1, 8)),
    "BatchNorm without statistics": lambda: part(nn.BatchNorm1d(8, track_running_stats=False)),
    "BatchNorm over pixels": lambda: part(
        nn.BatchNorm2d(2, track_running_stats=False), (-1, 2, 2, 2)
    ),
    "F.batch_norm": lambda: Own(lambda _, h: F.batch_norm(h, None, None, training=True)),
    "log_softmax(0)": lambda: on_scores(lambda z: z.log_softmax(0)),
    "softmax(0)": lambda: on_scores(lambda z: z.softmax(0)),
    "less the mean": lambda: Own(lambda _, h: h - h.mean(0)),
    "over the deviation": lambda: Own(lambda _, h: h / h.std(0)),
    "norm of the batch": lambda: Own(lambda _, h: F.normalize(h, dim=0)),
    "over the largest": lambda: on_inputs(lambda x: x / x.abs().max()),
    "if": lambda: on_inputs(lambda x: x if x.sum() > 0 else -x),
    "ranks": lambda: Own(lambda _, h: h + h.argsort(0).argsort(0)),
    "the sample before": lambda: Own(lambda _, h: h + h.roll(1, 0)),
    "relative to the first": lambda: Own(lambda _, h: h - h[:1]),
    "the place in the batch": lambda: Own(lambda _, h: h + torch.arange(len(h))[:, None]),
    "the size of the batch": lambda: Own(lambda _, h: h / len(h)),
    "a little": lambda: Own(lambda _, h: h + 1e-4 * h.mean(0)),
    "dynamic quantization": lambda: Own(
        lambda _, h: (h / h.abs().max() * 127).round() * h.abs().max() / 127
    ),
}


def casts(dtype):
    return Own(lambda _, h: (h.to(dtype) @ h.new_ones(8, 8, dtype=dtype)).to(h.dtype))


def in_autocast(net, h):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return net.parts[0](h).to(h.dtype)


HONEST = {
    "attention": lambda: attention(batch_first=True),
    "transformer layer": lambda: part(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (-1, 1, 8)
    ),
    "recurrent": lambda: part(nn.LSTM(2, 2, batch_first=True), (-1, 4, 2)),
    "BatchNorm": lambda: part(nn.BatchNorm1d(8)),
    "BatchNorm of tiny variance": lambda: Own(
        lambda _, h: F.batch_norm(h + 1e5, h.new_full((8,), 1e5), h.new_full((8,), 1e-9))
    ),
    "GroupNorm": lambda: part(nn.GroupNorm(2, 8)),
    "LayerNorm": lambda: part(nn.LayerNorm(8)),
    "InstanceNorm": lambda: part(nn.InstanceNorm1d(2), (-1, 2, 4)),
    "dropout": lambda: part(nn.Dropout(0.5)),
    "convolution": lambda: part(nn.Conv2d(2, 2, 3, padding=1), (-1, 2, 2, 2)),
    "softmax": lambda: Own(lambda _, h: h.softmax(1)),
    "if that never holds": lambda: Own(lambda _, h: -h if h.isnan().any() else h),
    "over the largest of each": lambda: on_inputs(lambda x: x / x.abs().amax(1, keepdim=True)),
    "bfloat16": lambda: casts(torch.bfloat16),
    "float16": lambda: casts(torch.float16),
    "autocast": lambda: Own(in_autocast, nn.Linear(8, 8)),
    "autocast with cancellation": lambda: Own(
        lambda net, h: in_autocast(net, h + 100) - in_autocast(net, h + 100.5), nn.Linear(8, 8)
    ),
    "cancellation": lambda: Own(lambda _, h: (h + 3e4) - 3e4),
    "squeeze": lambda: on_scores(torch.squeeze),
}


def labelled(net: nn.Module, samples: Tensor = X) -> tuple[Tensor, Tensor]:
    """Samples with what the net says of them as labels."""
    net.eval()
    with torch.no_grad():
        return samples, net(samples).argmax(1)


def heads(call, net: nn.Module, data, **options) -> tuple[str, str]:
    """The head of a report, and what was warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = call(net, data, **options)
    head = " ".join(report.summary().split()).partition("Margins of 24 samples")[0]
    return head, " ".join(str(warning.message) for warning in told)


REFUSING = {
    "certify": lambda net, data: nm.certify(net, data, progress=False),
    "robustness": lambda net, data: nm.robustness(net, data, attacks=(), progress=False),
    "tangent_svm": nm.tangent_svm,
    "empirical_ntk": lambda net, data: nm.kernels.empirical_ntk(net, data[0]),
}


@pytest.mark.parametrize("batch", [24, 5, 1])
@pytest.mark.parametrize("name", SEEING)
def test_samples_that_see_each_other_are_told_of(name, batch):
    net = SEEING[name]()
    data = labelled(net)
    with contextlib.suppress(nm.ModelError):
        told = heads(nm.measure, net, data, batch_size=batch)
        assert ["Samples see each other" in said for said in told] == [True, True], told


@pytest.mark.parametrize("call", REFUSING)
@pytest.mark.parametrize("name", SEEING)
def test_nothing_is_proved_of_samples_that_see_each_other(name, call):
    net = SEEING[name]()
    with pytest.raises(nm.ModelError, match="Samples see each other"):
        REFUSING[call](net, labelled(net))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", HONEST)
def test_samples_that_do_not_are_not(name, dtype):
    net = HONEST[name]().to(dtype)
    told = heads(nm.measure, net, labelled(net, X.to(dtype)))
    assert not [word for word in ("see each other", "none of its par") if word in " ".join(told)]
