"""The nets of Appendix J, trained past underflow; all figures share these runs, in `RUNS`."""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ... import datasets, models
from ...ascent.maximize_margin import maximize_margin
from ...core.files import write_atomically
from ...datasets.selection import Split
from ...margins import measure
from ...training import ConstantLR, Epochs, History, LogLossBelow, LossBasedLR, checkpoint, train
from ..gallery.figure import Figure, Row, Settings, by_scale, cross

RUNS = "lyu-li/training"
CONSTANT, LOSS_BASED, ASCENT = "constant", "loss-based", "margin ascent"
WITHOUT_BIAS, WITH_BIAS = "first", "all"
SPLITS: dict[Split, str] = {"train": "_n", "test": "_tested"}
"""The splits of the data, each with the ending of the setting that says how many samples it has."""
_LOOKS = 16
"""Epochs at which test samples are evaluated, a pass each: 16 show a trend over four decades."""
_POINTS = 300
"""Points of a curve that are kept, for small files: more cannot be told apart in a panel."""

# Smoke: nets, data and epochs so small that every figure of these runs is drawn in seconds. Laptop:
# minutes for each net; an epoch has 10 steps instead of 600, and the losses at which training ends
# are above the paper's. Paper: the settings of Appendix J; -881.5 is the log10-loss of its table 1
# after the last epoch.
SCALES = by_scale(
    cnn_data=("digits", "mnist", "mnist"),
    cnn_channels=([4, 8], [8, 16], [32, 64]),
    cnn_hidden=(16, 128, 1024),
    cnn_n=(20, 1000, 60_000),
    cnn_tested=(100, 2000, 10_000),
    cnn_batch=(5, 100, 100),
    cnn_rate=(0.1, 0.01, 0.01),
    cnn_epochs=(200, 600, 10_000),
    cnn_constant_epochs=(200, 2000, 10_000),
    cnn_levels=([-1, -2, -3, -4, -6], [-5, -10, -15, -20, -40], [-10, -15, -20, -120, -881.5]),
    cnn_stops_at_last_level=True,
    cnn_seeds=(1, 3, 10),
    slightly=(0.1, 0.03, 0.01),
    ascent_iterations=(20, 30, 100),
    vgg_data=("digits", "cifar10", "cifar10"),
    vgg_width=(4, 8, 64),
    vgg_n=(10, 200, 50_000),
    vgg_tested=(40, 1000, 10_000),
    vgg_batch=(5, 20, 100),
    vgg_rate=(0.02, 0.01, 0.1),
    vgg_epochs=(200, 700, 10_000),
    vgg_levels=([-1, -5], [-1, -5, -10], [-1, -10]),
    vgg_stops_at_last_level=(True, True, False),
    vgg_seeds=(1, 1, 3),
    biases=[WITHOUT_BIAS, WITH_BIAS],
)
# Deep and wide: two parts of the paper's scale, of an hour or two each: the small net down to the
# paper's last level, and the paper's own CNN on a twelfth of the images down to its third.
_LEVELS = SCALES["paper"]["cnn_levels"]
SCALES["deep"] = {
    **SCALES["laptop"],
    "cnn_epochs": 40_000,
    "cnn_levels": _LEVELS,
    "biases": [WITHOUT_BIAS],
}
SCALES["wide"] = {
    **SCALES["paper"],
    "cnn_n": 5000,
    "cnn_tested": 2000,
    "cnn_epochs": 300,
    "cnn_constant_epochs": 300,
    "cnn_levels": _LEVELS[:3],
    "ascent_iterations": 0,
    "biases": [WITHOUT_BIAS],
}
ENDS = "with the loss-based rate, training ends at the last of the levels of the loss"
SUBSET = (
    f"{ENDS}; laptop and deep scale: 100 images of each class, so 10 steps per epoch instead of"
    " 600, and 20,000 steps with the constant rate instead of 6 million, which carry to 10^-3.4;"
    " deep and wide: without bias alone; wide: 500 images of each class, to 1e-20"
)
SUBSET_VGG = f"{ENDS} (not at paper scale); laptop scale: 20 images of each class"

_LOOK = {
    "epochs": "epoch",
    "log10_loss": "log10_mean_loss",
    "accuracy": "accuracy",
    "margin": "normalized_margin",
    "layer_margin": "layer_normalized_margin",
}


def runs(
    net: str, *rates: str, biases: tuple[str, ...] = (WITHOUT_BIAS, WITH_BIAS), seeds: int = 1
) -> list[Row]:
    """List the parameters of one run for each rate, bias and seed."""
    return cross(net=[net], rate=rates, bias=biases, seed=range(seeds))


def make_figure(*, minutes: dict[str, float], **given: Any) -> Figure:
    """A figure of runs of `train_net`, which all figures of this paper share, at these scales."""

    def concerns(run: Row, setting: str) -> bool:
        """Whether a run depends on a setting: it does on those of its own net."""
        return (setting.startswith(run["net"]) and not setting.endswith("seeds")) or (
            setting == "ascent_iterations" and run["rate"] == ASCENT
        )

    return Figure(
        scales={scale: SCALES[scale] for scale in minutes},
        minutes=minutes,
        compute=train_net,
        concerns=concerns,
        runs_of=RUNS,
        with_folder=True,
        **given,
    )


