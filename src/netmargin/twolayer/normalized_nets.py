"""Nets <a . b, F(x; V)> that end in a normalization layer with its own factors and a linear layer.

They are 2-homogeneous in (a, b).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core.arguments import check_count, check_seed
from ..errors import ModelError
from ..flow.gradient_flow import Trajectory, gradient_flow
from ..nets.data import Data

_SMALLEST_LOG_U = -600.0
"""Where u falls below e^-600 its metric 2 / u stays at e^600: float64 ends at e^709, and gradients
there are 0 to rounding.
"""


class NormalizedReLU(nn.Module):
    """ReLU features of unit directions, F_j(x) = relu(v_j . x / |v_j|), bounded whatever V.

    It maps inputs of shape (N, inputs) to features of shape (N, width), in float64; the v_j begin
    uniform on the sphere.

    Parameters
    ----------
    inputs : int
        The dimension of x.
    width : int
        The number of features.
    seed : int, default 0
        Seed of the directions.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> features = nm.twolayer.NormalizedReLU(2, 5)
    >>> features(torch.ones(3, 2, dtype=torch.float64)).shape
    torch.Size([3, 5])
    """

    def __init__(self, inputs: int, width: int, *, seed: int = 0):
        super().__init__()
        v = torch.randn(
            width,
            inputs,
            dtype=torch.float64,
            generator=torch.Generator().manual_seed(check_seed(seed)),
        )
        self.v = nn.Parameter(F.normalize(v, dim=1))

    def forward(self, x: Tensor) -> Tensor:
        """The features of inputs (N, inputs), shape (N, width)."""
        return torch.relu(x @ F.normalize(self.v, dim=1).T)


class AttentionFeatures(nn.Module):
    """A tiny transformer as features: one head of attention, a GELU layer, a mean and LayerNorm.

    The input is cut into positions, over which the mean is taken; LayerNorm has no factors of its
    own. It maps inputs of shape (N, positions * inputs) to features of shape (N, width). The
    weights begin as torch's.

    Parameters
    ----------
    inputs : int
        The dimension of a position.
    positions : int
        How many positions a sample has.
    width : int
        The number of features.
    inner : int, default 3
        The dimension of embedding, queries, keys and values.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> nm.twolayer.AttentionFeatures(2, 4, 5)(torch.ones(3, 8)).shape
    torch.Size([3, 5])
    """

    def __init__(self, inputs: int, positions: int, width: int, *, inner: int = 3):
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


class NormalizedNet(nn.Module):
    """A net h(x) = sum_j a_j b_j F_j(x; V) with features F that any module computes.

    a are the factors of the normalization, b the weights of the linear layer after it. They begin
    as signs / sqrt(m), so that |a_j| = |b_j|, which gradient flow keeps, and the mass of u = |a .
    b| is 1. They are its parameters `a` and `b`, float64 of shape (m,); V are those of `inner`.

    Parameters
    ----------
    inner : torch.nn.Module
        F, with outputs of shape (N, m), such as one that ends in LayerNorm(m,
        elementwise_affine=False).
    width : int
        The number m of features, at least 1.
    seed : int, default 0
        Seed of the signs.

    Raises
    ------
    ArgumentError
        If `width` is no whole number of at least 1, or `seed` is out of its range.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = nm.twolayer.NormalizedNet(nm.twolayer.NormalizedReLU(2, 5), 5)
    >>> net(torch.ones(3, 2, dtype=torch.float64)).shape, round(net.a.square().sum().item(), 6)
    (torch.Size([3, 1]), 1.0)

    Source: "The ubiquity of 2-homogeneity" 2024, (2).
    """

    def __init__(self, inner: nn.Module, width: int, *, seed: int = 0):
        super().__init__()
        width = check_count("width", width)
        # Drawn as integers, so that signs are the same whatever the default dtype.
        signs = (
            torch.randint(2, (2, width), generator=torch.Generator().manual_seed(check_seed(seed)))
            * 2.0
            - 1
        )
        self.inner = inner
        self.a, self.b = (nn.Parameter(s.double() / width**0.5) for s in signs)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs for inputs (N, ...), shape (N, 1)."""
        return self.features(x) @ (self.a * self.b).to(x.dtype)[:, None]

    def features(self, x: Tensor) -> Tensor:
        """The features F(x; V), shape (N, m). Raises ModelError if `inner` gives another shape."""
        found = self.inner(x)
        if found.shape != (len(x), len(self.a)):
            raise ModelError(
                f"The inner module must give {len(self.a)} features for each of {len(x)} inputs; it"
                f" gave {tuple(found.shape)}"
            )
        return found

    def balanced_product(self) -> Tensor:
        """The product a . b of each feature's two factors, float64, shape (m,).

        Raises ModelError where |a_j| != |b_j| or 0: then |a . b| does not follow the mirror flow,
        and is not |a|^2.
        """
        a, b = self.a.detach().double(), self.b.detach().double()
        if not torch.equal(a.abs(), b.abs()) or (a == 0).any():
            raise ModelError(
                "Gradient flow is the mirror flow only where |a_j| = |b_j| > 0 for all j. Set every"
                " b_j to a_j or -a_j."
            )
        return a * b


