"""Regularized nets against tangent kernels on the hypercube data of Wei et al. (2019), (2.5).

Nets need about d samples, kernels about d^2 (Theorem 2.1 there). Writes sample_size.csv and
sample_size.png; three minutes on two cores for d = 20:

    python -m examples.hypercube --out runs/hypercube
"""

import argparse
import csv
from pathlib import Path

import numpy as np

import netmargin as nm
from netmargin.figures.style import BOTH, OUTPUT
from netmargin.papers.wei_2018._separation import SCALES, separation

ERRORS = ["net_error", "net_standard_error", "kernel_error", "kernel_standard_error"]
COLUMNS = ["n", *ERRORS, "r_w", "r_u"]
"""Of sample_size.csv; r_w and r_u are the scales of the best kernel."""
FACTORS = (2, 3, 4, 6, 8, 10, 12, 16)
"""Samples in units of d: nets need a few d, and for d = 20 kernels need d^2 = 20 d."""


def errors(n: int, d: int, *, seed: int, tested: int = 4000) -> tuple[float, list[float]]:
    """Test errors of the regularized net, and of the tangent kernel predictor at each of SCALES."""
    train = nm.datasets.hypercube(n, d, seed=seed)
    test = nm.datasets.hypercube(tested, d, seed=10_000 + seed)
    return separation(train, test, seed=seed)


def main() -> None:
    """Run the study over n, and print a line for each n."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--d", type=int, default=20)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/hypercube"))
    options = parser.parse_args()
    d, rows = options.d, []
    for n in (int(d * factor) for factor in FACTORS):
        found = [errors(n, d, seed=seed) for seed in range(options.trials)]
        net, kernels = np.array([f[0] for f in found]), np.array([f[1] for f in found])
        # The scale that is best in the mean: more than who does not know it can have.
        best = kernels.mean(0).argmin()
        spread = [
            float(v.std(ddof=1) / np.sqrt(len(v))) if len(v) > 1 else 0.0
            for v in (net, kernels[:, best])
        ]
        rows.append((n, net.mean(), spread[0], kernels[:, best].mean(), spread[1], SCALES[best]))
        print(
            f"n {n:4}: net {net.mean():.4f} +- {spread[0]:.4f}, best kernel {rows[-1][3]:.4f} +-"
            f" {spread[1]:.4f} at {SCALES[best]}",
            flush=True,
        )
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "sample_size.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows([*row[:5], *row[5]] for row in rows)
    _draw(rows, d, options.out / "sample_size.png")
    print(f"Written: {options.out}/ (sample_size.csv, sample_size.png)")


def _draw(rows: list[tuple], d: int, path: Path) -> None:
    """Draw both test errors over n, with bars of two standard errors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axis = figure.subplots()
    n = [row[0] for row in rows]
    for column, label, colour in (
        (1, "regularized net", BOTH),
        (3, "best tangent kernel", OUTPUT),
    ):
        axis.errorbar(
            n,
            [row[column] for row in rows],
            [2 * row[column + 1] for row in rows],
            color=colour,
            marker="o",
            markersize=3,
            capsize=2,
            label=label,
        )
    axis.axhline(0.5, color="0.6", linestyle=":", label="guessing")
    axis.set(
        xlabel=f"samples n (d = {d}, d$^2$ = {d * d})",
        ylabel="test error (mean, 2 standard errors)",
        ylim=(-0.02, 0.55),
    )
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, loc="center", bbox_to_anchor=(0.42, 0.33))
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
