"""What a few samples show of a net: samples that see each other, weights that it does not hold."""

import contextlib
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import netmargin as nm
from netmargin.nets.forward_faults import find_faults
from netmargin.nets.input_slopes import doubt_slopes

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
    "robustness": lambda net, data: nm.robustness(net, data, attacks=False, progress=False),
    "tangent_svm": nm.tangent_svm,
    "empirical_ntk": lambda net, data: nm.kernels.empirical_ntk(net, data[0]),
}


@pytest.mark.parametrize("batch", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 24))])
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


@pytest.mark.parametrize("call", REFUSING)
def test_outputs_that_are_nan_are_no_noise(call):
    net = on_scores(lambda z: torch.cat([z[:, 1:], (-z[:, :1].square() - 1).sqrt()], 1))
    with pytest.raises(nm.NonFiniteOutputError, match="are NaN on finite inputs"):
        REFUSING[call](net, (X, torch.arange(len(X)) % 2))


@pytest.mark.parametrize("seen", [False, True])
def test_features_of_samples_that_see_each_other_are_not_used(seen):
    norm = nn.BatchNorm2d(2, track_running_stats=not seen)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), norm, nn.Flatten(), nn.Linear(32, 3))
    data = torch.randn(30, 1, 6, 6), torch.arange(30) % 3
    if not seen:
        assert torch.isfinite(nm.label_errors(data, model=net).scores).all()
        return
    with pytest.raises(nm.ModelError, match="Samples see each other"):
        nm.label_errors(data, model=net)


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", HONEST)
def test_samples_that_do_not_are_not(name, dtype):
    net = HONEST[name]().to(dtype)
    told = heads(nm.measure, net, labelled(net, X.to(dtype)))
    assert not [word for word in ("see each other", "none of its par") if word in " ".join(told)]


# -- gradients in the inputs that are masked, or none


