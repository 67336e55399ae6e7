"""Table 1: the CNN without bias on MNIST after training for different numbers of epochs."""

from itertools import pairwise
from typing import Any

from ...figures.style import BOTH, OTHER, open_canvas
from ..gallery.figure import Check, Row, Settings
from ._training import ASCENT, LOSS_BASED, SUBSET, WITHOUT_BIAS, make_figure, runs

_MARGINS = (5.65e-5, 9.50e-5, 1.30e-4, 4.61e-4, 1.18e-3)
PAPER = {f"model-{k}": margin for k, margin in enumerate(_MARGINS, 1)}
"""The normalized margins that the paper prints, beside which ours are shown."""
COLUMNS = {
    "epochs": ("epochs", "d"),
    "log10_loss": (r"$\log_{10}$ loss", ".2f"),
    "layer_margin": ("normalized margin", ".3g"),
    "accuracy": ("train acc", ".1%"),
    "test_accuracy": ("test acc", ".1%"),
}


def models(rows: list[Row]) -> dict[str, Row]:
    """The looks by model: where the loss fell below a level, the end, the ascent if any."""
    trained, *ascent = sorted(rows, key=lambda row: row["rate"] == ASCENT)
    looks = [look for look in trained["looks"] if look["level"] is not None]
    looks += [] if looks and looks[-1]["epochs"] == trained["epochs"] else [trained]
    named = {f"model-{k}": look for k, look in enumerate(looks, 1)}
    return named | dict(zip(["maximize_margin"], ascent, strict=False))


def draw(settings: Settings, rows: list[Row]) -> Any:
    """Draw the table, with the paper's margins in the last column."""
    drawn, ((axis,),) = open_canvas(width=8.2, height=2.4)
    axis.axis("off")
    text = []
    for name, row in models(rows).items():
        cells = [
            *((row[key], form) for key, (_, form) in COLUMNS.items()),
            (PAPER.get(name), ".3g"),
        ]
        text.append([name, *("-" if v is None else format(v, form) for v, form in cells)])
    table = axis.table(
        text,
        colLabels=["model", *(heading for heading, _ in COLUMNS.values()), "paper's margin"],
        loc="center",
        cellLoc="right",
        edges="horizontal",
        colWidths=[0.2, 0.1, 0.12, 0.2, 0.12, 0.12, 0.18],
    )
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    table.scale(1, 1.5)
    for (row, _), cell in table.get_celld().items():
        ascended = text[row - 1][0] == "maximize_margin"
        colour = BOTH if row == 0 else OTHER if ascended else "black"
        cell.set_text_props(color=colour, weight="bold" if row == 0 else None)
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that margins rise from model to model, and that the ascent exceeds them all."""
    found = models(rows)
    ascent, trained = found.pop("maximize_margin", None), list(found.values())
    margins = [row["layer_margin"] for row in trained]
    first = next((row for row in trained if row["log10_loss"] <= -10), trained[0])
    last, least = margins[-1], first["layer_margin"]
    losses = [row["log10_loss"] for row in trained]
    rising = (
        f"normalized margins {', '.join(f'{m:.3g}' for m in margins)} at log10-losses"
        f" {', '.join(f'{loss:.1f}' for loss in losses)}"
    )
    growth = (
        f"from log10-loss {first['log10_loss']:.0f} to {losses[-1]:.0f} it grows"
        f" {last / least:.2f} times (paper: 21 times, from -10 to -882)"
    )
    whole = len(margins) == len(settings["cnn_levels"])
    checks = [
        Check(rising, all(0 < a < b for a, b in pairwise(margins)) and whole),
        Check(growth, last > least),
    ]
    if ascent is not None:
        best = ascent["layer_margin"]
        times = f"{best / last:.2f} times that of the longest training"
        further = f"maximize_margin, from model-1 on: {best:.3g}, {times}"
        checks.append(Check(further, best > last))
    return checks


FIGURE = make_figure(
    finding=(
        "the longer the training, the larger the normalized margin, while the test accuracy hardly"
        " changes; ascending the margin itself goes further"
    ),
    differs=SUBSET
    + "; the last row is not in the paper, its epochs are passes over the data, training to model-1"
    " included",
    minutes={"smoke": 0.1, "laptop": 5.0, "wide": 30.0, "deep": 120.0, "paper": 110_000.0},
    runs=lambda settings: runs(
        "cnn",
        *((LOSS_BASED, ASCENT) if settings["ascent_iterations"] else (LOSS_BASED,)),
        biases=(WITHOUT_BIAS,),
    ),
    draw=draw,
    check=check,
)
