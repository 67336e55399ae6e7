"""A section of a page: how much change the net can stand: certified and attacked radii."""

import math

import numpy as np

from ..radii import RobustnessReport
from .facts import Facts, LinkedRadii
from .flips import write_flips
from .inputs import write_range
from .measured import Measured
from .numbers import distance, one_digit, plural, quoted, round_down
from .payload import Certainty, Change, Columns, Radii, Tag
from .sampling import is_spread

_POINTS = 300
"""Steps of a curve: more than the pixels that tell them apart, and a few kB."""


def write_change(facts: Facts) -> Change | None:
    """Write section 4; None without radii."""
    known = [linked for linked in facts.radii if linked.report.examined]
    if not known:
        return None
    first, several = known[0], len(known) > 1
    split = next((split for split in facts.splits if split.key == first.split), None)
    lower, upper = _radii(first)
    proved = any(not linked.report.no_lower for linked in known)
    attacked = any(bool(linked.report.attacks) for linked in known)
    found = f"upper curve: each flip is an actual {facts.noun}, checked"
    tags = [Tag(Certainty.PROVED, "lower curve")] * proved
    tags += [Tag(Certainty.MEASURED, found)] * attacked
    largest = float(f"{max(linked.report.largest for linked in known):.4g}")
    per_input = math.nan if facts.inputs is None else facts.inputs.per_input
    notes = (
        _describe_others(facts, first, split),
        _calibrate(facts, first, split),
        _describe_proof(first.report),
    )
    return Change(
        takeaway=f"{quoted(first.name)}: " * several + _describe(facts, first, lower, upper),
        data=_describe_data(facts, len(lower), split),
        tags=tuple(tags),
        notes=tuple(filter(None, notes)),
        no_proof="" if proved else f"Nothing is proved here: {first.report.no_lower}",
        unit="L2" if facts.inputs is None else facts.inputs.unit,
        inputs="pixels" if facts.noun == "image" else "inputs",
        scale="range" if facts.noun == "image" else "typical standard deviation",
        flips=write_flips(facts, first, split),
        nets=tuple(_draw_net(facts, linked, several, largest) for linked in known),
        largest=largest,
        start=one_digit(_choose_start(lower, upper, largest)),
        per_input=100 * per_input if math.isfinite(per_input) else 0.0,
        attacked=attacked,
        proved=proved,
    )


def _radii(linked: LinkedRadii) -> tuple[np.ndarray, np.ndarray]:
    """The radii of the samples that were examined."""
    examined, report = linked.report.examined, linked.report
    return report.lower[:examined], report.upper[:examined]


def _choose_start(lower: np.ndarray, upper: np.ndarray, largest: float) -> float:
    """A size of change at which some samples are proved, open and flipped each, where it exists."""
    if len(positive := lower[lower > 0]):
        return float(np.median(positive))
    found = upper[np.isfinite(upper) & (upper > 0)]
    return float(np.median(found)) / 4 if len(found) else largest / 4


def _describe(facts: Facts, linked: LinkedRadii, lower: np.ndarray, upper: np.ndarray) -> str:
    """What is proved, what was found, and what is open."""
    n, report = len(lower), linked.report
    these, middle = plural(n, f"examined {facts.noun}"), middle_of(lower)
    endless = int(np.isinf(lower).sum())
    if report.no_lower:
        proof = "Nothing is proved about changes of this net"
    elif math.isinf(middle):
        box = "" if report.box is None else f" (values stay within {write_range(*report.box)})"
        proof = f"For {endless:,} of {these} it is proved that no change{box} flips the answer"
    elif middle > 0:
        proof = (
            f"For half of {these} it is proved that no change below"
            f" {distance(middle, down=True)} flips the answer"
        )
    else:
        safe = f"{int((lower > 0).sum()):,}"
        proof = f"For {safe} of {these} it is proved that small changes do not flip the answer"
    if not report.attacks:
        return f"{proof}. No flips were searched for: everything above is open."
    middle = middle_of(upper)
    flipped = f"{int((np.isfinite(upper) & (upper > 0)).sum()):,}"
    found = f"a change that does was found for {flipped} of {n:,}"
    if 0 < middle < math.inf:
        found = f"half are flipped by a change of {distance(middle)} or less that was found"
    wrong = int((report.q[:n] <= 0).sum())
    also = f" (wrong without any change: {wrong:,})" if wrong else ""
    left = "What lies between is open." if bool((lower < upper).any()) else "Nothing is open."
    return f"{proof}; {found}{also}. {left}"


