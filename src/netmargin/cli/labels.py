"""The verb `netmargin labels`: which labels of a data set may be wrong."""

import argparse
from pathlib import Path

from ..core.files import require_writable
from . import inputs
from .printing import as_json, in_shell_words, say_written

HELP = "Which labels of a data set may be wrong, the most suspicious first; without a net."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: the data, and where the list goes."""
    inputs.add_samples(parser)
    inputs.add_options(
        parser, ("--out FILE.csv", Path, "a table of all samples, the most suspicious first")
    )
    inputs.add_class_names(parser)
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print how many labels may be wrong, and the worst; write all of them if asked to."""
    from ..label_errors import label_errors

    options.factory = None
    if options.out:
        require_writable(options.out)
    found = label_errors(inputs.data(options, limit=options.limit), class_names=options.class_names)
    if options.out:
        found.write_csv(options.out)
        say_written(options.out.parent, options.out)
    print(as_json(found.to_dict()) if options.json else in_shell_words(found.summary()))
