"""Validates an answer of the rules numerically, in float64.

Two questions are asked: are the exponents right once epsilons are negligible, and how far does the
net as it is miss them?
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from torch import nn

from ..core.nets import able_to_float64
from .answer import Homogeneity, register_check, tidy
from .degree import Epsilon, Unknown
from .derivation import Derivation, layers_of
from .group_scalings import (
    draw_factors,
    draw_near,
    find_range,
    read_groups,
    scale_groups,
    scale_quasi,
)
from .samples import (
    count_as_it_is_samples,
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
    """Compares answers with what a net does to samples, in float64.

    Parameters
    ----------
    model : torch.nn.Module
        The net, in the mode that it is in.
    x : tensor, array_like, or tuple of them
        A batch of inputs, of which a few are used.
    seed : int, default 0
        Seed of the generic point and of the factors that are drawn.

    Attributes
    ----------
    traced : tensor, or tuple of them
        The samples that the rules follow.
    """

    def __init__(self, model: nn.Module, x, *, seed: int = 0):
        self._model, self._seed = model, seed
        self.traced, self._more = (
            take_samples(model, x, _FOLLOWED_SAMPLES),
            take_samples(model, x, _CHECKED_SAMPLES),
        )
        self._as_it_is = take_samples(model, x, count_as_it_is_samples(self.traced))
        if count_samples(self._more) == count_samples(self.traced):
            self._more = self._as_it_is = repeat_first_sample(self.traced)
        # Set where the samples say nothing (blank images), and noise is added to them.
        self._blank = False

    # -- derived answers

    def settle(self, derivation: Derivation, casts: Sequence[str]) -> Homogeneity:
        """Turn a derivation into an answer with a deviation.

        The small numbers that it neglects are taken into account where their effect is above 1%.
        """
        answer = replace(derivation.answer(), casts=tuple(casts))
        if answer.order is None and not answer.quasi:
            return replace(answer, casts=(), epsilons=())
        exact, probe = self._measure_exact(answer)
        if exact > TOLERANCE:
            return self._contradict(answer, exact)
        if (
            answer.quasi
            and answer.blockers
            and self._measure_quasi_miss(answer, probe) > LARGEST_MISS
        ):
            note = "no quasi-homogeneous scaling is given: the epsilons are too large for one"
            answer = replace(answer, quasi=None, notes=(*answer.notes, note))
        if answer.order is None:
            return replace(answer, casts=())
        deviation = self._measure_deviation(answer, probe)
        if deviation > LARGEST_MISS:
            return self._blame_epsilons(answer, derivation, probe)
        return self._add_deviation(answer, deviation)

    def check(self, answer: Homogeneity, *, range: bool) -> ScalingCheck:
        """Measure how well the exponents of an answer hold on these samples."""
        exact, probe = self._measure_exact(answer)
        deviation = self._measure_deviation(answer, probe)
        found = find_range(answer, self._probe_as_it_is(answer, probe)) if range else None
        return ScalingCheck(deviation, exact, self._count_samples_of(answer), found, answer.cause)

    # The probe of the net as it is has samples of its own: see samples.py.
    def _count_samples_of(self, answer: Homogeneity) -> int:
        return count_samples(self._as_it_is if answer.epsilons or answer.casts else self._more)

    def _add_deviation(self, answer: Homogeneity, deviation: float) -> Homogeneity:
        return replace(answer, deviation=deviation, samples=self._count_samples_of(answer))

    def _measure_exact(self, answer: Homogeneity) -> tuple[float, ScalingProbe | None]:
        """Measure the miss with epsilons made negligible and factors far apart.

        Returns it with the probe that found it.
        """
        best: tuple[float, ScalingProbe | None] = (math.inf, None)
        scalings = (
            [draw_factors(answer, _DECADES, (self._seed, 0))] if answer.order is not None else []
        )
        if answer.quasi and answer.blockers:
            scalings.append(scale_quasi(answer, FACTORS[0]))
        # Blank samples, or constant ones before a normalization, make outputs 0 or roundings large:
        # if the check fails on the samples given, generic ones near them decide.
        for self._blank in (False, True):
            x = generic_inputs(self._more) if self._blank else self._more
            # A forward pass may refuse noisy samples, or this number of them.
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self._probe(answer, x, neglected=answer.epsilons)
                miss = max(probe.miss(*scaling) for scaling in scalings)
                if miss <= TOLERANCE:
                    return miss, probe
                best = min(best, (miss, probe), key=lambda pair: pair[0])
        # No probe ran: the net takes the number of samples that was followed, and no other.
        if best[1] is None and self._more is not self.traced:
            self._more = self._as_it_is = self.traced
            return self._measure_exact(answer)
        return best

    def _probe_as_it_is(
        self,
        answer: Homogeneity,
        exact: ScalingProbe | None,
        *,
        neglected: Sequence[Epsilon] = (),
        casts: bool = True,
    ) -> ScalingProbe:
        """Probe the net with its epsilons and casts in place.

        neglected : epsilons that are made negligible all the same.
        casts : whether roundings to half precision are kept.
        """
        # Where nothing was neglected the exact probe saw the same net, at a point nearby.
        if exact is not None and not answer.epsilons and not answer.casts:
            return exact
        x = generic_inputs(self._as_it_is) if self._blank else self._as_it_is
        probe = self._probe(answer, x, neglected=neglected, as_it_is=True, rounding=casts)
        if probe.silent:  # such as a last layer that starts at 0
            probe = self._probe(answer, x, neglected=neglected, rounding=casts)
        return probe

    def _measure_deviation(self, answer: Homogeneity, exact: ScalingProbe | None, **kept) -> float:
        """Measure the largest miss of the net as it is; `kept` goes to `_probe_as_it_is`."""
        probe = self._probe_as_it_is(answer, exact, **kept)
        return max(probe.miss(*scaling) for scaling in draw_near(answer, self._seed))

    def _measure_quasi_miss(self, answer: Homogeneity, exact: ScalingProbe | None) -> float:
        if not answer.epsilons and not answer.casts:
            return 0.0
        return self._probe_as_it_is(answer, exact).miss(*scale_quasi(answer, FACTORS[0]))

    def _probe(self, answer: Homogeneity, x, **kwargs) -> ScalingProbe:
        return ScalingProbe(self._model, x, seed=self._seed, zeroed=answer.ignored, **kwargs)

    # -- answers that do not hold

    def _contradict(self, answer: Homogeneity, miss: float) -> Homogeneity:
        """Turn an answer that numbers contradict into an unknown one that says where it fails."""
        reason = "the forward pass depends on its inputs in a way they cannot see"
        # On the samples that were followed the exponents may hold: then the batch size matters.
        for x in (self.traced, generic_inputs(self.traced)):
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self._probe(answer, x, neglected=answer.epsilons)
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

    def _blame_epsilons(
        self, answer: Homogeneity, derivation: Derivation, exact: ScalingProbe | None
    ) -> Homogeneity:
        """Derive the answer again with the epsilons that cause too large a miss not neglected.

        A miss that is left without any epsilon is due to casts, which refuse an answer.
        """
        rounding = self._measure_deviation(answer, exact, neglected=answer.epsilons)
        if rounding > LARGEST_MISS or not answer.epsilons:
            if not answer.casts:  # nothing was neglected, and yet factors near 1 miss: wrong rules
                return self._contradict(answer, rounding)
            sentence = "rounds to half precision, which changes the outputs by"
            blockers = tuple(
                Blocker(cast, f"{sentence} {rounding:.1%}", "cast to float32, or not at all")
                for cast in answer.casts
            )
            return _refuse(answer, blockers)
        alone = {
            epsilon: self._measure_deviation(
                answer, exact, neglected=[e for e in answer.epsilons if e != epsilon], casts=False
            )
            for epsilon in answer.epsilons
        }
        # If only several together miss by too much, the largest goes first; settle comes back here.
        guilty = {e: miss for e, miss in alone.items() if miss > LARGEST_MISS} or dict(
            [max(alone.items(), key=lambda item: item[1])]
        )
        return self.settle(derivation.counting(guilty), answer.casts)

    # -- answers from numbers alone

    def observe(self, trace: Trace, names: tuple[str, ...], hidden: Unknown) -> Homogeneity:
        """Answer from numbers only, for nets in which the operation `hidden` cannot be followed."""
        epsilons, casts, blind = tuple(trace.epsilons), tuple(trace.casts), tuple(trace.blind)
        probe = ScalingProbe(self._model, self.traced, neglected=epsilons, seed=self._seed)
        if probe.silent:
            probe = ScalingProbe(
                self._model, generic_inputs(self.traced), neglected=epsilons, seed=self._seed
            )
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
            casts=casts,
        )
        exact, wide = self._measure_exact(answer)
        if exact > TOLERANCE:
            return self._contradict(replace(answer, blockers=(blocker,)), exact)
        deviation = self._measure_deviation(answer, wide)
        if deviation > LARGEST_MISS:
            cause = f"with {answer.cause} the outputs miss the observed exponents"
            return replace(unknown, notes=(f"{cause} by {deviation:.1%}",))
        return self._add_deviation(answer, deviation)


@register_check
def _check_answer(
    answer: Homogeneity, model: nn.Module, data: object, range: bool, seed: int
) -> ScalingCheck:
    model, x = find_inputs(model, data, several=answer._several_inputs)
    validator = Validator(able_to_float64(model), x, seed=seed)
    return validator.check(answer, range=range)


def _refuse(answer: Homogeneity, blockers: tuple[Blocker, ...] = ()) -> Homogeneity:
    """Turn an answer into one without any exponent, for further reasons."""
    return replace(
        answer,
        kind=Kind.NONE,
        order=None,
        groups={},
        members={},
        quasi=None,
        blockers=(*answer.blockers, *blockers),
    )
