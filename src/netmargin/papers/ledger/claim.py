"""What a claim is: a statement of a paper as a function that looks for violations of it."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import torch

from ...core.records import short_repr
from ..contents import import_claims


@dataclass(frozen=True)
class Trial:
    """One random trial: the same number and seed draw the same instances, and instances grow with
    the number.
    """

    number: int
    seed: int = 0

    @property
    def random(self) -> np.random.Generator:
        """A new generator, always in the same state."""
        return np.random.default_rng([self.seed, self.number])

    @property
    def torch_random(self) -> torch.Generator:
        """The same for torch."""
        state = np.random.SeedSequence([self.seed, self.number]).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))


@dataclass(frozen=True)
class Finding:
    """What one trial found.

    violations : one number per instance, how far the statement is from holding, in the units of the
        claim's tolerance; at most 0 where it holds with room to spare.
    setting : the instances in words.
    measured : numbers that a reader wants to see, such as a fitted rate.
    """

    violations: np.ndarray
    setting: str
    measured: str = ""

    __repr__ = short_repr

    @classmethod
    def of(cls, violations, setting: str, measured: str = "") -> "Finding":
        """From a number, an array or a tensor; NaN counts as violated beyond all bounds."""
        if isinstance(violations, torch.Tensor):
            violations = violations.detach().cpu().numpy()
        flat = np.atleast_1d(np.asarray(violations, dtype=np.float64)).ravel()
        return cls(np.where(np.isnan(flat), np.inf, flat), setting, measured)

    @classmethod
    def of_one(cls, criteria, setting: str, measured: str = "") -> "Finding":
        """Of one instance, such as a run, that has to meet several criteria: its violation is the
        largest of them; none says nothing.
        """
        found = cls.of(criteria, setting, measured)
        return cls(
            found.violations.max(keepdims=True) if len(found.violations) else found.violations,
            setting,
            measured,
        )


@dataclass(frozen=True)
class Refutation:
    """A printed form that is false, and a function that finds the printed claim's violation at a
    counterexample.
    """

    printed: str
    found: Callable[[], Finding]


@dataclass(frozen=True)
class Entry:
    """What examining a claim found; a row of the ledger.

    instances : how many were looked at.
    worst : the largest violation, 0 where there is none.
    measured : of the last trial.
    counterexample : the first instance, hence the smallest, that violates the claim.
    refuted : printed forms with the violation at their counterexample and its description; they
        must fail.
    """

    claim: "Claim"
    instances: int
    worst: float
    seconds: float
    setting: str
    measured: str
    counterexample: str | None
    command: str | None
    refuted: tuple[tuple[str, float, str], ...]

    __repr__ = short_repr

    @property
    def holds(self) -> bool:
        """Instances were looked at, none violates the claim beyond its tolerance, and all printed
        errors were shown.
        """
        shown = all(violation > self.claim.tolerance for _, violation, _ in self.refuted)
        return self.instances > 0 and self.worst <= self.claim.tolerance and shown

    def to_dict(self) -> dict:
        """Every value, JSON-ready."""
        claim = self.claim
        words = ("id", "statement", "source", "hypotheses", "because")
        values = (
            "instances",
            "worst",
            "seconds",
            "setting",
            "measured",
            "counterexample",
            "command",
            "holds",
        )
        printed = [
            {"printed": text, "violation": _finite(violation), "counterexample": at}
            for text, violation, at in self.refuted
        ]
        return {
            **{name: getattr(claim, name) for name in words},
            "tolerance": claim.tolerance,
            **{name: getattr(self, name) for name in values},
            "worst": _finite(self.worst),
            "printed": printed,
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON knows no infinity


@dataclass
class Claim:
    """A statement of a paper and the function that checks it.

    hypotheses : under which instances are drawn.
    tolerance : of the violation.
    because : why that much.
    quick, full : numbers of trials.
    check : of a `Trial`, and by keyword of the constants of the statement, returns a `Finding`.
        Other constants make another statement, which should fail: so one sees that the check can,
        and how much room the constants have.
    """

    id: str
    statement: str
    source: str
    hypotheses: str
    tolerance: float
    because: str
    quick: int
    full: int
    check: Callable[..., Finding]
    refutations: list[Refutation] = field(default_factory=list)

    def __repr__(self) -> str:
        return short_repr(self, "id", "statement", "source", "tolerance")

    def printed(self, text: str) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
        """Decorator: a printed form of the claim that is false, with a function that evaluates it
        at a counterexample.
        """

        def register(found: Callable[[], Finding]) -> Callable[[], Finding]:
            self.refutations.append(Refutation(text, found))
            return found

        return register

    def examine(
        self,
        *,
        quick: bool = False,
        seed: int = 0,
        trials: Iterable[int] | None = None,
        interrupted: Callable[[], bool] = lambda: False,
        **constants,
    ) -> Entry:
        """Run the check on `trials`, by default 0 .. quick - 1 or 0 .. full - 1; with constants
        other than the claim's if they are given.

        interrupted : asked after every trial; KeyboardInterrupt where it says so. torch's random
            state is untouched.
        """
        started = time.monotonic()
        instances, worst, last, first = 0, 0.0, Finding.of([], "no trial"), None
        with torch.random.fork_rng(devices=[]):
            for number in range(self.quick if quick else self.full) if trials is None else trials:
                last = self.check(Trial(number, seed), **constants)
                if interrupted():
                    raise KeyboardInterrupt
                instances += len(last.violations)
                worst = max(worst, last.violations.max(initial=0.0))
                if first is None and (last.violations > self.tolerance).any():
                    index = int(np.argmax(last.violations > self.tolerance))
                    first = (
                        number,
                        (
                            f"trial {number}, instance {index}: {last.setting}; violated by"
                            f" {last.violations[index]:.3g}"
                        ),
                    )
            refuted = []
            for refutation in [] if constants else self.refutations:
                found = refutation.found()
                refuted.append(
                    (refutation.printed, float(found.violations.max(initial=0.0)), found.setting)
                )
        return Entry(
            claim=self,
            instances=instances,
            worst=float(worst),
            seconds=time.monotonic() - started,
            setting=last.setting,
            measured=last.measured,
            counterexample=first[1] if first else None,
            command=(
                f"netmargin verify {self.id} --trial {first[0]} --seed {seed}" if first else None
            ),
            refuted=tuple(refuted),
        )

    def broken_off(self, error: Exception, seconds: float) -> Entry:
        """The entry of a check that did not come to its end: the claim does not hold."""
        reason = f"the check broke off: {type(error).__name__}: {error}"
        return Entry(
            self, 0, math.inf, seconds, reason, "", reason, f"netmargin verify {self.id}", ()
        )


CLAIMS: dict[str, Claim] = {}
"""The claims that are registered so far, by id; `load_claims` registers all."""


def load_claims() -> dict[str, Claim]:
    """All claims of all papers by id: imports the modules that register them."""
    import_claims()
    return CLAIMS


def claim(
    id: str,
    statement: str,
    *,
    source: str,
    hypotheses: str,
    tolerance: float,
    because: str,
    quick: int,
    full: int,
) -> Callable[[Callable[..., Finding]], Claim]:
    """Decorator that registers a check as the claim `id`."""

    def register(check: Callable[..., Finding]) -> Claim:
        if id in CLAIMS:
            raise ValueError(f"there are two claims {id}")
        CLAIMS[id] = Claim(
            id, statement, source, hypotheses, tolerance, because, quick, full, check
        )
        return CLAIMS[id]

    return register