class Through(torch.autograd.Function):
    """Rounds, and passes gradients on as if it did not."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, slope):
        return slope


def of(function) -> nn.Module:
    """A net of two layers on what a function makes of its inputs."""

    class Net(Own):
        def forward(self, x):
            return super().forward(function(x))

    return Net(lambda _, h: h)


def after(function) -> nn.Module:
    """A net with a function between its layers."""
    return Own(lambda _, h: function(h))


MASKED = {
    "rounded": lambda: of(lambda x: (x * 8).round() / 8),
    "floor": lambda: of(lambda x: (x * 4).floor()),
    "sign": lambda: of(torch.sign),
    "clamped": lambda: of(lambda x: (1e3 * x).clamp(-1, 1)),
    "straight through": lambda: of(Through.apply),
    "straight through by detach": lambda: of(lambda x: x + (x.round() - x).detach()),
    "partly detached": lambda: of(lambda x: torch.cat([x[:, :4].detach(), x[:, 4:]], 1)),
    "a detached branch": lambda: after(lambda h: h + h.square().detach()),
    "a gradient turned round": lambda: of(lambda x: 2 * x.detach() - x),
    "fake quantization": lambda: of(
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.05, 0, -4, 4)
    ),
}
WITHOUT = {
    "detached": lambda: of(Tensor.detach),
    "detached within": lambda: after(Tensor.detach),
    "no_grad": lambda: of(torch.no_grad()(lambda x: 2 * x)),
    "inference_mode": lambda: of(torch.inference_mode()(lambda x: 2 * x)),
    "heaviside": lambda: after(lambda h: torch.heaviside(h - 0.3, h.new_zeros(()))),
    "whole numbers": lambda: of(lambda x: (8 * x).long().to(x.dtype)),
    "comparisons": lambda: of(lambda x: (x > 0).to(x.dtype)),
    "numpy": lambda: of(lambda x: torch.from_numpy(np.tanh(x.detach().numpy()))),
}
SMOOTH = {
    "tanh": lambda: after(torch.tanh),
    "leaky": lambda: after(F.leaky_relu),
    "softplus, steep": lambda: after(lambda h: F.softplus(100 * h)),
    "clamped where it matters little": lambda: of(lambda x: x.clamp(-2, 2)),
    "casts": lambda: of(lambda x: x.float().double().to(x.dtype)),
    "far inputs": lambda: of(lambda x: (x + 1e6) - 1e6),
    "checkpointed": lambda: of(lambda x: checkpoint(torch.sin, x, use_reentrant=False)),
    "unequal features": lambda: of(lambda x: x * x.new_tensor([1e5, 1, 1e-5, 1, 1, 1])),
    "sort": lambda: after(lambda h: h.sort(1).values),
    "where": lambda: of(lambda x: torch.where(x > 0, x, -x)),
}
DISTANCES = {
    "input_margins": lambda net, data: nm.input_margins(net, data, progress=False),
    "measure": lambda net, data: nm.measure(net, data, input_margins=True),
    "robustness": lambda net, data: nm.robustness(
        net, (data[0][:3], data[1][:3]), progress=False, effort="quick"
    ),
}


def head_of(call, net, data) -> str:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        report = call(net, data)
    said = [str(warning.message) for warning in told if "gradient" in str(warning.message)]
    assert all(text in report.warning for text in said)
    assert report.warning.split()[:5] == report.summary().split()[1:6] or not report.warning
    return " ".join(said)


@pytest.mark.slow_cases("robustness-floor")
@pytest.mark.nightly_cases(*(f"robustness-{name}" for name in MASKED if name != "floor"))
@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("call", DISTANCES)
def test_masked_gradients_are_told_of(name, call):
    net = MASKED[name]()
    said = head_of(DISTANCES[call], net, labelled(net))
    assert "The gradient of the scores in the inputs is 0, or not their slope" in said


@pytest.mark.parametrize("call", DISTANCES)
@pytest.mark.parametrize("name", WITHOUT)
def test_inputs_without_gradients_are_refused_in_words(name, call):
    net = WITHOUT[name]()
    with pytest.raises(nm.ModelError, match="carry no gradient in its inputs"):
        DISTANCES[call](net, labelled(net))


@pytest.mark.parametrize(
    "net",
    [
        of(lambda x: x.clamp(0, 1)),
        of(lambda x: x.abs().sqrt()),
        of(lambda x: F.max_pool1d(x, 2, padding=1).repeat(1, 2)[:, :6]),
        nn.Sequential(nn.ReLU(), nn.Linear(6, 3)),
    ],
)
def test_gradients_on_kinks_are_not(net):
    """Most pixels of images are exactly 0, where clamps and maxima have kinks."""
    blank = X.clamp(min=0, max=1) * (X > 0.8)
    assert (blank == 0).float().mean() > 0.7
    assert not doubt_slopes(net, blank)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_that_are_slopes_are_not(name):
    net = SMOOTH[name]()
    assert not head_of(DISTANCES["input_margins"], net, labelled(net))


def test_backgrounds_of_one_colour_mask_no_gradient():
    """Their pixels are equal, and so lie on the kinks of max-pools."""
    torch.manual_seed(0)
    X = torch.zeros(6, 1, 12, 12)
    X[:, :, 3:7, 3:7] = torch.rand(6, 1, 4, 4)
    X += torch.rand(6, 1, 1, 1)
    net = nn.Sequential(
        *(nn.Conv2d(1, 4, 3), nn.PReLU(4), nn.MaxPool2d(2)), nn.Flatten(), nn.Linear(100, 2)
    )
    assert not head_of(DISTANCES["input_margins"], net, (X, torch.arange(6) % 2))


def test_each_infinite_distance_is_counted():
    """Three of five samples lie where the net is flat."""
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.ReLU(), nn.Linear(1, 2))
    net[0].weight.data.fill_(1.0)
    data = torch.tensor([[1.0], [-1.0], [2.0], [-3.0], [-2.0]]), torch.tensor([0, 0, 1, 1, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert nm.input_margins(net, data, progress=False).warning.endswith(
            "3 of 5 distances are infinite: the gradient of the scores is 0 there, as rounding,"
            " sign, clamping and dead units make it."
        )


@pytest.mark.slow_cases("0", "2")
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_hooks_that_change_gradients_change_no_certificate(layer):
    """Slopes a hundredth of the true ones once proved radii a hundred times too large."""
    found = []
    for change in (1.0, 0.01):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        net[layer].register_full_backward_hook(
            lambda _, slopes, __, change=change: tuple(change * slope for slope in slopes)
        )
        X, y = labelled(net)
        report = nm.robustness(net, (X[:2], y[:2]), effort="quick", progress=False)
        assert (report.lower > 0).all()
        assert (report.lower <= report.upper).all()
        found.append((*report.lower, *nm.kernels.empirical_ntk(net, X[:3]).ravel()))
    assert found[0] == found[1]


# -- weights that a model does not hold


class Held(nn.Module):
    """Three layers without biases, of which a holder keeps the first two."""

    def __init__(self, hold):
        super().__init__()
        torch.manual_seed(1)
        layers = nn.Linear(6, 8, bias=False), nn.Linear(8, 8, bias=False)
        self.end = nn.Linear(8, 3, bias=False)
        self.hidden = hold(self, layers)

    def forward(self, x):
        for layer in self.hidden():
            x = F.relu(layer(x))
        return self.end(x)


def kept(**options):
    """A holder of layers in an attribute of a kind."""

    def hold(net, layers):
        (kind,) = options.values()
        net.layers = kind(layers)
        return lambda: net.layers.values() if hasattr(net.layers, "values") else net.layers

    return hold


def frozen(net, layers):
    net.layers = [layer.requires_grad_(False) for layer in layers]
    return lambda: net.layers


def bare(net, layers):
    """Tensors that require gradients, and are no parameters."""
    net.weights = [layer.weight.detach().clone().requires_grad_() for layer in layers]
    return lambda: [lambda x, w=w: x @ w.to(x.dtype).T for w in net.weights]


ELSEWHERE = {
    "list": kept(kind=list),
    "tuple": kept(kind=tuple),
    "dict": kept(kind=lambda layers: dict(enumerate(layers))),
    "dict of lists": lambda net, layers: lambda store={"a": list(layers)}: store["a"],
    "closure": lambda net, layers: lambda: layers,
    "frozen": frozen,
    "tensors": bare,
}
OWN = {
    "ModuleList": kept(kind=nn.ModuleList),
    "ModuleDict": kept(kind=lambda layers: nn.ModuleDict(zip("ab", layers, strict=True))),
    "Sequential": kept(kind=lambda layers: nn.Sequential(*layers)),
    "a list beside": lambda net, layers: (
        setattr(net, "own", nn.ModuleList(layers)), setattr(net, "also", list(layers)),
        lambda: net.also,
    )[2],
    "weight_norm": lambda net, layers: kept(kind=nn.ModuleList)(
        net, [nn.utils.parametrizations.weight_norm(layer) for layer in layers]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_weights_that_a_model_does_not_hold_are_told_of(name):
    net = Held(ELSEWHERE[name])
    data = labelled(net)
    assert all(
        "weights that are none of its parameters (2, the f" in s
        for s in heads(nm.measure, net, data)
    )
    assert "none of its parameters" in nm.analyse(net, X).warning
    assert (
        nm.analyse(net, X)
        .summary()
        .startswith("WARNING: The model, or a copy of it, computes with weights")
    )
    for call in ("certify", "tangent_svm", "empirical_ntk"):
        with pytest.raises(nm.ModelError, match="none of its parameters"):
            REFUSING[call](net, data)
    with pytest.warns(UserWarning, match="none of its parameters"):
        nm.train(net, data, until=nm.Epochs(1), progress=False)
    with pytest.warns(UserWarning, match="none of its parameters"):
        watch = nm.Watch(net, data)
    assert "none of its parameters" in watch.report.warning


@pytest.mark.parametrize("name", OWN)
def test_weights_that_it_does_hold_are_not(name):
    net = Held(OWN[name])
    assert heads(nm.measure, net, labelled(net)) == ("", "")
    assert not nm.analyse(net, X).warning


def test_rounding_of_scores_that_cancel_is_no_company():
    """Sums of one sample and of many round differently, on some machines."""

    net = OtherOrder(3, 1, bias=False).double()
    net.weight.data = torch.tensor([[1.0, 1.0, -1.0]]).double()
    X = torch.tensor([[0.25, 0.5, 0.75], [0.125, 0.25, 0.375]]).double()
    assert find_faults(net, X) == ""
    assert "Samples see each other" in find_faults(OtherSize(3, 1).double(), X)


class OtherOrder(nn.Linear):
    def forward(self, x):
        return super().forward(x) + (1.1e-16 if len(x) == 1 else 0.0)


class OtherSize(nn.Linear):
    def forward(self, x):
        return super().forward(x) * len(x)


def test_what_is_seen_twice_within_one_call_is_warned_of_once(tmp_path):
    net = nn.Sequential(nn.Linear(3, 2), nn.Softmax(1))
    data = torch.randn(40, 3), torch.arange(40) % 2
    heldout = torch.randn(30, 3), torch.arange(30) % 2
    calls = {
        "page": lambda: nm.page(net, data, heldout, out=tmp_path / "page.html"),
        "flow": lambda: nm.gradient_flow(net, data, time=0.1, estimate_error=True, progress=False),
    }
    for call in calls.values():
        for _ in range(2):  # another call says it again
            with pytest.warns(UserWarning, match="These scores are probabilities") as heard:
                call()
            assert [warning.filename for warning in heard] == [__file__]
