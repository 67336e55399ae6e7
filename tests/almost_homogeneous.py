"""Nets that are almost homogeneous, and nets that truly are: made for the tests of `analyse`.

Each family is a function of a number e (an epsilon, an offset, one over a level, a rounding) that
spoils homogeneity a little; it is tried with several e and several scales of its activations.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

INPUTS, HIDDEN, OUTPUTS = 5, 8, 3


class Net(nn.Module):
    """first layer -> function of (net, features) -> last layer; `scale` is of the first weights."""

    def __init__(
        self,
        function: Callable,
        scale: float = 1.0,
        *,
        bias: bool = True,
        head: int = HIDDEN,
        **parts,
    ):
        super().__init__()
        self.first = nn.Linear(INPUTS, HIDDEN, bias=bias)
        for parameter in self.first.parameters():
            parameter.data.mul_(scale)
        for name, part in parts.items():
            setattr(self, name, part)
        self.function = function
        self.head = nn.Linear(head, OUTPUTS, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.function(self, self.first(x)))


@torch.library.custom_op("netmargin_tests::saturating", mutates_args=())
def saturating(x: Tensor, level: float) -> Tensor:
    """The identity below a level, without a rule."""
    return x.clamp(-level, level) + 0.0


@saturating.register_fake
def _(x, level):
    return torch.empty_like(x)


def _overwrite(h: Tensor, value) -> Tensor:
    h = h.clone()
    h[:, 0] = value
    return h


def _overwrite_most(h: Tensor, e: float) -> Tensor:
    result = torch.full_like(h, e)
    result[:, 1:] = h[:, 1:]
    return result


def _branch(h: Tensor, large: bool) -> Tensor:
    return h.relu() if not large else h.relu() * 1.5


def _scattered(h: Tensor, e: float) -> Tensor:
    index = torch.zeros(len(h), 1, dtype=torch.long)
    return h.scatter(1, index, torch.full((len(h), 1), e, dtype=h.dtype))


def _images(h: Tensor) -> Tensor:
    return h.reshape(len(h), 4, 1, 2)


# Guards: read as epsilons, and judged by what they do.
GUARDS: dict[str, Callable] = {
    "sqrt(h^2 + e)": lambda m, h, e: (h * h + e).sqrt(),
    "sqrt of clamp(h, e)": lambda m, h, e: h.clamp(min=e).sqrt(),
    "(|h| + e)^0.7": lambda m, h, e: (h.abs() + e) ** 0.7,
    "h / (|h| + e)": lambda m, h, e: h / (h.abs() + e),
    "h / (norm + e)": lambda m, h, e: h / (h.norm(dim=1, keepdim=True) + e),
    "h^2 / (|h| + e)": lambda m, h, e: h * h * torch.reciprocal(h.abs() + e),
    "rms by hand": lambda m, h, e: h * torch.rsqrt(h.square().mean(1, keepdim=True) + e),
    "layer norm": lambda m, h, e: F.layer_norm(h, (HIDDEN,), eps=e).relu(),
    "rms norm": lambda m, h, e: F.rms_norm(h, (HIDDEN,), eps=e).relu(),
    "batch norm": lambda m, h, e: F.batch_norm(h, None, None, training=True, eps=e).relu(),
    "group norm": lambda m, h, e: F.group_norm(h, 2, eps=e).relu(),
    "instance norm": (
        lambda m, h, e: F.instance_norm(h.reshape(len(h), 2, 4), eps=e).flatten(1).relu()
    ),
    "local response": (
        lambda m, h, e: F.local_response_norm(_images(h), 3, alpha=1.0, k=e).flatten(1)
    ),
    "normalize": lambda m, h, e: F.normalize(h, eps=e),
    "in place": lambda m, h, e: h.square().add_(e).sqrt_(),
    "added twice": lambda m, h, e: (h.square() + e / 2).sqrt() + (h.square() + e / 2).sqrt(),
}

# Offsets, levels, roundings, branches: never an epsilon.
SPOILERS: dict[str, Callable] = {
    "(h + e)^3": lambda m, h, e: (h + e) ** 3,
    "h + e": lambda m, h, e: h.relu() + e,
    "h - e": lambda m, h, e: h.relu() - e,
    "h + buffer e": lambda m, h, e: h.relu() + torch.full((HIDDEN,), e, dtype=h.dtype),
    "prod + e": lambda m, h, e: h * (h.relu().prod(1, keepdim=True) + e),
    "guard used twice": lambda m, h, e: (lambda g: g.sqrt() * g.sqrt() + g)(h * h + e),
    "clamp(max=1/e)": lambda m, h, e: h.clamp(max=1 / e),
    "root of a clamp between": lambda m, h, e: h.clamp(e, 1 / e).sqrt(),
    "negative guard": lambda m, h, e: h / (h.abs() + (-e)),
    "clamp_max": lambda m, h, e: torch.clamp_max(h, 1 / e),
    "where fills with e": lambda m, h, e: torch.where(torch.arange(HIDDEN) > 0, h, torch.full_like(h, e)),
    "hardtanh": lambda m, h, e: F.hardtanh(h, -1 / e, 1 / e),
    "cummax of a scaled ReLU6": lambda m, h, e: F.relu6(h * e).cummax(1).values / e,
    "clamp of prod": lambda m, h, e: h * h.prod(1, keepdim=True).clamp(max=1 / e),
    "threshold": lambda m, h, e: F.threshold(h, e, 0.0),
    "threshold far off": lambda m, h, e: F.threshold(h, -1 / e, 0.0),
    "fills with e": lambda m, h, e: h.masked_fill(torch.arange(HIDDEN) == 0, e),
    "tanh(e h) / e": lambda m, h, e: torch.tanh(e * h) / e,
    "e softplus(h / e)": lambda m, h, e: e * F.softplus(h / e),
    "softsign": lambda m, h, e: h / (1 + e * h.abs()),
    "hardshrink": lambda m, h, e: F.hardshrink(h, e),
    "softshrink": lambda m, h, e: F.softshrink(h, e),
    "rounding": lambda m, h, e: torch.round(h / e) * e,
    "rounding division": lambda m, h, e: torch.div(h, e, rounding_mode="floor") * e,
    "integers": lambda m, h, e: (h / e).long().to(h.dtype) * e,
    "remainder": lambda m, h, e: h - torch.remainder(h, e),
    "half": lambda m, h, e: h + e * h.half().to(h.dtype),
    "bfloat16": lambda m, h, e: h.bfloat16().to(h.dtype).relu(),
    "half overflow": lambda m, h, e: (h / max(e, 1e-4)).half().to(h.dtype) * e,
    "item decides": lambda m, h, e: _branch(h, h.abs().max().item() > 1 / math.sqrt(e)),
    "tolist decides": lambda m, h, e: _branch(h, max(map(max, h.tolist())) > 1 / math.sqrt(e)),
    "numpy decides": lambda m, h, e: _branch(h, bool(h.detach().numpy().max() > 1 / math.sqrt(e))),
    "int decides": lambda m, h, e: _branch(h, int(h.abs().sum()) > 1 / math.sqrt(e)),
    "weights decide": lambda m, h, e: _branch(h, float(m.head.weight.detach().numpy().max()) > 1 / math.sqrt(e)),
    "comparison decides": lambda m, h, e: _branch(h, bool((h > 1 / e).any())),
    "number of large ones": lambda m, h, e: h * (1 + (h > 1 / e).sum()),
    "where(h > e)": lambda m, h, e: torch.where(h > e, h, h / 2),
    "lerp to the inputs": lambda m, h, e: torch.lerp(h, torch.ones_like(h), e),
    "lerp by weights": lambda m, h, e: torch.lerp(h, 2 * h, e * m.head.weight[0]),
    "overwrites a part": lambda m, h, e: _overwrite(h.relu(), e),
    "overwrites most of e": lambda m, h, e: _overwrite_most(h, e),
    "pads with e": lambda m, h, e: F.pad(h[:, 1:], (1, 0), value=e),
    "joins e": lambda m, h, e: torch.cat([h[:, 1:], torch.full((len(h), 1), e, dtype=h.dtype)], 1),
    "scatters e": lambda m, h, e: _scattered(h, e),
    "hypot": lambda m, h, e: torch.hypot(h, torch.full_like(h, e)),
    "maximum with e": lambda m, h, e: torch.maximum(h, torch.full_like(h, e)),
    "log-sum-exp": lambda m, h, e: h + e * (h / e).logsumexp(1, keepdim=True),
    "an own operation that saturates": lambda m, h, e: saturating(h, 1 / e),
    "power of the batch size": lambda m, h, e: h.abs() ** (len(h) * max(e, 1e-3)),
    "product over the batch": lambda m, h, e: h * h.abs().prod(0, keepdim=True),
    "sinh": lambda m, h, e: torch.sinh(e * h) / e,
    "softmax as weights": lambda m, h, e: h * torch.softmax(e * h, 1),
}  # fmt: skip


SETTINGS = {
    **dict.fromkeys(GUARDS, ((1e-5, 1.0), (1e-3, 1.0), (1e-3, 0.05), (0.3, 3.0))),
    **dict.fromkeys(
        SPOILERS, ((1e-12, 1.0), (1e-3, 0.3), (0.05, 3.0))
    ),  # the first is too small for any number to show
}
"""Family -> the pairs of e and the scale of the first weights at which it is tried."""


def almost_homogeneous(family: str) -> Iterator[tuple[str, Callable[[], nn.Module]]]:
    """Name and maker of every almost homogeneous net of a family."""
    function = (GUARDS | SPOILERS)[family]
    for e, scale in SETTINGS[family]:
        yield f"e = {e:g}, scale {scale:g}", _maker(function, e, scale)


def _maker(function: Callable, e: float, scale: float) -> Callable[[], nn.Module]:
    return lambda: Net(lambda m, h: function(m, h, e), scale)


def largest_miss(
    model: nn.Module, x: Tensor, groups: dict, members: dict, *, decades: float, draws: int = 6
) -> float:
    """How far f misses the claimed powers, by this code alone, within so many decades."""
    model, x = model.double(), x.double()
    state = {name: p.detach().clone() for name, p in model.named_parameters()}
    generator, worst = torch.Generator().manual_seed(5), 0.0
    with torch.no_grad():
        before = model(x)
        for draw in range(draws + 2):
            u = torch.rand(len(groups), generator=generator, dtype=torch.float64) * 2 - 1
            if draw < 2:  # all together, to both ends
                u = torch.full_like(u, 2.0 * draw - 1)
            power = 0.0
            for (name, k), exponent in zip(groups.items(), (decades * u).tolist(), strict=True):
                power += float(k) * exponent
                for n in members[name]:
                    dict(model.named_parameters())[n].copy_(state[n] * 10**exponent)
            difference = (model(x) / 10**power - before).abs().max() / before.abs().max()
            worst = max(worst, difference.item() if torch.isfinite(difference) else math.inf)
        for name, p in model.named_parameters():
            p.copy_(state[name])
    return worst


# -- nets that truly are homogeneous


def _masked_attention(m: Net, h: Tensor) -> Tensor:
    """Linear attention over four tokens, later ones masked: products and sums only."""
    tokens = h.reshape(len(h), 4, 2)
    weights = (m.query(tokens) @ m.key(tokens).transpose(1, 2)).relu().tril()
    return (weights @ tokens).flatten(1)


def _plain(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


HOMOGENEOUS_FUNCTIONS: dict[str, tuple[Callable, Callable[[], dict[str, nn.Module]]]] = {
    "identity": (lambda m, h: h, dict),
    "relu": (lambda m, h: h.relu(), dict),
    "leaky relu": (lambda m, h: F.leaky_relu(h, 0.2), dict),
    "relu squared": (lambda m, h: h.relu() ** 2, dict),
    "relu^1.5": (lambda m, h: h.relu() ** 1.5, dict),
    "cube": (lambda m, h: h * h * h, dict),
    "abs": (lambda m, h: h.abs(), dict),
    "maxout": (lambda m, h: torch.maximum(h, 0.5 * h.roll(1, 1)), dict),
    "sorted": (lambda m, h: h.sort(1).values, dict),
    "cummax": (lambda m, h: h.cummax(1).values, dict),
    "cumulative product of two": (lambda m, h: h * h.roll(1, 1).relu(), dict),
    "product of all": (lambda m, h: h * h.prod(1, keepdim=True), dict),
    "max pool": (lambda m, h: F.max_pool1d(h[:, None], 3, 1, 1)[:, 0], dict),
    "mean pool": (lambda m, h: F.avg_pool1d(h[:, None].relu(), 3, 1, 1)[:, 0], dict),
    "square-root pool": (lambda m, h: h.relu() * F.avg_pool1d(h[:, None].square(), 3, 1, 1)[:, 0].sqrt(), dict),
    "norm without epsilon": (lambda m, h: h * h.norm(dim=1, keepdim=True), dict),
    "unit vectors": (lambda m, h: h / h.norm(dim=1, keepdim=True), dict),
    "layer norm without epsilon": (lambda m, h: F.layer_norm(h, (HIDDEN,), eps=0.0).relu(), dict),
    "dropout": (lambda m, h: F.dropout(h.relu(), 0.3, training=True), dict),
    "masks": (lambda m, h: h.masked_fill(torch.arange(HIDDEN) % 3 == 0, 0.0).relu(), dict),
    "where": (lambda m, h: torch.where(h > 0, h, 0.3 * h), dict),
    "clamp at 0": (lambda m, h: h.clamp(min=0) - h.clamp(max=0) / 2, dict),
    "lerp": (lambda m, h: torch.lerp(h, h.relu(), 0.3), dict),
    "geometric mean": (lambda m, h: (h.abs() * h.roll(1, 1).abs()).sqrt(), dict),
    "overwrites with 0": (lambda m, h: _overwrite(h.relu(), 0.0), dict),
    "scatter": (lambda m, h: torch.zeros_like(h).scatter(1, torch.arange(HIDDEN).flip(0).expand_as(h), h), dict),
    "einsum": (lambda m, h: torch.einsum("bi,bj->bij", h, h.relu()).sum(2), dict),
    "second layer": (lambda m, h: m.second(h.relu()).relu(), lambda: {"second": _plain(HIDDEN, HIDDEN)}),
    "residual of equal order": (lambda m, h: h.relu() + 0.5 * h.roll(1, 1), dict),
    "two branches": (
        lambda m, h: m.left(h.relu()) + m.right(h).abs(),
        lambda: {"left": _plain(HIDDEN, HIDDEN), "right": _plain(HIDDEN, HIDDEN)},
    ),
    "gate": (lambda m, h: m.left(h) * m.right(h).relu(), lambda: {"left": _plain(HIDDEN, HIDDEN), "right": _plain(HIDDEN, HIDDEN)}),
    "shared layer twice": (lambda m, h: m.second(m.second(h.relu()).relu()), lambda: {"second": _plain(HIDDEN, HIDDEN)}),
    "linear attention": (_masked_attention, lambda: {"query": _plain(2, 2), "key": _plain(2, 2)}),
    "weight norm": (
        lambda m, h: m.second(h.relu()),
        lambda: {"second": nn.utils.parametrizations.weight_norm(_plain(HIDDEN, HIDDEN))},
    ),
    "bilinear": (lambda m, h: m.second(h, h.relu()), lambda: {"second": nn.Bilinear(HIDDEN, HIDDEN, HIDDEN, bias=False)}),
    "convolution": (lambda m, h: m.second(h[:, None].relu()).mean(1), lambda: {"second": nn.Conv1d(1, 4, 3, padding=1, bias=False)}),
    "unfold": (lambda m, h: F.pad(h.unfold(1, 3, 1).amax(2), (1, 1)), dict),
}  # fmt: skip


def homogeneous() -> Iterator[tuple[str, Callable[[], nn.Module]]]:
    """Name and maker of homogeneous nets: functions at three scales, with a bias or not."""
    for name, (function, parts) in HOMOGENEOUS_FUNCTIONS.items():
        for scale, bias in ((1.0, True), (0.01, False), (50.0, True)):

            def make(function=function, parts=parts, scale=scale, bias=bias) -> nn.Module:
                return Net(function, scale, bias=bias, **parts())

            yield f"{name}, scale {scale:g}{', bias' if bias else ''}", make
