"""How far the proved bound of the largest two-layer margin is from the margin that is attained.

The data are clusters of Chizat and Bach (2020), Section 7: 256 points, `nm.datasets.clusters`. Time
limits are in seconds of CPU of one core, search included, so that other programs do not matter.
Each row is written to runs/brackets/ as soon as it is there, and the same call goes on from there.
"""

import time
import warnings
from pathlib import Path

import numpy as np
import torch

from netmargin.datasets import clusters
from netmargin.solvers import f1_max_margin

from .clock import clock_of_process
from .rows import add_row, read_rows

ROWS = Path("runs/brackets/rows.jsonl")
RUNS = [
    *((15, seed, limit) for limit in (10.0, 60.0) for seed in range(10)),
    *((d, 1, limit) for d in (8, 30) for limit in (10.0, 60.0)),
    *((15, seed, 600.0) for seed in range(10)),
]
"""Dimension, seed and time limit, in the order of their cost."""
AIMS = {10.0: 1.8, 60.0: 1.25, 600.0: 1.12}
"""The mean ratio over the seeds in 15 dimensions that is aimed at, by time limit."""


def main() -> None:
    """Bracket every data set that has no row yet, and print the ratios."""
    measure_missing(RUNS)
    for limit, aim in AIMS.items():
        rows = [row for row in read_rows(ROWS) if (row["d"], row["limit"]) == (15, limit)]
        ratios = [row["bound"] / row["margin"] for row in rows]
        if ratios:
            print(
                f"d 15, {limit:g} s: mean {np.mean(ratios):.3f} over {len(ratios)} seeds, worst"
                f" {max(ratios):.3f} (aim {aim})"
            )


def measure_missing(runs: list[tuple[int, int, float]]) -> None:
    """Print these rows; add those that the file lacks."""
    torch.set_num_threads(1)
    rows = read_rows(ROWS)
    for d, seed, limit in runs:
        key = {"d": d, "seed": seed, "limit": limit}
        if not any(key.items() <= row.items() for row in rows):
            rows.append(key | bracket(d, seed, limit))
            add_row(ROWS, rows[-1])
        row = next(row for row in rows if key.items() <= row.items())
        print(
            f"d {d}, seed {seed}, {limit:g} s: {row['bound'] / row['margin']:.3f} (margin"
            f" {row['margin']:.6f}; {row['from']}; {row['seconds']:.1f} s)",
            flush=True,
        )


def bracket(d: int, seed: int, limit: float) -> dict:
    """The bracket of one data set: margin, bound, where it is from, seconds of CPU."""
    X, y = (part.numpy() for part in clusters(256, d, k=3, seed=seed))
    start = time.process_time()
    with warnings.catch_warnings(), clock_of_process():
        warnings.simplefilter("ignore")
        found = f1_max_margin(X, y, time_limit=limit)
    return {
        "margin": found.margin,
        "bound": found.upper_bound,
        "from": found.upper_bound_from,
        "local_gap": found.local_gap,
        "seconds": time.process_time() - start,
    }
