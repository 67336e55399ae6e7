"""Table 1: test errors of a WideResNet with annealed and with fixed weight decay."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from ... import datasets
from ...datasets.selection import Split
from ...figures.style import BOTH, OUTPUT, open_canvas
from ...margins import measure
from ...models import wide_resnet
from ...training import AnnealedLR, Epochs, train
from ..gallery.figure import Check, Figure, Row, Settings

# The paper's test errors in percent.
PAPER = {"annealed": 5.86, "fixed": 6.01}
# The paper's schedule: factors of the rate by the epoch at which they apply, ...
_RATE_DROPS = {60: 0.2, 120: 0.2, 160: 0.2}
# ... those of the weight decay, ...
_DECAY_DROPS = {60: 0.2, 90: 0.5, 120: 0.5, 140: 0.5, 160: 0.5}
# ... and the epochs of all.
_EPOCHS = 200


def compute(run: Row, settings: Settings, folder: Path) -> Row:
    """Train one net by the paper's schedule, which is stretched to `epochs`."""
    with torch.random.fork_rng():
        torch.manual_seed(run["seed"])
        net = wide_resnet(depth=settings["depth"], widen=settings["widen"])
    net = net.to("cuda" if torch.cuda.is_available() else "cpu")
    data, tested = _images(settings, "train"), _images(settings, "test")

    def stretched(drops: dict[int, float]) -> dict[int, float]:
        """Move the paper's drops to the same share of this many epochs."""
        return {round(at * settings["epochs"] / _EPOCHS): share for at, share in drops.items()}

    history = train(
        net,
        data,
        until=Epochs(settings["epochs"]),
        lr=AnnealedLR(
            settings["rate"],
            weight_decay=settings["weight_decay"],
            rate_drops=stretched(_RATE_DROPS),
            decay_drops=stretched(_DECAY_DROPS) if run["decay"] == "annealed" else {},
        ),
        batch_size=settings["batch"],
        seed=run["seed"],
        checkpoint_dir=folder,
        progress=False,
    )
    return {
        "test_error": 100 * (1 - measure(net, tested).accuracy),
        "training_error": 100 * (1 - history.rows[-1]["accuracy"]),
        "log10_loss": history.rows[-1]["log10_mean_loss"],
        "losses": history.column("log10_mean_loss"),
    }


def _images(settings: Settings, split: Split):
    """Load CIFAR-10, or digits enlarged to its size, with mean 0 and variance 1 as usual for this
    net.
    """
    X, y = datasets.BY_NAME[settings["data"]](
        split, limit=settings["n" if split == "train" else "tested"]
    )
    if settings["data"] == "digits":
        X = nn.functional.interpolate(
            X.reshape(-1, 1, 8, 8), size=(32, 32), mode="bilinear"
        ).repeat(1, 3, 1, 1)
    return (X - settings["pixel_mean"]) / settings["pixel_deviation"], y


