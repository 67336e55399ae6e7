"""The verb `netmargin train`: train or continue a run, and write its results."""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import losses
from ..core.files import write_atomically
from ..training.recipes import RECIPES
from . import inputs
from .printing import as_json

HELP = "Train past float underflow, watching the margins."
EPILOG = inputs.RECIPE_LIST


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: a net, data, when to stop and how to step."""
    parser.add_argument("recipe", nargs="?", help="name of a recipe")
    inputs.add_model(parser)
    inputs.add_data(parser)
    until = "stop below this log10 of the mean loss, such as -40"
    epochs = "stop after N accepted epochs (default: 100 if no other rule is given)"
    rate = "plain SGD with this rate instead of the loss-based rule"
    out = "folder of the run (default: runs/NAME); a run that it holds is continued"
    inputs.add_options(
        parser,
        ("--until-log10-loss X", float, until),
        ("--epochs N", inputs.positive(int), epochs),
        ("--constant-lr RATE", inputs.positive(float), rate),
        ("--batch-size", inputs.positive(int), "default: that of the recipe, or 100"),
        ("--seed", inputs.natural, "of initial weights and shuffling", 0),
        ("--out", inputs.folder, out),
        ("--quiet", bool, "no progress line"),
    )
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Train, or continue a run, and write its results."""
    from ..margins import measure
    from ..training import ConstantLR, Epochs, LogLossBelow, LossBasedLR, StoppingRule, train

    # Seeds the weights; `train` has a seed of its own for the batches.
    torch.manual_seed(options.seed)
    model, recipe = inputs.model(options), RECIPES.get(options.recipe or options.factory)
    data = inputs.data(options, limit=options.limit)
    until: list[StoppingRule] = []
    if options.until_log10_loss is not None:
        until.append(LogLossBelow(options.until_log10_loss))
    # Of two rules the first one that is reached ends the run.
    if options.epochs is not None or not until:
        until.append(Epochs(100 if options.epochs is None else options.epochs))
    # Nets with other biases are other runs, and must not meet in one folder.
    name = (options.recipe or options.factory).replace(":", ".")
    name += "" if options.bias == "first" else f"-bias-{options.bias}"
    folder = options.out or Path("runs") / name
    loss = losses.BY_NAME[options.loss]
    history = train(
        model,
        data,
        until=until,
        lr=ConstantLR(options.constant_lr) if options.constant_lr else LossBasedLR(),
        loss=loss,
        batch_size=options.batch_size or (recipe.batch_size if recipe else 100),
        seed=options.seed,
        checkpoint_dir=folder,
        progress=not options.quiet,
    )
    report = measure(model, data, loss=loss)
    made_by = {  # from which `netmargin page` makes net and data again
        "factory": options.recipe or options.factory,
        "bias": options.bias,
        "data": inputs.data_name(options),
        "split": options.split,
        "limit": options.limit,
    }
    figures = _save_results(folder, model, history, report, made_by)
    if options.json:
        result = {
            "status": history.status,
            "message": history.message,
            "folder": folder,
            "final": report.to_dict(),
        }
        print(as_json(result))
    else:
        print(
            f"{history.summary()}\nResults: {folder}/ (history.jsonl, model.safetensors,"
            f" summary.json, {', '.join(p.name for p in figures)})"
        )


def _save_results(
    folder: Path, model: nn.Module, history: Any, report: Any, made_by: dict[str, Any]
) -> list[Path]:
    """Write weights, summary and pictures of a run; return the pictures' paths."""
    from ..figures import draw_run
    from ..training import save_weights

    save_weights(model, folder / "model.safetensors")
    summary = {
        "made_by": made_by,
        "status": history.status,
        "message": history.message,
        "epochs": history.rows[-1]["epoch"],
        "attempts": sum(history.column("attempts")),
        "final": report.to_dict(),
        "homogeneity": report.homogeneity.to_dict(),
    }
    write_atomically(folder / "summary.json", as_json(summary).encode())
    return draw_run(history, report, folder)
