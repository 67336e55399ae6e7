"""Reports of five trained nets, for docs/zoo.md.

    python -m benchmarks.zoo_reports

Trains each net for about a minute of one core and writes runs/zoo_reports.md, which `python -m
benchmarks.zoo` puts at the end of its page. The images are looked for where `nm.datasets` finds
them; the tabular data come with scikit-learn.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

import netmargin as nm

from .symmetries import make_resnet20

REPORTS = Path("runs/zoo_reports.md")
Split = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Trained:
    """A net, its data, and how it is trained.

    Attributes
    ----------
    title : str
        What it is, for the heading.
    build : callable
        Makes the net.
    data : callable
        Makes the training and the held-out samples.
    epochs : int
        Passes over the training samples.
    rate : float
        The largest learning rate of AdamW; it falls to 0 like a cosine.
    class_names : tuple of str
        Names of the classes, () where they are digits.
    """

    title: str
    build: Callable[[], nn.Module]
    data: Callable[[], tuple[Split, Split]]
    epochs: int
    rate: float = 2e-3
    class_names: tuple[str, ...] = ()


class SmallViT(nn.Module):
    """A vision transformer of two layers on 28 x 28 images in patches of 7 x 7."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 7, 7)
        self.places = nn.Parameter(0.02 * torch.randn(1, 16, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (N, 10) of images (N, 1, 28, 28)."""
        tokens = self.patches(x).flatten(2).mT + self.places
        return self.head(self.norm(self.layers(tokens).mean(1)))


def _mnist(*, flat: bool) -> tuple[Split, Split]:
    """4,000 images to train on, and 1,000 others."""
    X, y = nm.datasets.mnist(limit=5000)
    X = X.flatten(1) if flat else X
    return (X[:4000], y[:4000]), (X[4000:], y[4000:])


def _cifar10() -> tuple[Split, Split]:
    """2,000 images to train on, and 1,000 others."""
    X, y = nm.datasets.cifar10(limit=3000)
    return (X[:2000], y[:2000]), (X[2000:], y[2000:])


def _breast_cancer() -> tuple[Split, Split]:
    """400 patients to train on, and 169 others; every input in its standard deviations."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
    X, y = torch.tensor(X, dtype=torch.float32)[order], torch.tensor(y)[order]
    X = (X - X[:400].mean(0)) / X[:400].std(0)
    return (X[:400], y[:400]), (X[400:], y[400:])


def _mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    )


def _cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32 * 49, 10),
    )


def _table_net() -> nn.Module:
    return nn.Sequential(
        nn.Linear(30, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 2)
    )


_OBJECTS = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
NETS = (
    Trained("MLP 784-256-256-10 on MNIST", _mlp, lambda: _mnist(flat=True), 15),
    Trained("CNN with max-pooling and dropout on MNIST", _cnn, lambda: _mnist(flat=False), 12),
    Trained("ResNet-20 with BatchNorm on CIFAR-10", make_resnet20, _cifar10, 25, 5e-3, _OBJECTS),
    Trained("Vision transformer on MNIST", SmallViT, lambda: _mnist(flat=False), 20),
    Trained(
        "MLP with BatchNorm on breast cancer (30 measurements)",
        _table_net,
        _breast_cancer,
        60,
        class_names=("malignant", "benign"),
    ),
)


def main() -> None:
    """Train the nets, and write their reports."""
    parts = [
        "## Five reports",
        "",
        "What `nm.measure(model, train, input_margins=True).summary(heldout=nm.measure(model,"
        " heldout))` says of nets",
        "trained in the usual way (AdamW, cross entropy, batches of 64); written by `python -m"
        " benchmarks.zoo_reports`.",
    ]
    for trained in NETS:
        print(f"training: {trained.title}", flush=True)
        parts += ["", f"### {trained.title}", "", "```text", _report(trained), "```"]
    REPORTS.parent.mkdir(parents=True, exist_ok=True)
    REPORTS.write_text("\n".join(parts) + "\n", encoding="utf-8")
    print(REPORTS)


def _report(trained: Trained) -> str:
    """The summary of a net after its training."""
    torch.manual_seed(0)
    model, (train, heldout) = trained.build(), trained.data()
    _fit(model, train, trained)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report says it in its notes
        report = nm.measure(
            model, train, input_margins=True, class_names=trained.class_names or None
        )
        return report.summary(heldout=nm.measure(model, heldout))


def _fit(model: nn.Module, data: Split, trained: Trained) -> None:
    """Train with AdamW and a rate that falls to 0."""
    X, y = data
    optimizer = torch.optim.AdamW(model.parameters(), trained.rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, trained.epochs)
    model.train()
    for _ in range(trained.epochs):
        # The last batch is left out where it is smaller: BatchNorm has little to go by in it.
        for batch in torch.randperm(len(X)).split(64)[: len(X) // 64]:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(X[batch]), y[batch]).backward()
            optimizer.step()
        schedule.step()
    model.eval()


if __name__ == "__main__":
    main()
