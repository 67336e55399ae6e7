"""The definition of a claim: a statement of a paper, with a function that looks for violations.

What `@claim` or `@....printed` decorates needs no docstring: the decorator says what it examines.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from ...core.arguments import check_seed
from ...core.interrupts import whole_or_interrupted
from ...core.records import Shown, Table, json_ready, values_of
from ..contents import import_claims
from .slack import Slack, measure_slack
from .trial import Finding, Trial


@dataclass(frozen=True)
class Entry(Shown):
    """The result of examining one claim: a row of the ledger."""

    claim: "Claim"  #: What was examined
    instances: int  #: How many instances were examined
    worst: float  #: The largest violation, 0 where there is none
    seconds: float  #: Wall-clock time of all trials
    setting: str  #: The instances of the last trial in words
    measured: str  #: Numbers of the last trial that a reader wants to see
    counterexample: str | None  #: The first instance, hence the smallest, that violates the claim
    command: str | None  #: The command that repeats the counterexample
    #: The printed forms, each with its violation at the counterexample and the
    #: counterexample in words; they must fail
    refuted: tuple[tuple[str, float, str], ...]
    #: For each promise, by which factor it could be stronger on these instances; empty where the
    #: claim promises no number, where it failed and for other constants
    slack: tuple[Slack, ...] = ()

    _shown = ("instances", "worst", "slack", "setting", "measured", "counterexample", "command")

    def _table(self) -> Table:
        """Whether the claim holds, and what was found."""
        title = f"{self.claim.id} {'holds' if self.holds else 'FAILS'}"
        return replace(super()._table(), title=title)

    @property
    def holds(self) -> bool:
        """Whether instances were examined, all within the tolerance, and printed forms fail."""
        shown = all(violation > self.claim.tolerance for _, violation, _ in self.refuted)
        return self.instances > 0 and self.worst <= self.claim.tolerance and shown

    def to_dict(self) -> dict[str, Any]:
        """All values as a dictionary of JSON values; an infinite violation becomes None."""
        words = ("id", "statement", "source", "hypotheses", "because", "tolerance")
        found = ("instances", "worst", "seconds", "setting", "measured", "counterexample")
        printed = [
            {"printed": text, "violation": violation, "counterexample": at}
            for text, violation, at in self.refuted
        ]
        return (
            values_of(self.claim, *words)
            | values_of(self, *found, "command", "holds")
            | {"printed": json_ready(printed)}
            | {"slack": [vars(slack) | {"sharpest": str(slack.sharpest)} for slack in self.slack]}
        )


@dataclass
class Claim(Shown):
    """A statement of a paper and the function that checks it.

    The decorator `claim` makes one (docs/extending.md); all are in `netmargin.theory.CLAIMS`.

    Examples
    --------
    >>> import netmargin as nm
    >>> euler = nm.theory.CLAIMS["lyu-li/euler"]
    >>> euler.examine(trials=[0]).holds, euler.examine(trials=[0], order_factor=1.01).holds
    (True, False)
    """

    id: str  # the paper and the claim, such as "lyu-li/euler"
    statement: str  # what holds, in one sentence without a period
    source: str  # the paper and the theorem, with what was corrected
    hypotheses: str  # the conditions under which instances are drawn
    tolerance: float  # the largest violation that counts as holding
    because: str  # the reason for the tolerance
    quick: int  # trials of a quick run
    full: int  # trials of a full run
    # Its keywords are the constants of the statement: other ones make another statement, which
    # should fail. So one sees that the check can fail, and how much room the constants have.
    check: Callable[..., Finding]
    # The constants that make the promises, with 1 where larger ones promise more, and -1 where
    # smaller ones do; those in `room` of the findings are not named. Or why there is no promise.
    sharpen: Mapping[str, float] | str = ""
    ascent: int = 50  # mutations of the sharpest trials that a full run examines
    # The printed forms that are false, each evaluated at its counterexample.
    refutations: list[tuple[str, Callable[[], Finding]]] = field(default_factory=list)

    _shown = ("id", "statement", "source", "tolerance")

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has the claim under the same id, once it has imported the papers' modules.
        # The check cannot be sent: its name stands for the claim.
        return _find_claim, (self.id,)

    def printed(self, text: str) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
        """Decorator of a function that evaluates a false printed form at a counterexample."""

        def register(found: Callable[[], Finding]) -> Callable[[], Finding]:
            self.refutations.append((text, found))
            return found

        return register

    def examine(
        self,
        *,
        quick: bool = False,
        seed: int = 0,
        trials: Iterable[int] | None = None,
        **constants: Any,
    ) -> Entry:
        """Run the check on some trials and return the worst violation; torch's random state is
        untouched.

        Parameters
        ----------
        quick : bool
            Whether to run the trials 0 .. quick - 1 instead of 0 .. full - 1.
        seed : int, default 0
            Seed of all trials.
        trials : iterable of int, or None
            The numbers of the trials, instead of the first ones.
        **constants
            Constants of the statement that differ from the claim's. Printed errors are then left
            out, as they are about the claim's own constants.

        Raises
        ------
        ArgumentError
            If `seed` is no whole number from 0 on.
        """
        started, seed = time.monotonic(), check_seed(seed)
        found: dict[Trial, Finding] = {}
        slack: tuple[Slack, ...] = ()
        # Some checks seed torch's global generator, which belongs to the caller.
        with torch.random.fork_rng(devices=[]):
            for number in range(self.quick if quick else self.full) if trials is None else trials:
                # What a solver had when Ctrl-C came is no instance of a claim.
                with whole_or_interrupted():
                    found[Trial(number, seed)] = self.check(Trial(number, seed), **constants)
            holds = all((f.violations <= self.tolerance).all() for f in found.values())
            last = list(found.values())[-1] if found else Finding.of([], "no trial")
            # The printed forms and the slack are about the claim's own constants.
            if found and holds and not constants:
                ascent = 0 if quick or trials is not None else self.ascent
                sharpen = {} if isinstance(self.sharpen, str) else self.sharpen
                with whole_or_interrupted():
                    slack, more = measure_slack(self.check, self.tolerance, sharpen, found, ascent)
                found |= more
            refuted = []
            for text, evaluate in [] if constants else self.refutations:
                with whole_or_interrupted():
                    shown = evaluate()
                refuted.append((text, float(shown.violations.max(initial=0.0)), shown.setting))
        counterexample = command = None
        for trial, finding in found.items():
            # The first one, with the command that repeats it: one counterexample is enough.
            if command is None and (finding.violations > self.tolerance).any():
                index = int(np.argmax(finding.violations > self.tolerance))
                name = trial if trial.lineage else f"trial {trial.number}"
                where = f"{name}, instance {index}: {finding.setting}"
                counterexample = f"{where}; violated by {finding.violations[index]:.3g}"
                command = f"netmargin verify {self.id} --trial {trial.number} --seed {seed}"
                if trial.lineage:
                    command = f'nm.theory.CLAIMS["{self.id}"].check(nm.theory.{trial})'
        return Entry(
            claim=self,
            instances=sum(len(finding.violations) for finding in found.values()),
            worst=max([0.0, *(float(f.violations.max(initial=0)) for f in found.values())]),
            seconds=time.monotonic() - started,
            setting=last.setting,
            measured=last.measured,
            counterexample=counterexample,
            command=command,
            refuted=tuple(refuted),
            slack=slack,
        )


CLAIMS: dict[str, Claim] = {}
"""The claims that are registered so far, by id; `load_claims` registers all of them."""


def load_claims() -> dict[str, Claim]:
    """Import the modules of all papers' claims and return the claims by id."""
    import_claims()
    # In the order of their modules, and within one as they stand there: whichever was imported
    # before, every list and page of claims is the same.
    ordered = sorted(CLAIMS.items(), key=lambda entry: entry[1].check.__module__)
    if [id for id, _ in ordered] != list(CLAIMS):
        CLAIMS.clear()
        CLAIMS.update(ordered)
    return CLAIMS


def _find_claim(id: str) -> Claim:
    """The claim of this process with an id."""
    return load_claims()[id]


def claim(
    id: str, statement: str, *, trials: tuple[int, int], **about: Any
) -> Callable[[Callable[..., Finding]], Claim]:
    """Decorator that registers a check, of (quick, full) trials; other keywords are `Claim`'s."""

    def register(check: Callable[..., Finding]) -> Claim:
        """Register the check; its function's name now stands for the claim."""
        if id in CLAIMS:
            raise ValueError(f"there are two claims {id}")
        quick, full = trials
        CLAIMS[id] = Claim(id, statement, check=check, quick=quick, full=full, **about)
        return CLAIMS[id]

    return register
