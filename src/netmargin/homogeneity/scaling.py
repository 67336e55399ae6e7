"""The numerical judge of homogeneity: multiply parameters by c and compare outputs, in float64.

The judge knows nothing of the rules. It evaluates at a generic point near the given parameters (a bias that starts at
exactly 0 would hide), with the epsilons of normalizations made negligible, because every statement about
normalization layers is one about epsilon -> 0.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor, nn
from torch.func import functional_call

from .trace import EagerMode

FACTORS = (0.5, 3.0)
TOLERANCE = 1e-8
_EPSILON = 1e-300
_PERTURBATION = 0.1
_NOISE_PERIOD = 10_007


@dataclass(frozen=True)
class ScalingCheck:
    """The largest relative difference between outputs at scaled parameters and the claimed power of c times the outputs."""

    deviation: float
    tolerance: float = TOLERANCE

    @property
    def passed(self) -> bool:
        """True if the claimed exponents were observed at every tried factor."""
        return self.deviation <= self.tolerance


class ScalingProbe:
    """Evaluates a model in float64 with its parameters scaled."""

    def __init__(self, model: nn.Module, x, *, epsilons: Collection[float] = (), seed: int = 0, zeroed: Iterable[str] = ()):
        self._model, self._seed, self._epsilons = model, seed, epsilons
        self._x = _to_float64(x)
        generator = torch.Generator().manual_seed(seed)
        self._parameters = {n: _generic(p.detach(), generator) for n, p in model.named_parameters()}
        for name in zeroed:
            self._parameters[name].zero_()
        self._buffers = {n: _to_float64(b.detach().clone()) for n, b in model.named_buffers()}
        for name, buffer in self._buffers.items():
            if name.endswith("running_mean"):
                self._buffers[name] = _generic(buffer, generator)
        self._at_one = self.outputs({})

    @property
    def silent(self) -> bool:
        """True if the outputs are 0 at these inputs, so that nothing can be learnt from them."""
        return not bool(self._at_one.any())

    def outputs(self, factors: Mapping[str, float]) -> Tensor:
        """Outputs with each named parameter multiplied by its factor."""
        buffers = {n: b.clone() for n, b in self._buffers.items()}
        with torch.no_grad(), torch.random.fork_rng(), self._scaled(factors), _Float64WithoutEpsilon(self._epsilons):
            torch.manual_seed(self._seed)
            return functional_call(self._model, {**self._parameters, **buffers}, (clone_inputs(self._x),))

    @contextmanager
    def _scaled(self, factors: Mapping[str, float]):
        # In place and back: copies of millions of weights would cost more than the forward pass.
        for name, factor in factors.items():
            self._parameters[name].mul_(factor)
        try:
            yield
        finally:
            for name, factor in factors.items():
                self._parameters[name].mul_(1 / factor)

    def check(
        self, scaling: Mapping[str, Fraction | int], exponent: Fraction | int, *, factors: Sequence[float] = FACTORS
    ) -> ScalingCheck:
        """Does multiplying each parameter p by c^{scaling[p]} multiply the outputs by c^exponent, for each factor c?"""
        worst = 0.0
        for c in factors:
            scaled = self.outputs({n: c ** float(s) for n, s in scaling.items()})
            expected = self._at_one * c ** float(exponent)
            size = expected.abs().max().item()
            deviation = (scaled - expected).abs().max().item() / size if size > 0 else math.inf
            worst = max(worst, deviation if math.isfinite(deviation) else math.inf)
        return ScalingCheck(worst)

    def exponent(self, names: Iterable[str]) -> Fraction | None:
        """The observed k with outputs(c theta) = c^k outputs(theta) for the named parameters, or None if there is none."""
        names = list(names)
        size = self._at_one.abs().max().item()
        scaled = self.outputs(dict.fromkeys(names, 2.0)).abs().max().item()
        if not (0 < size < math.inf and 0 < scaled < math.inf):
            return None
        k = Fraction(math.log2(scaled / size)).limit_denominator(12)
        return k if self.check(dict.fromkeys(names, 1), k).passed else None


class _Float64WithoutEpsilon(EagerMode):
    """Computes in float64 even where a forward pass makes float32 constants, with the epsilons of normalizations at 1e-300.

    These are the arguments called eps, and the given small numbers where they are added or clamped to.
    """

    def __init__(self, epsilons: Collection[float]):
        super().__init__()
        self._epsilons = epsilons

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        in_place = func._schema.is_mutable
        args = list(args) if in_place else [_to_float64(a) for a in args]
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") in (torch.float32, torch.float16, torch.bfloat16):
            kwargs["dtype"] = torch.float64  # a cast would round
        name = func._schema.name.removeprefix("aten::").removesuffix("_")
        for index, argument in enumerate(func._schema.arguments):
            if argument.name in ("eps", "epsilon"):
                if index < len(args):
                    args[index] = _EPSILON
                else:
                    kwargs[argument.name] = _EPSILON
        if name in ("add", "clamp", "clamp_min"):
            args = [_EPSILON if isinstance(a, float) and a in self._epsilons else a for a in args]
        result = func(*args, **kwargs)
        return result if in_place or func.is_view else _to_float64(result)


def clone_inputs(x):
    """A copy of the inputs, because a forward pass may work in place."""
    if isinstance(x, Tensor):
        return x.clone()
    return type(x)(clone_inputs(part) for part in x) if isinstance(x, (list, tuple)) else x


def generic_inputs(x):
    """The inputs with noise on their floating numbers: blank or constant samples tell nothing about scaling."""
    if isinstance(x, Tensor):
        return _generic(x, torch.Generator().manual_seed(0)) if x.is_floating_point() else x
    return type(x)(generic_inputs(part) for part in x) if isinstance(x, (list, tuple)) else x


def _generic(values: Tensor, generator: torch.Generator) -> Tensor:
    size = torch.linalg.vector_norm(values, dtype=torch.float64).item() / math.sqrt(max(values.numel(), 1)) or 1.0
    # Noise that repeats after many numbers is generic enough, and cheap for millions of weights.
    noise = (
        torch.rand(_NOISE_PERIOD, generator=generator, dtype=torch.float64)
        .sub_(0.5)
        .mul_(2 * _PERTURBATION * size)
        .to(values.device)
    )
    result = values.to(torch.float64, copy=True).contiguous()
    flat = result.view(-1)
    whole = flat.numel() // _NOISE_PERIOD * _NOISE_PERIOD
    flat[:whole].view(-1, _NOISE_PERIOD).add_(noise)
    flat[whole:].add_(noise[: flat.numel() - whole])
    return result


def _to_float64(value):
    if isinstance(value, Tensor):
        return value.to(torch.float64) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_float64(v) for v in value)
    return value
