"""CPU seconds, local gap after a thorough look and memory of sliding columns.

    python -m benchmarks sliding_columns

Each fit is a process of its own on one thread, tested on new samples. Adds the rows that
runs/benchmarks/sliding_columns.jsonl lacks, prints them, and draws sliding_columns.png beside it.
"""

import json
import os
import subprocess
import sys
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

from netmargin.datasets import teacher
from netmargin.solvers.neurons.labels import Rivals, Signs
from netmargin.solvers.neurons.losses import hinge_loss, squared_hinge_loss
from netmargin.solvers.neurons.sliding import slide_columns

from .clock import clock_of_process
from .estimators_growth import FOLDER, read_peak
from .rows import add_row, read_rows

ROWS = FOLDER / "sliding_columns.jsonl"
FIELDS = ("data", "n", "d", "K", "C", "tol")
CASES = [  # infinite C: hard margin
    ("clusters", 5000, 20, 5, 0.03, 0.02),
    ("teacher", 100_000, 20, 2, 0.003, 0.01),
    ("teacher", 100_000, 20, 2, np.inf, 0.02),
    ("far teacher", 100_000, 20, 2, np.inf, 0.02),
    ("digits", 1437, 64, 10, 0.1, 0.01),
]
GROWTH = {  # of clusters, 3,000 x 20 of two classes at C = .01, one of which changes
    "n": [("clusters", n, 20, 2, 0.01, 0.02) for n in (1000, 3000, 10_000, 30_000, 100_000)],
    "d": [("clusters", 3000, d, 2, 0.01, 0.02) for d in (5, 10, 20, 40, 80)],
    "K": [("clusters", 3000, 20, K, 0.01, 0.02) for K in (2, 3, 5, 10)],
    "C": [("clusters", 3000, 20, 2, C, 0.02) for C in (0.001, 0.003, 0.01, 0.03)],
}


def main() -> None:
    """Measure what is missing, print it, and draw."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for case in CASES:
        print(find_row(case), flush=True)
    figure, panels = plt.subplots(1, 4, figsize=(12, 3), sharey=True, layout="constrained")
    for axes, (key, cases) in zip(panels, GROWTH.items(), strict=True):
        rows = [find_row(case) for case in cases]
        sizes = [row[key] for row in rows]
        axes.loglog(sizes, [row["seconds"] for row in rows], "o-")
        axes.set_xticks(sizes, [f"{size:,g}" for size in sizes], rotation=30)
        axes.minorticks_off()
        axes.set_xlabel(key)
    panels[0].set_ylabel("CPU seconds to a gap of 2%")
    figure.savefig(FOLDER / "sliding_columns.png", dpi=120)


def find_row(case: tuple) -> dict:
    """The row of a case, measured in a process of its own if the file lacks it."""
    for row in read_rows(ROWS):
        if tuple(row[key] for key in FIELDS) == case:
            return row
    call = f"from benchmarks.sliding_columns import *; measure(*json.loads('{json.dumps(case)}'))"
    subprocess.run([sys.executable, "-c", call], check=True)
    return read_rows(ROWS)[-1]


def measure(data: str, n: int, d: int, K: int, C: float, tol: float) -> None:
    """Add a row: one fit of n samples, and its accuracy on the others."""
    X, y = draw_samples(data, 2 * n, d, K)
    Z = np.column_stack([StandardScaler().fit(X[:n]).transform(X), np.ones(len(X))])
    soft, cost = np.isfinite(C), np.full(n, C)
    flipped = (data == "teacher") & soft & (np.random.default_rng(1).random(n) < 0.025)
    labels = Rivals(y[:n], K) if K > 2 else Signs(np.where(y[:n] ^ flipped, 1.0, -1.0)[:, None])
    loss = (squared_hinge_loss if soft else hinge_loss)(labels, cost)
    with clock_of_process():
        began = time.monotonic()
        net = slide_columns(Z[:n], loss, tol=tol, deadline=began + 300)
        row = {"seconds": time.monotonic() - began, "gap": net.local_gap, "neurons": len(net.W)}
    F = np.maximum(Z[n:] @ net.W.T, 0) @ net.A
    right = (F.argmax(1) if K > 2 else F[:, 0] > 0) == y[n:]
    row |= {"accuracy": float(right.mean()), "MB": 1000 * read_peak()}
    add_row(ROWS, dict(zip(FIELDS, (data, n, d, K, C, tol), strict=True)) | row)


def draw_samples(data: str, n: int, d: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits; signs of a net of five ReLUs, or of six where it is at least 1 away from 0; or
    clusters, half of whose features are informative.
    """
    if data == "digits":
        return shuffle(*load_digits(return_X_y=True), random_state=0)
    if data == "clusters":
        shape = {"n_informative": max(d // 2, 3), "n_classes": K, "flip_y": 0.01}
        return make_classification(n, d, **shape, random_state=0)
    if data == "far teacher":
        X, y = teacher(n, d, units=6, margin=1.0, seed=3)
        return X.numpy(), (y > 0).int().numpy()
    random = np.random.default_rng(0)
    X, W, b, a = (random.normal(size=size) for size in ((n, d), (d, 5), 5, 5))
    f = np.maximum(X @ W / np.sqrt(d) + b / 2, 0) @ a
    return X, (f > np.median(f)).astype(int)
