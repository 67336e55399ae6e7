"""Examine claims, and show what was found as text, Markdown, HTML or JSON."""

import html
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ...core.arguments import check_count, check_flag, check_numbers, check_seed, suggest_word
from ...core.interrupts import record_interrupts
from ...core.progress import Progress
from ...core.records import short_repr
from ...errors import ArgumentError
from .claim import Claim, Entry, load_claims

HEADER = f"{'claim':36} {'instances':>9} {'worst':>9} {'tolerance':>9} {'seconds':>8}  result"


@dataclass(frozen=True)
class Ledger:
    """What was found for each claim.

    run : "quick run", "full run", or the trials that were asked for.
    seed : of all trials.
    missing : claims that an interruption left out.
    """

    entries: tuple[Entry, ...]
    run: str
    seed: int
    missing: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return short_repr(self, "holds", "run", "seed", "entries", "missing")

    @property
    def holds(self) -> bool:
        """Whether all claims asked for were examined and hold, and every printed error was
        shown.
        """
        return (
            bool(self.entries) and not self.missing and all(entry.holds for entry in self.entries)
        )

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, id: str) -> Entry:
        return {entry.claim.id: entry for entry in self.entries}[id]

    def conclusion(self) -> str:
        """One sentence."""
        holding, refuted = (
            sum(entry.holds for entry in self.entries),
            sum(len(entry.refuted) for entry in self.entries),
        )
        instances, seconds = (
            sum(entry.instances for entry in self.entries),
            sum(entry.seconds for entry in self.entries),
        )
        interrupted = f"; interrupted before {len(self.missing)} more" if self.missing else ""
        return (
            f"{holding} of {len(self.entries)} claims hold in {instances:,} instances; {refuted}"
            f" printed errors were examined; {self.run} with seed {self.seed}, {seconds:.0f}"
            f" seconds{interrupted}"
        )

    def summary(self) -> str:
        """A table of text, and what is to be known about claims that fail."""
        rows = [row(entry) for entry in self.entries]
        return "\n".join(
            [
                HEADER,
                *rows,
                *(line for entry in self.entries for line in failure(entry)),
                "",
                self.conclusion(),
            ]
        )

    def to_dict(self) -> dict:
        """Every value, JSON-ready."""
        entries = [entry.to_dict() for entry in self.entries]
        return {
            "run": self.run,
            "seed": self.seed,
            "holds": self.holds,
            "missing": list(self.missing),
            "claims": entries,
        }

    def markdown(self) -> str:
        """A page: what each claim says, where it comes from, what was found, and the printed errors
        with their counterexamples.
        """
        lines = [
            "# The ledger",
            "",
            (
                "Every claim of the five papers, examined by `netmargin verify`, which wrote this"
                " page. A violation is how far an instance is from satisfying the statement; the"
                " worst one is 0 where all satisfy it. Trends and rates say in their tolerance what"
                " counts as holding."
            ),
            "",
            self.conclusion() + ".",
            "",
        ]
        for paper, entries in self._by_paper():
            lines += [
                f"## {paper}",
                "",
                "| claim | statement | source | result |",
                "|---|---|---|---|",
            ]
            for entry in entries:
                claim = entry.claim
                notes = (
                    f"*Instances:* {_cell(claim.hypotheses)}.",
                    f"*Tolerance {claim.tolerance:g}:* {_cell(claim.because)}.",
                )
                statement = "<br>".join((f"{_cell(claim.statement)}.", *notes))
                lines.append(
                    f"| `{claim.id}` | {statement} | {_cell(claim.source)} | {_result(entry)} |"
                )
            lines.append("")
        lines += [
            "## Printed errors",
            "",
            "| claim | as printed | counterexample | violation |",
            "|---|---|---|---|",
        ]
        for entry in self.entries:
            for text, violation, at in entry.refuted:
                shown = f"{violation:.3g}" + (
                    "" if violation > entry.claim.tolerance else " **not shown**"
                )
                lines.append(f"| `{entry.claim.id}` | {_cell(text)} | {_cell(at)} | {shown} |")
        return "\n".join([*lines, ""])

    def html(self) -> str:
        """The same as one self-contained page."""
        e = html.escape
        parts = [_PAGE_HEAD, f"<p>{e(self.conclusion())}.</p>"]
        for paper, entries in self._by_paper():
            parts.append(
                f"<h2>{e(paper)}</h2><table><tr><th>claim<th>statement<th>source<th>instances<th>worst<th>tolerance<th>seconds<th>result</tr>"
            )
            for entry in entries:
                claim = entry.claim
                extra = "".join(
                    f"<p class=note>{e(text)}</p>"
                    for text in (
                        f"Instances: {claim.hypotheses}",
                        f"Tolerance: {claim.because}",
                        entry.measured,
                    )
                    if text
                )
                printed = "".join(
                    f"<p class=printed>As printed, “{e(text)}” fails by {violation:.3g}:"
                    f" {e(at)}</p>"
                    for text, violation, at in entry.refuted
                )
                found = "".join(f"<p class=fails>{e(line)}</p>" for line in failure(entry))
                cells = (
                    f"<code>{e(claim.id)}</code>",
                    f"{e(claim.statement)}{extra}{printed}{found}",
                    e(claim.source),
                )
                numbers = (
                    f"{entry.instances:,}",
                    f"{entry.worst:.2g}",
                    f"{claim.tolerance:.2g}",
                    f"{entry.seconds:.1f}",
                )
                verdict = f"<td class={'holds' if entry.holds else 'fails'}>{'holds' if entry.holds else 'fails'}"
                parts.append(
                    "<tr>" + "".join(f"<td>{c}" for c in (*cells, *numbers)) + verdict + "</tr>"
                )
            parts.append("</table>")
        return "\n".join(parts)

    def _by_paper(self) -> list[tuple[str, list[Entry]]]:
        names = dict.fromkeys(entry.claim.id.split("/")[0] for entry in self.entries)
        return [
            (
                _PAPERS.get(name, name),
                [entry for entry in self.entries if entry.claim.id.split("/")[0] == name],
            )
            for name in names
        ]


