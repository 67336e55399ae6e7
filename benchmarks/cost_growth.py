"""The growth of the time of `f1_max_margin` with the number of samples and with the dimension.

Writes runs/benchmarks/cost_growth.png and cost_growth.csv.
"""

import csv
import time
from pathlib import Path

import matplotlib.pyplot as plt

from netmargin.datasets import clusters
from netmargin.solvers import f1_max_margin, f2_max_margin

SAMPLES = (64, 128, 256, 512, 1024, 2048)
"""From where a proof takes a moment to where it takes more than the minute that each run has."""
DIMENSIONS = (2, 4, 8, 16, 32, 64)
"""From the plane, where the whole arrangement is visited, to where only search is affordable."""
FOLDER = Path("runs/benchmarks")


def main() -> None:
    """Solve cluster data to tol 1e-3, at most about 60 s each, and print time, gaps and proof."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, cases in (
        ("n at d = 2", [(n, 2) for n in SAMPLES]),
        ("n at d = 15", [(n, 15) for n in SAMPLES]),
        ("d at n = 256", [(256, d) for d in DIMENSIONS]),
    ):
        for n, d in cases:
            X, y = (part.numpy() for part in clusters(n, d))
            solution = f1_max_margin(X, y, tol=1e-3, time_limit=60)
            started = time.perf_counter()
            f2_max_margin(X, y)
            kernel_seconds = time.perf_counter() - started
            rows.append(
                (
                    name,
                    n,
                    d,
                    solution.seconds,
                    solution.certified,
                    solution.gap,
                    solution.local_gap,
                    kernel_seconds,
                )
            )
            print(
                f"{name}: n {n:4}, d {d:2}: {solution.seconds:6.2f} s, local gap"
                f" {solution.local_gap:.1e}, gap"
                f" {solution.gap:.1e}{' proved' if solution.certified else ''}; F2"
                f" {kernel_seconds:.2f} s",
                flush=True,
            )
    with open(FOLDER / "cost_growth.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ("series", "n", "d", "seconds", "certified", "gap", "local_gap", "f2_seconds")
        )
        writer.writerows(rows)
    draw(rows)


def draw(rows: list[tuple]) -> None:
    """Draw seconds over n and over d, log-log; filled points are certified."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axes, names, column, label in (
        (left, ("n at d = 2", "n at d = 15"), 1, "samples n"),
        (right, ("d at n = 256",), 2, "dimension d"),
    ):
        for name in names:
            series = [row for row in rows if row[0] == name]
            sizes, seconds = [row[column] for row in series], [row[3] for row in series]
            (line,) = axes.plot(sizes, seconds, label=f"variation norm, {name}")
            for row in series:
                face = line.get_color() if row[4] else "white"
                axes.plot(row[column], row[3], "o", color=line.get_color(), markerfacecolor=face)
            axes.plot(
                sizes, [row[7] for row in series], ":", color=line.get_color(), label="F2 kernel"
            )
        axes.set(xscale="log", yscale="log", xlabel=label)
        axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    left.set_ylabel("seconds (2 cores)")
    figure.suptitle(
        "Cluster data, relative gap 1e-3; filled: proved optimal, open: local optimum or 60 s",
        fontsize=10,
    )
    figure.savefig(FOLDER / "cost_growth.png", dpi=120)
