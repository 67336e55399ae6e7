"""CPU seconds of a fit of the kernel estimators with and without numba, beside SVC's.

    python -m benchmarks estimators_speed

prints the table of docs/estimators.md. One process with numba takes turns with SVC, kernel matrix
included, and one in which numba cannot be imported follows; medians on one thread.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from netmargin.estimators import NTKClassifier

from .estimators import CLASSIFICATION, Pair, made

SETS: dict[str, Callable[[], Pair]] = {
    name: CLASSIFICATION[name]
    for name in ("breast cancer", "moons", "digits", "5,000 x 20, 5 classes")
} | {"5,000 x 20, 2 classes, 10% mistakes": made(2, 0.1, 20, 5000)}
COSTS = (1.0, 100.0, None)
HARD = 1e10
"""What stands for a hard margin in SVC, which has none."""
SECONDS = 5.0
"""Fits of a model are repeated for so long, three times at least and fifty at most."""
CALL = "from benchmarks.estimators_speed import measure; measure({names!r}, peer={peer})"


def main() -> None:
    """Measure in two processes, and print the table."""
    rows = [measure_apart(tuple(SETS), numba=on) for on in (True, False)]
    print(
        "| data | C | `NTKClassifier` | without numba | `SVC` | ratio |\n|---|---|---|---|---|---|"
    )
    for name, load in SETS.items():
        X, _ = load()
        cells = [[], [], [], []]
        for C in COSTS:
            (ours, theirs, ratio), (plain, _, _) = (some[name, C] for some in rows)
            for cell, value in zip(cells, (ours, plain, theirs, ratio), strict=True):
                cell.append(f"{value:.2g}")
        columns = " | ".join(" / ".join(cell) for cell in cells)
        print(f"| {name}, {len(X):,} x {X.shape[1]} | 1 / 100 / hard | {columns} |")


@cache
def measure_apart(
    names: tuple[str, ...], *, numba: bool
) -> dict[tuple[str, float | None], tuple[float, float, float]]:
    """`measure` in a process of its own, with SVC beside it, or without numba and alone."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = "" if numba else "import sys; sys.modules['numba'] = None; "
    command = [sys.executable, "-c", start + CALL.format(names=names, peer=numba)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return {tuple(key): tuple(times) for key, times in json.loads(found.stdout)}


def measure(names: tuple[str, ...], *, peer: bool) -> None:
    """Print the median seconds of each fit of these sets; where `peer` is set, beside those of SVC
    and the median ratio of neighbours.
    """
    warnings.simplefilter("ignore")
    for C in (1.0, None):  # compiles, or loads what is compiled
        NTKClassifier(C=C).fit(np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 3)
    rows = []
    for name in names:
        X, y = SETS[name]()
        X = StandardScaler().fit_transform(X)
        for C in COSTS:
            times: list[tuple[float, float]] = []
            while len(times) < 3 or (len(times) < 50 and np.sum(times) < SECONDS):
                ours = _fit(NTKClassifier(C=C), X, y)
                theirs = _fit(SVC(C=C or HARD), X, y) if peer else 0.0
                times.append((ours, theirs))
            ours, theirs = np.median(times, axis=0)
            ratio = float(np.median([a / b for a, b in times])) if peer else 0.0
            rows.append([(name, C), (ours, theirs, ratio)])
    print(json.dumps(rows))


def _fit(estimator: BaseEstimator, X: np.ndarray, y: np.ndarray) -> float:
    """CPU seconds of one fit."""
    began = time.process_time()
    estimator.fit(X, y)
    return time.process_time() - began