_PAPERS = {
    "lyu-li": (
        "Lyu and Li 2019, Gradient Descent Maximizes the Margin of Homogeneous Neural Networks"
    ),
    "wei": (
        "Wei, Lee, Liu, Ma 2018 and 2019, On the Margin Theory of Feedforward Neural Networks;"
        " Regularization Matters"
    ),
    "chizat-bach": (
        "Chizat and Bach 2020, Implicit Bias of Gradient Descent for Wide Two-layer Neural Networks"
    ),
    "two-homogeneity": "The Ubiquity of 2-Homogeneity, 2024",
}


def row(entry: Entry) -> str:
    """One line of the table of text."""
    claim = entry.claim
    return (
        f"{claim.id:36} {entry.instances:9,} {entry.worst:9.2g} {claim.tolerance:9.1g}"
        f" {entry.seconds:8.1f}  {'holds' if entry.holds else 'FAILS'}"
    )


def failure(entry: Entry) -> list[str]:
    """For a claim that fails: the smallest instance found and the command that repeats it; printed
    errors that were not shown.
    """
    if entry.holds:
        return []
    lines = [] if entry.instances else [f"{entry.claim.id}: no trial met its hypotheses"]
    if entry.counterexample:
        lines += [f"{entry.claim.id}: {entry.counterexample}", f"  repeat it with: {entry.command}"]
    lines += [
        f"{entry.claim.id}: as printed, “{text}”, it was not refuted"
        for text, v, _ in entry.refuted
        if not v > entry.claim.tolerance
    ]
    return lines


