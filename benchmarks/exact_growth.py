"""How the time of exact radii grows with the width, the depth and the inputs of trained nets.

Ten test images a net, attack included. Writes docs/exact_growth.png.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch.nn.functional import adaptive_avg_pool2d

from .exact_radii import measure_image
from .radii_nets import NETS, Split, make_mlp, split_digits, split_mnist, train_net

_IMAGES = 10
_TOL = 1e-3
_TIME_LIMIT = 15.0
"""Seconds of wall clock for each image, so that all nets together take a few minutes."""
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


def measure_growth(data: str, widths: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of CPU of each image, and whether its radius was closed."""
    name = f"{data} {'-'.join(map(str, widths))}"
    pooled = partial(split_pooled_mnist, round(widths[0] ** 0.5))
    load = split_digits if data == "digits" else pooled
    NETS[name] = (partial(make_mlp, *widths), load, _EPOCHS[data])
    trained = train_net(name)
    rows = [
        measure_image(trained, index, "exact", _TOL, time_limit=_TIME_LIMIT)
        for index in range(_IMAGES)
    ]
    lower, upper, seconds = (
        np.array([row[key] for row in rows]) for key in ("lower", "upper", "seconds")
    )
    return seconds, lower >= (1 - _TOL) * upper


def main() -> None:
    """Measure all nets, print a line for each, and draw a panel for each series."""
    torch.set_num_threads(1)
    figure, panels = plt.subplots(1, len(SERIES), figsize=(11, 3.6), layout="constrained")
    for panel, (title, cases) in zip(panels, SERIES.items(), strict=True):
        values = [value for value, _, _ in cases]
        medians, worst, shares = [], [], []
        for _, data, widths in cases:
            seconds, closed = measure_growth(data, widths)
            medians.append(np.median(seconds))
            worst.append(seconds.max())
            shares.append(closed.mean())
            print(
                f"{data} {widths}: median {medians[-1]:.2f} s, worst {worst[-1]:.2f} s,"
                f" {shares[-1]:.0%} closed",
                flush=True,
            )
        panel.plot(values, medians, "o-", color="C0", label="median")
        panel.plot(values, worst, "o--", color="C0", alpha=0.5, label="slowest image")
        for value, most, share in zip(values, worst, shares, strict=True):
            panel.annotate(
                f"{share:.0%}", (value, most), (0, 5), textcoords="offset points", ha="center"
            )
        panel.set(title=title, yscale="log", ylim=(0.05, 40))
        panel.margins(x=0.12)
        panel.title.set_fontsize(10)
        if "layers" in title:
            panel.set_xticks(values)
        else:
            panel.set_xscale("log", base=2)
            panel.set_xticks(values, map(str, values))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(f"seconds of CPU an image, tol {_TOL:g}")
    panels[0].legend(loc="upper left", fontsize=9)
    figure.suptitle("Exact L2 radii, attack included; percentages: radii that were closed")
    figure.savefig("docs/exact_growth.png", dpi=110)
