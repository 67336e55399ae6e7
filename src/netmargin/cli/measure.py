"""The verb `netmargin measure`: what a saved net gets wrong, and its margins."""

import argparse

from . import inputs
from .printing import as_json, in_shell_words

HELP = "What a saved net gets wrong on data, how sure it is, and its margins."
EPILOG, STRAY = inputs.RECIPE_LIST, inputs.STRAY


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: a saved net and data."""
    inputs.add_saved_net(parser)
    near = "also distances to the decision boundary: one backward pass per class and batch"
    inputs.add_options(
        parser,
        ("--heldout", bool, "the net was not trained on these samples, as on --split test"),
        ("--input-margins", bool, near),
        ("--full", bool, "all that is known, not one screen"),
    )
    inputs.add_class_names(parser)
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the margins."""
    from ..margins import measure

    report = measure(
        inputs.saved_model(options, options.weights),
        inputs.data(options, limit=options.limit),
        heldout=options.heldout or options.split == "test" or None,
        loss=options.loss,
        input_margins=options.input_margins,
        class_names=options.class_names,
    )
    result = report.to_dict() | {
        "margins": report.margins.to_dict(),
        "homogeneity": report.homogeneity.to_dict(),
        "support": report.support,
    }
    print(as_json(result) if options.json else in_shell_words(report.summary(full=options.full)))
