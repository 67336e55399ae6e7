"""`netmargin verify`."""

import argparse
import json
import sys

from ..errors import DataError
from ..training.checkpoint import write_atomically
from .inputs import require_writable


def verify(options: argparse.Namespace) -> int:
    """Examine claims, with a row for each as it is done, and write the pages asked for. Returns 1 if one fails."""
    from ..theory import CLAIMS, ledger

    if options.list:
        print("\n".join(f"{claim.id:36} {claim.statement}" for claim in CLAIMS.values()))
        return 0
    for name in ("seed", "trial"):
        if (getattr(options, name) or 0) < 0:
            raise DataError(f"--{name} must be at least 0; got {getattr(options, name)}")
    pages = {path: name for path, name in ((options.html, "html"), (options.markdown, "markdown")) if path}
    for path in pages:
        require_writable(path)
    rows = not options.json
    if rows:
        print(ledger.HEADER, flush=True)
    found = ledger.verify(
        options.ids or None,
        options.quick,
        seed=options.seed,
        trials=None if options.trial is None else [options.trial],
        # On a terminal a bar below the rows says what goes on; in a file the rows do.
        progress=rows and sys.stdout.isatty(),
        watch=(lambda entry: print(ledger.row(entry), flush=True)) if rows else None,
    )
    if options.json:
        print(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        print("\n".join([*(line for entry in found for line in ledger.failure(entry)), found.conclusion()]))
    for path, name in pages.items():
        if found.missing:
            print(f"Not written: {path}, as the ledger is not complete", file=sys.stderr)
        else:
            write_atomically(path, getattr(found, name)().encode())
            print(f"Written: {path}", file=sys.stderr)
    return 0 if found.holds else 1
