"""Nets as people bring them, in brought_calls.py given to ten public functions."""

import collections
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune, weight_norm as old_weight_norm
from torch.utils.checkpoint import checkpoint

N, D, C = 24, 5, 3


@dataclass(frozen=True)
class Brought:
    """A net as somebody brings it.

    make : builds the net; called anew for each cell, as some functions change nets.
    scores : scores in float64, from a float64 copy of the net and inputs, without netmargin; None
        where the net has none that a sample owns, so that every function must say so.
    draw : inputs.
    refuses : functions that must refuse, or say so, where their number is not right.
    plain : builds the net that the judge fills with the weights.
    tolerance : of scores; more than rounding of float32 where nets compute in less.
    """

    make: Callable[[], nn.Module]
    scores: Callable[[nn.Module, Tensor], Tensor] | None
    draw: Callable[[], Tensor]
    refuses: tuple[str, ...]
    plain: Callable[[], nn.Module]
    tolerance: float


NETS: dict[str, Brought] = {}


def call_net(net: nn.Module, X: Tensor) -> Tensor:
    """What most nets return: scores."""
    return net(X)


def bring(
    name: str,
    make: Callable[[], nn.Module],
    *,
    scores: Callable[[nn.Module, Tensor], Tensor] | None = call_net,
    draw: Callable[[], Tensor] = lambda: torch.randn(N, D),
    refuses: tuple[str, ...] = (),
    plain: Callable[[], nn.Module] | None = None,
    tolerance: float = 2e-5,
) -> None:
    """Enter a net into the table."""
    NETS[name] = Brought(make, scores, draw, refuses, plain or make, tolerance)


def mlp(outputs: int = C, inputs: int = D) -> nn.Sequential:
    """Two layers without a bias at the end."""
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs, bias=False))


def last(inputs: int = 16) -> nn.Linear:
    """A last layer."""
    return nn.Linear(inputs, C, bias=False)


class Around(nn.Module):
    """A small net inside a forward pass of one's own."""

    def __init__(self, forward: Callable[[nn.Module, Tensor], Any], net: nn.Module | None = None):
        super().__init__()
        self.net = mlp() if net is None else net
        self.written = forward

    def forward(self, x):
        """Whatever its owner wrote."""
        return self.written(self.net, x)


def around(name: str, forward: Callable[[nn.Module, Tensor], Any], **options: Any) -> None:
    """Enter a forward pass around the small net; its scores are those of the net inside."""
    options.setdefault("scores", lambda net, X: net.net(X))
    bring(name, lambda: Around(forward), **options)


def images() -> Tensor:
    """Small images of one channel."""
    return torch.randn(N, 1, 6, 6)


def cnn() -> nn.Sequential:
    """A convolution and two dense layers."""
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, C, bias=False))


# What everybody has.
bring("dense, no later bias", mlp)
bring("dense with biases", lambda: nn.Sequential(nn.Linear(D, 16), nn.ReLU(), nn.Linear(16, C)))
bring("convolutions", cnn, draw=images)
bring("channels last", lambda: cnn().to(memory_format=torch.channels_last), draw=images)
bring("one output", lambda: mlp(1))
bring("scores of shape (N,)", lambda: nn.Sequential(mlp(1), nn.Flatten(0)))
bring("float64", lambda: mlp().double())
bring("half precision", lambda: mlp().to(torch.float16), tolerance=3e-3)
bring("bfloat16", lambda: mlp().to(torch.bfloat16), tolerance=3e-2)
bring("in training mode with dropout", lambda: nn.Sequential(mlp(16), nn.Dropout(), last()))
bring("BatchNorm", lambda: nn.Sequential(nn.Linear(D, 16), nn.BatchNorm1d(16), nn.ReLU(), last()))
bring("LayerNorm", lambda: nn.Sequential(nn.Linear(D, 16), nn.LayerNorm(16), nn.ReLU(), last()))
bring("PReLU", lambda: nn.Sequential(nn.Linear(D, 16), nn.PReLU(), last()))
bring("PReLU per channel", lambda: nn.Sequential(nn.Linear(D, 16), nn.PReLU(16), last()))
bring("GELU", lambda: nn.Sequential(nn.Linear(D, 16), nn.GELU(), last()))

# Casts in the forward pass.
around("x.float()", lambda net, x: net(x.float()))
around("x.to(torch.float32)", lambda net, x: net(x.to(torch.float32)))
around("x.type(torch.FloatTensor)", lambda net, x: net(x.type(torch.FloatTensor)))
around("x.to(the weights' dtype)", lambda net, x: net(x.to(net[0].weight.dtype)))
around("logits.float()", lambda net, x: net(x).float())
around("a mask by .float()", lambda net, x: net(x * (x[:, :1] > -9).float()))
around(
    "x.float() / 255",
    lambda net, x: net(x.float() / 255),
    scores=lambda net, X: net.net(X / 255),
    draw=lambda: torch.randint(0, 256, (N, D)).float(),
)