def _describe_proof(report: RobustnessReport) -> str:
    """Why more may hold than is proved, and what proves more; "" where all was tried."""
    if report.no_lower or not (report.no_chain or report.effort == "quick"):
        return ""
    more = report.no_chain or 'nm.robustness(..., effort="standard") proves more.'
    return f"Proved by Lipschitz constants alone: {more}"


def middle_of(radii: np.ndarray) -> float:
    """The radius that half of the samples reach; of two in the middle the lower one."""
    return float(np.sort(radii)[(len(radii) - 1) // 2])


def _describe_data(facts: Facts, n: int, split: Measured | None) -> str:
    """The samples that were examined."""
    if split is None:
        return f"{plural(n, facts.noun)}, not among those of this page"
    whole = f"{split.n:,} {facts.phrase(split)}"
    return f"all {whole}" if n == split.n else f"{n:,} of the {whole}"


def _describe_others(facts: Facts, linked: LinkedRadii, split: Measured | None) -> str:
    """What the examined samples say of the others: nothing proved, and how near shares come."""
    n = linked.report.examined
    if split is None or linked.rows is None or n == split.n:
        return ""
    alone = f"What is proved is proved of these {n:,} alone."
    if n == 1 or not is_spread(split.distances, linked.rows[:n]):
        return f"{alone} They are not spread over all: shares may be others."
    # Of a share near one half, drawn at random without replacement; others are known better.
    points = 98 * math.sqrt((split.n - n) / (n * (split.n - 1)))
    ordered = "estimated distance" if facts.has_distances else "score margin"
    return (
        f"{alone} They were taken evenly in the order of {ordered}, so a share of them is that of"
        f" all {split.n:,} within about {max(1, round(points))} percentage points (95%)."
    )


def _calibrate(facts: Facts, linked: LinkedRadii, split: Measured | None) -> str:
    """How good the first-order estimate is on these samples, or ""."""
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
    low, middle, high = map(distance, np.quantile(ratios, [0.1, 0.5, 0.9]))
    return (
        f"How good is the first-order estimate? On the {len(ratios):,} {facts.noun}s that are"
        f" right and have a flip it is in the median {middle} times the smallest flip found"
        f" ({low} to {high} for the middle 80%), and too low for {int((ratios < 1).sum()):,}."
    )


def _draw_net(facts: Facts, linked: LinkedRadii, several: bool, largest: float) -> Radii:
    """The curves of one net."""
    lower, upper = (radii.tolist() for radii in _radii(linked))
    # Of the digits that are written: a curve with others would prove more than is counted.
    proved, found = [*map(round_down, lower)], [float(f"{radius:.4g}") for radius in upper]
    return Radii(
        linked.name if several else "",
        _draw_curve(np.array(proved), np.array(found), largest),
        proved,
        found,
        int((linked.report.q[: len(lower)] <= 0).sum()),
        f"the {plural(len(lower), f'examined {facts.noun}')}",
    )


def _draw_curve(lower: np.ndarray, upper: np.ndarray, largest: float) -> Columns:
    """The shares proved below each size and flipped up to it, in percent."""
    steps = np.unique(np.concatenate([[0.0, largest], lower, upper[np.isfinite(upper)]]))
    steps = steps[steps <= largest]
    if len(steps) > _POINTS:
        steps = steps[np.unique(np.linspace(0, len(steps) - 1, _POINTS).round().astype(int))]
    # From a step to the next, where others may have been left out: what is proved up to there.
    proved = 100 * (lower[None] >= np.append(steps[1:], math.inf)[:, None]).mean(1)
    flipped = 100 * (upper[None] <= steps[:, None]).mean(1)
    return {"x": steps.tolist(), "proved": proved.tolist(), "flipped": flipped.tolist()}
