"""The verb `netmargin verify`: examine the claims of the papers."""

import argparse
import sys
from pathlib import Path

from ..core.files import require_writable, write_atomically
from ..core.progress import say
from .inputs import add_json, add_options, add_workers, natural
from .printing import as_json

HELP = "Examine the claims of the papers: the ledger. Fails if one of them does."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: which claims, on which instances, and what to write."""
    parser.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="claims, such as lyu-li/euler, or papers, such as lyu-li (default: all); with --list"
        ' also words of statements and sources, such as "Lemma C.8"',
    )
    add_workers(parser)
    add_options(
        parser,
        ("--quick", bool, "few instances: one or two minutes for all claims"),
        ("--seed", natural, "of the random instances", 0),
        ("--trial K", natural, "this trial alone, to repeat a violation"),
        ("--list", bool, "the claims, what they say, and where it is from"),
        ("--markdown FILE", Path, "write it as Markdown, like docs/ledger.md"),
    )
    add_json(parser, "the ledger")


def run(options: argparse.Namespace) -> int:
    """Examine claims, print a row for each, and write the page; 1 if a claim fails."""
    from ..core.parallel import on_cluster
    from ..papers.ledger.pages import HEADER, failure, loose, row
    from ..papers.ledger.verification import find_claims, select_claims, verify

    if options.list:
        claims = find_claims(options.ids)
        listed = [{"id": c.id, "statement": c.statement, "source": c.source} for c in claims]
        lines = [f"{told['id']:36} {told['statement']}. {told['source']}." for told in listed]
        print(as_json(listed) if options.json else "\n".join(lines))
        return 0
    if options.markdown:  # now, not after minutes of work
        require_writable(options.markdown)
    rows = not options.json
    if rows and select_claims(options.ids or None):  # or an error without a table
        print(HEADER, flush=True)
    with on_cluster(options.cluster):
        found = verify(
            options.ids or None,
            options.quick,
            seed=options.seed,
            trials=None if options.trial is None else [options.trial],
            jobs=options.jobs,
            # On a terminal a bar below the rows says what goes on; in a file the rows do.
            progress=rows and sys.stdout.isatty(),
            watch=(lambda entry: print(row(entry), flush=True)) if rows else None,
        )
    notes = [line for entry in found for line in (*failure(entry), *loose(entry))]
    text = "\n".join([*notes, found.conclusion()])
    print(as_json(found.to_dict()) if options.json else text)
    if options.markdown and found.missing:
        say(f"Not written: {options.markdown}, as the ledger is not complete")
    elif options.markdown:
        write_atomically(options.markdown, found.markdown().encode())
        say(f"Written: {options.markdown}")
    if found.missing:
        raise KeyboardInterrupt("interrupted; these are the claims that were done")
    return 0 if found.holds else 1
