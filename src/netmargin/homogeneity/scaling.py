"""The numerical check of homogeneity: multiply parameters by c and compare outputs, in float64.

It knows nothing of the rules, and answers two questions. Do the exponents hold, once the epsilons
are made negligible? That is asked at a generic point near the given parameters (a bias that starts
at exactly 0 would hide) and must hold up to rounding. And how well do they hold for the net as it
is, epsilons and casts in place?
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
"""Factors at which the net as it is is measured: powers of 2, whose multiplication rounds nothing,
and about as far as parameters move in one phase of training.
"""
TOLERANCE = 1e-8
"""Relative miss that counts as rounding of a deep net in float64, with room; what is off by more is
off by something that does not scale.
"""
WIDE = (1e-3, 0.5, 1e3)
"""Where nothing but numbers is known, exponents must be the same over these six decades, so that a
saturation or a small number shows; they are read off at 2.0.
"""
_EXPONENT_DENOMINATOR = 12
"""Observed exponents are rounded to fractions up to this denominator: roots of higher order do not
occur in nets.
"""
_LARGEST_EXPONENT = 100
"""Beyond it the factors of `WIDE` give numbers that float64 (1e308) does not hold."""
_EPSILON = 1e-300
"""Value of an epsilon that is made negligible: not 0, which may divide by 0, and below any number
that a float64 forward pass can meet.
"""
_SAME_EPSILON = 1e-2
"""Relative difference up to which two numbers in one module are the same epsilon: one of them may be
rounded to half precision, which is off by less.
"""
_PERTURBATION = 0.1
"""Noise of the generic point, relative to the size of each parameter: large enough that biases of 0
show, small enough that the net stays like the one given.
"""
_NOISE_PERIOD = 10_007
"""Numbers after which the noise repeats: drawing millions would take longer than the forward pass.
A prime, so that rows of a weight matrix differ.
"""


class ScalingProbe:
    """Evaluates a model in float64 with its parameters scaled.

    Parameters
    ----------
    model : torch.nn.Module
        The net, in the mode that it is in.
    x : tensor, or nested tuples of tensors
        A batch of inputs.
    neglected : collection of Epsilon, default ()
        The epsilons that are made negligible.
    as_it_is : bool, default False
        Evaluate at the given parameters, not at a generic point near them.
    rounding : bool, default False
        Round results to half precision where the forward pass casts to it.
    seed : int, default 0
        Seed of the generic point, and of what the forward pass draws.
    zeroed : iterable of str, default ()
        Names of parameters that are set to 0.
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
        # Running means are noisy too: zeros, as at the start of training, would hide that they do
        # not scale.
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
        """Compute the outputs with each named parameter multiplied by its factor."""
        buffers = {n: b.clone() for n, b in self._buffers.items()}
        mode = _Float64(self._path, self._neglected, self._rounding, self._precision)
        with (
            torch.no_grad(),
            torch.random.fork_rng(),
            self._scale_parameters(factors),
            self._follow_modules(),
            mode,
        ):
            torch.manual_seed(self._seed)
            return functional_call(
                self._model, {**self._parameters, **buffers}, (clone_inputs(self.x),)
            )

    @contextmanager
    def _follow_modules(self):
        """Know which module runs, in a block, where epsilons are told apart by their module."""
        if not self._neglected:  # hooks would cost time for nothing
            yield
            return
        with self._path.following(self._model):
            yield

    @contextmanager
    def _scale_parameters(self, factors: Mapping[str, float]):
        """Scale the named parameters in a block."""
        # In place and back: copies of millions of weights would cost more than the forward pass.
        for name, factor in factors.items():
            self._parameters[name].mul_(factor)
        try:
            yield
        finally:
            for name, factor in factors.items():
                self._parameters[name].mul_(1 / factor)

    def miss(self, factors: Mapping[str, float], expected: float) -> float:
        """Measure how far the outputs at scaled parameters are from `expected` times the outputs.

        The result is relative to the largest of these; infinite where numbers are not finite.
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
        """Whether c^{scaling[p]} for each parameter p multiplies the outputs by c^exponent.

        factors : the numbers c at which that must hold.
        """
        misses = (
            self.miss({n: c ** float(s) for n, s in scaling.items()}, c ** float(exponent))
            for c in factors
        )
        return all(miss <= TOLERANCE for miss in misses)

    def exponent(self, names: Iterable[str]) -> Fraction | None:
        """Find k with outputs(c theta) = c^k outputs(theta), scaling the named parameters only.

        It must hold for c from 1e-3 to 1e3; None if there is no such k.
        """
        names = list(names)
        size = self._at_one.abs().max().item()
        scaled = self.outputs(dict.fromkeys(names, 2.0)).abs().max().item()
        if not (0 < size < math.inf and 0 < scaled < math.inf):
            return None
        k = Fraction(math.log2(scaled / size)).limit_denominator(_EXPONENT_DENOMINATOR)
        if abs(k) >= _LARGEST_EXPONENT:
            return None
        holds = self.follows(dict.fromkeys(names, 1), k, factors=(2.0, *WIDE))
        return k if holds else None


class _Float64(EagerMode):
    """A mode that computes in float64 even where a forward pass makes float32 constants.

    The `neglected` epsilons become 1e-300: the arguments called eps, and the given small numbers
    where they are added or clamped to. Casts to half precision are left out, or else only their
    `rounding` is kept.
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
        """Run one operation in float64."""
        in_place = func._schema.is_mutable
        args = list(args) if in_place else [_to_float64(a) for a in args]
        kwargs = dict(kwargs or {})
        asked = kwargs.get("dtype")
        if asked in (torch.float32, *ROUGH):
            kwargs["dtype"] = torch.float64  # a cast would round
        self._set_epsilons(func, args, kwargs)
        result = func(*args, **kwargs)
        if in_place or func.is_view:  # these must return the tensor that they were given
            return result
        if asked in ROUGH and self._rounding and isinstance(result, Tensor):
            result = result.to(asked)
        return _to_float64(result)

    def _set_epsilons(self, func, args: list, kwargs: dict) -> None:
        """Replace epsilons among the arguments of an operation, in place."""
        name = func._schema.name.removeprefix("aten::").removesuffix("_")
        for index, argument in enumerate(func._schema.arguments):
            if argument.name not in ("eps", "epsilon"):
                continue
            given = args[index] if index < len(args) else kwargs.get(argument.name)
            # Without one, normalizations take the precision of the type.
            value = self._replace(torch.finfo(torch.float64).eps if given is None else given)
            if index < len(args):
                args[index] = value
            else:
                kwargs[argument.name] = value
        if name in ("add", "clamp", "clamp_min"):
            args[:] = [self._replace(a) if isinstance(a, (int, float)) else a for a in args]

    def _replace(self, number):
        """Return 1e-300 for an epsilon that is neglected, and other numbers as they are."""
        # A number chosen by the type of the computation was that of the parameters' own type.
        if number == torch.finfo(torch.float64).eps:
            number = self._precision
        here = [value for where, value in self._neglected if where == self._path.where]
        is_neglected = any(abs(number - value) <= _SAME_EPSILON * value for value in here)
        return _EPSILON if is_neglected else number


