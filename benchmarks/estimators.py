"""The estimators beside those of scikit-learn: accuracy or R^2 and CPU seconds over 20 data sets of
classes and 5 of regression, all of which ship with scikit-learn or are generated.

    python -m benchmarks estimators

adds the rows that runs/benchmarks/estimators.jsonl lacks, one JSON line each, and prints the tables
of docs/estimators.md. One thread is asked for; five folds, features and targets scaled to unit
variance on the training folds, default parameters unless a column says otherwise.
"""

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from netmargin.datasets import clusters, hypercube
from netmargin.estimators import (
    NTKClassifier,
    ReLUKernelClassifier,
    VariationNormClassifier,
    VariationNormRegressor,
)
from netmargin.kernels import NTK

from .clock import clock_of_process
from .rows import add_row, read_rows

ROWS = Path("runs/benchmarks/estimators.jsonl")
FOLDS = 5
Pair = tuple[np.ndarray, np.ndarray]


def made(classes: int, flipped: float, features: int, samples: int) -> Callable[[], Pair]:
    """Gaussian clusters at the corners of a cube, half of the features informative."""
    return lambda: datasets.make_classification(
        samples,
        features,
        n_informative=features // 2,
        n_classes=classes,
        flip_y=flipped,
        random_state=0,
    )


def digits_of(*labels: int) -> Pair:
    """The handwritten digits with these labels."""
    X, y = datasets.load_digits(return_X_y=True)
    kept = np.isin(y, labels)
    return X[kept], y[kept]


def diabetes_above_median() -> Pair:
    """Whether diabetes progresses faster than in half of the patients."""
    X, y = datasets.load_diabetes(return_X_y=True)
    return X, (y > np.median(y)).astype(int)


def alcohol_of_wine() -> Pair:
    """The alcohol of wines from their other twelve measurements."""
    X = datasets.load_wine().data
    return X[:, 1:], X[:, 0]


def numbers(pair) -> Pair:
    """Tensors as arrays."""
    X, y = pair
    return X.numpy(), y.numpy()


CLASSIFICATION: dict[str, Callable[[], Pair]] = {
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "moons": lambda: datasets.make_moons(400, noise=0.2, random_state=0),
    "5,000 x 20, 5 classes": made(5, 0.01, 20, 5000),
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "digits 3 and 8": lambda: digits_of(3, 8),
    "diabetes above median": diabetes_above_median,
    "circles": lambda: datasets.make_circles(400, noise=0.1, factor=0.6, random_state=0),
    "spheres in 10 d": lambda: datasets.make_gaussian_quantiles(
        n_samples=1000, n_features=10, n_classes=3, random_state=0
    ),
    "sum of squares above median": lambda: datasets.make_hastie_10_2(1000, random_state=0),
    "blobs": lambda: datasets.make_blobs(600, 10, centers=6, cluster_std=4.0, random_state=0),
    "moons, noisy": lambda: datasets.make_moons(1000, noise=0.35, random_state=1),
    "800 x 10, few mistakes": made(2, 0.01, 10, 800),
    "800 x 10, 10% mistakes": made(2, 0.1, 10, 800),
    "200 x 100": made(2, 0.0, 100, 200),
    "1,000 x 50, 3 classes": made(3, 0.02, 50, 1000),
    "clusters in 15 d": lambda: numbers(clusters(400, 15)),
    "product of signs, 20 d": lambda: numbers(hypercube(400, 20)),
    "2,000 x 20, 2 classes": made(2, 0.05, 20, 2000),
}
CLASSIFIERS: dict[str, BaseEstimator] = {
    "NTK": NTKClassifier(),
    "NTK C=100": NTKClassifier(C=100.0),
    "NTK hard": NTKClassifier(C=None),
    "ReLU kernel": ReLUKernelClassifier(),
    "variation norm": VariationNormClassifier(),
    "SVC": SVC(),
    "SVC C=100": SVC(C=100.0),
    "logistic": LogisticRegression(),
    "MLP": MLPClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}

