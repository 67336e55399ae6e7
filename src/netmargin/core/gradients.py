"""Gradients of a net's outputs in its parameters, one row per sample, without a matrix of samples
times parameters.

The gradient of a dense layer's weight is an outer product of what comes in and what is asked of
what goes out: it is kept as these two factors, so that inner products of gradients cost next to
nothing for the layers that hold most parameters.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..errors import DataError, ModelError
from .forward_failures import explain_forward_errors
from .records import short_repr

_ENTRIES = 30_000_000
_SAMPLES = 200
"""Gradients are computed for at most this many samples at once, and at most this many numbers (240
MB).
"""
_HELD = 120_000_000
"""At most this many numbers are held for later (1 GB)."""


@dataclass(frozen=True)
class Factors:
    """Gradients outgoing_k incoming_k' of the weight of a dense layer, and outgoing_k of its
    bias.
    """

    weight: str
    bias: str | None
    outgoing: Tensor
    incoming: Tensor

    __repr__ = short_repr


@dataclass(frozen=True)
class Gradients:
    """K gradients: explicit rows (K, p) of the parameters in `names`, factors of the others."""

    names: tuple[str, ...]
    rows: Tensor
    factors: tuple[Factors, ...]

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.rows)

    def inner(self, other: "Gradients") -> Tensor:
        """Inner products, shape (K, K of other)."""
        total = self.rows @ other.rows.T
        for own, theirs in zip(self.factors, other.factors, strict=True):
            total += (own.outgoing @ theirs.outgoing.T) * (
                own.incoming @ theirs.incoming.T + (own.bias is not None)
            )
        return total

    def along(self, direction: dict[str, Tensor]) -> Tensor:
        """Inner products with a direction in parameter space, shape (K,)."""
        total = torch.zeros(len(self), dtype=self.rows.dtype, device=self.rows.device)
        if self.names:
            total += self.rows @ torch.cat([direction[name].reshape(-1) for name in self.names])
        for factors in self.factors:
            moved = factors.incoming @ direction[factors.weight].T
            total += (
                factors.outgoing
                * (moved if factors.bias is None else moved + direction[factors.bias])
            ).sum(1)
        return total

    def combination(self, weights: Tensor, like: dict[str, Tensor]) -> dict[str, Tensor]:
        """sum_k weights_k gradient_k, with the names and shapes of `like`."""
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
        """Some of them."""
        factors = tuple(
            replace(f, outgoing=f.outgoing[index], incoming=f.incoming[index]) for f in self.factors
        )
        return Gradients(self.names, self.rows[index], factors)

    @classmethod
    def concatenate(cls, parts: list["Gradients"]) -> "Gradients":
        """All rows of the parts, in order."""
        factors = zip(*(part.factors for part in parts), strict=True)
        return cls(
            parts[0].names,
            torch.cat([part.rows for part in parts]),
            tuple(
                Factors(
                    f[0].weight,
                    f[0].bias,
                    torch.cat([g.outgoing for g in f]),
                    torch.cat([g.incoming for g in f]),
                )
                for f in factors
            ),
        )


class SampleGradients:
    """Gradients of weighted sums of outputs, w_k . Phi(x_k), for samples x_k one by one.

    twin : from `float64_copy`.
    names : the parameters to differentiate in.
    x : a batch, of which one sample is followed. The parameters are those the twin has at the time
        of the call.
    """

    def __init__(self, twin: nn.Module, names: Iterable[str], x: Tensor):
        self._twin, self.names = twin, tuple(names)
        self._dense = _dense_layers(twin, set(self.names), x[:1])
        factored = {f"{layer}.{kind}" for layer in self._dense for kind in ("weight", "bias")}
        self._explicit = tuple(n for n in self.names if n not in factored)
        parameters = dict(twin.named_parameters())
        width = sum(parameters[n].numel() for n in self._explicit)
        width += sum(sum(parameters[f"{layer}.weight"].shape) for layer in self._dense)
        self.width = width
        self.chunk = max(1, min(_ENTRIES // width, _SAMPLES))

    def __call__(self, x: Tensor, weights: Tensor) -> Gradients:
        """Gradients of weights_k . Phi(x_k).

        x : (K, ...), weights : (K, C).
        """
        parameters = dict(self._twin.named_parameters())
        explicit = {n: parameters[n].detach() for n in self._explicit}
        fixed = {n: p.detach() for n, p in parameters.items() if n not in explicit} | dict(
            self._twin.named_buffers()
        )
        added = {
            name: torch.zeros(
                1, parameters[f"{name}.weight"].shape[0], dtype=torch.float64, device=x.device
            )
            for name in self._dense
        }

        def score(free: dict, added: dict, x: Tensor, w: Tensor):
            incoming: dict[str, Tensor] = {}
            with _shifted(self._twin, added, incoming):
                output = torch.func.functional_call(self._twin, free | fixed, (x[None],)).reshape(
                    -1
                )
            return output @ w, {name: a.reshape(-1) for name, a in incoming.items()}

        gradient = torch.func.vmap(
            torch.func.grad(score, argnums=(0, 1), has_aux=True), in_dims=(None, None, 0, 0)
        )
        try:
            with explain_forward_errors(x):
                (rows, outgoing), incoming = gradient(explicit, added, x, weights)
        except DataError as error:
            # One batch of these inputs has passed before: it is the differentiation that fails.
            raise ModelError(
                f"Gradients sample by sample failed: {error.__cause__}. Data-dependent Python"
                " control flow and .item() in forward are usual causes; remove them for"
                " certification."
            ) from error
        count = len(x)
        flat = [rows[n].reshape(count, -1) for n in self._explicit]
        factors = tuple(
            Factors(
                f"{name}.weight",
                f"{name}.bias" if f"{name}.bias" in self.names else None,
                outgoing[name].reshape(count, -1),
                incoming[name],
            )
            for name in self._dense
        )
        return Gradients(
            self._explicit,
            (
                torch.cat(flat, 1)
                if flat
                else torch.zeros(count, 0, dtype=torch.float64, device=x.device)
            ),
            factors,
        )

    def chunks(self, x: Tensor, weights: Tensor):
        """`Gradients` of a few samples at a time."""
        for part, w in zip(x.split(self.chunk), weights.split(self.chunk), strict=True):
            yield self(part, w)


class StoredGradients:
    """Many gradients: held as long as they fit, otherwise computed in chunks whenever they are
    asked for.
    """

    def __init__(self, source: SampleGradients, x: Tensor, weights: Tensor):
        self._source, self._x, self._weights = source, x, weights
        self._held = list(source.chunks(x, weights)) if len(x) * source.width <= _HELD else None

    def __iter__(self) -> Iterator[Gradients]:
        return (
            iter(self._held)
            if self._held is not None
            else self._source.chunks(self._x, self._weights)
        )

    def inner(self, other: "StoredGradients | None" = None) -> Tensor:
        """Inner products with each other or with others, float64."""
        return torch.cat(
            [torch.cat([left.inner(right) for right in other or self], 1) for left in self]
        )

    def along(self, direction: dict[str, Tensor]) -> Tensor:
        """Inner products with a direction in parameter space."""
        return torch.cat([part.along(direction) for part in self])

    def combination(self, weights: Tensor, like: dict[str, Tensor]) -> dict[str, Tensor]:
        """sum_k weights_k gradient_k, with the names and shapes of `like`."""
        total = {name: torch.zeros_like(p) for name, p in like.items()}
        start = 0
        for part in self:
            for name, share in part.combination(weights[start : start + len(part)], like).items():
                total[name] += share
            start += len(part)
        return total

    def joined(self, other: "StoredGradients") -> "StoredGradients":
        """Both."""
        both = StoredGradients.__new__(StoredGradients)
        both._source, both._x, both._weights = (
            self._source,
            torch.cat([self._x, other._x]),
            torch.cat([self._weights, other._weights]),
        )
        fits = (
            self._held is not None
            and other._held is not None
            and len(both._x) * self._source.width <= _HELD
        )
        both._held = (self._held or []) + (other._held or []) if fits else None
        return both


@contextmanager
def _shifted(twin: nn.Module, added: dict[str, Tensor], incoming: dict[str, Tensor]):
    """Inside, dense layers add a tensor to their output, by which a gradient tells what is asked of
    it; inputs are noted.
    """

    def hook(name: str) -> Callable:
        def shift(module, inputs, output):
            incoming[name] = inputs[0]
            return output + added[name]

        return shift

    modules = dict(twin.named_modules())
    handles = [modules[name].register_forward_hook(hook(name)) for name in added]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _dense_layers(twin: nn.Module, names: set[str], x: Tensor) -> tuple[str, ...]:
    """nn.Linear layers that are run once per sample, on one vector, with parameters used nowhere
    else: those whose gradients are outer products.
    """
    calls: dict[str, list[int]] = {}
    handles = []
    candidates = {
        name: module
        for name, module in twin.named_modules()
        if type(module) is nn.Linear
        and f"{name}.weight" in names
        and (module.bias is None or f"{name}.bias" in names)
        and module.weight.numel() > 4 * sum(module.weight.shape)
    }

    def note(name: str) -> Callable:
        return lambda module, inputs, output: calls.setdefault(name, []).append(
            output.numel() // module.out_features
        )

    for name, module in candidates.items():
        handles.append(module.register_forward_hook(note(name)))
    try:
        with torch.no_grad(), explain_forward_errors(x), _Uses() as uses:
            twin(x)
    finally:
        for handle in handles:
            handle.remove()
    return tuple(
        name
        for name, module in candidates.items()
        if calls.get(name) == [1] and all(uses.of(p) == 1 for p in module.parameters())
    )


class _Uses(TorchFunctionMode):
    """Inside, counts the operations that take each tensor as an argument."""

    def __init__(self):
        super().__init__()
        self._counts: dict[int, int] = {}

    def of(self, tensor: Tensor) -> int:
        return self._counts.get(id(tensor), 0)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        waiting = [*args, *(kwargs or {}).values()]
        while waiting:
            item = waiting.pop()
            if isinstance(item, (list, tuple)):
                waiting.extend(item)
            elif isinstance(item, Tensor):
                self._counts[id(item)] = self.of(item) + 1
        return func(*args, **(kwargs or {}))
