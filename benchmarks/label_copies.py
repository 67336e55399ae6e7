"""Wrong labels found where samples have copies: `nm.label_errors` against rows without any.

10% of the labels are flipped; then rows are copied with their labels, wrong ones too. For each kind
of copies the share of wrong labels among as many worst ones is printed, and the estimated count
over the true one. Words on the command line name the sets: digits MNIST embeddings cancer wine;
embeddings are those of MNIST by a small net that was trained on other images.
"""

import sys
from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_wine

import netmargin as nm

from .label_errors import flip_labels, load_set, make_net, train_net

SEEDS = {"digits": 3, "MNIST": 1, "embeddings": 3, "cancer": 5, "wine": 5}
"""Flips drawn of each set, fewer where they take longer."""


def embed_images(seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """The last hidden layer of a net that learned 5,000 other images, for 1,500 of MNIST."""
    images, labels = load_set("other MNIST 5,000", 100)
    net = make_net(images, 10, 0)
    train_net(net, images, labels, 7)
    X, y = load_set("MNIST 1,500", seed)
    with torch.no_grad():
        return net[:-1](X), y


def load(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples, float64, and right labels."""
    if name == "wine":
        found = load_wine()
        return found.data, found.target
    whole = name.replace("MNIST", "MNIST 1,500")
    X, y = embed_images(seed) if name == "embeddings" else load_set(whole, seed)
    return X.double().numpy(), y


def list_kinds(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> dict[str, tuple]:
    """For each kind of copies, which samples are copied, and how copies differ; None for whole
    sets that are drawn anew.
    """
    n = len(y)
    every, half = np.arange(n), rng.choice(n, n // 2, replace=False)
    rare = every[y == np.bincount(y).argmin()]
    reach = X.max(axis=0) - X.min(axis=0) if X.ndim == 2 else X.max() - X.min()

    def add_noise(size: float) -> Callable[[np.ndarray], np.ndarray]:
        return lambda copies: copies + size * reach * rng.normal(size=copies.shape)

    same = np.copy
    kinds = {
        "unique": (every[:0], same),
        "twice": (every, same),
        "half twins": (half, same),
        "5% twins": (half[: n // 20], same),
        "triples": (np.tile(every, 2), same),
        "bootstrap": (rng.integers(n, size=n), None),
        "half, noise .02": (half, add_noise(0.02)),
        "half, noise .05": (half, add_noise(0.05)),
        "rarest class four times": (np.tile(rare, 3), same),
    }
    if X.ndim == 4:
        kinds["half mirrored"] = half, lambda copies: copies[..., ::-1]
        kinds["half shifted"] = half, lambda copies: np.roll(copies, 1, axis=-1)
    return kinds


def measure(name: str, seed: int) -> dict[str, tuple[float, float]]:
    """The share of wrong labels found, and the count over the truth, for each kind."""
    X, right = load(name, seed)
    y, wrong = flip_labels(torch.from_numpy(X), right, "symmetric", 0.1, seed)
    found = {}
    for kind, (copied, change) in list_kinds(X, y, np.random.default_rng(seed)).items():
        rows = copied if change is None else np.concatenate([np.arange(len(y)), copied])
        samples = X[rows] if change is None else np.concatenate([X, change(X[copied])])
        answer = nm.label_errors((samples, y[rows]), seed=seed)
        bad = wrong[rows]
        worst = answer.order[: bad.sum()].numpy()
        found[kind] = bad[worst].mean(), answer.count / bad.sum()
    return found


def main() -> None:
    """Print a line for each set and kind: shares found and counts, means over the seeds."""
    torch.set_num_threads(1)
    for name in [word for word in sys.argv[1:] if word in SEEDS] or SEEDS:
        rows = [measure(name, seed) for seed in range(SEEDS[name])]
        for kind in rows[0]:
            share, count = np.mean([row[kind] for row in rows], axis=0)
            print(f"{name:12} {kind:20} found {share:.3f}  count {count:.2f}", flush=True)


if __name__ == "__main__":
    main()
