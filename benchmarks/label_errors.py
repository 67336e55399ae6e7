"""Wrong labels found: `nm.label_errors` against cleanlab, margins over epochs, and chance.

Labels are flipped, and methods rank samples; all training counts in their time (CPU seconds, one
thread). cleanlab is given out-of-sample probabilities of a small net by 5-fold cross-validation, at
the number of epochs and with the score that found most on other images. `pip install cleanlab` for
its rows. Rows are kept in runs/label_errors.jsonl, and a second call goes on from there.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from torch import nn

import netmargin as nm
from netmargin.label_errors.calibration import score_labels
from netmargin.label_errors.groups import number_equal_rows
from netmargin.label_errors.predicting import predict_left_out
from netmargin.nets.arrays import Arrays

from .rows import add_row, read_rows

ROWS = Path("runs/label_errors.jsonl")
SEEDS = range(5)
NOISES = {
    "symmetric 10%": ("symmetric", 0.1),
    "symmetric 5%": ("symmetric", 0.05),
    "symmetric 20%": ("symmetric", 0.2),
    "pair 10%": ("pair", 0.1),
    "rival 10%": ("rival", 0.1),
}
EPOCHS = {"digits": 20, "MNIST 1,000": 10, "MNIST 5,000": 10, "CIFAR-10 5,000": 7, "cancer": 20}
"""Epochs of the nets: the best of 3 to 30 for cleanlab, on other images where there are some."""
MEASURED = {
    *((name, "symmetric 10%") for name in EPOCHS),
    *(("digits", noise) for noise in NOISES),
    ("MNIST 1,000", "rival 10%"),
}
"""Kinds of flips other than the first are measured where that takes seconds."""
LABEL_SCORES = ("normalized_margin", "self_confidence", "confidence_weighted_entropy")
"""The scores of cleanlab."""


def load_set(name: str, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """The samples and right labels of a set; of MNIST and CIFAR-10 a part drawn by the seed."""
    if name == "digits":
        found = load_digits()
        return torch.from_numpy(found.images[:, None] / 16).float(), found.target
    if name == "cancer":
        found = load_breast_cancer()
        X = (found.data - found.data.mean(0)) / found.data.std(0)
        return torch.from_numpy(X).float(), found.target
    # Settings were chosen on other images.
    split = "test" if name.startswith("other ") else "train"
    if "CIFAR" in name:
        X, y = nm.datasets.cifar10(split, limit=10_000)  # the first batch is enough
    else:
        X, y = nm.datasets.mnist(split)
    count = int(name.split()[-1].replace(",", ""))
    drawn = np.sort(np.random.default_rng(seed).choice(len(y), count, replace=False))
    return X[torch.from_numpy(drawn)], y.numpy()[drawn]


def make_net(X: torch.Tensor, classes: int, seed: int) -> nn.Module:
    """The net of a set: two convolutions for images, a hidden layer for tables."""
    torch.manual_seed(seed)
    if X.ndim == 2:
        return nn.Sequential(nn.Linear(X.shape[1], 64), nn.ReLU(), nn.Linear(64, classes))
    side = X.shape[-1] // 4
    return nn.Sequential(
        nn.Conv2d(X.shape[1], 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * side**2, 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


def train_net(
    net: nn.Module,
    X: torch.Tensor,
    y: np.ndarray,
    epochs: int,
    after_epoch: Callable[[], object] = lambda: None,
) -> None:
    """Train a net, and call a function after each epoch."""
    labels = torch.from_numpy(y)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for _ in range(epochs):
        for batch in torch.randperm(len(X)).split(50):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X[batch]), labels[batch]).backward()
            optimizer.step()
        after_epoch()


def predict(net: nn.Module, X: torch.Tensor) -> np.ndarray:
    """The scores of a net, float64."""
    with torch.no_grad():
        return torch.cat([net(x) for x in X.split(500)]).double().numpy()


def flip_labels(
    X: torch.Tensor, y: np.ndarray, kind: str, share: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Labels with flips, and where they are."""
    rng, classes = np.random.default_rng(seed), int(y.max()) + 1
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), round(share * len(y)), replace=False)] = True
    flipped = y.copy()
    if kind == "symmetric":
        flipped[wrong] = (y[wrong] + rng.integers(1, classes, size=wrong.sum())) % classes
    elif kind == "pair":
        flipped[wrong] = (y[wrong] + 1) % classes
    else:  # the class that a net, trained on right labels, holds to be the next best
        net = make_net(X, classes, seed)
        train_net(net, X, y, epochs=10)
        scores = predict(net, X)
        scores[np.arange(len(y)), y] = -np.inf
        flipped[wrong] = scores.argmax(1)[wrong]
    return flipped, wrong


def cross_validate(X: torch.Tensor, y: np.ndarray, epochs: int, seed: int) -> np.ndarray:
    """Out-of-sample probabilities of the net by five folds, after some epochs."""
    found = np.empty((len(y), int(y.max()) + 1))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    for fit, held in folds.split(np.zeros(len(y)), y):
        net = make_net(X, found.shape[1], seed)
        train_net(net, X[torch.from_numpy(fit)], y[fit], epochs)
        scores = torch.from_numpy(predict(net, X[torch.from_numpy(held)]))
        found[held] = torch.softmax(scores, 1).numpy()
    return found


def train_and_combine(name: str, X: torch.Tensor, y: np.ndarray, seed: int) -> np.ndarray:
    """The scores of `nm.label_errors` with margins summed over the epochs of a run beside them."""
    net, sums, data = (
        make_net(X, int(y.max()) + 1, seed),
        np.zeros(len(y)),
        (X, torch.from_numpy(y)),
    )

    def add() -> None:
        sums[:] += nm.measure(net, data).q.numpy()

    train_net(net, X, y, EPOCHS[name], after_epoch=add)
    scores = nm.label_errors((X, y), seed=seed).scores.numpy()
    return scores + 0.5 * scores.std() / sums.std() * sums


