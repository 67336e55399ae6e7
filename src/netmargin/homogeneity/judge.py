"""Judges an answer of the rules by numbers: are the exponents right, and how well does the net as
it is keep to them?
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import torch
from torch import Tensor, nn

from ..core.batches import as_inputs, batches, open_data
from ..core.nets import device_and_dtype
from .answer import (
    FARTHEST,
    LARGEST_MISS,
    Blocker,
    Evidence,
    Homogeneity,
    Kind,
    ScalingCheck,
    judge_answers,
    tidy,
)
from .degree import Epsilon, Unknown
from .derivation import Derivation, layers_of
from .scaling import FACTORS, TOLERANCE, ScalingProbe, generic_inputs
from .trace import Trace

_TRACED = 3
"""Samples that the rules follow: enough for batch statistics."""
_JUDGED = 4
"""Samples on which exponents are judged: another number than the rules follow, so that exponents
made of a batch size show.
"""
_ROUGH = (8, 32)
"""Samples on which a net with epsilons or casts is measured as it is, at least and at most: their
effect is largest on the rare sample that makes a value small, ...
"""
_ROUGH_NUMBERS = 2**13
"""... so as many are taken as hold so many numbers, which cost next to nothing."""
_WIDE = 2.0
"""Decades on both sides of 1 in which factors are drawn for the check of exponents, ..."""
_LARGEST_POWER = 60.0
"""... unless the outputs would grow or shrink by more decades than this."""
_STEPS = 4
"""Factors per decade at which the range is looked for, before its ends are halved down to a few per
cent.
"""

Scaling = tuple[dict[str, float], float]
"""Parameter -> factor, and the factor by which the outputs must change."""


class Judge:
    """Compares answers with what a net does to samples, in float64.

    x : a batch of inputs, of which a few are used.
    seed : of the generic point and of the factors that are drawn.
    """

    def __init__(self, model: nn.Module, x, *, seed: int = 0):
        self._model, self._seed = model, seed
        self.traced, self._more = few_samples(model, x, _TRACED), few_samples(model, x, _JUDGED)
        self._rough = few_samples(model, x, _rough_count(self.traced))
        if _count(self._more) == _count(self.traced):
            self._more = self._rough = _with_first_repeated(self.traced)
        self._blank = False

    # -- derived answers

    def settle(self, derivation: Derivation, casts: Sequence[str]) -> Homogeneity:
        """The answer of a derivation, with its deviation; what it neglects is counted where its
        effect is above 1%.
        """
        answer = replace(derivation.answer(), casts=tuple(casts))
        if answer.order is None and not answer.quasi:
            return replace(answer, casts=(), epsilons=())
        exact, probe = self._exact(answer)
        if exact > TOLERANCE:
            return self._contradicted(answer, exact)
        if answer.quasi and answer.blockers and self._quasi_miss(answer, probe) > LARGEST_MISS:
            note = "no quasi-homogeneous scaling is given: the epsilons are too large for one"
            answer = replace(answer, quasi=None, notes=(*answer.notes, note))
        if answer.order is None:
            return replace(answer, casts=())
        deviation = self._deviation(answer, probe)
        if deviation > LARGEST_MISS:
            return self._count_culprits(answer, derivation, probe)
        return self._measured(answer, deviation)

    def check(self, answer: Homogeneity, *, range: bool) -> ScalingCheck:
        """How well the exponents of an answer hold on these samples."""
        exact, probe = self._exact(answer)
        deviation = self._deviation(answer, probe)
        found = self._range(answer, probe) if range else None
        return ScalingCheck(deviation, exact, self._samples(answer), found, answer.cause)

    def _samples(self, answer: Homogeneity) -> int:
        return _count(self._rough if answer.epsilons or answer.casts else self._more)

    def _measured(self, answer: Homogeneity, deviation: float) -> Homogeneity:
        return replace(answer, deviation=deviation, samples=self._samples(answer))

    def _exact(self, answer: Homogeneity) -> tuple[float, ScalingProbe | None]:
        """The miss with epsilons made negligible and factors far apart, and the probe that found
        it.
        """
        best: tuple[float, ScalingProbe | None] = (math.inf, None)
        scalings = [self._draw(answer, 0, _WIDE)] if answer.order is not None else []
        if answer.quasi and answer.blockers:
            scalings.append(_quasi_scaling(answer, FACTORS[0]))
        # Blank samples, or constant ones before a normalization, say nothing; generic ones like
        # them do.
        for self._blank in (False, True):
            x = generic_inputs(self._more) if self._blank else self._more
            # Such samples, or so many of them, may not be to the taste of a forward pass.
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self._probe(answer, x, neglected=answer.epsilons)
                miss = max(probe.miss(*scaling) for scaling in scalings)
                if miss <= TOLERANCE:
                    return miss, probe
                best = min(best, (miss, probe), key=lambda pair: pair[0])
        if (
            best[1] is None and self._more is not self.traced
        ):  # a net for so many samples and no other number
            self._more = self._rough = self.traced
            return self._exact(answer)
        return best

    def _rough_probe(
        self,
        answer: Homogeneity,
        exact: ScalingProbe | None,
        *,
        neglected: Sequence[Epsilon] = (),
        casts: bool = True,
    ) -> ScalingProbe:
        """The net as it is; where nothing was neglected the exact probe serves."""
        if exact is not None and not answer.epsilons and not answer.casts:
            return exact
        x = generic_inputs(self._rough) if self._blank else self._rough
        probe = self._probe(answer, x, neglected=neglected, as_it_is=True, rounding=casts)
        if probe.silent:  # such as a last layer that starts at 0
            probe = self._probe(answer, x, neglected=neglected, rounding=casts)
        return probe

    def _deviation(self, answer: Homogeneity, exact: ScalingProbe | None, **kept) -> float:
        """The largest miss of the net as it is."""
        probe = self._rough_probe(answer, exact, **kept)
        return max(probe.miss(*scaling) for scaling in self._near(answer))

    def _quasi_miss(self, answer: Homogeneity, exact: ScalingProbe | None) -> float:
        if not answer.epsilons and not answer.casts:
            return 0.0
        return self._rough_probe(answer, exact).miss(*_quasi_scaling(answer, FACTORS[0]))

    def _near(self, answer: Homogeneity) -> list[Scaling]:
        """All groups by 1/2, all by 2, and independent factors between: at a corner, and anywhere
        where roundings may differ.
        """
        scalings = [_scaling(answer, dict.fromkeys(answer.groups, c)) for c in FACTORS]
        if answer.epsilons or answer.casts:
            scalings.append(self._draw(answer, 1, math.log10(2)))
        if len(answer.groups) > 1:
            signs = torch.randint(
                0, 2, (len(answer.groups),), generator=self._generator(2)
            ).tolist()
            if len(set(signs)) == 1:  # that would be all together once more
                signs[0] = 1 - signs[0]
            corner = {name: FACTORS[sign] for name, sign in zip(answer.groups, signs, strict=True)}
            scalings.append(_scaling(answer, corner))
        return scalings

    def _draw(self, answer: Homogeneity, number: int, decades: float) -> Scaling:
        """Independent factors for the groups, up to so many decades from 1."""
        total = sum(abs(float(k)) for k in answer.groups.values())
        decades = min(decades, _LARGEST_POWER / max(total, 1.0))
        exponents = (
            torch.rand(len(answer.groups), generator=self._generator(number), dtype=torch.float64)
            * 2
            - 1
        )
        return _scaling(
            answer,
            {
                name: 10 ** (decades * u)
                for name, u in zip(answer.groups, exponents.tolist(), strict=True)
            },
        )

    def _generator(self, number: int) -> torch.Generator:
        return torch.Generator().manual_seed(1000 * self._seed + number)

    def _probe(self, answer: Homogeneity, x, **kwargs) -> ScalingProbe:
        return ScalingProbe(self._model, x, seed=self._seed, zeroed=answer.ignored, **kwargs)

    # -- answers that do not hold

    def _contradicted(self, answer: Homogeneity, miss: float) -> Homogeneity:
        reason = "the forward pass depends on its inputs in a way they cannot see"
        for x in (self.traced, generic_inputs(self.traced)):
            with suppress(RuntimeError, IndexError, ValueError):
                probe = self._probe(answer, x, neglected=answer.epsilons)
                if (
                    answer.order is not None
                    and probe.miss(*self._draw(answer, 0, _WIDE)) <= TOLERANCE
                ):
                    reason = (
                        "the exponents change with the number of samples, here"
                        f" {_count(self.traced)} and {_count(self._more)}"
                    )
                    break
                ones = dict.fromkeys(answer.groups, 1.0)
                wrong = [
                    name
                    for name in answer.groups
                    if probe.miss(*_scaling(answer, ones | {name: 2.0})) > TOLERANCE
                ]
                if wrong:
                    reason += f", first seen in {', '.join(wrong)}"
                break
        return replace(
            answer, kind=Kind.UNKNOWN, order=None, groups={}, members={}, quasi=None, evidence=Evidence.CONTRADICTED, casts=(),
            epsilons=(), deviation=miss, samples=_count(self._more),
            notes=(*answer.notes, f"the numerical check contradicts the rules: {reason}"),
        )  # fmt: skip

    def _count_culprits(
        self, answer: Homogeneity, derivation: Derivation, exact: ScalingProbe | None
    ) -> Homogeneity:
        """The answer once the epsilons that alone miss by too much are taken for what they are;
        casts cannot be lifted.
        """
        rounding = self._deviation(answer, exact, neglected=answer.epsilons)
        if rounding > LARGEST_MISS or not answer.epsilons:
            if not answer.casts:  # nothing was neglected, and yet factors near 1 miss
                return self._contradicted(answer, rounding)
            sentence = "rounds to half precision, which changes the outputs by"
            blockers = tuple(
                Blocker(cast, f"{sentence} {rounding:.1%}", "cast to float32, or not at all")
                for cast in answer.casts
            )
            return _refused(answer, blockers)
        alone = {
            epsilon: self._deviation(
                answer, exact, neglected=[e for e in answer.epsilons if e != epsilon], casts=False
            )
            for epsilon in answer.epsilons
        }
        guilty = {e: miss for e, miss in alone.items() if miss > LARGEST_MISS} or dict(
            [max(alone.items(), key=lambda item: item[1])]
        )
        return self.settle(derivation.counting(guilty), answer.casts)

    def _range(self, answer: Homogeneity, exact: ScalingProbe | None) -> tuple[float, float]:
        """The factors nearest to 1, below and above, between which the net as it is misses by less
        than 1%.
        """
        probe = self._rough_probe(answer, exact)

        def holds(log: float) -> bool:
            return (
                probe.miss(*_scaling(answer, dict.fromkeys(answer.groups, 10**log))) < LARGEST_MISS
            )

        def end(sign: int, farthest: float) -> float:
            inside = 0.0
            while inside < farthest:
                outside = min(inside + 1 / _STEPS, farthest)
                if not holds(sign * outside):
                    for _ in range(4):
                        middle = (inside + outside) / 2
                        inside, outside = (
                            (middle, outside) if holds(sign * middle) else (inside, middle)
                        )
                    break
                inside = outside
            return 10 ** (sign * inside)

        low, high = (abs(math.log10(c)) for c in FARTHEST)
        return end(-1, low), end(1, high)

    # -- answers from numbers alone

    def observe(self, trace: Trace, names: tuple[str, ...], hidden: Unknown) -> Homogeneity:
        """The answer of numbers alone, for nets in which `hidden` could not be followed."""
        epsilons, casts, blind = tuple(trace.epsilons), tuple(trace.casts), tuple(trace.blind)
        probe = ScalingProbe(self._model, self.traced, neglected=epsilons, seed=self._seed)
        if probe.silent:
            probe = ScalingProbe(
                self._model, generic_inputs(self.traced), neglected=epsilons, seed=self._seed
            )
        layers = layers_of(names)
        exponents = {layer: probe.exponent(members) for layer, members in layers.items()}
        order = probe.exponent(names)
        single = {layer: k for layer, k in exponents.items() if k is not None}
        if order is not None and order > 0:
            separate = len(single) == len(exponents) > 1 and sum(single.values()) == order
            kind = Kind.MULTI_HOMOGENEOUS if separate else Kind.HOMOGENEOUS
            groups = single if separate else {"all": order}
        else:
            groups = {layer: k for layer, k in single.items() if k > 0}
            together = [n for layer in groups for n in layers[layer]]
            order = sum(groups.values(), Fraction(0))
            kind = Kind.PARTIAL if groups and probe.exponent(together) == order else Kind.UNKNOWN
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
            kind, tidy(order), {name: tidy(k) for name, k in groups.items()}, members, () if whole else (blocker,),
            Evidence.NUMERICAL, notes=(str(blocker),) if whole else (), epsilons=epsilons, casts=casts,
        )  # fmt: skip
        exact, wide = self._exact(answer)
        if exact > TOLERANCE:
            return self._contradicted(replace(answer, blockers=(blocker,)), exact)
        deviation = self._deviation(answer, wide)
        if deviation > LARGEST_MISS:
            return replace(
                unknown,
                notes=(
                    (
                        f"with {answer.cause} the outputs miss the observed exponents by"
                        f" {deviation:.1%}"
                    ),
                ),
            )
        return self._measured(answer, deviation)


def few_samples(model: nn.Module, x, count: int):
    """The first samples as tensors for the model; a tuple is a model's several inputs."""
    if isinstance(x, tuple):
        return tuple(few_samples(model, part, count) for part in x)
    device, dtype = device_and_dtype(model)
    x = as_inputs(x)[:count].to(device, copy=True)
    return x.to(dtype) if x.is_floating_point() else x


