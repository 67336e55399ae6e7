"""The verb `netmargin labels`: which labels of a data set may be wrong."""

import argparse
import sys
from pathlib import Path

from ..core.files import require_writable
from ..core.progress import say
from ..errors import ArgumentError
from . import inputs
from .printing import as_json, in_shell_words

HELP = "Which labels of a data set may be wrong, the most suspicious first; without a net."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: the data, and where the list goes."""
    inputs.add_samples(parser)
    together = "column of a .csv table: rows with one value, as of a patient, are left out together"
    inputs.add_options(
        parser,
        ("--groups COLUMN", str, together),
        ("--out FILE.csv", Path, "a table of all samples, the most suspicious first"),
    )
    inputs.add_class_names(parser)
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print how many labels may be wrong, and the worst; write all of them if asked to."""
    from ..label_errors import label_errors

    options.factory = None
    if options.out:
        require_writable(options.out)
    X, y = inputs.data(options, limit=options.limit)
    if options.groups and options.groups not in getattr(X, "columns", ()):
        raise ArgumentError(
            f"--groups names a column of a .csv table; {options.data} has no {options.groups!r}."
        )
    groups = X.pop(options.groups) if options.groups else None
    # Whole numbers of a table are counts, not tokens.
    if hasattr(X, "iloc") and all(column.kind in "iub" for column in X.dtypes):
        X = X.astype("float64")
    shown = {"class_names": options.class_names, "progress": sys.stderr.isatty()}
    found = label_errors((X, y), groups=groups, **shown)
    if options.out:
        found.write_csv(options.out)
        say(f"Written: {options.out}")
    print(as_json(found.to_dict()) if options.json else in_shell_words(found.summary()))