# Outputs beside the scores.
Answer = collections.namedtuple("Answer", "logits hidden")
around("(logits, None)", lambda net, x: (net(x), None))
around("(logits, loss)", lambda net, x: (net(x), net(x).logsumexp(1).mean()))
around("[logits]", lambda net, x: [net(x)])
around("((logits,), state)", lambda net, x: ((net(x),), net[0](x)))
around("a dict of logits", lambda net, x: {"logits": net(x), "hidden": net[0](x), "name": "odd"})
around("a named tuple", lambda net, x: Answer(net(x), net[0](x)))
around("(features, logits)", lambda net, x: (net[:2](x), net(x)))
around("(boxes, logits)", lambda net, x: (net(x).repeat(1, 2)[:, :4].sigmoid(), net(x)))
ALL_SCORES = ("measure", "compare", "input_margins", "robustness", "page", "train")
around("softmax at the end", lambda net, x: net(x).softmax(1), refuses=ALL_SCORES)
around("log-softmax at the end", lambda net, x: net(x).log_softmax(1))
bring(
    "sigmoid at the end", lambda: nn.Sequential(mlp(1), nn.Sigmoid()), scores=lambda n, X: n[0](X)
)
around(
    "a class at -inf",
    lambda net, x: net(x).masked_fill(torch.tensor([False, False, True]), -math.inf),
    scores=lambda net, X: net.net(X)[:, :2],
)

# Samples that see each other.
MASKED = ("input_margins",)
LOST = ("certify", "robustness", "input_margins")
around("minus the batch's mean", lambda net, x: net(x - x.mean(0)), scores=None, refuses=LOST)
around("by the batch's largest", lambda net, x: net(x / x.abs().max()), scores=None, refuses=LOST)
around("softmax over samples", lambda net, x: net(x).log_softmax(0), scores=None, refuses=LOST)
around("if x.sum() > 0", lambda n, x: n(x) if x.sum() > 0 else -n(x), scores=None, refuses=LOST)
around(
    "batch statistics",
    lambda net, x: net(F.batch_norm(x, None, None, training=True)),
    scores=None,
    refuses=LOST,
)
bring(
    "BatchNorm without running statistics",
    lambda: nn.Sequential(nn.BatchNorm1d(D, affine=False, track_running_stats=False), mlp()),
    scores=None,
    refuses=LOST,
)


class Attention(nn.Module):
    """Attention over tokens, or by mistake over samples."""

    def __init__(self, batch_first: bool):
        super().__init__()
        self.batch_first = batch_first
        self.attend = nn.MultiheadAttention(4, 2, batch_first=batch_first)
        self.end = nn.Linear(4, C, bias=False)

    def forward(self, x):
        """Scores from the mean over tokens."""
        return self.end(self.attend(x, x, x, need_weights=False)[0].mean(1))


bring("attention", lambda: Attention(True), draw=lambda: torch.randn(N, 6, 4))
bring(
    "attention over samples",
    lambda: Attention(False),
    draw=lambda: torch.randn(N, 6, 4),
    scores=None,
    refuses=LOST,
)


# Recurrent nets and tokens.
class Recurrent(nn.Module):
    """The last state of a recurrent layer."""

    def __init__(self, kind: type[nn.RNNBase]):
        super().__init__()
        self.layer = kind(D, 8, batch_first=True)
        self.end = nn.Linear(8, C, bias=False)

    def forward(self, x):
        """Scores of sequences (N, T, D)."""
        return self.end(self.layer(x)[0][:, -1])


for kind in (nn.RNN, nn.GRU, nn.LSTM):
    recurrent = functools.partial(Recurrent, kind)
    bring(kind.__name__, recurrent, draw=lambda: torch.randn(N, 4, D))
bring(
    "tokens",
    lambda: nn.Sequential(nn.Embedding(11, 4), nn.Flatten(), last(24)),
    draw=lambda: torch.randint(0, 11, (N, 6)),
)


# Weights in other garments.
def with_layer(change: Callable[[nn.Module], Any]) -> Callable[[], nn.Module]:
    """Make the small net after a change to its first layer."""

    def make() -> nn.Module:
        net = mlp()
        net[0] = change(net[0]) or net[0]
        return net

    return make


def shared() -> nn.Module:
    """One layer that occurs twice."""
    layer = nn.Linear(D, D, bias=False)
    return nn.Sequential(layer, nn.LeakyReLU(), layer, nn.LeakyReLU(), last(D))


def pruned(layer: nn.Module) -> None:
    """Half of the weights masked."""
    prune.l1_unstructured(layer, "weight", 0.5)


def frozen(net: nn.Module) -> nn.Module:
    """Weights that no gradient may change."""
    return net.requires_grad_(False)


def frozen_body() -> nn.Module:
    """A head on a frozen body."""
    net = mlp()
    frozen(net[0])
    return net


def hooked() -> nn.Module:
    """Its scores are doubled by a hook."""
    net = mlp()
    net.register_forward_hook(lambda module, given, out: 2 * out)
    return net


