"""From a derivation to an answer that numbers confirm: are its exponents right once epsilons are
negligible, and how far does the net as it is miss them?
"""

from contextlib import suppress
from dataclasses import replace

from .answer import Homogeneity
from .degree import Epsilon, Unknown
from .derivation import Derivation, layers_of
from .group_scalings import compose, read_groups, scale_groups, scale_quasi
from .measurements import Measurements
from .samples import count_samples
from .scaling import FACTORS, TOLERANCE, ScalingProbe, generic_inputs
from .scaling_check import LARGEST_MISS
from .sentences import tidy
from .trace import Trace
from .vocabulary import Blocker, Evidence, Kind

_MOST_BLAMED_ALONE = 8
"""Epsilons up to which each is measured alone, by two passes: a few usual layers hold as many. Of
dozens all are blamed.
"""


def confirm_both(
    derivation: Derivation, without: Derivation, measured: Measurements
) -> float | None:
    """The miss that confirms the net with biases, and so without them, by one pass; or None."""
    answer, free = derivation.answer, without.answer
    if free.order is None:
        return None
    factors, expected = measured.scale_as_claimed(free)
    followed = derivation.let_biases_follow(factors), expected
    exact = measured.measure_exact(answer, compose([followed, measured.scale_as_claimed(answer)]))
    return exact if exact <= TOLERANCE else None


def settle(
    derivation: Derivation, measured: Measurements, exact: float | None = None
) -> Homogeneity:
    """The answer with a deviation, counting epsilons that change it by 1%."""
    answer = derivation.answer
    if answer.order is None and not answer.quasi_exponents:
        return replace(answer, casts=(), epsilons=())
    exact = measured.measure_exact(answer) if exact is None else exact
    if exact > TOLERANCE:
        return _contradict(answer, exact, measured)
    if (
        answer.quasi_exponents
        and answer.blockers
        and (answer.casts or derivation.guards_moved_by([answer.quasi_exponents]))
        and measured.probe_as_it_is(answer).miss(*scale_quasi(answer, FACTORS[0])) > LARGEST_MISS
    ):
        reason = "the epsilons are too large for quasi-homogeneous exponents"
        answer = replace(answer, quasi_exponents=None, quasi_reason=reason)
    if answer.order is None:
        return replace(answer, casts=())
    deviation = measured.measure_deviation(answer, exact)
    if deviation <= LARGEST_MISS:
        return replace(answer, deviation=deviation, samples=measured.count_samples_of(answer))
    if answer.kind is Kind.PARTIAL and 0 in answer.groups.values():
        # They do not count for its order: no reason to look for the epsilons to blame.
        left_out = f"{answer.cause} would make them miss by {deviation:.1%}"
        answer = settle(replace(derivation, narrow=True), measured, exact)
        note = f"parameters that are nearly scale-invariant are left out: {left_out}"
        return replace(answer, notes=(*answer.notes, note))
    return _blame_epsilons(answer, derivation, measured)


def _contradict(answer: Homogeneity, miss: float, measured: Measurements) -> Homogeneity:
    """Turn an answer that numbers contradict into an unknown one that says where it fails."""
    found = "contradicts the rules: "
    reason = "the forward pass depends on its inputs in a way they cannot see"
    # On the samples that were followed the exponents may hold: then the batch size matters.
    for x in (measured.traced, generic_inputs(measured.traced)):
        with suppress(RuntimeError, IndexError, ValueError):
            probe = measured.probe_exact(answer, x)
            if probe.silent:
                found, reason = "says nothing: the outputs are 0 at all points that were tried", ""
                break
            if answer.order is not None and probe.miss(*measured.draw_wide(answer)) <= TOLERANCE:
                reason = (
                    "the exponents change with the number of samples, here"
                    f" {count_samples(measured.traced)} and {count_samples(measured.more)}"
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
        samples=count_samples(measured.more),
        notes=(*answer.notes, f"the numerical check {found}{reason}"),
    )


def _blame_epsilons(
    answer: Homogeneity, derivation: Derivation, measured: Measurements
) -> Homogeneity:
    """Derive again, counting the epsilons that miss by too much; where casts do, refuse."""
    rounding = measured.measure_near(answer, neglected=answer.epsilons)
    if rounding > LARGEST_MISS or not answer.epsilons:
        if not answer.casts:  # nothing was neglected, and yet factors near 1 miss: wrong rules
            return _contradict(answer, rounding, measured)
        sentence = "rounds to half precision, which changes the outputs by"
        blockers = tuple(
            Blocker(cast, f"{sentence} {rounding:.1%}", "cast to float32, or not at all")
            for cast in answer.casts
        )
        return _refuse(answer, blockers)
    # If only several together miss by too much, the largest goes first; settle comes back here.
    return settle(derivation.counting(_find_guilty(answer, measured)), measured)


def _find_guilty(answer: Homogeneity, measured: Measurements) -> dict[Epsilon, str]:
    """The epsilons that miss by over 1% alone, or the worst; of many, all; with their effects."""
    if len(answer.epsilons) > _MOST_BLAMED_ALONE:
        miss = measured.measure_near(answer, casts=False)
        effect = f"with {len(answer.epsilons) - 1} others it makes the outputs miss their power"
        return dict.fromkeys(answer.epsilons, f"{effect} of c by {miss:.1%}")
    misses = {
        epsilon: measured.measure_near(
            answer, neglected=[e for e in answer.epsilons if e != epsilon], casts=False
        )
        for epsilon in answer.epsilons
    }
    least = min(LARGEST_MISS, max(misses.values()))
    return {
        epsilon: f"alone it makes the outputs miss their power of c by {miss:.1%}"
        for epsilon, miss in misses.items()
        if miss >= least
    }


def observe(
    trace: Trace, names: tuple[str, ...], hidden: Unknown, measured: Measurements
) -> Homogeneity:
    """Answer from numbers only, for nets in which the operation `hidden` cannot be followed."""
    epsilons, casts, blind = tuple(trace.epsilons), tuple(trace.casts), tuple(trace.blind)
    for x in (measured.traced, generic_inputs(measured.traced)):
        statistics, seed = trace.statistics, measured.seed
        probe = ScalingProbe(
            measured.model, x, neglected=epsilons, seed=seed, statistics=statistics
        )
        if not probe.silent:
            break
    layers = layers_of(names)
    kind, order, groups = read_groups(probe, layers)
    advice = "register a rule with netmargin.homogeneity.rule, for a derived answer"
    blocker = Blocker(hidden.where, hidden.reason, advice)
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
    exact = measured.measure_exact(answer)
    if exact > TOLERANCE:
        return _contradict(replace(answer, blockers=(blocker,)), exact, measured)
    deviation = measured.measure_deviation(answer, exact)
    if deviation > LARGEST_MISS:
        cause = f"with {answer.cause} the outputs miss the observed exponents"
        return replace(unknown, notes=(f"{cause} by {deviation:.1%}",))
    return replace(answer, deviation=deviation, samples=measured.count_samples_of(answer))


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