def mirror_flow(net: NormalizedNet, data: Data, **options) -> Trajectory:
    """Follow the mirror flow that gradient flow of a normalized net is in u = |a . b|.

    d ln u / dt = -2 grad_u and dV / dt = -grad_V of the summed loss, h = <u . beta, F(x; V)>,
    beta = sign(a . b) of the net. In u the loss is convex and the geometry that of the l1 norm.
    Where |a_j| = |b_j|, gradient flow on (a, b, V) is this flow, with u = a^2 = b^2.

    Parameters
    ----------
    net : NormalizedNet
        The start; it is not changed.
    data : tuple or Arrays
        (X, y) with labels {-1, +1} or {0, 1}, as for `nm.gradient_flow`.
    **options
        The keyword arguments of `nm.gradient_flow`, such as `time`. A *mean* loss would run n times
        slower in t.

    Returns
    -------
    Trajectory
        As of `nm.gradient_flow`, with states that hold log_u, shape (m,), and V as inner.*. Its
        margins are not normalized: divide q_min by 2 sum(u) for that over |a|^2 + |b|^2.

    Raises
    ------
    ModelError
        If |a_j| != |b_j| or 0 for some j, from where the two flows differ.
    DataError, ArgumentError
        As `nm.gradient_flow`.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = nm.twolayer.NormalizedNet(nm.twolayer.NormalizedReLU(2, 6), 6)
    >>> data = ([[1.0, 0.5], [-0.3, 1.0], [0.2, -1.0]], [1, -1, 1])
    >>> u = torch.exp(nm.twolayer.mirror_flow(net, data, time=10.0).final["log_u"])
    >>> flow = nm.gradient_flow(net, data, time=10.0).final
    >>> bool(torch.allclose(u, flow["a"] ** 2, rtol=1e-6))
    True
    >>> torch.equal(flow["a"].abs(), flow["b"].abs())
    True

    Source: "The ubiquity of 2-homogeneity" 2024, Lemma 3.2.
    """
    mirror = _MirrorNet(net)
    flow = gradient_flow(
        mirror,
        data,
        metric=lambda point: {
            "moved_log_u": (
                2 * torch.exp(-mirror.log_u(point["moved_log_u"]).clamp(min=_SMALLEST_LOG_U))
            )
        },
        **options,
    )
    for state in (flow.final, *flow.states.values()):
        state["log_u"] = mirror.log_u(state.pop("moved_log_u"))
    return flow


class _MirrorNet(nn.Module):
    """The net <u . beta, F(x; V)> with parameters log u, shifted by a constant, and V.

    Steps are relative to the norm of the parameters, and that of log u would be 0 at u = 1 by
    accident: the shift makes the smallest parameter 1.
    """

    beta: Tensor

    def __init__(self, net: NormalizedNet):
        super().__init__()
        product = net.balanced_product()
        self.inner, log_u = net.inner, torch.log(product.abs())
        self._shift = 1 - log_u.min().item()
        self.moved_log_u = nn.Parameter(log_u + self._shift)
        self.register_buffer("beta", torch.sign(product))

    def log_u(self, moved: Tensor) -> Tensor:
        """The logs of u for shifted parameters."""
        return moved - self._shift

    def forward(self, x: Tensor) -> Tensor:
        """The outputs for inputs (N, ...), shape (N, 1)."""
        return self.inner(x) @ (torch.exp(self.log_u(self.moved_log_u)) * self.beta)[:, None]
