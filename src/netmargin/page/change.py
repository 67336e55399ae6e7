"""Section 4 of a page, how much change the net can stand: certified and attacked radii."""

import math

import numpy as np
import torch

from ..radii import RobustnessReport
from .facts import Facts, LinkedRadii
from .flips import write_flips
from .inputs import write_range
from .measured import Measured
from .numbers import count, distance, one_digit, plural, quoted, round_down
from .payload import Certainty, Change, Columns, Radii, Tag
from .sampling import is_spread

_POINTS = 300
"""Steps of a curve: more than the pixels that tell them apart, and a few kB."""


def write_change(facts: Facts) -> Change | None:
    """Write section 4; None without radii."""
    known = [linked for linked in facts.radii if linked.report.examined]
    if not known:
        return None
    first = known[0]
    lower, upper = _radii(first)
    proved = any(not linked.report.no_lower for linked in known)
    attacked = any(linked.report.attacks for linked in known)
    tags = []
    if proved:
        tags.append(Tag(Certainty.PROVED, "lower curve"))
    if attacked:
        tags.append(
            Tag(
                Certainty.MEASURED,
                f"upper curve: each flip is an actual {facts.noun}, checked",
            )
        )
    largest = max(linked.report.largest for linked in known)
    per_input = math.nan if facts.inputs is None else facts.inputs.per_input
    whose = f"{quoted(first.name)}: " if len(known) > 1 else ""
    return Change(
        takeaway=whose + _describe(facts, first, lower, upper),
        data=_describe_data(facts, first),
        others=_describe_others(facts, first),
        tags=tuple(tags),
        calibration=_calibrate(facts, first),
        proof_note=_describe_proof(first.report),
        no_proof="" if proved else f"Nothing is proved here: {first.report.no_lower}",
        unit="L2" if facts.inputs is None else facts.inputs.unit,
        nets=tuple(_describe_net(facts, linked, len(known) > 1, largest) for linked in known),
        largest=largest,
        start=one_digit(_start(lower, upper, largest)),
        per_input=100 * per_input if math.isfinite(per_input) else 0.0,
        per_input_text=_per_input_text(facts),
        attacked=attacked,
        proved=proved,
        flips=write_flips(facts, first, _find_split(facts, first)),
    )


def _find_split(facts: Facts, linked: LinkedRadii) -> Measured | None:
    """The split of the examined samples, where they are on the page."""
    return next((split for split in facts.splits if split.key == linked.split), None)


def _radii(linked: LinkedRadii) -> tuple[np.ndarray, np.ndarray]:
    """The radii of the samples that were examined; without attacks nothing is known above."""
    examined, report = linked.report.examined, linked.report
    return report.lower[:examined], report.upper[:examined]


def _start(lower: np.ndarray, upper: np.ndarray, largest: float) -> float:
    """A size of change at which some samples are proved, open and flipped each, where it exists."""
    if len(positive := lower[lower > 0]):
        return float(np.median(positive))
    found = upper[np.isfinite(upper) & (upper > 0)]
    return float(np.median(found)) / 4 if len(found) else largest / 4


def _describe(facts: Facts, linked: LinkedRadii, lower: np.ndarray, upper: np.ndarray) -> str:
    """What is proved, what was found, and what is open."""
    n, report = len(lower), linked.report
    these = plural(n, f"examined {facts.noun}")
    if report.no_lower:
        proof = "Nothing is proved about changes of this net"
    elif math.isinf(middle := middle_of(lower)):
        proof = (
            f"For {count(int(np.isinf(lower).sum()))} of {these} no change, however"
            f" large{describe_box(report)}, flips the answer (proved)"
        )
    elif middle > 0:
        proof = (
            f"For half of {these} it is proved that no change below"
            f" {distance(middle, down=True)} flips the answer"
        )
    else:
        safe = int((lower > 0).sum())
        proof = (
            f"For {count(safe) if safe else 'none'} of {these} it is proved that small changes do"
            " not flip the answer"
        )
    if not report.attacks:
        return f"{proof}. No flips were searched for: everything above is open."
    middle = middle_of(upper)
    if math.isfinite(middle):
        half = "half of them, maybe others,"
        if report.no_lower or not 0 < middle_of(lower) < math.inf:
            half = f"half of {these}"
        found = f"for {half} a change of {distance(middle)} or less that does was found"
    else:
        flipped = int((np.isfinite(upper) & (upper > 0)).sum())
        some = count(flipped) if flipped else "none"
        found = f"a change that does was found for {some} of {count(n)}"
    if wrong := int((report.q[:n] <= 0).sum()):
        found += f" ({count(wrong)} {'is' if wrong == 1 else 'are'} wrong without any change)"
    left = "What lies between is open." if bool((lower < upper).any()) else "Nothing is open."
    return f"{proof}; {found}. {left}"


def describe_box(report: RobustnessReport) -> str:
    """Which changes radii are about, in words; "" for all of them."""
    return "" if report.box is None else f" (values stay within {write_range(*report.box)})"


def _describe_proof(report: RobustnessReport) -> str:
    """Why more may hold than is proved, and what proves more; "" where all was tried."""
    if report.no_lower:
        return ""
    if report.no_chain:
        return f"Proved by Lipschitz constants alone: {report.no_chain}"
    if report.effort == "quick":
        return (
            "Proved by Lipschitz constants alone, which is quick:"
            ' nm.robustness(..., effort="standard") proves more.'
        )
    return ""


