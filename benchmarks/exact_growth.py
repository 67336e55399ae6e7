"""How the time of exact radii grows with the width, the depth and the inputs of trained nets, and
with the units that can change their sign within the attacked radius.

Ten test images a net, attack included. Each net is written to runs/exact-growth.jsonl as soon as it
is done, and the same call goes on from there. Writes docs/exact_growth.png.
"""

import json
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from torch.nn.functional import adaptive_avg_pool2d

from netmargin.radii.exact.ball import compact, enclose
from netmargin.radii.exact.chain import read_chain

from .exact_radii import measure_image
from .radii_nets import NETS, ROBUST, Split, Trained, make_mlp, split_digits, split_mnist, train_net

FILE = Path("runs/exact-growth.jsonl")
_IMAGES = 10
_TOL = 1e-3
_TIME_LIMIT = 60.0
"""Seconds of wall clock for each image, so that all nets together take some ten minutes."""
_EPOCHS = {"digits": 60, "MNIST": 10}
"""As for the nets of the same data in NETS."""


def split_pooled_mnist(side: int) -> tuple[Split, Split]:
    """MNIST, averaged to images of side x side pixels."""
    (X, y), (test, labels) = split_mnist()
    X, test = (
        adaptive_avg_pool2d(images.reshape(-1, 1, 28, 28).double(), side) for images in (X, test)
    )
    return (X, y), (test, labels)


SERIES = {
    "hidden units: digits 64-n-10": [(n, "digits", (64, n, 10)) for n in (16, 32, 64, 128, 256)],
    "hidden layers of 64 units: digits": [
        (k, "digits", (64, *[64] * k, 10)) for k in (1, 2, 3, 4, 5)
    ],
    "inputs: MNIST, pooled, n-100-10": [
        (side**2, "MNIST", (side**2, 100, 10)) for side in (4, 7, 14, 28)
    ],
}
"""For each panel, its values with their data and widths."""
_ALSO = ("digits 64-128-64-10", *(name for name in ROBUST if "digits" in name))
"""More nets whose images are in the panel of open units."""


def name_net(data: str, widths: tuple[int, ...]) -> str:
    """The name of a net of a series, under which it can be trained from now on."""
    name = f"{data} {'-'.join(map(str, widths))}"
    pooled = partial(split_pooled_mnist, round(widths[0] ** 0.5))
    load = split_digits if data == "digits" else pooled
    NETS[name] = (partial(make_mlp, *widths), load, _EPOCHS[data])
    return name


def count_open_units(trained: Trained, index: int, radius: float) -> int:
    """Hidden units that, for all their intervals say, may change their sign in a ball."""
    compacted = compact(read_chain(trained.net, trained.X[:2]))
    ball = enclose(compacted, trained.X[index].flatten().numpy(), radius)
    return sum(int((ball.fix_stable(k) == 0).sum()) for k in range(len(ball.slopes)))


def measure_growth(name: str) -> list[dict]:
    """For each image, seconds of CPU, whether its radius was closed, and its open units."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    for known in map(json.loads, lines):
        if known["net"] == name:
            return known["images"]
    trained, images = train_net(name), []
    for index in range(_IMAGES):
        row = measure_image(trained, index, "exact", _TOL, time_limit=_TIME_LIMIT)
        row["closed"] = row["lower"] >= (1 - _TOL) * row["upper"]
        row["open_units"] = count_open_units(trained, index, row["upper"])
        images.append(row)
    seconds = np.array([row["seconds"] for row in images])
    print(
        f"{name}: median {np.median(seconds):.2f} s, worst {seconds.max():.2f} s,"
        f" {np.mean([row['closed'] for row in images]):.0%} closed; open units"
        f" {min(row['open_units'] for row in images)} to"
        f" {max(row['open_units'] for row in images)}",
        flush=True,
    )
    with FILE.open("a") as file:
        file.write(json.dumps({"net": name, "images": images}) + "\n")
    return images


def draw_series(panel: Axes, title: str, cases: list[tuple[int, str, tuple[int, ...]]]) -> None:
    """Draw the median and the slowest image of each net of a series."""
    values, nets = [case[0] for case in cases], [measure_growth(name_net(*c[1:])) for c in cases]
    seconds = np.array([[row["seconds"] for row in images] for images in nets])
    panel.plot(values, np.median(seconds, 1), "o-", color="C0", label="median")
    panel.plot(values, seconds.max(1), "o--", color="C0", alpha=0.5, label="slowest image")
    for value, most, images in zip(values, seconds.max(1), nets, strict=True):
        share = np.mean([row["closed"] for row in images])
        panel.annotate(
            f"{share:.0%}", (value, most), (0, 5), textcoords="offset points", ha="center"
        )
    panel.set(title=title, xlabel=title.split(":")[0])
    panel.margins(x=0.12)
    if "layers" in title:
        panel.set_xticks(values)
    else:
        panel.set_xscale("log", base=2)
        panel.set_xticks(values, map(str, values))


def draw_open_units(panel: Axes) -> None:
    """Draw all images of all nets, by the units that can change their sign."""
    nets = [name_net(*case[1:]) for cases in SERIES.values() for case in cases]
    images = [row for name in dict.fromkeys([*nets, *_ALSO]) for row in measure_growth(name)]
    for closed, marker, color, label in ((True, ".", "C0", "closed"), (False, "x", "C3", "open")):
        chosen = [row for row in images if row["closed"] is closed]
        panel.plot(
            [row["open_units"] for row in chosen],
            [row["seconds"] for row in chosen],
            marker, color=color, alpha=0.6, label=label,
        )  # fmt: skip
    panel.set(
        title=f"open units: all nets, {len(images)} images",
        xlabel="units that can change sign at the attacked radius",
        xscale="symlog",
    )
    panel.set_xlim(left=-0.5)
    panel.set_xticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    panel.legend(loc="upper left", fontsize=9)


def main() -> None:
    """Measure all nets, print a line for each, and draw a panel for each series."""
    torch.set_num_threads(1)
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), sharey=True, layout="constrained")
    panels = axes.flatten()
    for panel, (title, cases) in zip(panels, SERIES.items(), strict=False):
        draw_series(panel, title, cases)
    draw_open_units(panels[-1])
    for panel in panels:
        panel.set(yscale="log", ylim=(0.05, 100))
        panel.title.set_fontsize(10)
        panel.grid(alpha=0.3)
    for panel in axes[:, 0]:
        panel.set_ylabel(f"seconds of CPU an image, tol {_TOL:g}")
    panels[0].legend(loc="upper left", fontsize=9)
    figure.suptitle("Exact L2 radii, attack included; percentages: radii that were closed")
    figure.savefig("docs/exact_growth.png", dpi=110)
