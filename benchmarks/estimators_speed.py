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
CALL = "from benchmarks.estimators_speed import measure; measure({peer})"


def main() -> None:
    """Measure in two processes, and print the table."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    blocked = "import sys; sys.modules['numba'] = None; "
    rows = []
    for start, peer in (("", True), (blocked, False)):
        command = [sys.executable, "-c", start + CALL.format(peer=peer)]
        found = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        rows.append({tuple(key): times for key, times in json.loads(found.stdout)})
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


def measure(peer: bool) -> None:
    """Print the median seconds of each fit, and beside it those of SVC and the median ratio of
    neighbours where `peer` is set.
    """
    warnings.simplefilter("ignore")
    for C in (1.0, None):  # compiles, or loads what is compiled
        NTKClassifier(C=C).fit(np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 3)
    rows = []
    for name, load in SETS.items():
        X, y = load()
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