def middle_of(radii: np.ndarray) -> float:
    """The radius that half of the samples reach; of two in the middle the lower one."""
    return float(np.sort(radii)[(len(radii) - 1) // 2])


def _describe_data(facts: Facts, linked: LinkedRadii) -> str:
    """The samples that were examined."""
    n, split = linked.report.examined, _find_split(facts, linked)
    if split is None:
        return f"{count(n)} {facts.noun}s, not among those of this page"
    if n == split.n:
        return f"all {count(n)} {facts.phrase(split)}"
    assert linked.rows is not None  # where there is a split
    rows, these = linked.rows[:n], f"{count(n)} of the {count(split.n)} {facts.phrase(split)}"
    if is_spread(split.distances, rows):
        return f"{these}, evenly by {_name_distance(facts)}"
    first, last = int(rows[0]), int(rows[-1])
    if not torch.equal(rows, torch.arange(first, first + n)):
        return f"{these}, those given to nm.robustness"
    if first == 0:
        return f"the first {these}"
    return f"{these}, numbers {count(first)} to {count(last)}"


def _name_distance(facts: Facts) -> str:
    """What samples are ordered by."""
    return "estimated distance" if facts.has_distances else "score margin"


def _describe_others(facts: Facts, linked: LinkedRadii) -> str:
    """What the examined samples say of the others: nothing proved, and how near shares come."""
    n, split = linked.report.examined, _find_split(facts, linked)
    if split is None or linked.rows is None or n == split.n:
        return ""
    if n == 1:
        return f"What is said of it holds for no other {facts.noun}."
    rows, ordered = linked.rows[:n], _name_distance(facts)
    # Of a share near one half, drawn at random without replacement; others are known better.
    points = 98 * math.sqrt((split.n - n) / (n * (split.n - 1)))
    near = f"within about {max(1, round(points))} percentage points (95%)"
    if is_spread(split.distances, rows):
        how = (
            f"The {count(n)} were taken evenly from all {count(split.n)} in the order of their"
            f" {ordered}, right or wrong, so a share of them is that of all {near}."
        )
    else:
        middles = [middle_of(d.numpy()) for d in (split.distances[rows], split.distances)]
        own, whole = (distance(d) if math.isfinite(d) else "infinite" for d in middles)
        how = (
            f"The median {ordered} of these {count(n)} is {own}, that of all {count(split.n)}"
            f" {whole}: as far as they are a random choice, a share of them is that of all {near}."
        )
    if linked.report.no_lower:
        return how
    rest = split.n - n
    return (
        f"{how} What is proved is proved of these {count(n)} alone: of the other {count(rest)}"
        f" {facts.noun}{'s' * (rest != 1)} nothing is."
    )


def _calibrate(facts: Facts, linked: LinkedRadii) -> str:
    """How good the first-order estimate is on these samples, or ""."""
    split = _find_split(facts, linked)
    if split is None or linked.rows is None or split.no_distance:
        return ""
    if not split.X.is_floating_point():  # distances are those of a layer, radii of the inputs
        return ""
    _, upper = _radii(linked)
    estimates = split.distances[linked.rows[: len(upper)]].numpy()
    known = np.isfinite(upper) & (upper > 0) & np.isfinite(estimates) & (estimates > 0)
    if known.sum() < 10:  # of fewer no middle 80% is left
        return ""
    ratios = estimates[known] / upper[known]
    low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
    return (
        "How good is the first-order estimate? It was checked on the"
        f" {count(len(ratios))} {facts.noun}s that are right and for which a flip was found. In the"
        f" median it is {distance(middle)} times the smallest flip found, for the middle 80% of"
        f" them {distance(low)} to {distance(high)} times; it is too low for"
        f" {count(int((ratios < 1).sum()))}."
    )


def _describe_net(facts: Facts, linked: LinkedRadii, several: bool, largest: float) -> Radii:
    """The curves of one net."""
    lower, upper = _radii(linked)
    if linked.report.no_lower:
        lower = np.zeros_like(lower)
    wrong = int((linked.report.q[: len(lower)] <= 0).sum())
    name = linked.name if several else ""
    curve, proved = _draw_curve(lower, upper, largest), list(map(round_down, lower.tolist()))
    samples = f"the {plural(len(lower), f'examined {facts.noun}')}"
    return Radii(name, curve, proved, upper.tolist(), wrong, samples)


def _draw_curve(lower: np.ndarray, upper: np.ndarray, largest: float) -> Columns:
    """The shares proved below each size and flipped up to it, in percent."""
    steps = np.unique(np.concatenate([[0.0, largest], lower, upper[np.isfinite(upper)]]))
    steps = steps[steps <= largest]
    if len(steps) > _POINTS:
        steps = steps[np.unique(np.linspace(0, len(steps) - 1, _POINTS).round().astype(int))]
    # From a step to the next: samples with a radius beyond it are proved up to there.
    proved = 100 * (lower[None] > steps[:, None]).mean(1)
    flipped = 100 * (upper[None] <= steps[:, None]).mean(1)
    return {"x": steps.tolist(), "proved": proved.tolist(), "flipped": flipped.tolist()}


def _per_input_text(facts: Facts) -> str:
    """What a size is as a change of every input, with {} where size and percentage stand."""
    if facts.inputs is None or not math.isfinite(facts.inputs.per_input):
        return ""
    if facts.noun == "image":
        return (
            "A change of L2 length {}, spread evenly over all pixels, is {}% of the range in each."
        )
    return (
        "A change of L2 length {}, spread evenly over all inputs, is {}% of the typical standard"
        " deviation in each."
    )
