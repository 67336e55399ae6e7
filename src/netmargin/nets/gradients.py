"""Gradients of a net's outputs in its parameters, one row per sample, without a matrix of samples
times parameters.

The gradient of a dense layer's weight is the outer product of the gradient in its output and its
input: it is kept as these two factors, so that inner products of gradients cost next to nothing for
the layers that hold most parameters.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from ..core.memory import is_of_memory
from ..core.records import Shown
from .advice import explain_forward_errors
from .dense_layers import find_dense_layers, shift_outputs
from .model import call_with
from .named_inputs import join_rows

_NUMBERS_AT_ONCE = 30_000_000
"""Numbers of the gradients that are computed at once: 240 MB, which leaves a laptop room for the
intermediate results of differentiation.
"""
_SAMPLES_AT_ONCE = 200
"""Samples of the gradients that are computed at once: their activations are held as well, which the
numbers above do not count.
"""
_NUMBERS_HELD = 120_000_000
"""Numbers of gradients that are held for later, 1 GB; beyond it time is spent instead of memory."""


def differentiate_each(
    outputs: Tensor, inputs: Sequence[Tensor], weights: Tensor
) -> tuple[Tensor | Any, ...]:
    """Gradients of sums of outputs with each row of weights: a tensor or None for each input."""
    # Anomaly detection reads values, which a batch of backward passes does not allow.
    with torch.autograd.set_detect_anomaly(False):
        return torch.autograd.grad(
            outputs, inputs, weights, is_grads_batched=True, allow_unused=True
        )


@dataclass(frozen=True)
class Factors(Shown):
    """Gradients outgoing_k incoming_k' (K rows each) of a dense weight, outgoing_k of its bias."""

    weight: str
    bias: str | None
    outgoing: Tensor
    incoming: Tensor


