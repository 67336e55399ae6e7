"""The verb `netmargin compare`: which of several saved nets to use."""

import argparse
import sys

from ..errors import ArgumentError
from . import inputs
from .printing import as_json, in_shell_words

HELP = "Which of several saved nets to use: differences on the same samples, with intervals."
EPILOG, STRAY = inputs.RECIPE_LIST, inputs.STRAY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: saved nets and data."""
    inputs.add_saved_net(parser, nargs="+", help="two or more files with state dicts, or runs")
    inputs.add_options(
        parser, ("--heldout", bool, "no net was trained on these samples, as on --split test")
    )
    inputs.add_class_names(parser)
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print which net makes fewer errors, or how many samples would tell."""
    from ..margins import compare

    if len(set(options.weights)) < len(options.weights) or len(options.weights) < 2:
        raise ArgumentError("Name two files or more, each once: the nets to compare.")
    nets = {weights: inputs.saved_model(options, weights) for weights in options.weights}
    data = inputs.data(options, limit=options.limit)
    heldout = options.heldout or options.split == "test"
    samples = {"heldout" if heldout else "data": data}
    found = compare(
        nets,
        **samples,
        loss=options.loss,
        class_names=options.class_names,
        progress=sys.stderr.isatty(),
    )
    print(as_json(found.to_dict()) if options.json else in_shell_words(found.summary()))
