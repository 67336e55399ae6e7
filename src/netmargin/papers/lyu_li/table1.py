"""Table 1: statistics of the CNN without bias after training for different numbers of epochs, and
after ascending the margin itself.
"""

from itertools import pairwise

from ...figures.style import BOTH, OTHER
from ..gallery.figure import Check, Figure, Row, Settings
from ._training import (
    ASCENT,
    LOSS_BASED,
    RUNS,
    SCALES,
    SUBSET,
    WITHOUT_BIAS,
    concerns,
    runs,
    train_net,
)

# The normalized margins that the paper prints, beside which ours are shown.
PAPER = {
    "model-1": 5.65e-5,
    "model-2": 9.50e-5,
    "model-3": 1.30e-4,
    "model-4": 4.61e-4,
    "model-5": 1.18e-3,
}
COLUMNS = {
    "epochs": ("epochs", "d"),
    "log10_loss": (r"$\log_{10}$ loss", ".2f"),
    "layer_margin": ("normalized margin", ".3g"),
    "accuracy": ("train acc", ".1%"),
    "test_accuracy": ("test acc", ".1%"),
}


def models(rows: list[Row]) -> dict[str, Row]:
    """Select the looks that make the rows of the table, by the name of their model.

    They are where the loss first fell below each level, at the end if that is later, and after the
    ascent.
    """
    trained, ascent = (
        next(row for row in rows if row["rate"] == rate) for rate in (LOSS_BASED, ASCENT)
    )
    looks = [look for look in trained["looks"] if look["level"] is not None]
    looks += [] if looks and looks[-1]["epochs"] == trained["epochs"] else [trained]
    return {f"model-{k}": look for k, look in enumerate(looks, 1)} | {"maximize_margin": ascent}


def draw(settings: Settings, rows: list[Row]):
    """Draw the table, with the paper's margins in the last column."""
    from matplotlib.figure import Figure as Canvas

    drawn = Canvas(figsize=(8.2, 2.4), layout="constrained")
    axis = drawn.subplots()
    axis.axis("off")
    found = models(rows)
    text = [
        [
            name,
            *(
                "-" if row[key] is None else format(row[key], form)
                for key, (_, form) in COLUMNS.items()
            ),
            f"{PAPER[name]:.3g}" if name in PAPER else "-",
        ]
        for name, row in found.items()
    ]
    headings = ["model", *(heading for heading, _ in COLUMNS.values()), "paper's margin"]
    table = axis.table(
        text,
        colLabels=headings,
        loc="center",
        cellLoc="right",
        edges="horizontal",
        colWidths=[0.2, 0.1, 0.12, 0.2, 0.12, 0.12, 0.18],
    )
    table.auto_set_font_size(False)
    table.set_fontsize(10)
    table.scale(1, 1.5)
    for (row, _), cell in table.get_celld().items():
        cell.set_text_props(
            color=OTHER if row == len(text) else BOTH if row == 0 else "black",
            weight="bold" if row == 0 else None,
        )
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that margins rise from model to model, and that the ascent exceeds them all."""
    found = models(rows)
    ascent, trained = found.pop("maximize_margin"), list(found.values())
    margins = [row["layer_margin"] for row in trained]
    begin = next((row for row in trained if row["log10_loss"] <= -10), trained[0])
    return [
        Check(
            f"normalized margins {', '.join(f'{m:.3g}' for m in margins)} at log10-losses"
            f" {', '.join(format(row['log10_loss'], '.1f') for row in trained)}",
            all(0 < a < b for a, b in pairwise(margins))
            and len(margins) == len(settings["cnn_levels"]),
        ),
        Check(
            f"from log10-loss {begin['log10_loss']:.0f} to {trained[-1]['log10_loss']:.0f} it grows"
            f" {margins[-1] / begin['layer_margin']:.2f} times (paper: 21 times, from -10 to -882)",
            margins[-1] > begin["layer_margin"],
        ),
        Check(
            f"maximize_margin, from model-1 on: {ascent['layer_margin']:.3g},"
            f" {ascent['layer_margin'] / margins[-1]:.2f} times that of the longest training",
            ascent["layer_margin"] > margins[-1],
        ),
    ]


FIGURE = Figure(
    id="lyu-li/table1",
    title="the CNN without bias on MNIST after training for different numbers of epochs",
    finding=(
        "the longer the training, the larger the normalized margin, while the test accuracy hardly"
        " changes; ascending the margin itself goes further"
    ),
    differs=SUBSET
    + "; the last row is not in the paper, its epochs are passes over the data, training to model-1"
    " included",
    scales=SCALES,
    minutes={"smoke": 0.1, "laptop": 5.0, "paper": 110_000.0},
    runs=lambda settings: runs("cnn", LOSS_BASED, ASCENT, biases=(WITHOUT_BIAS,)),
    compute=train_net,
    concerns=concerns,
    draw=draw,
    check=check,
    runs_of=RUNS,
)