def cross_validate_kernel(X: torch.Tensor, y: np.ndarray, seed: int) -> np.ndarray:
    """Out-of-sample probabilities of our kernel: its leave-one-out predictions, cut to 0 and 1."""
    samples = Arrays(X, torch.from_numpy(y))
    equal = number_equal_rows(X)
    predictions = predict_left_out(samples, y, None, seed, equal, None, len)[1].clip(1e-3, 1)
    return predictions / predictions.sum(axis=1, keepdims=True)


def follow_a_run(X: torch.Tensor, y: np.ndarray, epochs: int, seed: int) -> dict[str, np.ndarray]:
    """What one run of the net tells: the area under the margin, and TracIn; low is suspicious.

    TracIn is the influence of each sample on itself: its squared gradients, summed over epochs. Of
    the last layer, as its authors advise: the squared error of the probabilities times that of what
    enters the layer (and 1 for its bias).
    """
    net, own = make_net(X, int(y.max()) + 1, seed), (np.arange(len(y)), y)
    assert isinstance(net, nn.Sequential)
    margins, influence = np.zeros(len(y)), np.zeros(len(y))

    def add() -> None:
        hidden = predict(net[:-1], X)
        scores = net[-1](torch.from_numpy(hidden).float()).detach().double()
        margins[:] += score_labels(scores.numpy())[own]
        p = torch.softmax(scores, 1).numpy()
        p[own] -= 1
        influence[:] += (p**2).sum(1) * (1 + (hidden**2).sum(1))

    train_net(net, X, y, epochs, after_epoch=add)
    return {"area under the margin": margins, "TracIn": -influence}


def score_by_cleanlab(probabilities: np.ndarray, y: np.ndarray, score: str) -> np.ndarray:
    """The label quality of cleanlab."""
    from cleanlab.rank import get_label_quality_scores

    return get_label_quality_scores(y, probabilities, method=score)


def methods(name: str, X: torch.Tensor, y: np.ndarray, seed: int) -> dict[str, Callable]:
    """What ranks the samples, each a function without arguments; low is suspicious.

    Some functions return several rankings, by name: they share what takes the time.
    """

    def ask_cleanlab() -> dict[str, np.ndarray]:
        probabilities = cross_validate(X, y, EPOCHS[name], seed)
        return {
            f"cleanlab, {score}": score_by_cleanlab(probabilities, y, score)
            for score in LABEL_SCORES
        }

    def ask_cleanlab_about_our_kernel() -> np.ndarray:
        return score_by_cleanlab(cross_validate_kernel(X, y, seed), y, LABEL_SCORES[0])

    found: dict[str, Callable] = {
        "nm.label_errors": lambda: nm.label_errors((X, y), seed=seed).scores.numpy(),
        "nm.label_errors with a run": lambda: train_and_combine(name, X, y, seed),
        "a run": lambda: follow_a_run(X, y, EPOCHS[name], seed),
        "chance": lambda: np.random.default_rng(seed).random(len(y)),
    }
    try:
        import cleanlab  # noqa: F401
    except ModuleNotFoundError:
        print("cleanlab is not installed: its rows are left out")
        return found
    return found | {
        "cleanlab, of our kernel": ask_cleanlab_about_our_kernel,
        "cleanlab": ask_cleanlab,
    }


def measure_row(name: str, noise: str, seed: int) -> list[dict]:
    """The rows of all methods on one set with flips."""
    X, y = load_set(name, seed)
    flipped, wrong = flip_labels(X, y, *NOISES[noise], seed)
    rows = []
    for method, find in methods(name, X, flipped, seed).items():
        started = time.process_time()
        found = find()
        seconds = time.process_time() - started
        for label, scores in (found if isinstance(found, dict) else {method: found}).items():
            order = np.argsort(scores, kind="stable")
            rows.append(
                {
                    "set": name,
                    "noise": noise,
                    "seed": seed,
                    "method": label,
                    "auc": roc_auc_score(wrong, -scores),
                    "missed": 1 - wrong[order[: wrong.sum()]].mean(),
                    "precision at 50": wrong[order[:50]].mean(),
                    "seconds": seconds,
                }
            )
    return rows


def main() -> None:
    """Measure what is missing, and print a table for each set and kind of flips."""
    torch.set_num_threads(1)
    rows = read_rows(ROWS)
    done = {(row["set"], row["noise"], row["seed"]) for row in rows}
    for noise in NOISES:
        for name in EPOCHS:
            if (name, noise) not in MEASURED:
                continue
            for seed in SEEDS:
                if (name, noise, seed) in done:
                    continue
                try:
                    found = measure_row(name, noise, seed)
                except nm.DataError as error:
                    print(f"{name} left out: {error}")
                    break
                for row in found:
                    add_row(ROWS, row)
                rows += found
            show([r for r in rows if (r["set"], r["noise"]) == (name, noise)])


def show(rows: list[dict]) -> None:
    """Print the table of one set and kind of flips: means over the seeds."""
    if not rows:
        return
    print(f"\n{rows[0]['set']}, {rows[0]['noise']}, {len({r['seed'] for r in rows})} seeds")
    print(f"{'':40} {'AUC':>7} {'missed':>7} {'right of worst 50':>18} {'CPU s':>7}")
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        auc, missed, precision, seconds = (
            np.mean([row[key] for row in mine])
            for key in ("auc", "missed", "precision at 50", "seconds")
        )
        print(f"{method:40} {auc:7.4f} {missed:7.3f} {precision:18.2f} {seconds:7.2f}", flush=True)


if __name__ == "__main__":
    main()
