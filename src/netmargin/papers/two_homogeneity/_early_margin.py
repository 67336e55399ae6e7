"""The margin that good features at the start promise at time t (Theorem 3.1, corrected)."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ...core.arguments import check_number
from ...core.matrices import as_array, binary_data
from ...core.records import Shown
from ...errors import ArgumentError, DataError, ModelError
from ...nets.data import Data, read_model_and_data, takes_data
from ...nets.model import call_net, call_with, float64_copy
from ...result import Status
from ..ledger.directions import matrix_game
from ._measures import least_divergence
from ._normalized_nets import NormalizedNet

_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
"""Shares of the best margin that are tried: flat near the best, .7 to .9; finer ones gain 1%."""
_EXPONENTS = 30
"""Gradients are weighted by random powers of 2 up to this one: exact, far from overflow."""
_LARGEST_JACOBIAN = 200_000_000
"""Entries of all gradients of the features: 1.6 GB in float64, what a small machine can spare."""
_GRAM_ROWS = 2000
"""Rows of the gradients' Gram matrix that are held at once: all take the square of their number."""


@dataclass(frozen=True)
class EarlyMargin(Shown):
    """Constants of the theorem, and the margin that it guarantees, for one net, data and time t."""

    p: np.ndarray  # probabilities of the features, (m,): the given ones, or the best that was found
    gamma: float  # min_n <p, z_n> at the start
    proved: float  # an upper bound of gamma, for any p
    R: float  # D(u_bar, u(0)) / |u_bar|_1, u_bar = log(t n) / (gamma / 2) p
    C_1: float  # largest |<grad_V F_j(x_i), grad_V F_j(x_r)>| seen: a lower bound of the supremum
    C_2: float  # the same for two different features
    drift: float  # how much min_n <p, z_n> falls until t at most, given C_1 and C_2
    kept: float  # its least value seen
    guarantee: float | None  # of the margin over |a|^2 + |b|^2 at t; None where none is promised:
    # where neither the drift nor all states that were seen leave half of gamma
    status: Status

    @property
    def applies(self) -> bool:
        """Whether features separate the data and lose at most half of their margin."""
        return self.gamma > 0 and self.drift <= self.gamma / 2


@takes_data
def early_margin(
    net: NormalizedNet,
    data: Data,
    *,
    time: float,
    states: Iterable[dict[str, Tensor]] = (),
    p: np.ndarray | None = None,
) -> EarlyMargin:
    """The margin at time t of the flow of the mean loss that the features at its start guarantee.

    `gradient_flow`, which takes the sum, reaches t n times sooner. Every step of the proof is
    evaluated (the printed theorem lacks n in its time): the mean loss at t is at most B / n,
    B = (n R |u_bar| / 2 + 1) / t, so that q_min >= l^-1(B), and sum(u) <= (8 R + 2) |u_bar| +
    16 / n. C_1, C_2 and `kept` are over the start and `states` along the flow, (a, b, V) or
    (log_u, V).

    The theorem holds for any probabilities `p` of the features, (m,). By default those of least
    divergence from the start are tried at several margins: the best guarantee counts, first of
    those whose drift, which falls like 1 / m, leaves half of the margin (`applies`). Where it does
    not, only `states` show that features keep half, at their times; without any, nothing is
    promised. `spread_measure` has those of Lemma B.1. Theorem 3.1 and Lemma 3.4, corrected
    (docs/errata.md).
    """
    model, samples = read_model_and_data(net, data)
    if not isinstance(model, NormalizedNet):
        raise ModelError(f"net must be a NormalizedNet; got {type(model).__name__}")
    if not isinstance(states, Iterable):
        raise ArgumentError(f"states must be a list of states along the flow; got {states!r}")
    product = model.balanced_product()
    twin = cast(NormalizedNet, float64_copy(model))
    x = samples.X.to(twin.a)
    beta, u = torch.sign(product), product.abs().cpu().numpy()
    n = len(x)
    time = check_number("time", time, above=1 / n)  # where log(t n) > 0

    def signed_features() -> np.ndarray:
        with torch.no_grad():
            return np.asarray((call_net(twin.features, x) * beta).cpu()) * y[:, None]

    # Only the labels are checked here; the net takes the inputs in their own shape.
    y = binary_data(np.zeros((n, 1)), samples.y.cpu(), bias=False).y
    start = signed_features()
    best, most, proved = matrix_game(start)
    if p is not None:
        measures = _check_measure(p, len(u))[None]
    else:
        spread = [least_divergence(start, u, share * most) for share in _SHARES if most > 0]
        measures = np.stack([*spread, best])
    gammas = (measures @ start.T).min(1)
    if gammas.max() <= 0:
        raise DataError("The features at the start do not separate the data. Take a wider net.")
    least, constants, followed = gammas.copy(), _inner_products(twin, x), False
    status = Status.FINISHED
    try:
        for state in states:
            _load_inner(twin, state)
            now, larger = (measures @ signed_features().T).min(1), _inner_products(twin, x)
            least, constants, followed = np.minimum(least, now), np.maximum(constants, larger), True
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    C_1, C_2 = (float(c) for c in constants)

    def promise(p: np.ndarray, gamma: float, kept: float) -> EarlyMargin:
        size = math.log(time * n) / (gamma / 2)
        used = p > 0  # 0 log 0 = 0
        entropy = float((p[used] * np.log(size * p[used] / u[used])).sum())
        divergence = entropy + float(u.sum()) / size - 1
        bound_of_u, margin = promise_margin(divergence, size, n, time)
        drift = (C_1 * float(p.max()) + C_2) * (divergence * size + 2 / n) / 2 * bound_of_u
        bounds = {"R": divergence, "C_1": C_1, "C_2": C_2, "drift": drift, "kept": kept}
        found = EarlyMargin(p, gamma, proved, **bounds, guarantee=None, status=status)
        if margin is None or kept < gamma / 2 or not (found.applies or followed):
            return found
        # The margin over |a|^2 + |b|^2 is half that over |u|_1.
        return replace(found, guarantee=margin / 2)

    triples = zip(measures, gammas.tolist(), least.tolist(), strict=True)
    return max(
        (promise(*triple) for triple in triples if triple[1] > 0),
        key=lambda e: (e.guarantee is not None, e.applies, e.guarantee or 0.0, -e.drift),
    )


