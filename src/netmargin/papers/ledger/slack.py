"""The slack of a claim: by how much its promises could be stronger before an instance fails."""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature

from ...bounds import Bound
from ...core.records import Shown
from .trial import Finding, Trial

MOST = 1e12
"""The largest factor that is tried: a promise that may be as much stronger says little."""
STEP = 1.01
"""The factors that are tried are powers of it: 1% is finer than what a slack is read for."""
LOOSE = 10.0
"""The slack above which the search that found no sharper instance is shown."""


@dataclass(frozen=True)
class Slack(Shown):
    """The largest factor by which a promise can be stronger and still hold on every instance."""

    promise: str  # the constant of the check that is moved, or a name in `Finding.room`
    factor: float  # from 1, where some instance attains the promise to 1%, to 1e12
    sharpest: Trial  # the trial that leaves no more; the first one where all leave 1e12
    searched: str  # how many trials were examined, and how many mutations of the sharpest ones

    def __str__(self) -> str:
        return f"{self.factor:.3g} ({self.promise})"

    def search(self) -> str:
        """Say which search found nothing sharper; nothing where the slack is small."""
        if self.factor <= LOOSE:
            return ""
        return f"slack {self}: nothing sharper in {self.searched}; sharpest is {self.sharpest}"


def measure_slack(
    check: Callable[..., Finding],
    tolerance: float,
    sharpen: Mapping[str, float],
    found: Mapping[Trial, Finding],
    ascent: int,
) -> tuple[tuple[Slack, ...], dict[Trial, Finding]]:
    """The slack of every promise on trials and mutations of the sharpest ones; these, too."""
    known, measured = dict(found), []

    def examine(trial: Trial) -> Finding:
        if trial not in known:
            known[trial] = check(trial)
        return known[trial]

    def leaves(promise: str, trial: Trial, most: float) -> float:
        """The slack of a promise on one trial, or `most` if that is smaller."""
        if promise not in sharpen:
            return min(examine(trial).room.get(promise, most), most)
        value = signature(check).parameters[promise].default

        def holds(factor: float) -> bool:
            """Whether the trial meets the promise that is stronger by a factor."""
            constant = value * factor ** sharpen[promise]
            return bool((check(trial, **{promise: constant}).violations <= tolerance).all())

        if holds(most):
            return most
        if not holds(1.0):
            return 0.0
        powers = range(1, math.ceil(math.log(most) / math.log(STEP)))
        return STEP ** bisect_left(powers, True, key=lambda power: not holds(STEP**power))

    trials = list(found)
    for promise in dict.fromkeys([*sharpen, *(name for f in found.values() for name in f.room)]):
        sharpest, factor = trials[0], MOST
        for count in range(len(trials) + ascent):
            mutation = replace(sharpest, lineage=(*sharpest.lineage, count))
            trial = trials[count] if count < len(trials) else mutation
            # Trials hold; where the promise is attained, mutations alone may yet violate it.
            if factor == 0 or (factor < STEP and not trial.lineage):
                continue
            room = leaves(promise, trial, factor)
            if room < factor:
                sharpest, factor = trial, room
                examine(trial)
        searched = f"{len(trials)} trials and {ascent} mutations"
        measured.append(Slack(promise, max(factor, 1.0), sharpest, searched))
    return tuple(measured), {trial: f for trial, f in known.items() if trial not in found}


def shrinking(bound: Bound, error: float) -> float:
    """The factor by which the complexity term can shrink before the error exceeds the bound."""
    term = next(value for name, value in bound.terms.items() if "complexity" in name)
    return term / max(error - bound.value + term, term / MOST)
