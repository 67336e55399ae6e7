"""The numerical check of homogeneity: multiply parameters by c and compare outputs, in float64.

It knows nothing of the rules. Do the exponents hold up to rounding, once epsilons are negligible,
at a generic point near the given parameters (a bias of exactly 0 would hide)? And how well do they
hold for the net as it is, epsilons and casts in place?
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor, nn

from ..core.generators import seed_torch
from ..nets.model import call_with, device_and_dtype
from ..nets.named_inputs import map_floating
from ..nets.score_outputs import zero_absent
from ..nets.whole_tensors import euclidean_norm
from .degree import Degree, Epsilon
from .float64_mode import Float64Mode
from .modes import ModulePath
from .observation import read_exponent

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
_LARGEST_EXPONENT = 100
"""Beyond it the factors of `WIDE` give numbers that float64 (1e308) does not hold."""
PERTURBATION = 0.1
"""Noise of the generic point, relative to the size of each parameter: large enough that biases of 0
show, small enough that the net stays like the one given.
"""


class ScalingProbe:
    """Evaluates a model on x with its parameters scaled.

    neglected : the epsilons that are made negligible.
    as_it_is : evaluate at the given parameters, not at a generic point near them.
    rounding : round to half precision where the forward pass casts to it.
    zeroed, statistics : parameters set to 0; buffers that follow, with their exponents.
    double : compute in float64; else in the type of the parameters, where nothing is neglected.
    """

    def __init__(
        self,
        model: nn.Module,
        x: Any,
        *,
        neglected: Collection[Epsilon] = (),
        as_it_is: bool = False,
        rounding: bool = False,
        seed: int = 0,
        zeroed: Iterable[str] = (),
        statistics: Mapping[str, Degree] | None = None,
        double: bool = True,
        noise: float = PERTURBATION,
    ) -> None:
        self._model, self._seed, self._rounding = model, seed, rounding
        self._x, self._path = map_floating(Tensor.double, x) if double else x, ModulePath()
        self._statistics, self._double = statistics or {}, double
        self._neglected = frozenset((epsilon.where, epsilon.value) for epsilon in neglected)
        self._precision = torch.finfo(device_and_dtype(model)[1]).eps
        # Copies, which are scaled in place.
        self._parameters = {n: _copy(p, double) for n, p in model.named_parameters()}
        self._buffers = {n: _copy(b, double) for n, b in model.named_buffers()}
        if not as_it_is:
            generator = torch.Generator().manual_seed(seed)
            for name, size in _typical_sizes(self._parameters).items():
                _add_noise(self._parameters[name], generator, noise * (size or 1.0))
            # Running means are noisy too: zeros, as at the start of training, would hide that they
            # do not scale.
            for name, buffer in self._buffers.items():
                if name.endswith("running_mean"):
                    _add_noise(buffer, generator, noise * (_size(buffer) or 1.0))
        for name in zeroed:
            self._parameters[name] = torch.zeros_like(self._parameters[name])
        self._at_one = self.outputs({})

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
        # Hooks cost time; only epsilons are told apart by their module.
        following = self._path.following(self._model) if self._neglected else nullcontext()
        in_float64 = Float64Mode(self._path, self._neglected, self._precision, self._rounding)
        mode = in_float64 if self._double else nullcontext()
        # In place and back: copies of millions of weights would cost more than the forward pass.
        for name, factor in factors.items():
            self._parameters[name].mul_(factor)
        try:
            with torch.no_grad(), torch.random.fork_rng(), following, mode:
                seed_torch(self._seed)
                return zero_absent(call_with(self._model, self._parameters | buffers, self._x))
        finally:
            for name, factor in factors.items():
                self._parameters[name].mul_(1 / factor)

    def miss(self, factors: Mapping[str, float], expected: float) -> float:
        """The largest |outputs - expected * outputs at 1|, relative to these; else infinite."""
        target = self._at_one * expected
        size = target.abs().max().item()
        difference = (self.outputs(factors) - target).abs().max().item()
        miss = difference / size if size > 0 else math.inf
        return miss if math.isfinite(miss) else math.inf

    def exponent(self, names: Iterable[str]) -> Fraction | None:
        """The k of outputs(c theta) = c^k outputs(theta) where these names are scaled, or None."""
        names = list(names)
        k = read_exponent(self._at_one, self.outputs(dict.fromkeys(names, 2.0)))
        if k is None or abs(k) >= _LARGEST_EXPONENT:
            return None
        misses = (self.miss(dict.fromkeys(names, c), c ** float(k)) for c in (2.0, *WIDE))
        return k if all(miss <= TOLERANCE for miss in misses) else None


def generic_inputs(x: Any) -> Any:
    """Add noise to the inputs: blank or constant samples tell nothing about scaling."""

    def move(part: Tensor) -> Tensor:
        noise = draw_noise(part.shape, torch.Generator().manual_seed(0))
        return part + (_size(part) or 1.0) * noise.to(part.device)

    return map_floating(move, x)


def draw_noise(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Numbers between -1 and 1, float64, on the CPU."""
    return torch.rand(shape, generator=generator, dtype=torch.float64, device="cpu") * 2 - 1


def _copy(values: Tensor, double: bool) -> Tensor:
    """A copy of a tensor, in float64 if it is to be `double` and holds floating numbers."""
    dtype = torch.float64 if double and values.is_floating_point() else values.dtype
    return values.detach().to(dtype, copy=True)


def _typical_sizes(parameters: Mapping[str, Tensor]) -> dict[str, float]:
    """The root mean square of each parameter; for zeros the smallest of their layer."""
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


def _add_noise(values: Tensor, generator: torch.Generator, size: float) -> None:
    """Add noise of at most `size` to floating values, in place."""
    if values.is_floating_point():
        most = size / max(values.ndim, 1)
        # A sum over the dimensions: to draw millions would take longer than the forward pass.
        for dimension, length in enumerate(values.shape or (1,)):
            noise = draw_noise((length,), generator)
            shape = [-1 if d == dimension else 1 for d in range(values.ndim)]
            values += (most * noise).reshape(shape).to(values.device)