@judge_answers
def _check_answer(
    answer: Homogeneity, model: nn.Module, data: object, range: bool, seed: int
) -> ScalingCheck:
    judge = Judge(model, _inputs_of(model, data, several=answer._several_inputs), seed=seed)
    return judge.check(answer, range=range)


def _inputs_of(model: nn.Module, data, *, several: bool):
    """The inputs among what `check` was given: inputs, a pair (X, y), or an iterable of batches."""
    if several or isinstance(data, Tensor) or hasattr(data, "__array__"):
        return data
    if isinstance(data, list) and not any(hasattr(part, "shape") for part in data):
        return data
    return next(batches(open_data(data), _ROUGH[1], model))[0]


def _refused(answer: Homogeneity, blockers: tuple[Blocker, ...]) -> Homogeneity:
    return replace(
        answer,
        kind=Kind.NONE,
        order=None,
        groups={},
        members={},
        quasi=None,
        blockers=(*answer.blockers, *blockers),
    )


def _scaling(answer: Homogeneity, factors: Mapping[str, float]) -> Scaling:
    """The scaling that multiplies the parameters of each group by its factor."""
    expected = math.prod(c ** float(answer.groups[name]) for name, c in factors.items())
    return {n: c for name, c in factors.items() for n in answer.members[name]}, expected


def _quasi_scaling(answer: Homogeneity, c: float) -> Scaling:
    assert answer.quasi is not None
    return {name: c ** float(weight) for name, weight in answer.quasi.items()}, c


def _count(x) -> int:
    return len(x[0] if isinstance(x, tuple) else x)


def _rough_count(x) -> int:
    numbers = sum(part.numel() for part in (x if isinstance(x, tuple) else (x,))) / max(
        _count(x), 1
    )
    return int(min(max(_ROUGH_NUMBERS / max(numbers, 1), _ROUGH[0]), _ROUGH[1]))


def _with_first_repeated(x):
    """One sample more, for a data set that is too small to take another."""
    return tuple(map(_with_first_repeated, x)) if isinstance(x, tuple) else torch.cat([x, x[:1]])
