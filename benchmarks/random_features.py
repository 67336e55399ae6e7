"""What random features of the ReLU kernel lose against the kernel itself, and what they save.

    python -m benchmarks random_features

The same objective (C = 1, hinge loss, one against the rest, no intercept) on digits and on 5,000
samples in 20 dimensions with 5 classes; three seeds of the directions, one split in half.
"""

import time

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from netmargin.estimators import ReLUKernelClassifier
from netmargin.kernels import random_features

COUNTS = (100, 300, 1000, 3000)
SEEDS = (0, 1, 2)


def main() -> None:
    """Print accuracies and CPU seconds of a fit."""
    ReLUKernelClassifier().fit([[0.0], [1.0]], [0, 1])  # compiles
    for name, parts in split_sets().items():
        score, seconds = measure(ReLUKernelClassifier(), parts)
        print(f"{name}: kernel {100 * score:.1f}% in {seconds:.2f} s", flush=True)
        for count in COUNTS:
            found = [measure(make_linear(count, seed), parts) for seed in SEEDS]
            scores, times = np.array(found).T
            print(
                f"  {count:,} features: {100 * scores.mean():.1f}% ({100 * scores.min():.1f} to"
                f" {100 * scores.max():.1f}) in {np.median(times):.2f} s",
                flush=True,
            )


def split_sets() -> dict[str, list[np.ndarray]]:
    """The data, each split in half: training and test samples, training and test labels."""
    made = make_classification(5000, 20, n_informative=10, n_classes=5, flip_y=0.01, random_state=0)
    sets = {"digits": load_digits(return_X_y=True), "5,000 x 20, 5 classes": made}
    return {
        name: train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
        for name, (X, y) in sets.items()
    }


def make_linear(count: int, seed: int) -> BaseEstimator:
    """The random features, and a linear classifier on them."""
    features = FunctionTransformer(random_features, kw_args={"count": count, "seed": seed})
    linear = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-3, random_state=0, max_iter=10_000)
    return make_pipeline(features, linear)


def measure(estimator: BaseEstimator, parts: list[np.ndarray]) -> tuple[float, float]:
    """Accuracy on the second half, and CPU seconds of a fit on the first."""
    train, test, labels, truth = parts
    model = make_pipeline(StandardScaler(), estimator)
    began = time.process_time()
    model.fit(train, labels)
    return model.score(test, truth), time.process_time() - began
