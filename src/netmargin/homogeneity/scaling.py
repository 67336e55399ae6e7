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

from ..core.nets import call_with
from .degree import Epsilon
from .float64_mode import Float64Mode, to_float64
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
        self.x = to_float64(x)
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
        self._buffers = {n: to_float64(b.detach().clone()) for n, b in model.named_buffers()}
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
        mode = Float64Mode(self._path, self._neglected, self._rounding, self._precision)
        with (
            torch.no_grad(),
            torch.random.fork_rng(),
            self._scale_parameters(factors),
            self._follow_modules(),
            mode,
        ):
            torch.manual_seed(self._seed)
            return call_with(self._model, {**self._parameters, **buffers}, clone_inputs(self.x))

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
