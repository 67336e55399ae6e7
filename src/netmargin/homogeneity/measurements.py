"""Measurements of how far a net misses the exponents of an answer, on a few samples."""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from ..nets.model import able_to_float64, call_with, require_scores_before_sigmoid
from ..nets.named_inputs import map_tensors
from .degree import Epsilon
from .group_scalings import Claim, Scaling, compose, draw_factors, draw_near, scale_quasi
from .samples import count_samples, find_inputs, take_samples
from .scaling import FACTORS, TOLERANCE, ScalingProbe, generic_inputs
from .scaling_check import ScalingCheck

_FOLLOWED_SAMPLES = 2
"""Samples that the rules follow, for which batch statistics exist: no rule looks at values."""
_CHECKED_SAMPLES = 3
"""Samples on which exponents are checked: another number than the rules follow, so that exponents
that depend on the batch size show; of two samples batch statistics leave signs only.
"""
_DRAWS, _NOISE_OF_DRAWS = 16, 2.0
"""Points tried until the outputs are not 0, and their noise relative to parameters: at any point
the exponents hold, and where all ReLUs are dead it must be another than the one given.
"""
_DECADES = 2.0
"""Decades on both sides of 1 in which factors are drawn for the check of exponents: a wrong one
misses by a factor there, far more than any rounding.
"""


class Measurements:
    """Measures how far a net misses the exponents of answers, on a few samples of x."""

    def __init__(self, model: nn.Module, x: Any, *, seed: int = 0) -> None:
        self.model, self._x, self.seed = model, x, seed
        # What the rules follow, and what exponents are checked on.
        self.traced = take_samples(model, x, _FOLLOWED_SAMPLES)
        self.more = take_samples(model, x, _CHECKED_SAMPLES)
        if count_samples(self.more) == count_samples(self.traced):
            self.more = map_tensors(lambda part: torch.cat([part, part[:1]]), self.traced)
        self._as_it_is = self.more
        # Set where the samples say nothing (blank images), and noise is added to them.
        self._blank = self._expensive = False

    def measure_as_it_is_on(self, count: int, expensive: bool = False) -> None:
        """Measure the net as it is on so many samples, in float32 if it is `expensive`."""
        self._expensive = expensive
        if count_samples(self.more) > count_samples(self.traced) and count > 0:
            self._as_it_is = take_samples(self.model, self._x, count)

    def count_samples_of(self, answer: Claim) -> int:
        """Count the samples on which the deviation of an answer is measured."""
        return count_samples(self._as_it_is if answer.epsilons or answer.casts else self.more)

    def draw_wide(self, answer: Claim) -> Scaling:
        """Draw independent factors for the groups, far apart."""
        return draw_factors(answer, _DECADES, (self.seed, 0))

    def scale_as_claimed(self, answer: Claim) -> Scaling:
        """Apply all that an answer claims: independent factors, and its quasi-exponents."""
        scalings = [self.draw_wide(answer)] if answer.order is not None else []
        if answer.quasi_exponents:
            scalings.append(scale_quasi(answer, FACTORS[0]))
        return compose(scalings)

    def measure_exact(self, answer: Claim, scaling: Scaling | None = None) -> float:
        """Measure the miss with epsilons made negligible and factors far apart."""
        misses = []
        scaling = scaling or self.scale_as_claimed(answer)
        # Blank samples, or constant ones before a normalization, make outputs 0 or roundings large:
        # if the check fails on the samples given, generic ones near them decide.
        for self._blank in (False, True):
            x = generic_inputs(self.more) if self._blank else self.more
            # A forward pass may refuse noisy samples, or this number of them.
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self.probe_exact(answer, x)
                misses.append(probe.miss(*scaling))
                if misses[-1] <= TOLERANCE:
                    break
        # No probe ran: the net takes the number of samples that was followed, and no other.
        if not misses and self.more is not self.traced:
            self.more = self._as_it_is = self.traced
            return self.measure_exact(answer, scaling)
        return min(misses, default=math.inf)

    def measure_deviation(self, answer: Claim, exact: float) -> float:
        """Measure the largest miss of the net as it is, unless that is the `exact` one."""
        if not answer.epsilons and not answer.casts:  # nothing was neglected: the same net
            return exact
        return self.measure_near(answer)

    def measure_near(self, answer: Claim, **kept: Any) -> float:
        """Measure the largest miss at factors near 1; `kept` goes to `probe_as_it_is`."""
        probe = self.probe_as_it_is(answer, **kept)
        return max(probe.miss(*scaling) for scaling in draw_near(answer, self.seed))

    def probe_as_it_is(
        self, answer: Claim, *, neglected: Sequence[Epsilon] = (), casts: bool = True
    ) -> ScalingProbe:
        """Probe the net with its epsilons in place, but for those `neglected`, and its `casts`."""
        x = generic_inputs(self._as_it_is) if self._blank else self._as_it_is
        kept = {"neglected": tuple(neglected), "rounding": casts}
        kept["double"] = not self._expensive or bool(neglected or answer.casts)
        probe = self.probe(answer, x, as_it_is=True, **kept)
        if probe.silent:  # such as a last layer that starts at 0
            probe = self.probe(answer, x, **kept)
        return probe

    def probe_exact(self, answer: Claim, x: Any) -> ScalingProbe:
        """Probe with epsilons made negligible, at a point with outputs if one is found."""
        for draw in range(_DRAWS):
            other = {"seed": self.seed + draw, "noise": _NOISE_OF_DRAWS} if draw else {}
            probe = self.probe(answer, x, neglected=answer.guards, **other)
            if not probe.silent:
                break
        return probe

    def probe(self, answer: Claim, x: Any, **kwargs: Any) -> ScalingProbe:
        """Probe the net of an answer on x; `kwargs` go to `ScalingProbe`."""
        about = {"seed": self.seed, "zeroed": answer.ignored, "statistics": answer.statistics}
        return ScalingProbe(self.model, x, **about | kwargs)


def check_claim(answer: Claim, model: nn.Module, data: object, *, seed: int) -> ScalingCheck:
    """Measure how well the exponents of an answer hold, as `Homogeneity.check` says."""
    model, x = find_inputs(model, data)
    few, kept = take_samples(model, x, 2), {n: b.clone() for n, b in model.named_buffers()}
    with torch.no_grad(), torch.random.fork_rng():
        require_scores_before_sigmoid(model, few, call_with(model, kept, few))
    measured = Measurements(able_to_float64(model), x, seed=seed)
    measured.measure_as_it_is_on(answer.samples)
    exact = measured.measure_exact(answer)
    deviation = measured.measure_deviation(answer, exact)
    return ScalingCheck(deviation, exact, measured.count_samples_of(answer), answer.cause)
