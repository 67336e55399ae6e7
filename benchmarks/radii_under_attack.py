"""Certified radii of ten nets, 500 images each, against projected gradient descent.

Every image is attacked from 50 starts in three balls: just below its attacked radius, at its
certified radius and, to see what the attack is worth, 1% beyond the attacked one. Ten of the starts
lie about the points where the bounds are smallest, the directions in which the certificate is
weakest. No input may be misclassified within a certified radius. Blocks of 100 images are written
to runs/radii-under-attack/ as soon as they are done, and the same call goes on from there.
"""

import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import netmargin as nm
from netmargin.radii.exact.ball import compact, enclose
from netmargin.radii.exact.chain import read_chain
from netmargin.radii.exact.radius import RadiusSearch
from netmargin.radii.exact.region_relaxation import Question
from netmargin.radii.exact.tree import search_rival

from .radii_nets import NETS, Split, make_mlp, split_digits, split_mnist, train_net

FOLDER = Path("runs/radii-under-attack")
IMAGES, _BLOCK = 500, 100
_STARTS, _WORST = 50, 10
"""Starts of each image, and how many of them lie about the certificate's worst points."""
_RIVALS = 2
"""Rivals of smallest score gap whose worst points are looked for."""
_STEPS, _FIRST_STEP, _LAST_STEP = 40, 0.3, 0.003
"""Steps, and the length of the first and the last in radii of the ball."""
_BELOW = 1e-4
"""Share of the attacked radius by which a nearer input must be nearer."""
_BEYOND = 0.01
"""Share by which a ball is larger than the attacked radius, so that the attack should succeed."""


