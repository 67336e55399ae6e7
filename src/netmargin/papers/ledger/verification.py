"""Examine claims on random instances, and collect what was found in a ledger."""

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from joblib import delayed

from ...core.arguments import check_count, check_flag, check_numbers, check_optional, check_seed
from ...core.parallel import WorkerKilledError, run_side_by_side
from ...core.progress import Progress
from ...core.records import Shown, values_of
from ...errors import ArgumentError, NetmarginError
from ...nets.model import with_gradients
from ...nets.shared import alone
from ...result import Status
from ..contents import choose
from .claim import Claim, Entry, load_claims
from .pages import HEADER, failure, loose, row, title_of_paper, write_markdown


@dataclass(frozen=True)
class Ledger(Shown):
    """The results for each claim that was examined.

    Iterating gives the entries; `ledger["lyu-li/euler"]` is the entry of one claim.
    """

    entries: tuple[Entry, ...]  #: One entry for each claim, in the order of the papers
    run: str  #: "quick run", "full run", or the trials that were asked for
    seed: int  #: Seed of all trials
    missing: tuple[str, ...] = ()  #: The ids of the claims that an interruption left out

    _shown = ("holds", "run", "seed", "entries", "missing")

    @property
    def status(self) -> Status:
        """Whether the work ended by itself, FINISHED, or Ctrl-C left claims out, INTERRUPTED."""
        return Status.INTERRUPTED if self.missing else Status.FINISHED

    @property
    def holds(self) -> bool:
        """Whether all claims asked for were examined and hold, and all printed forms fail."""
        complete = bool(self.entries) and not self.missing
        return complete and all(entry.holds for entry in self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, id: str) -> Entry:
        return {entry.claim.id: entry for entry in self.entries}[id]

    def conclusion(self) -> str:
        """Write the counts of claims, instances and printed errors as one sentence."""
        rows = [(e.holds, e.instances, len(e.refuted), e.seconds) for e in self.entries]
        holding, instances, refuted, seconds = (sum(row[at] for row in rows) for at in range(4))
        interrupted = f"; interrupted before {len(self.missing)} more" if self.missing else ""
        return (
            f"{holding} of {len(self.entries)} claims hold in {instances:,} instances; {refuted}"
            f" printed errors were examined; {self.run} with seed {self.seed}, {seconds:.0f}"
            f" seconds{interrupted}"
        )

    def summary(self) -> str:
        """Write a table of text; below it counterexamples, and the searches behind large slack."""
        notes = [line for e in self.entries for line in (*failure(e), *loose(e))]
        return "\n".join([HEADER, *map(row, self.entries), *notes, "", self.conclusion()])

    __str__ = summary

    def to_dict(self) -> dict[str, Any]:
        """All values as a dictionary of JSON values."""
        entries = [
            {"paper": title_of_paper(entry), **entry.to_dict(), "failures": failure(entry)}
            for entry in self.entries
        ]
        return (
            {"conclusion": self.conclusion()}
            | values_of(self, "run", "seed", "holds", "status", "missing")
            | {"claims": entries}
        )

    def markdown(self) -> str:
        """Write a page like docs/ledger.md: claims, sources, what was found, and printed errors."""
        return write_markdown(self.entries, self.conclusion())


