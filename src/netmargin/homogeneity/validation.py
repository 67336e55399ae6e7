"""Validates an answer of the rules numerically, in float64.

Two questions are asked: are the exponents right once epsilons are negligible, and how far does the
net as it is miss them?
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import torch
from torch import nn

from ..core.nets import device_and_dtype
from .answer import Homogeneity, register_check, tidy
from .degree import Epsilon, Unknown
from .derivation import Derivation, layers_of
from .group_scalings import (
    Scaling,
    compose,
    draw_factors,
    draw_near,
    draw_powers_of_two,
    find_range,
    read_groups,
    scale_groups,
    scale_quasi,
)
from .samples import (
    are_all_equal,
    count_samples,
    find_inputs,
    repeat_first_sample,
    take_samples,
)
from .scaling import FACTORS, TOLERANCE, ScalingProbe, generic_inputs
from .scaling_check import LARGEST_MISS, ScalingCheck
from .trace import Trace
from .vocabulary import Blocker, Evidence, Kind

_FOLLOWED_SAMPLES = 3
"""Samples that the rules follow: enough for batch statistics, and cheap."""
_CHECKED_SAMPLES = 4
"""Samples on which exponents are checked: another number than the rules follow, so that exponents
that depend on the batch size show.
"""
_DECADES = 2.0
"""Decades on both sides of 1 in which factors are drawn for the check of exponents: a wrong one
misses by a factor there, far more than any rounding.
"""


class Validator:
    """Compares answers with what a net does to samples.

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
        self._model, self._x, self._seed = model, x, seed
        self._quick = quick and device_and_dtype(model)[1] == torch.float32
        self.traced, self._more = (
            take_samples(model, x, _FOLLOWED_SAMPLES),
            take_samples(model, x, _CHECKED_SAMPLES),
        )
        if count_samples(self._more) == count_samples(self.traced):
            self._more = repeat_first_sample(self.traced)
        self._as_it_is, self._expensive = self._more, False
        # Set where the samples say nothing (blank images), and noise is added to them.
        self._blank = False

    def measure_as_it_is_on(self, count: int, *, expensive: bool = False) -> None:
        """Measure the net with its epsilons and casts on so many samples, if there are as many.

        expensive : whether that is done in float32, where no rounding but that of the net counts.
        """
        self._expensive = expensive
        if count_samples(self._more) > count_samples(self.traced) and count > 0:
            self._as_it_is = take_samples(self._model, self._x, count)

    # -- derived answers

    def settle(
        self, derivation: Derivation, casts: Sequence[str], exact: float | None = None
    ) -> Homogeneity:
        """Turn a derivation into an answer with a deviation.

        The small numbers that it neglects are taken into account where their effect is above 1%.

        exact : the miss with the small numbers made negligible, where it is known.
        """
        answer = replace(derivation.answer, casts=tuple(casts))
        if answer.order is None and not answer.quasi_exponents:
            return replace(answer, casts=(), epsilons=())
        exact = self._measure_exact(answer) if exact is None else exact
        if exact > TOLERANCE:
            return self._contradict(answer, exact)
        if (
            answer.quasi_exponents
            and answer.blockers
            and self._measure_quasi_miss(answer) > LARGEST_MISS
        ):
            reason = "the epsilons are too large for quasi-homogeneous exponents"
            answer = replace(answer, quasi_exponents=None, quasi_reason=reason)
        if answer.order is None:
            return replace(answer, casts=())
        deviation = self._measure_deviation(answer, exact)
        if deviation > LARGEST_MISS:
            return self._blame_epsilons(answer, derivation)
        return self._add_deviation(answer, deviation)

    def confirm_both(self, derivation: Derivation, without: Derivation) -> float | None:
        """Confirm the answers for a net with and without the biases that block it, at once.

        If the net follows the exponents when these biases scale like the signals that they are
        added to, it does so where they are 0 as well. Returns the miss, or None where that does not
        settle both.
        """
        answers = [d.answer for d in (derivation, without)]
        if not self._can_be_quick(answers[0]) or answers[1].order is None:
            return None
        drawn, free = [draw_powers_of_two(answer, (self._seed, 3)) for answer in answers]
        follows = derivation.let_biases_follow(free[0], without.ignored)
        if follows is None:
            return None
        return self._measure_in_own_type(answers[0], compose([drawn, (follows, free[1])]))

    def check(self, answer: Homogeneity, *, range: bool) -> ScalingCheck:
        """Measure how well the exponents of an answer hold on these samples."""
        self.measure_as_it_is_on(answer.samples)
        exact = self._measure_exact(answer)
        deviation = self._measure_deviation(answer, exact)
        found = find_range(answer, self._probe_as_it_is(answer)) if range else None
        return ScalingCheck(deviation, exact, self._count_samples_of(answer), found, answer.cause)

    # The probe of the net as it is has samples of its own: see samples.py.
    def _count_samples_of(self, answer: Homogeneity) -> int:
        return count_samples(self._as_it_is if answer.epsilons or answer.casts else self._more)

    def _add_deviation(self, answer: Homogeneity, deviation: float) -> Homogeneity:
        return replace(answer, deviation=deviation, samples=self._count_samples_of(answer))

    def _measure_exact(self, answer: Homogeneity) -> float:
        """Measure the miss with epsilons made negligible and factors far apart."""
        if self._can_be_quick(answer):
            miss = self._measure_in_own_type(answer, draw_powers_of_two(answer, (self._seed, 3)))
            if miss is not None:
                return miss
        best = None
        scalings = (
            [draw_factors(answer, _DECADES, (self._seed, 0))] if answer.order is not None else []
        )
        if answer.quasi_exponents:
            scalings.append(scale_quasi(answer, FACTORS[0]))
        # Blank samples, or constant ones before a normalization, make outputs 0 or roundings large:
        # if the check fails on the samples given, generic ones near them decide.
        for self._blank in (False, True):
            x = generic_inputs(self._more) if self._blank else self._more
            # A forward pass may refuse noisy samples, or this number of them.
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self._probe(answer, x, neglected=answer.guards)
                miss = probe.miss(*compose(scalings))
                if miss <= TOLERANCE:
                    return miss
                best = miss if best is None else min(best, miss)
        # No probe ran: the net takes the number of samples that was followed, and no other.
        if best is None and self._more is not self.traced:
            self._more = self._as_it_is = self.traced
            return self._measure_exact(answer)
        return math.inf if best is None else best

    def _can_be_quick(self, answer: Homogeneity) -> bool:
        return self._quick and not answer.casts and not are_all_equal(self._more)

    def _measure_in_own_type(self, answer: Homogeneity, scaling: Scaling) -> float | None:
        """Measure the miss as `_measure_exact` does, in float32; None where it is no rounding."""
        # A forward pass may refuse this number of samples, which the caller sees to.
        with suppress(RuntimeError, IndexError, ValueError):
            probe = self._probe(answer, self._more, neglected=answer.guards, double=False)
            miss = probe.miss(*scaling)
            if miss <= TOLERANCE:
                return miss
        return None

    def _probe_as_it_is(
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
        probe = self._probe(answer, x, as_it_is=True, **kept)
        if probe.silent:  # such as a last layer that starts at 0
            probe = self._probe(answer, x, **kept)
        return probe

    def _measure_deviation(self, answer: Homogeneity, exact: float) -> float:
        """Measure the largest miss of the net as it is, unless that is the `exact` one."""
        if not answer.epsilons and not answer.casts:  # nothing was neglected: the same net
            return exact
        return self._measure_near(answer)

    def _measure_near(self, answer: Homogeneity, **kept) -> float:
        """Measure the largest miss at factors near 1; `kept` goes to `_probe_as_it_is`."""
        double = not self._quick or bool(answer.casts) or not self._expensive
        probe = self._probe_as_it_is(answer, double=double, **kept)
        return max(probe.miss(*s) for s in draw_near(answer, self._seed, quick=self._quick))

    def _measure_quasi_miss(self, answer: Homogeneity) -> float:
        if not answer.guards and not answer.casts:
            return 0.0
        # Only whether it is above 1% counts, for which float32 is enough.
        probe = self._probe_as_it_is(answer, double=not self._quick or bool(answer.casts))
        return probe.miss(*scale_quasi(answer, FACTORS[0]))

    def _probe(self, answer: Homogeneity, x, **kwargs) -> ScalingProbe:
        return ScalingProbe(
            self._model,
            x,
            seed=self._seed,
            zeroed=answer.ignored,
            statistics=answer.statistics,
            **kwargs,
        )

    # -- answers that do not hold

    def _contradict(self, answer: Homogeneity, miss: float) -> Homogeneity:
        """Turn an answer that numbers contradict into an unknown one that says where it fails."""
        reason = "the forward pass depends on its inputs in a way they cannot see"
        # On the samples that were followed the exponents may hold: then the batch size matters.
        for x in (self.traced, generic_inputs(self.traced)):
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self._probe(answer, x, neglected=answer.guards)
                if (
                    answer.order is not None
                    and probe.miss(*draw_factors(answer, _DECADES, (self._seed, 0))) <= TOLERANCE
                ):
                    reason = (
                        "the exponents change with the number of samples, here"
                        f" {count_samples(self.traced)} and {count_samples(self._more)}"
                    )
                    break
                ones = dict.fromkeys(answer.groups, 1.0)
                wrong = [
                    name
                    for name in answer.groups
                    if probe.miss(*scale_groups(answer, ones | {name: 2.0})) > TOLERANCE
                ]
                if wrong:
                    reason += f", first seen in {', '.join(wrong)}"
                break
        return replace(
            _refuse(answer),
            kind=Kind.UNKNOWN,
            evidence=Evidence.CONTRADICTED,
            casts=(),
            epsilons=(),
            deviation=miss,
            samples=count_samples(self._more),
            notes=(*answer.notes, f"the numerical check contradicts the rules: {reason}"),
        )

    def _blame_epsilons(self, answer: Homogeneity, derivation: Derivation) -> Homogeneity:
        """Derive the answer again with the epsilons that cause too large a miss not neglected.

        A miss that is left without any epsilon is due to casts, which refuse an answer.
        """
        rounding = self._measure_near(answer, neglected=answer.epsilons)
        if rounding > LARGEST_MISS or not answer.epsilons:
            if not answer.casts:  # nothing was neglected, and yet factors near 1 miss: wrong rules
                return self._contradict(answer, rounding)
            sentence = "rounds to half precision, which changes the outputs by"
            blockers = tuple(
                Blocker(cast, f"{sentence} {rounding:.1%}", "cast to float32, or not at all")
                for cast in answer.casts
            )
            return _refuse(answer, blockers)
        # If only several together miss by too much, the largest goes first; settle comes back here.
        guilty = self._find_guilty(answer, answer.epsilons)
        return self.settle(derivation.counting(guilty), answer.casts)

    def _find_guilty(
        self, answer: Homogeneity, suspects: Sequence[Epsilon]
    ) -> dict[Epsilon, float]:
        """Find the epsilons that miss by over 1% alone, or else the one that misses most.

        Returns the miss that each causes. The suspects together miss by more, and are halved.
        """
        halves = suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :]
        misses = [
            self._measure_near(
                answer, neglected=[e for e in answer.epsilons if e not in half], casts=False
            )
            for half in halves
            if half
        ]
        if len(suspects) == 1:
            return {suspects[0]: misses[0]}
        found: dict[Epsilon, float] = {}
        for half, miss in zip(halves, misses, strict=True):
            if miss > LARGEST_MISS or (miss == max(misses) and not found):
                found |= self._find_guilty(answer, half)
        return found

    # -- answers from numbers alone

    def observe(self, trace: Trace, names: tuple[str, ...], hidden: Unknown) -> Homogeneity:
        """Answer from numbers only, for nets in which the operation `hidden` cannot be followed."""
        epsilons, casts, blind = tuple(trace.epsilons), tuple(trace.casts), tuple(trace.blind)
        kept = {"neglected": epsilons, "seed": self._seed, "statistics": trace.statistics}
        probe = ScalingProbe(self._model, self.traced, **kept)
        if probe.silent:
            probe = ScalingProbe(self._model, generic_inputs(self.traced), **kept)
        layers = layers_of(names)
        kind, order, groups = read_groups(probe, layers)
        blocker = Blocker(
            hidden.where,
            hidden.reason,
            "register a rule with netmargin.homogeneity.rule, for a derived answer",
        )
        unknown = Homogeneity(Kind.UNKNOWN, None, {}, {}, (blocker,), Evidence.NUMERICAL)
        if kind is Kind.UNKNOWN or blind:
            return replace(unknown, notes=blind)
        members = {name: {**layers, "all": names}[name] for name in groups}
        whole = kind is not Kind.PARTIAL
        answer = Homogeneity(
            kind,
            tidy(order),
            {name: tidy(k) for name, k in groups.items()},
            members,
            () if whole else (blocker,),
            Evidence.NUMERICAL,
            notes=(str(blocker),) if whole else (),
            epsilons=epsilons,
            guards=epsilons,
            casts=casts,
            statistics=trace.statistics,
        )
        exact = self._measure_exact(answer)
        if exact > TOLERANCE:
            return self._contradict(replace(answer, blockers=(blocker,)), exact)
        deviation = self._measure_deviation(answer, exact)
        if deviation > LARGEST_MISS:
            cause = f"with {answer.cause} the outputs miss the observed exponents"
            return replace(unknown, notes=(f"{cause} by {deviation:.1%}",))
        return self._add_deviation(answer, deviation)


@register_check
def _check_answer(
    answer: Homogeneity, model: nn.Module, data: object, range: bool, seed: int
) -> ScalingCheck:
    validator = Validator(
        model, find_inputs(model, data, several=answer._several_inputs), seed=seed
    )
    return validator.check(answer, range=range)


def _refuse(answer: Homogeneity, blockers: tuple[Blocker, ...] = ()) -> Homogeneity:
    """Turn an answer into one without any exponent, for further reasons."""
    return replace(
        answer,
        kind=Kind.NONE,
        order=None,
        groups={},
        members={},
        quasi_exponents=None,
        blockers=(*answer.blockers, *blockers),
    )
