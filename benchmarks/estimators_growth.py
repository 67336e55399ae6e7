"""CPU seconds and memory of the kernel estimators up to 20,000 samples, beside SVC.

    python -m benchmarks estimators_growth

Each fit is a process of its own, whose peak is told beside what it takes before the fit. Adds the
rows that runs/benchmarks/estimators_growth.jsonl lacks, and draws estimators_growth.png beside it.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from netmargin.estimators import NTKClassifier

from .rows import add_row, read_rows

FOLDER = Path("runs/benchmarks")
ROWS = FOLDER / "estimators_growth.jsonl"
SAMPLES = (1250, 2500, 5000, 10_000, 20_000)
"""Doubled from a second to minutes; above 14,000 the kernel is kept in float32."""
COSTS = (1.0, 100.0)
MODELS = {"NTK": NTKClassifier, "SVC": SVC}


def main() -> None:
    """Measure what is missing, and draw."""
    measure_missing(SAMPLES)
    draw(read_rows(ROWS))


def measure_missing(samples: tuple[int, ...]) -> None:
    """Add the rows with these numbers of samples that the file lacks."""
    rows = read_rows(ROWS)
    for n in samples:
        for C in COSTS:
            for model in MODELS:
                if any((r["n"], r["C"], r["model"]) == (n, C, model) for r in rows):
                    continue
                call = (
                    f"from benchmarks.estimators_growth import measure; measure({n},{C},{model!r})"
                )
                command = [sys.executable, "-c", call]
                run = subprocess.run(command, check=True, capture_output=True, text=True)
                add_row(ROWS, json.loads(run.stdout))
                print(run.stdout, end="", flush=True)


def measure(n: int, C: float, model: str) -> None:
    """Print a row: one fit of n samples in 20 dimensions, two classes, 5% mistakes."""
    X, y = make_classification(n, 20, n_informative=10, flip_y=0.05, random_state=0)
    X = StandardScaler().fit_transform(X)
    MODELS[model](C=C).fit(X[:50], y[:50])  # loads the compiled steps
    before, began = read_peak(), time.process_time()
    fitted = MODELS[model](C=C).fit(X, y)
    seconds = time.process_time() - began
    row = {"n": n, "C": C, "model": model, "seconds": seconds, "before": before}
    row |= {"peak": read_peak(), "gap": float(getattr(fitted, "gap_", 0.0))}
    row |= {"support": len(fitted.support_)}
    print(json.dumps(row))


def read_peak() -> float:
    """The most memory that this process ever held, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def draw(rows: list[dict]) -> None:
    """Draw seconds and memory over the number of samples, log-log."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for model, color in (("NTK", "C0"), ("SVC", "C1")):
        for C, line in zip(COSTS, ("o-", "s--"), strict=True):
            series = sorted(
                (r["n"], r["seconds"], r["peak"])
                for r in rows
                if (r["model"], r["C"]) == (model, C)
            )
            label = f"{'NTKClassifier' if model == 'NTK' else 'SVC'}, C={C:g}"
            n, *values = zip(*series, strict=True)
            for axes, column in zip((left, right), values, strict=True):
                axes.plot(n, column, line, color=color, label=label)
    for axes, what in ((left, "CPU seconds of a fit, one thread"), (right, "peak memory, GB")):
        axes.set(xscale="log", yscale="log", xlabel="samples n", ylabel=what)
        axes.set_xticks(SAMPLES, [f"{n:,}" for n in SAMPLES])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    right.set_yticks([0.5, 1, 2, 3], ["0.5", "1", "2", "3"])
    left.legend(fontsize=8)
    figure.savefig(FOLDER / "estimators_growth.png", dpi=120)
