"""Nets <a . b, F(x; V)>, which end in a normalization and a linear layer, and their mirror flow."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...core.arguments import check_count, check_seed
from ...errors import ModelError
from ...flow.gradient_flow import Trajectory, gradient_flow
from ...nets.data import Data

_SMALLEST_LOG_U = -600.0
"""Where the metric 2 / u ends: float64 does at e^709, and gradients are 0 to rounding there."""


class NormalizedReLU(nn.Module):
    """Features relu(v_j . x / |v_j|), (N, inputs) to (N, width), v_j uniform on the sphere."""

    def __init__(self, inputs: int, width: int, *, seed: int = 0) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(check_seed(seed))
        v = torch.randn(width, inputs, dtype=torch.float64, generator=random)
        self.v = nn.Parameter(F.normalize(v, dim=1))

    def forward(self, x: Tensor) -> Tensor:
        """The features of inputs (N, inputs), shape (N, width)."""
        return torch.relu(x @ F.normalize(self.v, dim=1).T)


def layer_norm_features(width: int) -> nn.Module:
    """Two layers of ReLUs under a LayerNorm, (N, 4) to (N, width)."""
    norm = nn.LayerNorm(width, elementwise_affine=False)
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), norm)


def rms_norm_features(width: int) -> nn.Module:
    """Two layers with tanh under an RMSNorm, (N, 4) to (N, width)."""
    norm = nn.RMSNorm(width, eps=1e-5, elementwise_affine=False)
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), norm)


class AttentionFeatures(nn.Module):
    """Attention, a GELU layer, a mean over positions, LayerNorm: (N, d) to (N, width)."""

    def __init__(self, inputs: int, positions: int, width: int, *, inner: int = 3) -> None:
        super().__init__()
        self._shape = (positions, inputs)
        self.embed, self.up = nn.Linear(inputs, inner), nn.Linear(inner, width)
        self.query, self.key, self.value = (nn.Linear(inner, inner) for _ in range(3))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)

    def forward(self, x: Tensor) -> Tensor:
        """The features of inputs (N, positions * inputs), shape (N, width)."""
        h = self.embed(x.reshape(len(x), *self._shape))
        h = h + torch.softmax(self.query(h) @ self.key(h).transpose(1, 2), -1) @ self.value(h)
        return self.norm(F.gelu(self.up(h)).mean(1))


def require_bounded_features(inner: nn.Module, x: Tensor) -> float:
    """A bound of |F(x; V)| over all V by the last module (Assumption 2.1). Raises ModelError."""
    last = inner.norm if isinstance(inner, AttentionFeatures) else inner
    while isinstance(last, nn.Sequential):
        last = last[-1]
    if isinstance(last, NormalizedReLU):
        return float(torch.linalg.vector_norm(x, dim=1).max())
    if isinstance(last, (nn.Tanh, nn.Sigmoid)):
        return 1.0
    if isinstance(last, (nn.LayerNorm, nn.RMSNorm)) and not last.elementwise_affine:
        # The squares of what is normalized sum to at most their number.
        return math.sqrt(math.prod(last.normalized_shape))
    raise ModelError(
        "Assumption 2.1, bounded features, is not met as far as the last module shows: end with a"
        " normalization without weights, NormalizedReLU, Tanh or Sigmoid; got"
        f" {type(last).__name__}"
    )


FEATURES: dict[str, Callable[[int], nn.Module]] = {
    "normalized ReLU": lambda width: NormalizedReLU(4, width),
    "LayerNorm": layer_norm_features,
    "transformer": lambda width: AttentionFeatures(2, 2, width),
    "RMSNorm": rms_norm_features,
}
"""Inner nets of four inputs by the number of their features."""


class NormalizedNet(nn.Module):
    """h(x) = sum_j a_j b_j F_j(x; V), where any module `inner` computes the features F.

    It is 2-homogeneous in (a, b), which begin as signs / sqrt(m); flows keep |a_j| = |b_j|. "The
    ubiquity of 2-homogeneity" 2024, (2).
    """

    def __init__(self, inner: nn.Module, width: int, *, seed: int = 0) -> None:
        super().__init__()
        width = check_count("width", width)
        # Drawn as integers, so that signs are the same whatever the default dtype.
        random = torch.Generator().manual_seed(check_seed(seed))
        signs = torch.randint(2, (2, width), generator=random) * 2.0 - 1
        self.inner = inner
        self.a, self.b = (nn.Parameter(s.double() / width**0.5) for s in signs)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs for inputs (N, ...), shape (N, 1)."""
        return self.features(x) @ (self.a * self.b).to(x.dtype)[:, None]

    def features(self, x: Tensor) -> Tensor:
        """The features F(x; V), shape (N, m). Raises ModelError if `inner` gives another shape."""
        found: Tensor = self.inner(x)
        if found.shape != (len(x), len(self.a)):
            raise ModelError(
                f"The inner module must give {len(self.a)} features for each of {len(x)} inputs; it"
                f" gave {tuple(found.shape)}"
            )
        return found

    def balanced_product(self) -> Tensor:
        """a . b, float64 (m,). Raises ModelError where |a_j| != |b_j| or 0: no mirror flow."""
        a, b = self.a.detach().double(), self.b.detach().double()
        if not torch.equal(a.abs(), b.abs()) or (a == 0).any():
            raise ModelError("a mirror flow needs |a_j| = |b_j| > 0: set every b_j to a_j or -a_j")
        return a * b


def mirror_flow(net: NormalizedNet, data: Data, **options: Any) -> Trajectory:
    """Follow the mirror flow in u = |a . b|, which gradient flow with |a_j| = |b_j| is (Lemma 3.2).

    d ln u / dt = -2 grad_u, dV / dt = -grad_V of the summed loss. `options` are `gradient_flow`'s;
    states hold log_u and V as inner.*. Margins are not normalized: divide q_min by 2 sum(u).
    """
    mirror = _MirrorNet(net)

    def metric(point: dict[str, Tensor]) -> dict[str, Tensor]:
        """2 / u, bounded where u all but vanishes."""
        log_u = mirror.log_u(point["moved_log_u"]).clamp(min=_SMALLEST_LOG_U)
        return {"moved_log_u": 2 * torch.exp(-log_u)}

    flow = gradient_flow(mirror, data, metric=metric, **options)
    for state in (flow.final, *flow.states.values()):
        state["log_u"] = mirror.log_u(state.pop("moved_log_u"))
    return flow


class _MirrorNet(nn.Module):
    """The net <u . beta, F(x; V)> with parameters V and log u, shifted to a smallest one of 1."""

    beta: Tensor

    def __init__(self, net: NormalizedNet) -> None:
        super().__init__()
        product = net.balanced_product()
        self.inner, log_u = net.inner, torch.log(product.abs())
        # Steps are relative to the norm of the parameters; that of log u is 0 at u = 1 by accident.
        self._shift = 1 - log_u.min().item()
        self.moved_log_u = nn.Parameter(log_u + self._shift)
        self.register_buffer("beta", torch.sign(product))

    def log_u(self, moved: Tensor) -> Tensor:
        """The logs of u for shifted parameters."""
        return moved - self._shift

    def forward(self, x: Tensor) -> Tensor:
        """The outputs for inputs (N, ...), shape (N, 1)."""
        return self.inner(x) @ (torch.exp(self.log_u(self.moved_log_u)) * self.beta)[:, None]