@dataclass(frozen=True)
class Gradients(Shown):
    """K gradients, float64: of `names`, in order, in `rows` (K, p); `factors` hold all others."""

    names: tuple[str, ...]
    rows: Tensor
    factors: tuple[Factors, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def inner(self, other: "Gradients") -> Tensor:
        """Return the inner products with other gradients, shape (K, K of other)."""
        total = self.rows @ other.rows.T
        # <a b', c d'> = (a . c)(b . d); a bias is an input that is always 1.
        for own, theirs in zip(self.factors, other.factors, strict=True):
            total += (own.outgoing @ theirs.outgoing.T) * (
                own.incoming @ theirs.incoming.T + (own.bias is not None)
            )
        return total

    def along(self, direction: dict[str, Tensor]) -> Tensor:
        """Return the inner products with a direction in parameter space, shape (K,)."""
        total = torch.zeros(len(self), dtype=self.rows.dtype, device=self.rows.device)
        if self.names:
            total += self.rows @ torch.cat([direction[name].reshape(-1) for name in self.names])
        for factors in self.factors:
            change = factors.incoming @ direction[factors.weight].T
            if factors.bias is not None:
                change = change + direction[factors.bias]
            total += (factors.outgoing * change).sum(1)
        return total

    def combination(self, weights: Tensor, like: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return sum_k weights_k gradient_k, with the names and shapes of `like`."""
        total, start = {}, 0
        for name in self.names:
            size = like[name].numel()
            total[name] = (weights @ self.rows[:, start : start + size]).reshape(like[name].shape)
            start += size
        for factors in self.factors:
            weighted = factors.outgoing * weights[:, None]
            total[factors.weight] = weighted.T @ factors.incoming
            if factors.bias is not None:
                total[factors.bias] = weighted.sum(0)
        return total

    def __getitem__(self, index: Tensor) -> "Gradients":
        """Return the gradients of these indices, in their order."""
        factors = tuple(
            replace(f, outgoing=f.outgoing[index], incoming=f.incoming[index]) for f in self.factors
        )
        return Gradients(self.names, self.rows[index], factors)

    @classmethod
    def concatenate(cls, parts: list["Gradients"]) -> "Gradients":
        """Return the gradients of all parts, in order."""
        factors = []
        for of_layer in zip(*(part.factors for part in parts), strict=True):
            outgoing = torch.cat([f.outgoing for f in of_layer])
            incoming = torch.cat([f.incoming for f in of_layer])
            factors.append(replace(of_layer[0], outgoing=outgoing, incoming=incoming))
        return cls(parts[0].names, torch.cat([part.rows for part in parts]), tuple(factors))


class SampleGradients:
    """Gradients of sums w_k . Phi(x_k), sample by sample, in parameters of a twin now.

    `share` is that of a caller whose batches are small.
    """

    def __init__(self, twin: nn.Module, names: Iterable[str], x: Any, share: float = 1.0) -> None:
        self._twin, self.names = twin, tuple(names)
        self._dense = find_dense_layers(twin, set(self.names), x[:1])
        factored = {f"{layer}.{kind}" for layer in self._dense for kind in ("weight", "bias")}
        # Biases of factored layers are read off the factors too.
        self._explicit = tuple(n for n in self.names if n not in factored)
        parameters = dict(twin.named_parameters())
        width = sum(parameters[n].numel() for n in self._explicit)
        width += sum(sum(parameters[f"{layer}.weight"].shape) for layer in self._dense)
        self.width, self._one_by_one = width, False
        at_once = min(_NUMBERS_AT_ONCE // width, _SAMPLES_AT_ONCE)
        self.chunk = max(1, int(min(share, 1.0) * at_once))

    def __call__(self, x: Any, weights: Tensor) -> Gradients:
        """Return the gradients of weights_k . Phi(x_k) for K samples x and weights (K, C)."""
        parameters = dict(self._twin.named_parameters())
        explicit = {n: parameters[n].detach() for n in self._explicit}
        fixed = {n: p.detach() for n, p in parameters.items() if n not in explicit}
        fixed |= dict(self._twin.named_buffers())
        outputs = {name: len(parameters[f"{name}.weight"]) for name in self._dense}
        kind: Any = {"dtype": torch.float64, "device": x.device}
        added = {name: torch.zeros(1, size, **kind) for name, size in outputs.items()}

        def score(free: dict[str, Any], added: dict[str, Any], x: Any, w: Tensor) -> Any:
            incoming: dict[str, Tensor] = {}
            with shift_outputs(self._twin, added, incoming):
                output = call_with(self._twin, free | fixed, x[None]).reshape(-1)
            return output @ w, {name: a.reshape(-1) for name, a in incoming.items()}

        def differentiate(x: Any, w: Tensor) -> Any:
            free, shifts = (
                {n: t.clone().requires_grad_() for n, t in held.items()}
                for held in (explicit, added)
            )
            with torch.enable_grad():
                total, incoming = score(free, shifts, x, w)
            leaves = [*free.values(), *shifts.values()]
            found = iter(torch.autograd.grad(total, leaves, materialize_grads=True))
            return tuple({n: next(found) for n in held} for held in (free, shifts)), incoming

        # vmap runs the backward passes of all samples as one: no loop over samples in Python.
        together = torch.func.vmap(
            torch.func.grad(score, argnums=(0, 1), has_aux=True), in_dims=(None, None, 0, 0)
        )
        if not self._one_by_one:
            try:
                (rows, outgoing), incoming = together(explicit, added, x, weights)
            # Recurrent layers, .item(), checkpoints, or writing to tensors that forward makes:
            # torch.func refuses them in words of its own, and plain autograd may take one sample
            # after the other.
            except Exception as error:
                if is_of_memory(error):
                    raise
                self._one_by_one = True
        if self._one_by_one:
            with explain_forward_errors(x):
                parts = [differentiate(x[k], weights[k]) for k in range(len(x))]
            (rows, outgoing), incoming = tree_map(lambda *each: torch.stack(each), *parts)
        count = len(x)
        none = torch.zeros(count, 0, dtype=torch.float64, device=x.device)
        flat = torch.cat([none, *(rows[n].reshape(count, -1) for n in self._explicit)], 1)
        factors = tuple(
            Factors(
                f"{name}.weight",
                f"{name}.bias" if f"{name}.bias" in self.names else None,
                outgoing[name].reshape(count, -1),
                incoming[name],
            )
            for name in self._dense
        )
        return Gradients(self._explicit, flat, factors)

    def chunks(self, x: Any, weights: Tensor) -> Iterator[Gradients]:
        """Yield `Gradients` of a few samples at a time, as many as memory allows."""
        for part, w in zip(x.split(self.chunk), weights.split(self.chunk), strict=True):
            yield self(part, w)


class StoredGradients:
    """Gradients of samples x with weights (K, C), held (or `known`) if they fit, else anew."""

    def __init__(
        self,
        source: SampleGradients,
        x: Any,
        weights: Tensor,
        known: Sequence[Gradients] | None = None,
    ) -> None:
        self._source, self._x, self._weights = source, x, weights
        fits = len(x) * source.width <= _NUMBERS_HELD
        self._held = list(known or source.chunks(x, weights)) if fits else None

    def __iter__(self) -> Iterator[Gradients]:
        if self._held is not None:
            return iter(self._held)
        return self._source.chunks(self._x, self._weights)

    def inner(self, other: "StoredGradients | None" = None) -> Tensor:
        """Return the inner products with each other, or with others: (K, K of other), float64."""
        return torch.cat(
            [torch.cat([left.inner(right) for right in other or self], 1) for left in self]
        )

    def along(self, direction: dict[str, Tensor]) -> Tensor:
        """Return the inner products with a direction in parameter space, shape (K,)."""
        return torch.cat([part.along(direction) for part in self])

    def combination(self, weights: Tensor, like: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return sum_k weights_k gradient_k, with the names and shapes of `like`."""
        total = {name: torch.zeros_like(p) for name, p in like.items()}
        start = 0
        for part in self:
            for name, share in part.combination(weights[start : start + len(part)], like).items():
                total[name] += share
            start += len(part)
        return total

    def joined(self, other: "StoredGradients") -> "StoredGradients":
        """Return these gradients and then the others, of the same source, without a new pass."""
        x, weights = join_rows([self._x, other._x]), torch.cat([self._weights, other._weights])
        known = [*(self._held or ()), *(other._held or ())]  # of both, if both together fit
        return StoredGradients(self._source, x, weights, known)