def clone_inputs(x):
    """Copy the inputs, because a forward pass may work in place."""
    if isinstance(x, Tensor):
        return x.clone()
    return type(x)(clone_inputs(part) for part in x) if isinstance(x, (list, tuple)) else x


def generic_inputs(x):
    """Add noise to the floating numbers of the inputs.

    Blank or constant samples tell nothing about scaling.
    """
    if isinstance(x, Tensor):
        return (
            _generic(x, torch.Generator().manual_seed(0), _size(x), share=1.0)
            if x.is_floating_point()
            else x
        )
    return type(x)(generic_inputs(part) for part in x) if isinstance(x, (list, tuple)) else x


def _typical_sizes(parameters: Mapping[str, Tensor]) -> dict[str, float]:
    """Compute the root mean square of each parameter.

    For parameters that are 0 it is the smallest of their layer, so that no noise drowns an epsilon.
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
    """The root mean square of a tensor, in float64."""
    return torch.linalg.vector_norm(values, dtype=torch.float64).item() / math.sqrt(
        max(values.numel(), 1)
    )


def _generic(
    values: Tensor, generator: torch.Generator, size: float, share: float = _PERTURBATION
) -> Tensor:
    """Add uniform noise to values, up to `share` of their size, or of 1 where that is 0."""
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
    """Convert the floating tensors in nested lists and tuples."""
    if isinstance(value, Tensor):
        return value.to(torch.float64) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_float64(v) for v in value)
    return value
