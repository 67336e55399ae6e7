"""The numerical judge of homogeneity: multiply parameters by c and compare outputs, in float64.

The judge knows nothing of the rules. It asks two questions. Do the exponents hold, once the
epsilons are made negligible? That is asked at a generic point near the given parameters (a bias
that starts at exactly 0 would hide) and must hold up to rounding. And how well do they hold for the
net as it is, epsilons and casts in place?
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction

import torch
from torch import Tensor, nn
from torch.func import functional_call

from .degree import Epsilon
from .modes import ROUGH, EagerMode, ModulePath

FACTORS = (0.5, 2.0)
TOLERANCE = 1e-8
"""Rounding of a deep net in float64, with room. What is off by more is off by something that does
not scale.
"""
WIDE = (1e-3, 0.5, 1e3)
"""Where nothing but numbers is known, exponents must be the same over this range; 2.0 is where they
are read off.
"""
_EPSILON = 1e-300
_SAME = 1e-2
"""Up to how much two numbers of one module are the same epsilon, once rounded to half precision and
once not.
"""
_PERTURBATION = 0.1
_NOISE_PERIOD = 10_007


class ScalingProbe:
    """Evaluates a model in float64 with its parameters scaled.

    Parameters
    ----------
    model : the net, in the mode that it is in.
    x : a batch of inputs.
    neglected : epsilons that are made negligible.
    as_it_is : at the given parameters; else at a generic point near them.
    rounding : where the forward pass casts to half precision, its results are rounded.
    seed : of the generic point, and of what the forward pass draws.
    zeroed : parameters that are set to 0.
    """

    def __init__(
        self,
        model: nn.Module,
        x,
        *,
        neglected: Collection[Epsilon] = (),
        as_it_is: bool = False,
        rounding: bool = False,
        seed: int = 0,
        zeroed: Iterable[str] = (),
    ):
        self._model, self._seed = model, seed
        self.x = _to_float64(x)
        self._path = ModulePath()
        self._neglected = frozenset((epsilon.where, epsilon.value) for epsilon in neglected)
        self._rounding = rounding
        generator = torch.Generator().manual_seed(seed)
        parameters = {n: p.detach() for n, p in model.named_parameters()}
        if as_it_is:
            self._parameters = {n: p.to(torch.float64, copy=True) for n, p in parameters.items()}
        else:
            sizes = _typical_sizes(parameters)
            self._parameters = {n: _generic(p, generator, sizes[n]) for n, p in parameters.items()}
        for name in zeroed:
            self._parameters[name].zero_()
        self._buffers = {n: _to_float64(b.detach().clone()) for n, b in model.named_buffers()}
        for name, buffer in self._buffers.items():
            if name.endswith("running_mean") and not as_it_is:
                self._buffers[name] = _generic(buffer, generator, _size(buffer))
        self._precision = next(
            (torch.finfo(p.dtype).eps for p in parameters.values()), torch.finfo(torch.float32).eps
        )
        self._at_one = self.outputs({})

    @property
    def silent(self) -> bool:
        """True if the outputs are 0 at these inputs, so that nothing can be learnt from them."""
        return not bool(self._at_one.any())

    def outputs(self, factors: Mapping[str, float]) -> Tensor:
        """Outputs with each named parameter multiplied by its factor."""
        buffers = {n: b.clone() for n, b in self._buffers.items()}
        mode = _Float64(self._path, self._neglected, self._rounding, self._precision)
        with (
            torch.no_grad(),
            torch.random.fork_rng(),
            self._scaled(factors),
            self._followed(),
            mode,
        ):
            torch.manual_seed(self._seed)
            return functional_call(
                self._model, {**self._parameters, **buffers}, (clone_inputs(self.x),)
            )

    @contextmanager
    def _followed(self):
        if not self._neglected:  # nobody asks where an operation is
            yield
            return
        with self._path.following(self._model):
            yield

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

    def miss(self, factors: Mapping[str, float], expected: float) -> float:
        """How far the outputs at scaled parameters are from `expected` times the outputs, relative
        to the largest of these.
        """
        target = self._at_one * expected
        size = target.abs().max().item()
        difference = (self.outputs(factors) - target).abs().max().item()
        miss = difference / size if size > 0 else math.inf
        return miss if math.isfinite(miss) else math.inf

    def follows(
        self,
        scaling: Mapping[str, Fraction | int],
        exponent: Fraction | int,
        *,
        factors: Sequence[float] = FACTORS,
    ) -> bool:
        """Does multiplying each parameter p by c^{scaling[p]} multiply the outputs by c^exponent,
        for each factor c?
        """
        misses = (
            self.miss({n: c ** float(s) for n, s in scaling.items()}, c ** float(exponent))
            for c in factors
        )
        return all(miss <= TOLERANCE for miss in misses)

    def exponent(self, names: Iterable[str]) -> Fraction | None:
        """The k with outputs(c theta) = c^k outputs(theta) for the named parameters and c from 1e-3
        to 1e3, or None.
        """
        names = list(names)
        size = self._at_one.abs().max().item()
        scaled = self.outputs(dict.fromkeys(names, 2.0)).abs().max().item()
        if not (0 < size < math.inf and 0 < scaled < math.inf):
            return None
        k = Fraction(math.log2(scaled / size)).limit_denominator(12)
        return (
            k
            if abs(k) < 100 and self.follows(dict.fromkeys(names, 1), k, factors=(2.0, *WIDE))
            else None
        )


class _Float64(EagerMode):
    """Computes in float64 even where a forward pass makes float32 constants, with the `neglected`
    epsilons at 1e-300.

    These are the arguments called eps, and the given small numbers where they are added or clamped
    to. Casts to half precision are left out, or else only their `rounding` is kept.
    """

    def __init__(
        self,
        path: ModulePath,
        neglected: frozenset[tuple[str, float]],
        rounding: bool,
        precision: float,
    ):
        super().__init__()
        self._path, self._neglected, self._rounding, self._precision = (
            path,
            neglected,
            rounding,
            precision,
        )

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        in_place = func._schema.is_mutable
        args = list(args) if in_place else [_to_float64(a) for a in args]
        kwargs = dict(kwargs or {})
        asked = kwargs.get("dtype")
        if asked in (torch.float32, *ROUGH):
            kwargs["dtype"] = torch.float64  # a cast would round
        self._set_epsilons(func, args, kwargs)
        result = func(*args, **kwargs)
        if in_place or func.is_view:
            return result
        if asked in ROUGH and self._rounding and isinstance(result, Tensor):
            result = result.to(asked)
        return _to_float64(result)

    def _set_epsilons(self, func, args: list, kwargs: dict) -> None:
        name = func._schema.name.removeprefix("aten::").removesuffix("_")
        for index, argument in enumerate(func._schema.arguments):
            if argument.name in ("eps", "epsilon"):
                here, key = (args, index) if index < len(args) else (kwargs, argument.name)
                value = here[key] if isinstance(here, list) else here.get(key)  # type: ignore[call-overload]
                here[key] = self._read(torch.finfo(torch.float64).eps if value is None else value)  # type: ignore[index]
        if name in ("add", "clamp", "clamp_min"):
            args[:] = [self._read(a) if isinstance(a, (int, float)) else a for a in args]

    def _read(self, number):
        """What to compute with in place of a number that may be an epsilon."""
        if (
            number == torch.finfo(torch.float64).eps
        ):  # chosen by the type, which is another one here
            number = self._precision
        near = (value for where, value in self._neglected if where == self._path.where)
        return _EPSILON if any(abs(number - value) <= _SAME * value for value in near) else number


def clone_inputs(x):
    """A copy of the inputs, because a forward pass may work in place."""
    if isinstance(x, Tensor):
        return x.clone()
    return type(x)(clone_inputs(part) for part in x) if isinstance(x, (list, tuple)) else x


def generic_inputs(x):
    """The inputs with noise on their floating numbers: blank or constant samples tell nothing about
    scaling.
    """
    if isinstance(x, Tensor):
        return (
            _generic(x, torch.Generator().manual_seed(0), _size(x), share=1.0)
            if x.is_floating_point()
            else x
        )
    return type(x)(generic_inputs(part) for part in x) if isinstance(x, (list, tuple)) else x


def _typical_sizes(parameters: Mapping[str, Tensor]) -> dict[str, float]:
    """Root mean squares; for parameters that are 0 the smallest of their layer, so that no noise
    drowns an epsilon.
    """
    sizes = {name: _size(parameter) for name, parameter in parameters.items()}
    layers: dict[str, float] = {}
    for name, size in sizes.items():
        layer = name.rpartition(".")[0]
        if size > 0:
            layers[layer] = min(size, layers.get(layer, math.inf))
    anywhere = min(layers.values(), default=1.0)
    return {
        name: size or layers.get(name.rpartition(".")[0], anywhere) for name, size in sizes.items()
    }


def _size(values: Tensor) -> float:
    return torch.linalg.vector_norm(values, dtype=torch.float64).item() / math.sqrt(
        max(values.numel(), 1)
    )


def _generic(
    values: Tensor, generator: torch.Generator, size: float, share: float = _PERTURBATION
) -> Tensor:
    """The values with uniform noise, `share` of their size; of 1 where that is 0."""
    # Noise that repeats after many numbers is generic enough, and cheap for millions of weights.
    noise = (
        torch.rand(_NOISE_PERIOD, generator=generator, dtype=torch.float64)
        .sub_(0.5)
        .mul_(2 * share * (size or 1.0))
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