@alone()
@with_gradients
def verify(
    ids: str | Iterable[str] | None = None,
    quick: bool = False,
    *,
    seed: int = 0,
    trials: Iterable[int] | None = None,
    jobs: int | None = None,
    progress: bool = False,
    watch: Callable[[Entry], None] | None = None,
) -> Ledger:
    """Examine claims of the papers on random instances and report the worst violation of each.

    A claim holds if its worst violation is at most its tolerance, and if the printed forms of it
    that are false are shown to fail. Ctrl-C returns the ledger of the claims so far, with
    `Status.INTERRUPTED`. A claim whose check raises an error does not hold; where `trials` are
    given, the error is raised.

    Source: the paper and the theorem that each claim names in its `source`.

    Parameters
    ----------
    ids : str, list of str, or None
        Ids of claims, such as "lyu-li/euler", or of papers, such as "lyu-li"; None, the default,
        for all claims.
    quick : bool
        Whether to run few trials: 1 to 2 minutes for all claims instead of 10 to 20, on two cores.
    seed : int, default 0
        Seed of all instances.
    trials : list of int, or None
        The numbers of the trials to run, instead of the first ones.
    jobs : int or None, default None
        The number of processes that examine claims side by side. None: one for each core, or what
        `joblib.parallel_config` says, on a cluster too (docs/cluster.md).
    progress : bool, default False
        Whether to show the claims as they come.
    watch : function (Entry) -> None, or None
        Called with every entry as it is found, in whatever order that is.

    Returns
    -------
    Ledger
        One entry for each claim, with the number of instances, the worst violation, and a
        counterexample where the claim fails.

    Raises
    ------
    ArgumentError, NetmarginError
        If an id is unknown or another argument cannot be used; if a process was killed.

    Examples
    --------
    >>> import netmargin as nm
    >>> ledger = nm.theory.verify("lyu-li/euler", quick=True)
    >>> ledger.holds, ledger["lyu-li/euler"].worst < 1e-12
    (True, True)
    >>> euler = nm.theory.CLAIMS["lyu-li/euler"]
    >>> entry = euler.examine(quick=True, order_factor=1.01)  # another statement: it fails
    >>> entry.holds, entry.command
    (False, 'netmargin verify lyu-li/euler --trial 0 --seed 0')
    """
    chosen, quick, seed = select_claims(ids), check_flag("quick", quick), check_seed(seed)
    jobs, progress = check_optional(check_count, "jobs", jobs), check_flag("progress", progress)
    numbers = None if trials is None else check_numbers("trials", trials, check_count, at_least=0)
    if watch is not None and not callable(watch):
        raise ArgumentError(f"watch must be a function of an entry, or None; got {watch!r}")
    run = "quick run" if quick else "full run"
    if numbers is not None:
        run = f"trials {', '.join(map(str, numbers))}"
    found: dict[str, Entry] = {}
    tasks = (delayed(_examine)(claim.id, quick, seed, numbers) for claim in chosen)

    def count() -> str:
        return f"{len(found)} of {len(chosen)} claims"

    with Progress(progress, "verify") as display:
        display.draw(0, len(chosen), count())
        try:
            for entry in run_side_by_side(tasks, len(chosen), jobs):
                found[entry.claim.id] = entry
                if watch:
                    watch(entry)
                display.draw(len(found), len(chosen) - len(found), count())
        except KeyboardInterrupt:
            pass
        except WorkerKilledError as error:
            lost = f"{count()} were done; none of them is kept."
            raise NetmarginError(f"verify: {error}. {lost}") from None
    entries = tuple(found[claim.id] for claim in chosen if claim.id in found)
    missing = tuple(claim.id for claim in chosen if claim.id not in found)
    return Ledger(entries, run, seed, missing)


def _examine(id: str, quick: bool, seed: int, trials: list[int] | None) -> Entry:
    """Examine the claim with an id, in any process."""
    claim, started = load_claims()[id], time.monotonic()
    try:
        return claim.examine(quick=quick, seed=seed, trials=trials)
    except Exception as error:
        # One broken check must not hide what the others found. Who asks for single trials wants to
        # see the error itself.
        if trials is not None:
            raise
        reason = f"the check broke off: {type(error).__name__}: {error}"
        seconds, command = time.monotonic() - started, f"netmargin verify {id}"
        return Entry(claim, 0, math.inf, seconds, reason, "", reason, command, ())


def find_claims(texts: Iterable[str]) -> list[Claim]:
    """Find the claims that a text names: an id, a paper, or words of a statement or source.

    Raises ArgumentError where there are none.
    """
    claims = load_claims()
    found = [c for c in claims.values() if any(_names(text, c) for text in texts)]
    if not found:
        choose("claim", texts, list(claims))
    return found or list(claims.values())


def _names(text: str, claim: Claim) -> bool:
    """Whether all words of a text stand in a claim; C.1 does not stand in C.10."""
    whole = f"{claim.id} {claim.statement} {claim.source}".casefold()
    words = (re.escape(word) for word in text.casefold().split())
    return text == "all" or all(re.search(rf"(?<![\w.]){word}(?!\d)", whole) for word in words)


def select_claims(ids: str | Iterable[str] | None) -> list[Claim]:
    """Look up claims by their ids or those of their papers; all where `ids` is None."""
    claims = load_claims()
    if ids is None:
        return list(claims.values())
    try:
        wanted = [ids] if isinstance(ids, str) else list(ids)
    except TypeError:  # also of arrays and tensors that are one number
        raise ArgumentError(
            f'ids must be a claim or a list of claims, such as "lyu-li/euler"; got {ids!r}'
        ) from None
    return [claims[id] for id in choose("claim", wanted, list(claims))]
