"""The page of the ledger, from what `Ledger.to_dict` and `netmargin verify --json` wrote."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, CheckpointError
from .numbers import count
from .payload import LedgerPage, LedgerRow


def read_ledger(subject: Any) -> Mapping[str, Any] | None:
    """The ledger that `page` was given: itself, its dict, or its file of JSON; None for others.

    Raises CheckpointError for a file that cannot be read, ArgumentError for JSON of something else.
    """
    if callable(getattr(subject, "html", None)):  # the ledger, which lives above this room
        return subject.to_dict()
    if isinstance(subject, Mapping) and "claims" in subject and "conclusion" in subject:
        return subject
    if not (isinstance(subject, (str, Path)) and Path(subject).suffix == ".json"):
        return None
    try:
        found = json.loads(Path(subject).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{subject} cannot be read as JSON: {error}") from error
    if not (isinstance(found, Mapping) and "claims" in found and "conclusion" in found):
        raise ArgumentError(
            f"{subject} is no ledger. Of files of JSON a page is made of what netmargin verify"
            " --json wrote; records are files that their method save wrote."
        )
    return found


def write_ledger(ledger: Mapping[str, Any]) -> LedgerPage:
    """Write the page of a ledger from its dict. Raises ArgumentError where a claim is not whole."""
    papers: dict[str, list[LedgerRow]] = {}
    for claim in ledger["claims"]:
        try:
            papers.setdefault(claim["paper"], []).append(_write_claim(claim))
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"A claim of the ledger cannot be read ({error!r}). Give what netmargin verify"
                " --json wrote, or what nm.theory.verify returned."
            ) from error
    rows = tuple((paper, tuple(own)) for paper, own in papers.items())
    return LedgerPage("The ledger", f"{ledger['conclusion']}.", rows, "netmargin verify")


def _write_claim(claim: Mapping[str, Any]) -> LedgerRow:
    """One claim as a row: below the statement stand notes and counterexamples."""
    notes = (f"Instances: {claim['hypotheses']}", f"Tolerance: {claim['because']}")
    return LedgerRow(
        id=claim["id"],
        statement=claim["statement"],
        source=claim["source"],
        notes=(*notes, claim["measured"]) if claim["measured"] else notes,
        printed=tuple(
            f"As printed, “{each['printed']}” fails by {_write_violation(each['violation'])}:"
            f" {each['counterexample']}"
            for each in claim["printed"]
        ),
        failures=tuple(claim["failures"]),
        instances=f"{count(claim['instances'])} instance{'s' * (claim['instances'] != 1)}",
        worst=_write_violation(claim["worst"]),
        tolerance=f"{claim['tolerance']:.2g}",
        seconds=f"{claim['seconds']:.1f} s",
        holds=claim["holds"],
    )


def _write_violation(value: float | None) -> str:
    """A violation; JSON has no number for one that is infinite or none at all."""
    return "infinite" if value is None else f"{value:.2g}"
