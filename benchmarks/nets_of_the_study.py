"""The nets of the study of margins and test errors: settings, training, and one record of each."""

import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

import netmargin as nm
from netmargin.margins.heldout import margin_weighted_error, z_score
from netmargin.margins.quantiles import quantile_names, quantiles

POPULATIONS = (("mnist", 3000), ("cifar10", 2000))
"""Data sets and their first training images: so few that a small net fits them in some seconds."""
LATER = ("cifar10", 4000)
"""A check on more images, half of whose nets fit them in the time that each net has."""
POOL = 5000
"""Images after those, from which held-out samples are drawn."""
DRAWS = 20
"""Held-out samples of each size: what one draw says of 200 images is half chance."""
HELDOUT = (
    ("error", 200),
    ("error", 500),
    ("error", 1000),
    ("z", 200),
    ("z", 500),
    ("weighted", 200),
)
"""What is computed on how many of them; "error" counts the wrong ones."""
MARGINS = {
    "global": ("min", "50%"),
    "layers": ("50%",),
    "quasi": ("50%",),
    "bartlett": ("50%",),
    "input": ("10%", "25%", "50%"),
    "relative input": ("25%",),
}
"""Rows of the table of margins, and what is kept of each."""
STOP_AT = 0.01
"""The mean training loss at which training ends; nets that ended alike can be compared."""
CPU_SECONDS = 12.0
"""Of training for one net: the whole study takes less than an hour of one core."""
_LABELS_SEED, _DRAWS_SEED = 1, 2

Split = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Setting:
    """All that nets of the study differ in.

    Attributes
    ----------
    data : str
        "mnist" or "cifar10".
    images : int
        How many of its first images are trained on.
    architecture : str
        "mlp" or "cnn".
    batch_norm : bool
        Whether every hidden layer is followed by BatchNorm.
    noise : int
        Percent of the training labels that are another class.
    wide, deep : bool
        256 or 64 units (20 or 8 channels, twice as many in the second layer); 3 or 1 hidden layers
        (a fully connected layer of 64 after the two convolutions, or none).
    optimizer : str
        "adamw" or "sgd".
    decay : bool
        Weight decay of 0.05 with adamw, 0.001 with sgd.
    batch : int
        Samples a step.
    """

    data: str
    images: int
    architecture: str
    batch_norm: bool
    noise: int
    wide: bool
    deep: bool
    optimizer: str
    decay: bool
    batch: int

    @property
    def key(self) -> str:
        """One line that tells it from the others."""
        return "/".join(str(value) for value in asdict(self).values())