def verify(
    ids: str | Iterable[str] | None = None,
    quick: bool = False,
    *,
    seed: int = 0,
    trials: Iterable[int] | None = None,
    progress: bool = False,
    watch: Callable[[Entry], None] | None = None,
) -> Ledger:
    """Examine claims on random instances: for each the worst violation, its tolerance, and whether
    it holds; printed forms that are false are shown to fail.

    ids : of claims, such as "lyu-li/euler", or of papers, "lyu-li"; all by default.
    quick : few trials (1 to 2 minutes for all instead of 10 to 20, on two cores).
    seed : of the instances.
    trials : their numbers, instead of the first ones.
    progress : show which claim is being examined.
    watch : is called with every `Entry` as it is found.

    Raises
    ------
    ArgumentError : an unknown id or another argument that cannot be used.

    Ctrl-C returns the ledger of the claims so far, with a warning. A check that breaks off does not
    hold; where `trials` are given its error is raised.

    Examples
    --------
    >>> import netmargin as nm
    >>> ledger = nm.theory.verify("lyu-li/euler", quick=True)
    >>> ledger.holds, ledger["lyu-li/euler"].worst < 1e-12
    (True, True)
    >>> entry = nm.theory.CLAIMS["lyu-li/euler"].examine(quick=True, order_factor=1.01)         # another statement: it fails
    >>> entry.holds, entry.command
    (False, 'netmargin verify lyu-li/euler --trial 0 --seed 0')
    """
    found: list[Entry] = []
    chosen, quick, seed, progress = (
        _chosen(ids),
        check_flag("quick", quick),
        check_seed(seed),
        check_flag("progress", progress),
    )
    numbers = None if trials is None else check_numbers("trials", trials, check_count, at_least=0)
    if watch is not None and not callable(watch):
        raise ArgumentError(f"watch must be a function of an entry, or None; got {watch!r}")
    run = "quick run" if quick else "full run"
    if numbers is not None:
        run = f"trials {', '.join(map(str, numbers))}"
    with Progress(progress, "verify") as display, record_interrupts() as interrupts:
        for index, claim in enumerate(chosen):
            display.draw(index, len(chosen) - index, f"{index + 1}/{len(chosen)}  {claim.id}")
            started = time.monotonic()
            try:
                entry = claim.examine(
                    quick=quick, seed=seed, trials=numbers, interrupted=lambda: bool(interrupts)
                )
            except KeyboardInterrupt:
                break
            except Exception as error:
                if numbers is not None:
                    raise
                entry = claim.broken_off(error, time.monotonic() - started)
            if interrupts:
                break
            found.append(entry)
            if watch:
                watch(entry)
    missing = tuple(claim.id for claim in chosen[len(found) :])
    if missing:
        warnings.warn(
            f"interrupted: the ledger has {len(found)} of {len(chosen)} claims",
            UserWarning,
            stacklevel=2,
        )
    return Ledger(tuple(found), run, seed, missing)


def _chosen(ids: str | Iterable[str] | None) -> list[Claim]:
    claims = load_claims()
    if ids is None:
        return list(claims.values())
    if not isinstance(ids, Iterable):
        raise ArgumentError(
            f'ids must be a claim or a list of claims, such as "lyu-li/euler"; got {ids!r}'
        )
    wanted = [ids] if isinstance(ids, str) else list(ids)
    known = [*claims, *dict.fromkeys(name.split("/")[0] for name in claims)]
    for id in wanted:
        if not isinstance(id, str) or id not in known:
            guess = suggest_word(id, known)
            raise ArgumentError(
                f"ids: there is no claim {id!r}. {guess + ' ' if guess else ''}The claims are"
                f" {', '.join(known)}."
            )
    return [
        claim for name, claim in claims.items() if name in wanted or name.split("/")[0] in wanted
    ]


def _result(entry: Entry) -> str:
    worst = f"{entry.worst:.2g}" if math.isfinite(entry.worst) else "infinite"
    measured = f"<br>{_cell(entry.measured)}" if entry.measured else ""
    return (
        f"{'holds' if entry.holds else '**fails**'}: worst {worst} in {entry.instances:,}"
        f" instances{measured}"
    )


def _cell(text: str) -> str:
    return html.escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


_PAGE_HEAD = """<!doctype html><html lang=en><meta charset=utf-8><title>netmargin: the ledger</title>
<style>
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .4em .6em; border-bottom: 1px solid #ddd }
code { white-space: nowrap } .note { color: #666; font-size: 13px; margin: .3em 0 } .printed { color: #8a4b00; font-size: 13px; margin: .3em 0 }
.holds { color: #006b3c; font-weight: 600 } .fails { color: #b00020; font-weight: 600 }
</style><h1>The ledger</h1>
<p>Every claim of the five papers, examined by <code>netmargin verify</code>. A violation is how far an instance is from satisfying the statement.</p>"""