def _check_measure(p: Any, m: int) -> np.ndarray:
    """Probabilities of m features, as given. Raises ArgumentError where they are none."""
    found = as_array(p, "p")
    if found.shape != (m,) or not (found >= 0).all() or abs(found.sum() - 1) > 1e-9:
        raise ArgumentError(
            f"p must be probabilities of the {m} features, which sum to 1; got shape {found.shape}"
            f" with sum {found.sum():.6g}"
        )
    return found


def promise_margin(R: float, size: float, n: int, time: float) -> tuple[float, float | None]:
    """Bounds of |u|_1 and of the margin over it, None without one; |ubar| = `size` (Lemma 3.4)."""
    bound, losses = (8 * R + 2) * size + 16 / n, (n * R * size / 2 + 1) / time
    # A sum of losses of log 2 or more leaves room for a sample on the wrong side. What bounds u
    # from above then bounds nothing.
    return bound, -math.log(math.expm1(losses)) / bound if losses < math.log(2) else None


def _load_inner(twin: NormalizedNet, state: Any) -> None:
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
    m, size = len(twin.a), sum(v.numel() for v in V.values())

    def require_memory(rows: int, length: int) -> None:
        if rows * length > _LARGEST_JACOBIAN:
            said = f"{rows} gradients of the features do not fit in memory: take fewer samples"
            raise ModelError(said)

    def features(V: dict[str, Tensor], sample: Tensor) -> Tensor:
        return call_with(twin.inner, V, sample[None])[0]

    if all(v.dim() > 0 and len(v) == m for v in V.values()):
        require_memory(2 * len(x), size)
        if (gradients := _own_gradients(features, V, x, m)) is not None:
            products = ((g * gradients).sum(2).abs().max().item() for g in gradients)
            return np.array([max(products), 0.0])
    rows = len(x) * m
    require_memory(rows, size)
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


def _own_gradients(
    features: Callable[..., Any], V: dict[str, Tensor], x: Tensor, m: int
) -> Tensor | None:
    """Gradients (N, m, row) of features that depend on rows of V of their own; else None."""

    def rows(weights: Tensor, sample: Tensor) -> Tensor:
        """The gradient of a weighted sum of the features."""
        (found,) = torch.func.vjp(lambda V: features(V, sample), V)[1](weights)
        return torch.cat([g.reshape(m, -1) for g in found.values()], 1)

    random = torch.Generator().manual_seed(0)
    exponents = torch.randint(-_EXPONENTS, _EXPONENTS + 1, (len(x), m), generator=random)
    weights = (2.0 ** exponents.double()).to(x)
    own, weighted = (torch.func.vmap(rows)(w, x) for w in (torch.ones_like(weights), weights))
    # Weights scale the rows one by one, without rounding, if and only if no row is shared.
    return own if torch.equal(own * weights[..., None], weighted) else None