def list_settings() -> list[Setting]:
    """All settings, the data sets in turn, so that a study that was stopped has results of both.

    Plain nets in one half of the factorial design come first, BatchNorm and label noise with fewer
    settings next, the other half then. The same on more images comes last.
    """
    plain = [
        Setting("", 0, architecture, False, 0, wide, deep, optimizer, decay, batch)
        for batch, architecture, decay, optimizer, deep, wide in product(
            (128, 32), ("mlp", "cnn"), (False, True), ("adamw", "sgd"), (False, True), (False, True)
        )
    ]
    half, rest = plain[: len(plain) // 2], plain[len(plain) // 2 :]
    no_decay = [s for s in half if not s.decay]
    normed = [replace(s, batch_norm=True) for s in no_decay]
    noisy = [
        replace(s, noise=noise) for s in no_decay if s.optimizer == "adamw" for noise in (10, 20)
    ]
    design = [*half, *normed, *noisy, *rest]
    found = [replace(s, data=data, images=images) for s in design for data, images in POPULATIONS]
    return found + [replace(s, data=LATER[0], images=LATER[1]) for s in design]


@cache
def load_data(name: str, n: int) -> tuple[Split, Split, Split]:
    """Training images, the held-out pool and the test set, centred and scaled by two numbers."""
    read: Callable = getattr(nm.datasets, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the first batch of CIFAR-10 suffices
        X, y = read("train", limit=10_000) if name == "cifar10" else read("train")
    mean, scale = X[:n].mean(), X[:n].std()
    test = read("test")
    pool = slice(n, n + POOL)
    return (
        ((X[:n] - mean) / scale, y[:n]),
        ((X[pool] - mean) / scale, y[pool]),
        ((test[0] - mean) / scale, test[1]),
    )


def add_noise(y: Tensor, percent: int) -> Tensor:
    """The labels, with this share moved to another class; the same ones at each call."""
    random = np.random.default_rng(_LABELS_SEED)
    moved = torch.from_numpy(random.permutation(len(y))[: len(y) * percent // 100])
    noisy = y.clone()
    noisy[moved] = (y[moved] + torch.from_numpy(random.integers(1, 10, len(moved)))) % 10
    return noisy


def build(setting: Setting) -> nn.Sequential:
    """The net of a setting, with torch's own initialization and biases in every layer."""
    pixels, colors = (28, 1) if setting.data == "mnist" else (32, 3)
    layers: list[nn.Module] = []
    if setting.architecture == "mlp":
        layers, d = [nn.Flatten()], colors * pixels**2
        hidden = (3 if setting.deep else 1) * [256 if setting.wide else 64]
    else:
        channels = 20 if setting.wide else 8
        for before, after, kernel in ((colors, channels, 5), (channels, 2 * channels, 3)):
            layers += [nn.Conv2d(before, after, kernel, stride=2)]
            layers += [nn.BatchNorm2d(after)] * setting.batch_norm + [nn.ReLU()]
            pixels = (pixels - kernel) // 2 + 1
        layers, d = [*layers, nn.Flatten()], 2 * channels * pixels**2
        hidden = [64] * setting.deep
    for width in hidden:
        layers += [nn.Linear(d, width)]
        layers += [nn.BatchNorm1d(width)] * setting.batch_norm + [nn.ReLU()]
        d = width
    return nn.Sequential(*layers, nn.Linear(d, 10))


def train(setting: Setting) -> tuple[nn.Sequential, int]:
    """Train until the loss is STOP_AT or the time is over; the net and its epochs."""
    torch.set_num_threads(1)
    torch.manual_seed(zlib.crc32(setting.key.encode()))
    net, ((X, y), _, _) = build(setting), load_data(setting.data, setting.images)
    y = add_noise(y, setting.noise)
    optimizer: torch.optim.Optimizer
    if setting.optimizer == "adamw":
        decay = 0.05 * setting.decay
        optimizer = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=decay, fused=True)
    else:
        decay = 1e-3 * setting.decay
        # In proportion to the batch: 0.02 with batches of 32 diverges on CIFAR-10.
        rate = 0.02 * setting.batch / 128
        optimizer = torch.optim.SGD(net.parameters(), rate, momentum=0.9, weight_decay=decay)
    started, epochs, loss = time.process_time(), 0, torch.inf
    while loss > STOP_AT and time.process_time() - started < CPU_SECONDS:
        net.train()
        seen = 0.0
        for part in torch.randperm(len(y)).split(setting.batch):
            optimizer.zero_grad()
            value = nn.functional.cross_entropy(net(X[part]), y[part])
            value.backward()
            optimizer.step()
            seen += value.item() * len(part) / len(y)
        epochs += 1
        # The loss seen on the way is above that at the end of the epoch, which takes time to know.
        if seen < 5 * STOP_AT:
            net.eval()
            with torch.no_grad():
                loss = nn.functional.cross_entropy(net(X), y).item()
    return net.eval(), epochs


def fold_norms(net: nn.Sequential) -> nn.Sequential:
    """The net with each BatchNorm folded into the layer before it: the same function."""
    layers: list[nn.Module] = []
    for layer in net:
        if isinstance(layer, nn.BatchNorm2d):
            layers[-1] = fuse_conv_bn_eval(layers[-1], layer)
        elif isinstance(layer, nn.BatchNorm1d):
            layers[-1] = fuse_linear_bn_eval(layers[-1], layer)
        else:
            layers.append(layer)
    return nn.Sequential(*layers).eval()


def study_net(setting: Setting) -> dict:
    """Train and measure one net; the record is for JSON, its setting in the order of the fields."""
    started = time.process_time()
    net, epochs = train(setting)
    net = fold_norms(net)
    (X, y), pool, test = load_data(setting.data, setting.images)
    report = nm.measure(net, (X, add_noise(y, setting.noise)), input_margins=True)
    found = {
        "train loss": 10**report.log10_mean_loss,
        "train error": report.error,
        "test error": nm.measure(net, test, homogeneity=report.homogeneity).error,
        "q 50%": report.q.median().item(),
    }
    for name, kept in MARGINS.items():
        if (margins := report.margins[name].per_sample) is not None:
            values = {"min": margins.min().item()}
            values |= zip(quantile_names(), quantiles(margins), strict=True)
            found |= {f"{name} {kind}": values[kind] for kind in kept}
    q = nm.measure(net, pool, homogeneity=report.homogeneity).q
    return {
        "setting": list(asdict(setting).values()),
        "epochs": epochs,
        "seconds": round(time.process_time() - started, 1),
        "numbers": {name: float(f"{value:.5g}") for name, value in found.items()},
        "heldout": {f"{name} {n}": found for name, n, found in measure_samples(q)},
    }


def measure_samples(q: Tensor) -> Iterator[tuple[str, int, list[float]]]:
    """What `HELDOUT` names, with DRAWS numbers each, of the margins of the pool.

    The samples are the same for all nets of a data set, and the smaller are parts of the larger.
    """
    random = np.random.default_rng(_DRAWS_SEED)
    draws = [q[torch.from_numpy(random.permutation(len(q)))] for _ in range(DRAWS)]
    compute: dict[str, Callable[[Tensor], float]] = {
        "error": lambda q: int((q <= 0).sum()),
        "z": lambda q: float(f"{z_score(q):.4g}"),
        "weighted": lambda q: round(margin_weighted_error(q), 4),
    }
    for name, n in HELDOUT:
        yield name, n, [compute[name](draw[:n]) for draw in draws]
