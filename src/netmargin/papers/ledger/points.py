"""Nets of many kinds at many random parameters, labelled rightly: where claims are pointwise."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ...homogeneity import analyse
from ...losses import Loss
from ...models import mlp
from .trial import Trial

BATCH = 64
"""Random parameters of a trial: 170 and more trials examine 10,000; few enough for one tensor."""


def _make_cnn(outputs: int) -> nn.Module:
    """Make a small convolutional net with max pooling."""
    features = nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    return nn.Sequential(*features, nn.Linear(8, outputs, bias=False))


def _make_normalized_net(outputs: int) -> nn.Module:
    """Make a net with LayerNorm and leaky ReLUs."""
    norm = nn.LayerNorm(4, eps=0.0, elementwise_affine=False)
    layers = nn.Linear(3, 4), norm, nn.ReLU(), nn.Linear(4, 3), nn.LeakyReLU(0.2)
    return nn.Sequential(*layers, nn.Linear(3, outputs, bias=False))


def make_linear_net(widths: Sequence[int]) -> nn.Sequential:
    """Make a net of linear layers without biases."""
    return nn.Sequential(*(nn.Linear(a, b, bias=False) for a, b in pairwise(widths)))


KINDS: dict[str, tuple[Callable[[int], nn.Module], tuple[int, ...]]] = {
    "linear, one input": (lambda outputs: nn.Linear(1, outputs, bias=False), (1,)),
    "ReLU 3-4 with first bias": (lambda outputs: mlp([3, 4, outputs]), (3,)),
    "ReLU 3-4-3": (lambda outputs: mlp([3, 4, 3, outputs], bias="none"), (3,)),
    "squared ReLU 3-4": (lambda outputs: mlp([3, 4, outputs], bias="none", power=2), (3,)),
    "cubed ReLU 2-3": (lambda outputs: mlp([2, 3, outputs], power=3), (2,)),
    "convolution, max pooling": (_make_cnn, (1, 6, 6)),
    "LayerNorm, LeakyReLU": (_make_normalized_net, (3,)),
}
"""Builder of a net with so many outputs, and the shape of an input."""


@functools.cache
def _make_analysed_net(
    kind: str, outputs: int
) -> tuple[nn.Module, float, list[tuple[list[str], float]]]:
    """Build a net and find its order and its layers with their exponents, once for each kind."""
    build, shape = KINDS[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = build(outputs).double()
        found = analyse(net, torch.randn(8, *shape, dtype=torch.float64))
    assert found.order is not None
    groups = [(list(found.members[group]), float(k)) for group, k in found.groups.items()]
    return net, float(found.order), groups


@dataclass
class Points:
    """B stacked parameters theta of one net of order L, and labels that all theta_b get right."""

    kind: str
    net: nn.Module
    theta: dict[str, Tensor]
    x: Tensor
    labels: Tensor
    order: float
    groups: list[tuple[list[str], float]]  # names and k_i of layers that can be scaled one by one

    @classmethod
    def drawn(
        cls,
        trial: Trial,
        *,
        outputs: int = 1,
        samples: int | None = None,
        kinds: tuple[str, ...] = tuple(KINDS),
        deepest: float = 1000.0,
    ) -> "Points":
        """Draw parameters and samples, by the trial's number; q_min from 0.3 to `deepest`."""
        name = kinds[trial.number % len(kinds)]
        shape = KINDS[name][1]
        random, (net, order, groups) = trial.random, _make_analysed_net(name, outputs)
        count = samples or 1 + (trial.number // len(kinds)) % 5
        x = torch.tensor(random.normal(size=(count, *shape)))
        theta = {
            n: torch.tensor(random.normal(size=(BATCH, *p.shape)))
            for n, p in net.named_parameters()
        }
        points = cls(name, net, theta, x, torch.empty(0), order, groups)
        with torch.no_grad():
            scores = points.scores()
            points.labels = torch.sign(scores[..., 0]) if outputs == 1 else scores.argmax(-1)
            q = points.gaps().amin((1, 2))
            # Only the layers with positive exponents move the margins.
            share = torch.tensor(random.random(BATCH))
            target = 0.3 * (deepest / 0.3) ** share
            # Points at which two scores nearly tie cannot be scaled to a margin of usual size.
            usable = q > 1e-9
            factor = (target / q.clamp(min=1e-9)) ** (1 / points.order)
        points.labels = points.labels[usable]
        points.theta = {
            n: (p[usable] * factor[usable].reshape(-1, *[1] * (p.dim() - 1))).requires_grad_(True)
            for n, p in theta.items()
        }
        return points

    def scores(self) -> Tensor:
        """Scores of all samples at all parameters, (B, N, C)."""
        return stacked_outputs(self.net, self.theta, self.x)

    def gaps(self) -> Tensor:
        """Gaps s_nj to all classes but the label: (B, N, C - 1), or (B, N, 1) for one output."""
        scores = self.scores()
        if scores.shape[-1] == 1:
            return self.labels[..., None] * scores
        own = scores.gather(-1, self.labels[..., None])
        others = torch.arange(scores.shape[-1]) != self.labels[..., None]
        return (own - scores)[others].reshape(*scores.shape[:2], -1)

    def gradient(self, values: Tensor) -> dict[str, Tensor]:
        """Gradients of values (B,), where values_b depends on theta_b alone."""
        found = torch.autograd.grad(values.sum(), list(self.theta.values()), retain_graph=True)
        return dict(zip(self.theta, found, strict=True))

    def inner(self, a: dict[str, Tensor], b: dict[str, Tensor], names: Any = None) -> Tensor:
        """Inner products over the parameters `names`, all by default: (B,)."""
        return torch.stack([(a[n] * b[n]).flatten(1).sum(1) for n in names or self.theta]).sum(0)

    def setting(self) -> str:
        """Describe the instances in words."""
        return f"{self.kind}, {len(self.x)} samples, {len(self.labels)} random parameters"


def stacked_outputs(net: nn.Module, theta: dict[str, Tensor], x: Tensor) -> Tensor:
    """Outputs of a net at every one of the stacked parameters, (B, ...)."""
    outputs: Tensor = torch.func.vmap(lambda p: torch.func.functional_call(net, p, (x,)))(theta)
    return outputs


def log_loss(loss: Loss, q: Tensor) -> Tensor:
    """Log of the summed loss of margins (B, N): (B,)."""
    return torch.logsumexp(-loss.f(q), 1)


def inverse_slope(loss: Loss, x: Tensor) -> Tensor:
    """Evaluate g'(x) = 1 / f'(g(x))."""
    return 1 / loss.f_prime(loss.g(x))


def separated(loss: Loss, logs: Tensor) -> Tensor:
    """Test whether the summed loss is below l(b_f), with room for rounding."""
    return logs < loss.log_threshold - 1e-6 * max(1.0, math.fabs(loss.log_threshold))
