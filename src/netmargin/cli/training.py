"""`netmargin train`."""

import argparse
import json
from pathlib import Path

import torch
from torch import nn

from .. import losses
from ..margins import measure
from ..recipes import RECIPES
from ..training import ConstantLR, Epochs, LogLossBelow, LossBasedLR, StoppingRule
from ..training import train as run
from ..training.checkpoint import write_atomically
from .inputs import data as read_data
from .inputs import model as make_model

_MILESTONES = (-1, -2, -5, -10, -20, -40, -80, -120, -200, -400, -800)


def train(options: argparse.Namespace) -> None:
    """Train, or continue a run, and write its results."""
    torch.manual_seed(options.seed)
    model, recipe = make_model(options), RECIPES.get(options.recipe or options.factory)
    data = read_data(options, limit=options.limit)
    until: list[StoppingRule] = [] if options.until_log10_loss is None else [LogLossBelow(options.until_log10_loss)]
    if options.epochs is not None or not until:
        until.append(Epochs(100 if options.epochs is None else options.epochs))
    name = (options.recipe or options.factory).replace(":", ".") + ("" if options.bias == "first" else f"-bias-{options.bias}")
    folder = options.out or Path("runs") / name
    loss = losses.BY_NAME[options.loss]
    history = run(
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
    from ..figures import draw_run
    from ..training import checkpoint

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
