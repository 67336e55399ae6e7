"""The verb `netmargin measure`: margins of a saved net."""

import argparse

from . import inputs
from .printing import as_json

HELP = "Margins of a saved net on data, in every normalization."
EPILOG = inputs.RECIPE_LIST


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: a saved net and data."""
    inputs.add_saved_net(parser)
    parser.add_argument(
        "--input-margins",
        action="store_true",
        help="also distances to the decision boundary: one backward pass per class and batch",
    )
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print the margins."""
    from ..margins import measure

    report = measure(
        inputs.saved_model(options),
        inputs.data(options, limit=options.limit),
        loss=options.loss,
        input_margins=options.input_margins,
    )
    result = report.to_dict() | {
        "margins": report.margins.to_dict(),
        "homogeneity": report.homogeneity.to_dict(),
        "support": report.support,
    }
    print(as_json(result) if options.json else report.summary())
