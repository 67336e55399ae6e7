"""The verb `netmargin analyse`: how a net scales with its parameters."""

import argparse

import torch

from .. import datasets
from ..errors import ArgumentError
from . import inputs
from .printing import as_json

HELP = "How a net's outputs scale with its parameters: order, groups, what blocks it."
EPILOG = inputs.RECIPE_LIST


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: a net, and where its inputs come from."""
    parser.add_argument("recipe", nargs="?", help="name of a recipe")
    inputs.add_model(parser)
    parser.add_argument("--data", help="a named data set, .npz or .csv file to take inputs from")
    parser.add_argument("--shape", help="shape of one input, such as 3,32,32 (random inputs)")
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print how the outputs of the net scale with its parameters."""
    from ..homogeneity import analyse
    from ..nets.model import in_mode

    model = inputs.model(options)
    if options.shape:
        try:
            shape = [inputs.positive(int)(part) for part in options.shape.split(",")]
        except ValueError:
            raise ArgumentError(
                f"--shape takes positive whole numbers, such as 3,32,32; got {options.shape!r}"
            ) from None
        # Four inputs: the rules are checked numerically on several, and more tell nothing new.
        x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0), device="cpu")
    else:
        x, _ = inputs.data(
            options, limit=10 if inputs.data_name(options) in datasets.BY_NAME else None
        )
    with in_mode(model, training=False):
        answer = analyse(model, x)
    print(as_json(answer.to_dict()) if options.json else answer.summary())
