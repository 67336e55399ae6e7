"""Validates an answer of the rules numerically, in float64.

Two questions are asked: are the exponents right once epsilons are negligible, and how far does the
net as it is miss them?
"""

import math
from collections import deque
from contextlib import suppress
from dataclasses import replace

from torch import nn

from ..nets.model import able_to_float64
from .answer import Homogeneity, register_check
from .degree import Epsilon, Unknown
from .derivation import Derivation, layers_of
from .group_scalings import compose, draw_powers_of_two, find_range, read_groups, scale_groups
from .measurements import Measurements
from .samples import count_samples, find_inputs
from .scaling import TOLERANCE, ScalingProbe, generic_inputs
from .scaling_check import LARGEST_MISS, ScalingCheck
from .sentences import tidy
from .trace import Trace
from .vocabulary import Blocker, Evidence, Kind

_MOST_BLAMING = 16
"""Measurements, half a forward pass of 16 samples each, by which epsilons are blamed one by one:
enough for a few of them. Where dozens are too large, naming some of them together says as much.
"""


class Validator(Measurements):
    """Compares answers with what a net does to samples.

    It takes what `Measurements` takes.
    """

    # -- derived answers

    def settle(self, derivation: Derivation, exact: float | None = None) -> Homogeneity:
        """Turn a derivation into an answer with a deviation.

        The small numbers that it neglects are taken into account where their effect is above 1%.

        exact : the miss with the small numbers made negligible, where it is known.
        """
        answer = derivation.answer
        if answer.order is None and not answer.quasi_exponents:
            return replace(answer, casts=(), epsilons=())
        exact = self.measure_exact(answer) if exact is None else exact
        if exact > TOLERANCE:
            return self._contradict(answer, exact)
        if (
            answer.quasi_exponents
            and answer.blockers
            and (answer.casts or derivation.guards_moved_by([answer.quasi_exponents]))
            and self.measure_quasi_miss(answer) > LARGEST_MISS
        ):
            reason = "the epsilons are too large for quasi-homogeneous exponents"
            answer = replace(answer, quasi_exponents=None, quasi_reason=reason)
        if answer.order is None:
            return replace(answer, casts=())
        deviation = self.measure_deviation(answer, exact)
        if deviation > LARGEST_MISS:
            if answer.kind is Kind.PARTIAL and 0 in answer.groups.values():
                # They do not count for its order: no reason to look for the epsilons to blame.
                left_out = f"{answer.cause} would make them miss by {deviation:.1%}"
                answer = self.settle(replace(derivation, narrow=True), exact)
                note = f"parameters that are nearly scale-invariant are left out: {left_out}"
                return replace(answer, notes=(*answer.notes, note))
            return self._blame_epsilons(answer, derivation)
        return self._add_deviation(answer, deviation)

    def confirm_both(self, derivation: Derivation, without: Derivation) -> float | None:
        """Confirm the answers for a net with and without the biases that block it, at once.

        If the net follows the exponents when these biases scale like the signals that they are
        added to, it does so where they are 0 as well. Returns the miss, or None where that does not
        settle both.
        """
        answers = [d.answer for d in (derivation, without)]
        if not self.can_be_quick(answers[0]) or answers[1].order is None:
            return None
        drawn, free = [draw_powers_of_two(answer, (self.seed, 3)) for answer in answers]
        follows = derivation.let_biases_follow(free[0], without.ignored)
        if follows is None:
            return None
        return self.measure_in_own_type(answers[0], compose([drawn, (follows, free[1])]))

    def check(self, answer: Homogeneity, *, range: bool) -> ScalingCheck:
        """Measure how well the exponents of an answer hold on these samples."""
        self.measure_as_it_is_on(answer.samples)
        exact = self.measure_exact(answer)
        deviation = self.measure_deviation(answer, exact)
        found = find_range(answer, self.probe_as_it_is(answer)) if range else None
        return ScalingCheck(deviation, exact, self.count_samples_of(answer), found, answer.cause)

    def _add_deviation(self, answer: Homogeneity, deviation: float) -> Homogeneity:
        return replace(answer, deviation=deviation, samples=self.count_samples_of(answer))

    # -- answers that do not hold

    def _contradict(self, answer: Homogeneity, miss: float) -> Homogeneity:
        """Turn an answer that numbers contradict into an unknown one that says where it fails."""
        reason = "the forward pass depends on its inputs in a way they cannot see"
        # On the samples that were followed the exponents may hold: then the batch size matters.
        for x in (self.traced, generic_inputs(self.traced)):
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self.probe(answer, x, neglected=answer.guards)
                if answer.order is not None and probe.miss(*self.draw_wide(answer)) <= TOLERANCE:
                    reason = (
                        "the exponents change with the number of samples, here"
                        f" {count_samples(self.traced)} and {count_samples(self.more)}"
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
            samples=count_samples(self.more),
            notes=(*answer.notes, f"the numerical check contradicts the rules: {reason}"),
        )

    def _blame_epsilons(self, answer: Homogeneity, derivation: Derivation) -> Homogeneity:
        """Derive the answer again with the epsilons that cause too large a miss not neglected.

        A miss that is left without any epsilon is due to casts, which refuse an answer.
        """
        rounding = self.measure_near(answer, neglected=answer.epsilons)
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
        return self.settle(derivation.counting(self._find_guilty(answer)))

    def _find_guilty(self, answer: Homogeneity) -> dict[Epsilon, str]:
        """Find the epsilons that miss by over 1% alone, or else the one that misses most; those
        that are told apart by too many measurements go together.

        Returns what each causes, in words.
        """
        found: dict[Epsilon, str] = {}
        # Parts that miss by too much are halved, the larger ones first.
        parts = deque([(answer.epsilons, math.inf)])
        left = _MOST_BLAMING
        while parts:
            part, miss = parts.popleft()
            if math.isfinite(miss) and (len(part) == 1 or left <= 0):
                who = f"it and {len(part) - 1} others make" if len(part) > 1 else "alone it makes"
                effect = f"{who} the outputs miss their power of c by {miss:.1%}"
                found |= dict.fromkeys(part, effect)
                continue
            middle = (len(part) + 1) // 2
            halves = [half for half in (part[:middle], part[middle:]) if half]
            misses = [
                self.measure_near(
                    answer, neglected=[e for e in answer.epsilons if e not in half], casts=False
                )
                for half in halves
            ]
            left -= len(halves)
            for half, miss in zip(halves, misses, strict=True):
                last_hope = miss == max(misses) and not found and not parts
                if miss > LARGEST_MISS or last_hope:
                    parts.append((half, miss))
        return found

    # -- answers from numbers alone

    def observe(self, trace: Trace, names: tuple[str, ...], hidden: Unknown) -> Homogeneity:
        """Answer from numbers only, for nets in which the operation `hidden` cannot be followed."""
        epsilons, casts, blind = tuple(trace.epsilons), tuple(trace.casts), tuple(trace.blind)
        for x in (self.traced, generic_inputs(self.traced)):
            probe = ScalingProbe(
                self.model,
                x,
                neglected=epsilons,
                seed=self.seed,
                statistics=trace.statistics,
            )
            if not probe.silent:
                break
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
        exact = self.measure_exact(answer)
        if exact > TOLERANCE:
            return self._contradict(replace(answer, blockers=(blocker,)), exact)
        deviation = self.measure_deviation(answer, exact)
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
        quasi_exponents=None,
        blockers=(*answer.blockers, *blockers),
    )
