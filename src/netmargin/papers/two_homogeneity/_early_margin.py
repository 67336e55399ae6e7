"""The margin that good features at the start promise at time t (Theorem 3.1, corrected)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from ...core.arguments import check_number
from ...core.matrices import binary_data
from ...core.records import short_repr
from ...errors import ArgumentError, DataError, ModelError
from ...nets.data import Data, read_model_and_data, takes_data
from ...nets.model import call_net, call_with, float64_copy
from ...result import Status
from ..ledger.directions import matrix_game
from ._normalized_nets import NormalizedNet

_LARGEST_JACOBIAN = 200_000_000
"""Entries of all gradients of the features: 1.6 GB in float64, what a small machine can spare."""
_GRAM_ROWS = 2000
"""Rows of the Gram matrix of the gradients that are held at once: all of them would take the square
of their number.
"""


@dataclass(frozen=True)
class EarlyMargin:
    """Constants of the theorem, and the margin that it guarantees, for one net, data and time t."""

    p: np.ndarray  # probabilities of the features that maximize gamma = min_n <p, z_n>, (m,)
    gamma: float  # that maximum, as attained by p
    proved: float  # an upper bound of gamma
    R: float  # D(u_bar, u(0)) / |u_bar|_1, u_bar = log(t n) / (gamma / 2) p
    C_1: float  # largest |<grad_V F_j(x_i), grad_V F_j(x_r)>| seen: a lower bound of the supremum
    C_2: float  # the same for two different features
    drift: float  # how much min_n <p, z_n> falls until t at most, given C_1 and C_2
    kept: float  # its least value seen
    guarantee: float | None  # of the margin over |a|^2 + |b|^2 at t; None where none is promised
    status: Status

    __repr__ = short_repr

    @property
    def applies(self) -> bool:
        """Whether features separate the data and lose at most half of their margin."""
        return self.gamma > 0 and self.drift <= self.gamma / 2


@takes_data
def early_margin(
    net: NormalizedNet, data: Data, *, time: float, states: Iterable[dict[str, Tensor]] = ()
) -> EarlyMargin:
    """The margin at time t of the flow of the mean loss that the features at its start guarantee.

    `gradient_flow`, which takes the sum, reaches t n times sooner. Every step of the proof is
    evaluated (the printed theorem lacks n in its time): the mean loss at t is at most B / n,
    B = (n R |u_bar| / 2 + 1) / t, so that q_min >= l^-1(B), and sum(u) <= (8 R + 2) |u_bar| +
    16 / n. C_1, C_2 and `kept` are over the start and `states` along the flow, (a, b, V) or
    (log_u, V). Theorem 3.1 and Lemma 3.4, corrected (docs/errata.md).
    """
    model, samples = read_model_and_data(net, data)
    if not isinstance(model, NormalizedNet):
        raise ModelError(
            "The theorem is about nets <a . b, F(x; V)>: give a NormalizedNet;"
            f" got {type(model).__name__}"
        )
    if not isinstance(states, Iterable):
        raise ArgumentError(
            "states must be states along the flow, such as trajectory.states.values(); got"
            f" {states!r}"
        )
    product = model.balanced_product()
    twin = cast(NormalizedNet, float64_copy(model))
    x = samples.X.to(twin.a)
    beta, u = torch.sign(product), product.abs().cpu().numpy()
    n = len(x)
    time = check_number("time", time, above=1 / n)  # where log(t n) > 0

    def signed_features() -> np.ndarray:
        with torch.no_grad():
            return y[:, None] * (call_net(twin.features, x) * beta).cpu().numpy()

    # Only the labels are checked here; the net takes the inputs in their own shape.
    y = binary_data(np.zeros((n, 1)), samples.y.cpu(), bias=False).y
    start = signed_features()
    p, gamma, proved = matrix_game(start)
    if gamma <= 0:
        raise DataError(
            f"The features at the start do not separate the data (gamma = {gamma:.3g}). Take a"
            " wider net, or other signs of a b."
        )
    kept, constants = gamma, _inner_products(twin, x)
    status = Status.FINISHED
    try:
        for state in states:
            _load_inner(twin, state)
            least, larger = float((signed_features() @ p).min()), _inner_products(twin, x)
            kept, constants = min(kept, least), np.maximum(constants, larger)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    C_1, C_2 = (float(c) for c in constants)

    size = math.log(time * n) / (gamma / 2)
    used = p > 0  # 0 log 0 = 0
    entropy = float((p[used] * np.log(size * p[used] / u[used])).sum())
    divergence = entropy + float(u.sum()) / size - 1
    bound_of_u, margin = promise_margin(divergence, size, n, time)
    drift = (C_1 * float(p.max()) + C_2) * (divergence * size + 2 / n) / 2 * bound_of_u
    # The margin over |a|^2 + |b|^2 is half that over |u|_1.
    guarantee = margin / 2 if margin is not None and kept >= gamma / 2 else None
    bounds = {"R": divergence, "C_1": C_1, "C_2": C_2, "drift": drift, "kept": kept}
    return EarlyMargin(p, gamma, proved, **bounds, guarantee=guarantee, status=status)


def promise_margin(R: float, size: float, n: int, time: float) -> tuple[float, float | None]:
    """Bounds of |u|_1 and of the margin over it, None without one; |ubar| = `size` (Lemma 3.4)."""
    bound, losses = (8 * R + 2) * size + 16 / n, (n * R * size / 2 + 1) / time
    # A sum of losses of log 2 or more leaves room for a sample on the wrong side. What bounds u
    # from above then bounds nothing.
    return bound, -math.log(math.expm1(losses)) / bound if losses < math.log(2) else None


def _load_inner(twin: NormalizedNet, state: dict[str, Tensor]) -> None:
    """Give the inner module the parameters of a state. Raises ModelError where one does not fit."""
    for name, own in twin.inner.named_parameters(prefix="inner"):
        given = state.get(name) if isinstance(state, Mapping) else state
        if not isinstance(given, Tensor) or given.shape != own.shape:
            found = tuple(given.shape) if isinstance(given, Tensor) else repr(given)
            raise ModelError(
                f"{name!r} of a state must be a tensor of shape {tuple(own.shape)}, as in those of"
                f" trajectory.states.values(); got {found}"
            )
        own.data.copy_(given)


def _inner_products(twin: NormalizedNet, x: Tensor) -> np.ndarray:
    """C_1 and C_2 at the present V, the largest inner products of gradients of features."""
    V = {name: v.detach() for name, v in twin.inner.named_parameters()}
    if not V:
        return np.zeros(2)
    rows, m = len(x) * len(twin.a), len(twin.a)
    if rows * sum(v.numel() for v in V.values()) > _LARGEST_JACOBIAN:
        raise ModelError(
            f"C_1 and C_2 take all {rows} gradients of the features, which do not fit in memory."
            " Take fewer samples or features."
        )

    def features(V: dict[str, Tensor], sample: Tensor) -> Tensor:
        return call_with(twin.inner, V, sample[None])[0]

    # One Jacobian per sample: C_1 and C_2 compare features at single samples.
    jacobians = torch.func.vmap(torch.func.jacrev(features), (None, 0))(V, x)
    J = torch.cat([j.reshape(rows, -1) for j in jacobians.values()], 1)
    feature = torch.arange(rows, device=x.device) % m
    own = other = 0.0
    for part, which in zip(J.split(_GRAM_ROWS), feature.split(_GRAM_ROWS), strict=True):
        products = (part @ J.T).abs()
        same = which[:, None] == feature
        own = max(own, (products * same).max().item())
        other = max(other, (products * ~same).max().item())
    return np.array([own, other])