REGRESSION: dict[str, Callable[[], Pair]] = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "Friedman 1": lambda: datasets.make_friedman1(500, noise=1.0, random_state=0),
    "Friedman 2": lambda: datasets.make_friedman2(500, noise=125.0, random_state=0),
    "Friedman 3": lambda: datasets.make_friedman3(500, noise=0.1, random_state=0),
    "alcohol of wine": alcohol_of_wine,
}
REGRESSORS: dict[str, BaseEstimator] = {
    "variation norm": VariationNormRegressor(),
    "ridge, NTK": KernelRidge(kernel=NTK(depth=3)),
    "SVR, NTK": SVR(kernel=NTK(depth=3)),
    "GP, NTK": GaussianProcessRegressor(kernel=NTK(depth=3)),
    "SVR": SVR(),
    "ridge, rbf": KernelRidge(kernel="rbf"),
    "MLP": MLPRegressor(random_state=0),
    "random forest": RandomForestRegressor(random_state=0),
    "linear": Ridge(),
}
TABLES = {
    "classification": (CLASSIFICATION, CLASSIFIERS),
    "regression": (REGRESSION, REGRESSORS),
}


def main() -> None:
    """Measure what is missing, and print the tables."""
    measure_missing([*CLASSIFIERS, *REGRESSORS])
    for key, show in (("score", lambda v: f"{100 * v:.1f}"), ("fit", lambda v: f"{v:.3f}")):
        for sets, models in TABLES.values():
            print_table(key, show, sets, models)


def measure_missing(chosen: list[str]) -> None:
    """Add the rows of these models that the file lacks."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    done = {(row["data"], row["model"]) for row in read_rows(ROWS)}
    NTKClassifier().fit([[0.0], [1.0]], [0, 1])  # compiles
    NTKClassifier(C=None).fit([[0.0], [1.0]], [0, 1])
    for sets, models in TABLES.values():
        for data, load in sets.items():
            X, y = load()
            for model, estimator in models.items():
                if model in chosen and (data, model) not in done:
                    row = {"data": data, "model": model, "n": len(X)}
                    add_row(ROWS, row | measure(estimator, X, y))


def measure(estimator: BaseEstimator, X: np.ndarray, y: np.ndarray) -> dict:
    """Mean accuracy or R^2, and CPU seconds of a fit and of predicting the held-out fold; for our
    own the largest gap, and the folds that ended before their tolerance.
    """
    scores, fits, predictions, gaps, ended = [], [], [], [], 0
    folds = StratifiedKFold if is_classifier(estimator) else KFold
    for train, test in folds(FOLDS, shuffle=True, random_state=0).split(X, y):
        model = make_pipeline(StandardScaler(), clone(estimator))
        if not is_classifier(estimator):
            model = TransformedTargetRegressor(model, transformer=StandardScaler())
        with warnings.catch_warnings(record=True) as caught, clock_of_process():
            warnings.simplefilter("always")
            began = time.process_time()
            model.fit(X[train], y[train])
            fits.append(time.process_time() - began)
        ended += any(issubclass(w.category, ConvergenceWarning) for w in caught)
        began = time.process_time()
        score = model.score(X[test], y[test])
        predictions.append(time.process_time() - began)
        scores.append(float(score))
        last = getattr(model, "regressor_", model)[-1]
        gap = getattr(last, "local_gap_", getattr(last, "gap_", 0.0))
        gaps.append(float(np.max(gap)))
    return {
        "score": float(np.mean(scores)),
        "spread": float(np.std(scores)),
        "fit": float(np.median(fits)),
        "predict": float(np.median(predictions)),
        "gap": max(gaps),
        "ended": ended,
    }


def print_table(
    key: str, show: Callable[[float], str], sets: dict[str, Callable], models: dict
) -> None:
    """Print a table of one number, in Markdown: a row for each data set."""
    rows = {(row["data"], row["model"]): row for row in read_rows(ROWS)}
    print(f"\n| {key} | " + " | ".join(models) + " |\n|---|" + "---|" * len(models))
    for data in sets:
        cells = [show(rows[data, model][key]) if (data, model) in rows else "" for model in models]
        print(f"| {data} | " + " | ".join(cells) + " |")