class Absolute(nn.Module):
    """The absolute value as a layer."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.abs(x)


def bend(kink: Callable[[], nn.Module], *widths: int) -> nn.Sequential:
    """A dense net with another kink than the ReLU."""
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), kink()]
    return nn.Sequential(*layers[:-1])


def split_all_digits() -> tuple[Split, Split]:
    """Of the digits, test images come first, and those of the training set fill up 500 images."""
    (X, y), (test, labels) = split_digits()
    return (X, y), (torch.cat([test, X]), torch.cat([labels, y]))


def split_600_of_mnist() -> tuple[Split, Split]:
    """10,000 training images and 600 test images of MNIST."""
    return split_mnist()[0], nm.datasets.mnist("test", limit=600)


MLPS = {
    "digits 64-32-10": (64, 32, 10),
    "digits 64-64-10": (64, 64, 10),
    "digits 64-128-10": (64, 128, 10),
    "digits 64-64-64-10": (64, 64, 64, 10),
    "digits 64-128-64-10": (64, 128, 64, 10),
    "MNIST 784-50-10": (784, 50, 10),
    "MNIST 784-100-10": (784, 100, 10),
    "MNIST 784-50-50-10": (784, 50, 50, 10),
}
KINKS = {
    "digits 64-64-10, LeakyReLU": lambda: nn.LeakyReLU(0.1),
    "digits 64-64-10, absolute values": Absolute,
}


def list_nets() -> dict:
    """The ten nets in the form of `radii_nets.NETS`."""
    nets = {}
    for name, widths in MLPS.items():
        digits = name.startswith("digits")
        load = split_all_digits if digits else split_600_of_mnist
        nets[name] = (lambda widths=widths: make_mlp(*widths), load, 60 if digits else 10)
    for name, kink in KINKS.items():
        nets[name] = (lambda kink=kink: bend(kink, 64, 64, 10), split_all_digits, 60)
    return nets


def find_worst_directions(search: RadiusSearch, radius: float) -> np.ndarray:
    """Where the bounds of the nearest rivals are smallest in a ball: (_RIVALS, n_0)."""
    ball = enclose(search.compacted, search.anchor, radius)
    points = []
    for j in sorted(search.rivals, key=lambda j: search.gaps[j])[:_RIVALS]:
        question = Question(ball, search.functionals[j])
        root = search_rival(question, lambda _: False, lambda: False, most_regions=1).root
        points.append(root.point if search.directions is None else search.directions @ root.point)
    return np.array(points)


def descend(net: nn.Module, x: Tensor, y: Tensor, d: Tensor, radii: Tensor) -> Tensor:
    """Projected gradient descent on the smallest gap; the least distances that misclassify, (N,).

    x : (N, n_0). y : (N,). d : (N, starts, n_0), changes to begin with. radii : (N,), of the balls.
    """
    size = radii[:, None, None]
    nearest = torch.full_like(radii, torch.inf)
    own = y[:, None, None].expand(*d.shape[:2], 1)
    for share in np.geomspace(_FIRST_STEP, _LAST_STEP, _STEPS):
        d = (d * (size / d.norm(dim=2, keepdim=True).clamp(min=1e-300)).clamp(max=1)).detach()
        d.requires_grad_(True)
        scores = net((x[:, None] + d).flatten(0, 1)).reshape(*d.shape[:2], -1)
        gaps = (scores.gather(2, own) - scores.scatter(2, own, -torch.inf)).amin(2)
        lengths = d.detach().norm(dim=2).masked_fill(gaps.detach() > 0, torch.inf)
        nearest = torch.minimum(nearest, lengths.amin(1))
        (slope,) = torch.autograd.grad(gaps.sum(), d)
        d = d.detach() - share * size * slope / slope.norm(dim=2, keepdim=True).clamp(min=1e-300)
    return nearest


def attack_block(net: nn.Module, X: Tensor, y: Tensor, seed: int) -> dict:
    """Certify, attack, and compare a block of images."""
    started = time.process_time()
    report = nm.robustness(net, (X, y), progress=False)
    compacted, flat = compact(read_chain(net, X)), X.flatten(1)
    generator = torch.Generator().manual_seed(seed)
    d = torch.randn(len(X), _STARTS, flat.shape[1], generator=generator, dtype=X.dtype)
    d /= d.norm(dim=2, keepdim=True)
    upper = torch.from_numpy(report.upper)
    for n in range(len(X)):
        search = RadiusSearch(compacted, flat[n].numpy(), int(y[n]), float(upper[n]))
        worst = torch.from_numpy(find_worst_directions(search, float(upper[n])))
        worst = worst.repeat(_WORST // _RIVALS, 1) / upper[n]
        d[n, :_WORST] = worst + 0.1 * d[n, :_WORST] * torch.linspace(0, 1, _WORST)[:, None]
    lower = torch.from_numpy(report.lower)
    found = torch.minimum(
        descend(net, flat, y, d * upper[:, None, None], upper * (1 - _BELOW)),
        descend(net, flat, y, d * lower[:, None, None], lower),
    ).numpy()
    # Whether the attack is worth its name: a ball that is a little larger holds such an input.
    beyond = descend(net, flat, y, d * upper[:, None, None], upper * (1 + _BEYOND))
    return {
        "beyond": beyond.isfinite().tolist(),
        "lower": report.lower.tolist(),
        "upper": report.upper.tolist(),
        "found": [float(value) if np.isfinite(value) else None for value in found],
        "seconds": time.process_time() - started,
    }


def main() -> None:
    """Attack block by block, of all nets in turn, and print a line for each net."""
    torch.set_num_threads(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    NETS.update(list_nets())
    trained = {}
    for block in range(IMAGES // _BLOCK):
        for name in list_nets():
            path = FOLDER / f"{name.replace(' ', '-').replace(',', '')}.jsonl"
            if path.exists() and len(path.read_text().splitlines()) > block:
                continue
            if name not in trained:
                trained[name] = train_net(name, images=IMAGES)
            net = trained[name]
            part = slice(block * _BLOCK, (block + 1) * _BLOCK)
            row = attack_block(net.net, net.X[part], net.y[part], block)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            _describe(name, path)
    for name in list_nets():
        _describe(name, FOLDER / f"{name.replace(' ', '-').replace(',', '')}.jsonl")


def _describe(name: str, path: Path) -> None:
    """Print what came of a net so far."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    lower, upper, found = (
        np.concatenate([np.array(row[key], dtype=float) for row in rows])
        for key in ("lower", "upper", "found")
    )
    found = np.where(np.isnan(found), np.inf, found)
    print(
        f"{name}, {len(lower)} images: {(found <= lower).sum()} misclassified within the certified"
        f" radius, least attacked over certified {np.min(np.minimum(upper, found) / lower):.10f},"
        f" median {np.median(upper / lower):.5f}; nearer than our attack on"
        f" {(found < upper).sum()}, by up to {np.max(1 - np.minimum(found, upper) / upper):.3%};"
        f" finds one 1% beyond it on {np.concatenate([row['beyond'] for row in rows]).mean():.1%};"
        f" {sum(row['seconds'] for row in rows):.0f} s",
        flush=True,
    )
