"""A net trained again without the labels that `nm.label_errors` flags: its error on test samples.

10% of the training labels are flipped to random other classes; test labels are as published. The
net is trained as flipped, without the flagged samples, with the suggested labels in their place,
and, to see what could be had, on the right labels. Means over five seeds, with their standard
errors.
"""

import numpy as np
import torch
from sklearn.model_selection import train_test_split

import netmargin as nm

from .label_errors import flip_labels, load_set, make_net, predict, train_net

SEEDS = range(5)
EPOCHS = 30
"""So long that a net learns most wrong labels by heart, as it does where nobody looks."""


def split(name: str, seed: int) -> tuple[torch.Tensor, np.ndarray, torch.Tensor, np.ndarray]:
    """Training and test samples with right labels."""
    X, y = load_set(name, seed)
    if name == "digits":
        fit, held = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed)
        return X[torch.from_numpy(fit)], y[fit], X[torch.from_numpy(held)], y[held]
    return X, y, *load_set("other MNIST 5,000", seed)


def test_error(X: torch.Tensor, y: np.ndarray, held: tuple, seed: int) -> float:
    """The share of test samples that a net trained on these labels has wrong, in percent."""
    net = make_net(X, 10, seed)
    train_net(net, X, y, EPOCHS)
    return 100 * (predict(net, held[0]).argmax(1) != held[1]).mean()


def measure(name: str, seed: int) -> dict[str, float]:
    """The test errors of a seed, in percent, and the share of flips that was flagged."""
    X, right, *held = split(name, seed)
    y, wrong = flip_labels(X, right, "symmetric", 0.1, seed)
    found = nm.label_errors((X, y), seed=seed)
    flagged = np.zeros(len(y), dtype=bool)
    flagged[found.flagged.numpy()] = True
    kept = torch.from_numpy(~flagged)
    mended = np.where(flagged, found.suggested.numpy(), y)
    return {
        "as flipped": test_error(X, y, held, seed),
        "without the flagged": test_error(X[kept], y[~flagged], held, seed),
        "suggested in their place": test_error(X, mended, held, seed),
        "right labels": test_error(X, right, held, seed),
        "flips flagged, %": 100 * flagged[wrong].mean(),
        "right labels flagged, %": 100 * flagged[~wrong].mean(),
    }


def main() -> None:
    """Print a table for each set."""
    torch.set_num_threads(1)
    for name in ("digits", "MNIST 1,000"):
        rows = [measure(name, seed) for seed in SEEDS]
        print(f"\n{name}: test error in percent, {len(rows)} seeds")
        for key in rows[0]:
            values = np.array([row[key] for row in rows])
            error = values.std(ddof=1) / len(values) ** 0.5
            print(f"{key:26} {values.mean():6.2f} +- {error:.2f}", flush=True)
