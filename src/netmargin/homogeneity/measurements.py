"""Measurements of how far a net misses the exponents of an answer, on a few samples."""

import math
from collections.abc import Sequence
from contextlib import suppress

import torch
from torch import nn

from ..nets.model import device_and_dtype
from .answer import Homogeneity
from .degree import Epsilon
from .group_scalings import (
    Scaling,
    compose,
    draw_factors,
    draw_near,
    draw_powers_of_two,
    scale_quasi,
)
from .samples import are_all_equal, count_samples, repeat_first_sample, take_samples
from .scaling import FACTORS, TOLERANCE, ScalingProbe, generic_inputs

_FOLLOWED_SAMPLES = 2
"""Samples that the rules follow, for which batch statistics exist: no rule looks at values."""
_CHECKED_SAMPLES = 3
"""Samples on which exponents are checked: another number than the rules follow, so that exponents
that depend on the batch size show; of two samples batch statistics leave signs only.
"""
_DECADES = 2.0
"""Decades on both sides of 1 in which factors are drawn for the check of exponents: a wrong one
misses by a factor there, far more than any rounding.
"""


class Measurements:
    """Measures how far a net misses the exponents of answers, on a few samples.

    Parameters
    ----------
    model : torch.nn.Module
        The net, in the mode that it is in.
    x : tensor, array_like, or tuple of them
        A batch of inputs, of which a few are used.
    seed : int, default 0
        Seed of the generic point and of the factors that are drawn.
    quick : bool, default False
        Be content with exponents that hold to the last bit in float32, and with the factors near 1
        at which epsilons matter most; else everything is computed in float64.

    Attributes
    ----------
    traced : tensor, or tuple of them
        The samples that the rules follow.
    """

    def __init__(self, model: nn.Module, x, *, seed: int = 0, quick: bool = False):
        self.model, self._x, self.seed = model, x, seed
        self._quick = quick and device_and_dtype(model)[1] == torch.float32
        self.traced, self.more = (
            take_samples(model, x, _FOLLOWED_SAMPLES),
            take_samples(model, x, _CHECKED_SAMPLES),
        )
        if count_samples(self.more) == count_samples(self.traced):
            self.more = repeat_first_sample(self.traced)
        self._as_it_is, self._expensive = self.more, False
        # Set where the samples say nothing (blank images), and noise is added to them.
        self._blank = False

    def measure_as_it_is_on(self, count: int, *, expensive: bool = False) -> None:
        """Measure the net with its epsilons and casts on so many samples, if there are as many.

        expensive : whether that is done in float32, where no rounding but that of the net counts.
        """
        self._expensive = expensive
        if count_samples(self.more) > count_samples(self.traced) and count > 0:
            self._as_it_is = take_samples(self.model, self._x, count)

    def measure_exact(self, answer: Homogeneity) -> float:
        """Measure the miss with epsilons made negligible and factors far apart."""
        if self.can_be_quick(answer):
            miss = self.measure_in_own_type(answer, draw_powers_of_two(answer, (self.seed, 3)))
            if miss is not None:
                return miss
        best = None
        scalings = [self.draw_wide(answer)] if answer.order is not None else []
        if answer.quasi_exponents:
            scalings.append(scale_quasi(answer, FACTORS[0]))
        # Blank samples, or constant ones before a normalization, make outputs 0 or roundings large:
        # if the check fails on the samples given, generic ones near them decide.
        for self._blank in (False, True):
            x = generic_inputs(self.more) if self._blank else self.more
            # A forward pass may refuse noisy samples, or this number of them.
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self.probe(answer, x, neglected=answer.guards)
                miss = probe.miss(*compose(scalings))
                if miss <= TOLERANCE:
                    return miss
                best = miss if best is None else min(best, miss)
        # No probe ran: the net takes the number of samples that was followed, and no other.
        if best is None and self.more is not self.traced:
            self.more = self._as_it_is = self.traced
            return self.measure_exact(answer)
        return math.inf if best is None else best

    def draw_wide(self, answer: Homogeneity) -> Scaling:
        """Draw independent factors for the groups, far apart."""
        return draw_factors(answer, _DECADES, (self.seed, 0))

    def can_be_quick(self, answer: Homogeneity) -> bool:
        return self._quick and not answer.casts and not are_all_equal(self.more)

    def measure_in_own_type(self, answer: Homogeneity, scaling: Scaling) -> float | None:
        """Measure the miss as `measure_exact` does, in float32; None where it is no rounding."""
        # A forward pass may refuse this number of samples, which the caller sees to.
        with suppress(RuntimeError, IndexError, ValueError):
            probe = self.probe(answer, self.more, neglected=answer.guards, double=False)
            miss = probe.miss(*scaling)
            if miss <= TOLERANCE:
                return miss
        return None

    def probe_as_it_is(
        self,
        answer: Homogeneity,
        *,
        neglected: Sequence[Epsilon] = (),
        casts: bool = True,
        **kwargs,
    ) -> ScalingProbe:
        """Probe the net with its epsilons and casts in place.

        neglected : epsilons that are made negligible all the same.
        casts : whether roundings to half precision are kept.
        """
        x = generic_inputs(self._as_it_is) if self._blank else self._as_it_is
        kept = {"neglected": neglected, "rounding": casts, **kwargs}
        probe = self.probe(answer, x, as_it_is=True, **kept)
        if probe.silent:  # such as a last layer that starts at 0
            probe = self.probe(answer, x, **kept)
        return probe

    def measure_deviation(self, answer: Homogeneity, exact: float) -> float:
        """Measure the largest miss of the net as it is, unless that is the `exact` one."""
        if not answer.epsilons and not answer.casts:  # nothing was neglected: the same net
            return exact
        return self.measure_near(answer)

    def measure_near(self, answer: Homogeneity, **kept) -> float:
        """Measure the largest miss at factors near 1; `kept` goes to `probe_as_it_is`."""
        double = not self._quick or bool(answer.casts) or not self._expensive
        probe = self.probe_as_it_is(answer, double=double, **kept)
        return max(probe.miss(*s) for s in draw_near(answer, self.seed, quick=self._quick))

    def measure_quasi_miss(self, answer: Homogeneity) -> float:
        # Only whether it is above 1% counts, for which float32 is enough.
        probe = self.probe_as_it_is(answer, double=not self._quick or bool(answer.casts))
        return probe.miss(*scale_quasi(answer, FACTORS[0]))

    def probe(self, answer: Homogeneity, x, **kwargs) -> ScalingProbe:
        return ScalingProbe(
            self.model,
            x,
            seed=self.seed,
            zeroed=answer.ignored,
            statistics=answer.statistics,
            **kwargs,
        )

    # The probe of the net as it is has samples of its own: see samples.py.
    def count_samples_of(self, answer: Homogeneity) -> int:
        return count_samples(self._as_it_is if answer.epsilons or answer.casts else self.more)
