"""Which samples of a split are shown as images or texts, where there are too many for one file."""

import torch
from torch import Tensor

from .measured import Measured

MOST = 1000
"""Images of a split in one page: 1,000 of 28x28 take 135 kB, and nobody scrolls through more."""
_SEED = 0
"""Of the random rest: two calls make the same page."""


def choose_shown(split: Measured, weights: Tensor | None, extra: list[Tensor]) -> Tensor:
    """The samples that are shown as images, in order: all of up to `MOST`.

    Of more, in turn, as far as there is room: `extra`, such as those with radii, the heaviest
    24 support vectors, the nearest ones up to a half, the wrong ones, all support vectors, and a
    random rest.
    """
    n = split.n
    if n <= MOST:
        return torch.arange(n, device="cpu")
    weights = torch.zeros(n, device="cpu") if weights is None else weights
    heavy = torch.argsort(weights, descending=True, stable=True)[: int((weights > 0).sum())]
    nearest = torch.argsort(split.distances.abs(), stable=True)
    wrong = nearest[split.wrong[nearest]]
    rest = torch.randperm(n, generator=torch.Generator().manual_seed(_SEED), device="cpu")
    order = torch.cat([*extra, heavy[:24], nearest[: MOST // 2], wrong, heavy, rest])
    chosen = list(dict.fromkeys(order.tolist()))[:MOST]
    return torch.tensor(sorted(chosen), device="cpu")


def spread_by_distance(distances: Tensor, number: int) -> Tensor:
    """Choose samples evenly by distance: the middle one of each of equal groups in order."""
    order, n = torch.argsort(distances, stable=True), len(distances)
    if number >= n:
        return torch.arange(n, device="cpu")
    return order[(2 * torch.arange(number, device="cpu") + 1) * n // (2 * number)].sort().values


def is_spread(distances: Tensor, rows: Tensor) -> bool:
    """Whether of equal groups in the order of distance each holds one of these samples."""
    ranks = torch.argsort(torch.argsort(distances, stable=True))[rows]
    return len(torch.unique(ranks * len(rows) // len(distances))) == len(rows)
