"""The numerical check of homogeneity: multiply parameters by c and compare outputs.

It knows nothing of the rules, and answers two questions. Do the exponents hold, once the epsilons
are made negligible? That is asked at a generic point near the given parameters (a bias that starts
at exactly 0 would hide) and must hold up to rounding. And how well do they hold for the net as it
is, epsilons and casts in place?
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fractions import Fraction

import torch
from torch import Tensor, nn

from ..nets.model import call_with, device_and_dtype
from ..nets.whole_tensors import euclidean_norm
from .degree import Degree, Epsilon
from .float64_mode import EpsilonMode, Float64Mode, to_float64
from .modes import ModulePath

FACTORS = (0.5, 2.0)
"""Factors at which the net is measured with its epsilons and casts in place: powers of 2, whose
multiplication rounds nothing, and near enough to 1 to speak of the parameters given.
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
_PERTURBATION = 0.1
"""Noise of the generic point, relative to the size of each parameter: large enough that biases of 0
show, small enough that the net stays like the one given.
"""
_NOISE_PERIOD = 10_007
"""Numbers after which the noise repeats: drawing millions would take longer than the forward pass.
A prime, so that rows of a weight matrix differ.
"""


class ScalingProbe:
    """Evaluates a model with its parameters scaled, in float64 unless it is told otherwise.

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
    statistics : mapping of str to Degree, default {}
        The buffers that follow the parameters, with the exponents with which they do.
    double : bool, default True
        Compute in float64, not in the type of the parameters.
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
        statistics: Mapping[str, Degree] | None = None,
        double: bool = True,
    ):
        self._model, self._seed = model, seed
        self._statistics, self._double = statistics or {}, double
        self.x = to_float64(x) if double else x
        self._path = ModulePath()
        self._neglected = frozenset((epsilon.where, epsilon.value) for epsilon in neglected)
        self._rounding = rounding
        generator = torch.Generator().manual_seed(seed)
        parameters = {n: p.detach() for n, p in model.named_parameters()}
        # Whether the parameters are copies, which may be changed.
        self._own = not as_it_is or double
        if as_it_is:
            self._parameters = {n: self._convert(p, copy=double) for n, p in parameters.items()}
        else:
            sizes = _typical_sizes(parameters)
            self._parameters = {
                n: _generic(self._convert(p, copy=True), generator, sizes[n])
                for n, p in parameters.items()
            }
        for name in zeroed:
            self._parameters[name] = torch.zeros_like(self._parameters[name])
        self._buffers = {n: self._convert(b.detach(), copy=True) for n, b in model.named_buffers()}
        # Running means are noisy too: zeros, as at the start of training, would hide that they do
        # not scale.
        for name, buffer in self._buffers.items():
            if name.endswith("running_mean") and not as_it_is:
                self._buffers[name] = _generic(buffer, generator, _size(buffer))
        self._dtype = device_and_dtype(model)[1]
        self._precision = torch.finfo(self._dtype).eps
        self._at_one = self.outputs({})

    def _convert(self, value: Tensor, *, copy: bool) -> Tensor:
        """Convert a floating tensor to the type of the computation."""
        floating = value.is_floating_point() and self._double
        return value.to(torch.float64 if floating else value.dtype, copy=copy)

    @property
    def silent(self) -> bool:
        """True if the outputs are 0 at these inputs, so that nothing can be learnt from them."""
        return not bool(self._at_one.any())

    def outputs(self, factors: Mapping[str, float]) -> Tensor:
        """Compute the outputs with each named parameter multiplied by its factor."""
        buffers = {n: b.clone() for n, b in self._buffers.items()}
        for name, degree in self._statistics.items():
            buffers[name] *= math.prod(
                factors[n] ** float(e) for n, e in degree.exponents.items() if n in factors
            )
        with (
            torch.no_grad(),
            torch.random.fork_rng(),
            self._scale_parameters(factors),
            self._follow_modules(),
            self._choose_mode(),
        ):
            torch.manual_seed(self._seed)
            return call_with(self._model, {**self._parameters, **buffers}, self.x)

    def _choose_mode(self) -> AbstractContextManager:
        """Choose the mode in which the operations of a forward pass run."""
        if self._double:
            return Float64Mode(self._path, self._neglected, self._precision, self._rounding)
        if not self._neglected:
            return nullcontext()
        return EpsilonMode(self._path, self._neglected, self._dtype, self._precision)

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
        if not self._own:
            kept = {name: self._parameters[name] for name in factors}
            self._parameters |= {name: kept[name] * factor for name, factor in factors.items()}
            yield
            self._parameters |= kept
            return
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


def generic_inputs(x):
    """Add noise to the floating numbers of the inputs.

    Blank or constant samples tell nothing about scaling.
    """
    if isinstance(x, Tensor):
        return (
            _generic(x.clone(), torch.Generator().manual_seed(0), _size(x), share=1.0)
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
    return euclidean_norm(values) / math.sqrt(max(values.numel(), 1))


def _generic(
    values: Tensor, generator: torch.Generator, size: float, share: float = _PERTURBATION
) -> Tensor:
    """Add uniform noise to values in place, up to `share` of their size, or of 1 where it is 0."""
    noise = torch.rand(_NOISE_PERIOD, generator=generator, dtype=torch.float64)
    noise = noise.sub_(0.5).mul_(2 * share * (size or 1.0)).to(values.device, values.dtype)
    result = values.contiguous()
    flat = result.view(-1)
    whole = flat.numel() // _NOISE_PERIOD * _NOISE_PERIOD
    flat[:whole].view(-1, _NOISE_PERIOD).add_(noise)
    flat[whole:].add_(noise[: flat.numel() - whole])
    return result
