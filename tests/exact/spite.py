"""The generator of spite: half plain data, half what float64 finds hardest."""

import numpy as np

LARGEST = 1e300


def labels(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Labels of a linear teacher, most often; random ones, or of one class, else."""
    kind = rng.choice(["linear", "affine", "random", "one"], p=[0.5, 0.2, 0.25, 0.05])
    if kind == "one":
        return np.full(len(X), rng.choice([-1.0, 1.0]))
    if kind == "random":
        return rng.choice([-1.0, 1.0], len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = X / (np.abs(X).max(0) + 1e-300)
        values = scaled @ rng.normal(size=X.shape[1]) + (kind == "affine") * rng.normal()
    return np.where(values > 0, 1.0, -1.0)


def inputs(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Plain inputs (n, d) in half of all cases, and otherwise spoiled in one to three ways."""
    X = rng.normal(size=(n, d)) + rng.choice([0.0, 1.0]) * rng.normal(size=d)
    if rng.random() < 0.5:
        return X
    with np.errstate(all="ignore"):
        for spoil in rng.choice(SPOILS, size=rng.integers(1, 4)):
            X = np.clip(np.nan_to_num(spoil(rng, X)), -LARGEST, LARGEST)
    return X


def samples(
    rng: np.random.Generator, most: int, dimensions: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of 1 to `most` samples; pairs nearly equal in input may differ in label."""
    n = 1 if rng.random() < 0.05 else int(rng.integers(2, most + 1))
    X = inputs(rng, n, int(rng.choice(dimensions)))
    y = labels(rng, X)
    if n > 1 and rng.random() < 0.08:  # opposite labels, nearly equal
        i, j = rng.choice(n, 2, replace=False)
        X[j], y[j] = ulps_beside(rng, X[i]), -y[i]
    return X, y


def ulps_beside(rng: np.random.Generator, row: np.ndarray) -> np.ndarray:
    """A row 0 to 1e6 units in the last place beside this one, in some coordinates."""
    steps = np.round(10 ** rng.uniform(0, 6, row.shape)) * rng.integers(-1, 2, row.shape)
    return row + steps * np.spacing(row)


def _powers(rng, size, shape) -> np.ndarray:
    """Factors 10^u, of all sizes up to `size`, on all or on one of them."""
    factors = 10 ** rng.uniform(-size, size, shape)
    if rng.random() < 0.5:
        factors = np.where(rng.permutation(factors.size).reshape(shape) == 0, factors, 1.0)
    return factors


def scale_samples(rng, X):
    return X * _powers(rng, rng.choice([2, 5, 9, 20, 100, 290]), (len(X), 1))


def scale_features(rng, X):
    return X * _powers(rng, rng.choice([2, 5, 9, 20, 100, 290]), (1, X.shape[1]))


def scale_all(rng, X):
    return X * 10 ** rng.uniform(-300, 300) / max(np.abs(X).max(), 1e-300)


def offset(rng, X):
    return X + 10 ** rng.uniform(0, 12) * rng.normal(size=(1, X.shape[1]))


def whole_numbers(rng, X):
    return rng.integers(-3, 4, X.shape).astype(float)


def tie(rng, X):
    X = X.copy()
    X[rng.integers(len(X))] = X[rng.integers(len(X))] * rng.choice([1.0, 1.0, 2.0, -1.0])
    return X


def nearly_tie(rng, X):
    X = X.copy()
    X[rng.integers(len(X))] = ulps_beside(rng, X[rng.integers(len(X))])
    return X


def zero(rng, X):
    X = X.copy()
    if rng.random() < 0.5:
        X[rng.integers(len(X))] = 0.0
    else:
        X[rng.random(X.shape) < 0.3] = 0.0
    return X


def cancel(rng, X):
    """The last sample is the negative sum of others, to the last digits."""
    X = X.copy()
    X[-1] = -X[:-1].sum(0) if len(X) > 1 else X[-1]
    return X


def nearly_flat(rng, X):
    """All samples close to a line through a common point."""
    return X[:1] + (X - X[:1]) * 10 ** rng.uniform(-14, -2)


SPOILS = [
    scale_samples,
    scale_features,
    scale_all,
    offset,
    whole_numbers,
    tie,
    nearly_tie,
    zero,
    cancel,
    nearly_flat,
]


def weights(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A layer (rows, columns), biases last: plain, or with units that are odd, or that cancel."""
    W = rng.normal(size=(rows, columns)) * (columns - 1) ** -0.5
    if rng.random() < 0.5:
        return W
    with np.errstate(all="ignore"):
        for spoil in rng.choice(LAYER_SPOILS, size=rng.integers(1, 3)):
            W = np.clip(np.nan_to_num(spoil(rng, W)), -1e100, 1e100)
    return W


def scale_units(rng, W):
    return W * _powers(rng, rng.choice([2, 5, 9, 20]), (len(W), 1))


def scale_columns(rng, W):
    return W * _powers(rng, rng.choice([2, 5, 9, 20]), (1, W.shape[1]))


def kill(rng, W):
    W = W.copy()
    row = rng.integers(len(W))
    W[row] = -np.abs(W[row]) if rng.random() < 0.5 else 0.0
    return W


def cancel_columns(rng, W):
    """Huge weights whose sum is 0 but for the last digits, and a bias of 1."""
    W = W.copy()
    W[:, :-1] *= 10 ** rng.uniform(0, 17)
    W[:, -2] = -W[:, :-2].sum(1)
    W[:, -1] = rng.choice([1.0, 0.0])
    return W


LAYER_SPOILS = [scale_units, scale_columns, kill, cancel_columns, whole_numbers, tie, nearly_tie]
