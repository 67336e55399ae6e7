"""The command line: the verbs of the library, on the nets of the papers and on your own."""

import argparse
import importlib
import json
import os
import sys
import warnings
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from . import datasets, losses
from .errors import DataError, Interrupted, ModelError, NetmarginError
from .homogeneity import analyse
from .margins import in_mode, measure
from .models import BIASES
from .recipes import RECIPES
from .training import ConstantLR, Epochs, LogLossBelow, LossBasedLR, StoppingRule, load_weights, train
from .training.checkpoint import write_atomically

_EXAMPLES = """examples:
  netmargin train digits-mlp --until-log10-loss -40
  NETMARGIN_DATA=data netmargin train mnist-cnn-small --limit 1000 --until-log10-loss -30
  netmargin train --factory mypackage.nets:make_model --data points.npz --epochs 200
  netmargin measure runs/digits-mlp/model.pt --factory digits-mlp --data digits
  netmargin analyse --factory mypackage.nets:make_model --shape 3,32,32
  netmargin solve f1 --data points.npz --time-limit 60
"""
_MILESTONES = (-1, -2, -5, -10, -20, -40, -80, -120, -200, -400, -800)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code (0 done, 1 the work failed, 2 wrong usage)."""
    parser = _parser()
    options = parser.parse_args(arguments)
    warnings.showwarning = lambda message, *_, **__: print(f"note: {message}", file=sys.stderr)
    try:
        options.run(options)
    except (NetmarginError, Interrupted) as error:
        print(f"netmargin: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="netmargin",
        description="Measure, maximize and certify the margins of neural networks.",
        epilog=_EXAMPLES,
        formatter_class=form,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    recipes = "recipes:\n" + "\n".join(f"  {name:20} {recipe.title}" for name, recipe in RECIPES.items())

    def verb(name: str, run, help: str) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=help, description=help, epilog=f"{recipes}\n\n{_EXAMPLES}", formatter_class=form)
        sub.set_defaults(run=run)
        sub.add_argument("--factory", help="your model as package.module:function, or the name of a recipe")
        sub.add_argument(
            "--bias", choices=BIASES, default="first", help="which layers of a recipe's net have a bias (default: first)"
        )
        sub.add_argument("--json", action="store_true", help="print the result as JSON")
        return sub

    def takes_data(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--data", help=f"{', '.join(datasets.BY_NAME)}, or an .npz file with arrays X and y")
        sub.add_argument("--split", choices=("train", "test"), default="train", help="part of a named data set (default: train)")
        sub.add_argument("--limit", type=_positive(int), help="class-balanced subset of this size")
        sub.add_argument("--loss", choices=losses.BY_NAME, default="cross-entropy", help="default: cross-entropy")

    sub = verb("analyse", _analyse, "How a net's outputs scale with its parameters: order, groups, what blocks it.")
    sub.add_argument("recipe", nargs="?", help="name of a recipe")
    sub.add_argument("--data", help="a named data set or .npz file to take inputs from")
    sub.add_argument("--shape", help="shape of one input, such as 3,32,32 (random inputs)")

    sub = verb("measure", _measure, "Margins of a saved net on data, in every normalization.")
    sub.add_argument("weights", help="file with a state dict, or a checkpoint of a run")
    takes_data(sub)

    sub = verb("train", _train, "Train past float underflow, watching the margins.")
    sub.add_argument("recipe", nargs="?", help="name of a recipe")
    takes_data(sub)
    sub.add_argument("--until-log10-loss", type=float, metavar="X", help="stop below this log10 of the mean loss, such as -40")
    sub.add_argument(
        "--epochs", type=int, metavar="N", help="stop after N accepted epochs (default: 100 if no other rule is given)"
    )
    sub.add_argument(
        "--constant-lr", type=_positive(float), metavar="RATE", help="plain SGD with this rate instead of the loss-based rule"
    )
    sub.add_argument("--batch-size", type=_positive(int), help="default: that of the recipe, or 100")
    sub.add_argument("--seed", type=int, default=0, help="of initial weights and shuffling (default: 0)")
    sub.add_argument("--out", type=Path, help="folder of the run (default: runs/NAME); a run that it holds is continued")
    sub.add_argument("--quiet", action="store_true", help="no progress line")

    help = "The largest margin that two-layer nets (f1), fixed-kernel or linear classifiers can have, with a proved bound."
    sub = verbs.add_parser("solve", help=help, description=help, epilog=_EXAMPLES, formatter_class=form)
    sub.set_defaults(run=_solve)
    problems = ("f1", "f2", "ntk", "linear", "interpolate")
    sub.add_argument(
        "problem",
        choices=problems,
        help="variation norm, arc-cosine or tangent kernel, linear; least variation norm through real values y",
    )
    sub.add_argument("--data", required=True, help=".npz file with arrays X (n, d) and y (two labels, or real values)")
    sub.add_argument(
        "--bias", action=argparse.BooleanOptionalAction, help="a bias that counts in the norm (default: all but ntk and linear)"
    )
    sub.add_argument("--soft", type=_positive(float), metavar="C", help="soft margin with this cost of hinge loss (f1)")
    sub.add_argument(
        "--time-limit", type=_positive(float), metavar="SECONDS", help="return the best bracket found by then (f1, interpolate)"
    )
    sub.add_argument("--out", type=Path, help="write neurons, weights and dual weights to this .npz file")
    sub.add_argument("--json", action="store_true", help="print the result as JSON, dual weights included")
    return parser


def _positive(number: type):
    def parse(text: str):
        value = number(text)
        if not value > 0:
            raise ValueError(text)
        return value

    parse.__name__ = f"positive {number.__name__}"
    return parse


def _analyse(options: argparse.Namespace) -> None:
    model = _model(options)
    if options.shape:
        try:
            shape = [_positive(int)(part) for part in options.shape.split(",")]
        except ValueError:
            raise DataError(
                f"--shape takes positive whole numbers separated by commas, such as 3,32,32; got {options.shape!r}"
            ) from None
        x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0))
    else:
        x, _ = _data(options, limit=10 if _data_name(options) in datasets.BY_NAME else None)
    with in_mode(model, training=False):
        answer = analyse(model, x)
    print(json.dumps(answer.to_dict(), indent=2) if options.json else answer.summary())


def _measure(options: argparse.Namespace) -> None:
    model = _model(options)
    load_weights(model, options.weights)
    report = measure(model, _data(options, limit=options.limit), loss=losses.BY_NAME[options.loss])
    result = report.to_dict() | {"homogeneity": report.homogeneity.to_dict(), "support": report.support.tolist()}
    print(json.dumps(result, indent=2) if options.json else report.summary())


def _solve(options: argparse.Namespace) -> None:
    import numpy as np

    from . import solvers

    X, y = _arrays(options.data)
    long = options.problem in ("f1", "interpolate")
    if options.time_limit and not long:
        raise DataError("--time-limit is for f1 and interpolate; the other problems are solved at once.")
    if options.soft and options.problem != "f1":
        raise DataError("--soft is for f1. For kernels use netmargin.estimators, or solvers.kernel_soft_margin.")
    if options.out and not options.out.absolute().parent.is_dir():
        raise DataError(f"The folder of --out {options.out} does not exist. Make it first.")
    bias = options.problem in ("f1", "f2", "interpolate") if options.bias is None else options.bias
    watched = {"time_limit": options.time_limit, "progress": not options.json} if long else {}
    solve: dict[str, Any] = {
        "f1": partial(solvers.f1_soft_margin, C=options.soft) if options.soft else solvers.f1_max_margin,
        "f2": solvers.f2_max_margin,
        "ntk": solvers.ntk_max_margin,
        "linear": solvers.linear_max_margin,
        "interpolate": solvers.min_norm_interpolation,
    }
    solution = solve[options.problem](X, y, bias=bias, **watched)
    kept = (
        "margin",
        "upper_bound",
        "objective",
        "norm",
        "lower_bound",
        "hinge",
        "residual",
        "local_gap",
        "gap",
        "certified",
        "seconds",
    )
    result = {name: getattr(solution, name) for name in kept if hasattr(solution, name)} | {"status": str(solution.status)}
    result["samples it rests on"] = int((solution.dual != 0).sum())
    if hasattr(solution, "atoms"):
        result["neurons"] = len(solution.weights)
    if options.out:
        arrays: dict[str, Any] = {k: v for k, v in vars(solution).items() if isinstance(v, np.ndarray)}
        np.savez(options.out, **arrays)
    if options.json:
        finite = {
            k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in result.items()
        }  # JSON knows no infinity
        print(json.dumps(finite | {"dual": solution.dual.tolist()}, indent=2))
        return
    for name, value in result.items():
        print(f"{name.replace('_', ' '):20} {value:.10g}" if isinstance(value, float) else f"{name.replace('_', ' '):20} {value}")


def _train(options: argparse.Namespace) -> None:
    torch.manual_seed(options.seed)
    model, recipe = _model(options), RECIPES.get(options.recipe or options.factory)
    data = _data(options, limit=options.limit)
    until: list[StoppingRule] = [] if options.until_log10_loss is None else [LogLossBelow(options.until_log10_loss)]
    if options.epochs is not None or not until:
        until.append(Epochs(100 if options.epochs is None else options.epochs))
    name = (options.recipe or options.factory).replace(":", ".") + ("" if options.bias == "first" else f"-bias-{options.bias}")
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
    figures = _save_results(folder, model, history, report)
    milestones = _milestones(history.rows)
    if options.json:
        print(json.dumps({"status": history.status, "milestones": milestones, "final": report.to_dict()}, indent=2))
    else:
        _print_table(milestones, name)
        print(f"{history.status}. Results: {folder}/ (history.jsonl, model.pt, summary.json, {', '.join(p.name for p in figures)})")


def _save_results(folder: Path, model: nn.Module, history, report) -> list[Path]:
    from .figures import draw_run
    from .training import checkpoint

    checkpoint.save(folder / "model.pt", model.state_dict())
    summary = {
        "status": history.status,
        "epochs": history.rows[-1]["epoch"],
        "attempts": sum(history.column("attempts")),
        "final": report.to_dict(),
        "homogeneity": report.homogeneity.to_dict(),
        "milestones": _milestones(history.rows),
    }
    write_atomically(folder / "summary.json", json.dumps(summary, indent=2).encode())
    return draw_run(history, report, folder)


def _milestones(rows: list[dict]) -> list[dict]:
    """The first epoch at or below each of some log10-losses, and the last epoch."""
    first = [next((r for r in rows if r["log10_mean_loss"] <= level), None) for level in _MILESTONES]
    return list({row["epoch"]: row for row in (*first, rows[-1]) if row is not None}.values())


def _print_table(rows: list[dict], title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, caption="margin = q_min / norm^L; per layers = q_min / product of layer norms")
    columns = {
        "epoch": ("epoch", "d"),
        "log10_mean_loss": ("log10 loss", ".2f"),
        "accuracy": ("correct", ".2%"),
        "q_min": ("q_min", ".3g"),
        "normalized_margin": ("margin", ".3g"),
        "layer_normalized_margin": ("per layers", ".3g"),
        "smoothed_margin": ("smoothed", ".3g"),
    }
    for heading, _ in columns.values():
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*("none" if row[key] is None else format(row[key], form) for key, (_, form) in columns.items()))
    Console().print(table)


def _model(options: argparse.Namespace) -> nn.Module:
    name = getattr(options, "recipe", None) or options.factory
    if name is None:
        raise ModelError("Say which model: the name of a recipe, or --factory package.module:function.")
    if name in RECIPES:
        return RECIPES[name].make_model(bias=options.bias)
    module_name, colon, function = name.partition(":")
    if not colon:
        raise ModelError(f"{name!r} is no recipe ({', '.join(RECIPES)}). Your own model is given as package.module:function.")
    sys.path.insert(0, os.getcwd())
    try:
        make_model = getattr(importlib.import_module(module_name), function)
    except (ImportError, AttributeError) as error:
        raise ModelError(f"Cannot find the model factory {name!r}: {error}. Run from the folder that holds its package.") from error
    model = make_model()
    if not isinstance(model, nn.Module):
        raise ModelError(f"{name} returned {type(model).__name__}; a factory takes no arguments and returns a torch.nn.Module.")
    return model


def _data_name(options: argparse.Namespace) -> str:
    recipe = RECIPES.get(getattr(options, "recipe", None) or options.factory)
    name = options.data or (recipe.data if recipe else None)
    if name is None:
        raise DataError(f"Say which data: --data with {', '.join(datasets.BY_NAME)} or an .npz file with arrays X and y.")
    return name


def _arrays(path: str):
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return arrays["X"], arrays["y"]
    except (OSError, KeyError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(
            f"Cannot read arrays X and y from {path!r}: {error}. Save them with numpy.savez(file, X=X, y=y)."
        ) from error


def _data(options: argparse.Namespace, *, limit: int | None):

    name = _data_name(options)
    if name in datasets.BY_NAME:
        return datasets.BY_NAME[name](getattr(options, "split", "train"), limit=limit)
    X, y = _arrays(name)
    X = X.astype("float32") if X.dtype.kind == "f" else X
    return (X, y) if limit is None else datasets.selection.select(X, y, limit, scale=1)