class Length(nn.Module):
    """A layer of one's own that holds direction and length."""

    def __init__(self):
        super().__init__()
        self.direction, self.length = nn.Parameter(torch.randn(16, D)), nn.Parameter(torch.ones(16))

    def forward(self, x):
        """The layer whose rows have the given lengths."""
        unit = self.direction / self.direction.norm(dim=1, keepdim=True)
        return x @ (self.length[:, None] * unit).T


class Listed(nn.Module):
    """Layers in a Python list, which torch does not see."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(D, 16), nn.Linear(16, 16)]
        self.end = nn.Linear(16, C, bias=False)

    def forward(self, x):
        """Scores of all three layers."""
        for layer in self.layers:
            x = F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype)).relu()
        return self.end(x)


class Spectral(nn.Module):
    """One Fourier layer with complex weights."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(9, dtype=torch.complex64))
        self.a, self.b = nn.Linear(D, 16, bias=False), nn.Linear(16, C, bias=False)

    def forward(self, x):
        """Scores of what the weights leave of each frequency."""
        return self.b(F.relu(torch.fft.irfft(torch.fft.rfft(self.a(x)) * self.w, n=16)))


class Extra(nn.Module):
    """Scores times a number that is extra state."""

    def __init__(self):
        super().__init__()
        self.net, self.factor = mlp(), 3.0

    def get_extra_state(self):
        """The factor."""
        return {"factor": self.factor}

    def set_extra_state(self, state):
        """Take the factor back."""
        self.factor = state["factor"]

    def forward(self, x):
        """The scores times the factor."""
        return self.factor * self.net(x)


def inferred() -> nn.Module:
    """A net that was built where no gradients are known."""
    with torch.inference_mode():
        return mlp()


def lazy() -> nn.Module:
    """A net whose first layer knows its inputs when it sees them."""
    return nn.Sequential(nn.LazyLinear(16), nn.ReLU(), nn.Linear(16, C, bias=False))


bring("one layer twice", shared)
bring("weight_norm, old", with_layer(old_weight_norm))
bring("weight_norm", with_layer(parametrizations.weight_norm))
bring("spectral_norm", lambda: with_layer(parametrizations.spectral_norm)().eval())
bring("orthogonal", with_layer(parametrizations.orthogonal))
bring("direction and length", lambda: nn.Sequential(Length(), nn.ReLU(), last()))
bring("pruned", with_layer(pruned))
bring("frozen body", frozen_body)
bring("all frozen", lambda: frozen(mlp()), refuses=("certify", "train", "maximize_margin"))
bring("a forward hook", hooked)
bring("scripted", lambda: torch.jit.script(mlp()))
bring("traced", lambda: torch.jit.trace(mlp(), torch.randn(2, D)))
bring("fx graph", lambda: torch.fx.symbolic_trace(mlp()))
bring("averaged weights", lambda: torch.optim.swa_utils.AveragedModel(mlp()))
bring("extra state", Extra)
bring("built in inference mode", inferred, plain=mlp)
bring("complex weights", Spectral, scores=None)
bring("layers in a list", Listed)
bring("lazy", lazy)
bring(
    "quantized",
    lambda: torch.ao.quantization.quantize_dynamic(mlp(), {nn.Linear}),
    scores=lambda net, X: net(X.float()).double(),
    refuses=MASKED,
)
bring("no parameters", nn.Softplus, draw=lambda: torch.randn(N, C))
bring("data parallel", lambda: nn.DataParallel(mlp()))

# Gradients that are masked, or none.
around(
    "rounded inputs",
    lambda net, x: net((x * 8).round() / 8),
    scores=lambda net, X: net.net((X * 8).round() / 8),
    refuses=MASKED,
)
around(
    "signs of inputs",
    lambda net, x: net(x.sign()),
    scores=lambda net, X: net.net(X.sign()),
    refuses=MASKED,
)
around("detached inputs", lambda net, x: net(x.detach()), refuses=MASKED)
around("no_grad", torch.no_grad()(lambda net, x: net(x)), refuses=(*MASKED, "certify", "train"))
around(
    "clamped scores", lambda net, x: net(x).clamp(-9, 9), scores=lambda n, X: n.net(X).clamp(-9, 9)
)

# Ways to write a forward pass.
around("overwrites its input", lambda net, x: net(x.mul_(0.5)), scores=lambda n, X: n.net(X / 2))
around("checkpointed", lambda net, x: checkpoint(net, x, use_reentrant=False))
around(
    "each sample by its own branch",
    lambda net, x: torch.where(x[:, :1] > 0, net(x), -net(x)),
    scores=lambda n, X: torch.where(X[:, :1] > 0, n.net(X), -n.net(X)),
)
around("sample by sample", lambda net, x: torch.stack([net(row) for row in x]))
around("numpy inside", lambda net, x: net(torch.from_numpy(x.detach().numpy())), refuses=MASKED)