def draw(settings: Settings, rows: list[Row]):
    """Draw the training loss by epoch, and test errors beside the paper's."""
    drawn, ((left, right),) = open_canvas(2)
    ticks = {}
    for place, (decay, colour) in enumerate({"annealed": BOTH, "fixed": OUTPUT}.items()):
        of_decay = [row for row in rows if row["decay"] == decay]
        for row in of_decay:
            left.plot(
                row["losses"],
                color=colour,
                linewidth=1.2,
                label=decay if row is of_decay[0] else None,
            )
        here = [row["test_error"] for row in of_decay]
        for at, errors, by, shade in (
            (place - 0.2, here, "here", 1.0),
            (place + 0.2, [PAPER[decay]], "paper", 0.35),
        ):
            right.bar(at, np.mean(errors), 0.36, color=colour, alpha=shade)
            right.text(
                at, max(errors) + 1, f"{np.mean(errors):.2f}", ha="center", va="bottom", fontsize=8
            )
            ticks[at] = f"{decay},\n{by}"
        right.scatter([place - 0.2] * len(here), here, color="black", s=10, zorder=3)
    left.set(xlabel="epochs", ylabel=r"$\log_{10}$ training loss", title="weight decay")
    left.legend(frameon=False)
    right.set_xticks(list(ticks), list(ticks.values()))
    right.set(
        ylabel="test error in %",
        title=f"{settings['data']}, {settings['n']:,} images; paper: CIFAR-10",
    )
    return drawn


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that annealing gives a smaller loss in the end, which is what it is for.

    The test errors beside the paper's decide nothing at small scale.
    """
    by = {decay: [row for row in rows if row["decay"] == decay] for decay in PAPER}
    losses = {
        decay: np.array([row["log10_loss"] for row in of_decay]) for decay, of_decay in by.items()
    }
    errors = {
        decay: np.array([row["test_error"] for row in of_decay]) for decay, of_decay in by.items()
    }
    gain = errors["fixed"] - errors["annealed"]
    noise = f" +- {gain.std(ddof=1) / np.sqrt(len(gain)):.2f}" if len(gain) > 1 else ""
    words = ", ".join(
        f"{decay} {errors[decay].mean():.2f}% (paper: {PAPER[decay]:.2f}%)" for decay in PAPER
    )
    return [
        Check(
            f"training loss at the end: 10^{losses['annealed'].mean():.3f} with annealed decay,"
            f" 10^{losses['fixed'].mean():.3f} with fixed, smaller in"
            f" {(losses['annealed'] < losses['fixed']).sum()} of {len(gain)} pairs of runs; test"
            f" error: {words}, gain {gain.mean():.2f}{noise} points",
            bool((losses["annealed"] < losses["fixed"]).all()),
        ),
    ]


FIGURE = Figure(
    id="wei-2018/table1",
    title=(
        "test error of a WideResNet-16 without batch normalization, annealed against fixed weight"
        " decay"
    ),
    finding=(
        "annealed decay ends at a smaller training loss; whether that lowers the test error, by"
        " 0.15 points in the paper, needs all of CIFAR-10"
    ),
    differs=(
        "residual branches that start at 0, assumed, as He's start diverges at rate 0.1 without"
        " normalization; CIFAR-100 is left out; batches of 128 without augmentation are assumed,"
        " and of the two initial decays that the paper gives, 0.0002 and 0.0005, the first; laptop"
        " scale: a decay 25 times as strong, for 49 times fewer steps"
    ),
    scales={
        "smoke": {
            "data": "digits",
            "pixel_mean": 0.3,
            "pixel_deviation": 0.3,
            "n": 100,
            "tested": 200,
            "depth": 10,
            "widen": 1,
            "epochs": 20,
            "batch": 5,
            "rate": 0.1,
            "weight_decay": 1e-3,
            "runs": 1,
        },
        "laptop": {
            "data": "cifar10",
            "pixel_mean": 0.47,
            "pixel_deviation": 0.25,
            "n": 800,
            "tested": 2000,
            "depth": 16,
            "widen": 1,
            "epochs": 40,
            "batch": 20,
            "rate": 0.1,
            "weight_decay": 5e-3,
            "runs": 2,
        },
        "paper": {
            "data": "cifar10",
            "pixel_mean": 0.47,
            "pixel_deviation": 0.25,
            "n": 50_000,
            "tested": 10_000,
            "depth": 16,
            "widen": 10,
            "epochs": 200,
            "batch": 128,
            "rate": 0.1,
            "weight_decay": 2e-4,
            "runs": 1,
        },
    },
    minutes={"smoke": 0.3, "laptop": 8.0, "paper": 75_000.0},
    runs=lambda settings: [
        {"decay": decay, "seed": seed} for seed in range(settings["runs"]) for decay in PAPER
    ],
    compute=compute,
    concerns=lambda run, setting: setting != "runs",
    draw=draw,
    check=check,
)