def train_net(run: Row, settings: Settings, folder: Path) -> Row:
    """Train one net; keep its curve, looks at test samples, and the net below each level."""
    own = {name.removeprefix(run["net"] + "_"): value for name, value in settings.items()}
    net, data, tested = make_net(run, settings), *(images(run, settings, s) for s in SPLITS)
    options = {"batch_size": own["batch"], "seed": run["seed"], "progress": False}
    options["checkpoint_dir"] = folder

    def look_at(row: Row) -> Row:
        """Take the quantities of a look from a row of the history, and add the test accuracy."""
        looked = {name: row[source] for name, source in _LOOK.items()}
        return looked | {"test_accuracy": measure(net, tested).accuracy}

    if run["rate"] == ASCENT:
        # To the first level of the loss, and from there uphill.
        begun = train(net, data, until=LogLossBelow(own["levels"][0]), **options)
        steps = settings["ascent_iterations"]
        ascent = maximize_margin(net, data, iterations=steps, progress=False)
        checkpoint.save(folder / "level-1.pt", net.state_dict())
        gradients = begun.rows[-1]["gradient_samples"] + ascent.rows[-1]["gradient_samples"]
        # The loss depends on the size of the parameters, to which the ascent is blind.
        row = {"epoch": round(gradients / own["n"]), "log10_mean_loss": None}
        return look_at(measure(net, data).to_dict() | row)
    constant = run["rate"] == CONSTANT
    lr, levels = (ConstantLR(own["rate"]), []) if constant else (LossBasedLR(), own["levels"])
    epochs = own.get("constant_epochs", own["epochs"]) if constant else own["epochs"]
    grid = sorted({round(epoch) for epoch in np.geomspace(1, epochs, _LOOKS)})
    file = folder / "looks.json"
    looks = json.loads(file.read_text()) if file.exists() else []
    before, started = looks[-1]["seconds"] if looks else 0.0, time.monotonic()
    status = ""
    while not status.startswith("stalled"):
        passed = sum(look["level"] is not None for look in looks)
        epoch = next((epoch for epoch in grid if not looks or epoch > looks[-1]["epochs"]), None)
        if epoch is None or (levels and passed == len(levels) and own["stops_at_last_level"]):
            break
        until = [Epochs(epoch), *map(LogLossBelow, levels[passed : passed + 1])]
        history = train(net, data, until=until, lr=lr, **options)
        look, status = look_at(history.rows[-1]) | {"level": None}, history.status
        if passed < len(levels) and look["log10_loss"] < levels[passed]:
            look["level"] = levels[passed]
            checkpoint.save(folder / f"level-{passed + 1}.pt", net.state_dict())
        elif looks and look["epochs"] == looks[-1]["epochs"]:
            break  # stalled before, and again
        looks.append(look | {"seconds": before + time.monotonic() - started})
        write_atomically(file, json.dumps(looks).encode())
    last = {name: looks[-1][name] for name in (*_LOOK, "test_accuracy", "seconds")}
    curve = _thin_curve(History.load(folder / checkpoint.HISTORY).rows)
    return last | {"looks": looks, "curve": curve}


def _thin_curve(rows: list[Row]) -> dict[str, list[Any]]:
    """Keep the rows of a history at epochs in geometric distances, as lists by quantity."""
    spaced = np.geomspace(1, len(rows), _POINTS).round().astype(int) - 1
    kept = sorted({0, *np.unique(spaced).tolist()})
    return {
        name: [rows[index][source] for index in kept]
        for name, source in (*_LOOK.items(), ("alpha", "relative_rate"))
    }


def make_net(run: Row, settings: Settings) -> nn.Module:
    """Make the net of a run as it begins."""
    if run["net"] == "vgg":
        make = partial(models.vgg, width=settings["vgg_width"])
    else:
        channels, hidden = tuple(settings["cnn_channels"]), settings["cnn_hidden"]
        make = partial(models.mnist_cnn, channels=channels, hidden=hidden)
    return start_net(lambda: make(bias=run["bias"]), run["seed"])


def start_net(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Make a net from a seed, on a GPU where there is one."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = make()
    return net.to("cuda" if torch.cuda.is_available() else "cpu")


def images(run: Row, settings: Settings, split: Split) -> tuple[Tensor, Tensor]:
    """Load a class-balanced part of the data of a run, at the size of its net."""
    net, shape = run["net"], (3, 32) if run["net"] == "vgg" else (1, 28)
    return load_images(settings[net + "_data"], split, settings[net + SPLITS[split]], *shape)


def load_images(
    name: str, split: Split, limit: int, channels: int, side: int
) -> tuple[Tensor, Tensor]:
    """Load a class-balanced part of data of images; digits, which need no files, are enlarged."""
    X, y = datasets.BY_NAME[name](split, limit=limit)
    if name == "digits":
        X = nn.functional.interpolate(X.reshape(-1, 1, 8, 8), size=(side, side), mode="bilinear")
        X = X.repeat(1, channels, 1, 1)
    return X, y
