"""Layers that a forward pass writes without a module: arithmetic, moves, branches that meet."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Scaled(nn.Module):
    """x weight + bias, entry by entry."""

    weight: Tensor
    bias: Tensor

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        """Compute x weight + bias."""
        return x * self.weight + self.bias


class Moved(nn.Module):
    """The numbers of each sample in another shape, and by an index in its order, each once."""

    def __init__(self, shape: Sequence[int], index: Tensor | None = None) -> None:
        super().__init__()
        self.shape, self.index = shape, index

    def forward(self, x: Tensor) -> Tensor:
        """Move the numbers of x, (N, ...)."""
        x = x if self.index is None else x.flatten(1)[:, self.index]
        return x.reshape(len(x), *self.shape)


class Branches(nn.Module):
    """Chains that begin at the same values and are joined, by "add" or by "cat" along channels."""

    def __init__(self, joined: str, parts: list[nn.Sequential]) -> None:
        super().__init__()
        self.joined, self.parts = joined, parts

    def forward(self, x: Tensor) -> Tensor:
        """Compute all branches, and join them."""
        return self.join([part(x) for part in self.parts])

    def join(self, ends: list[Tensor]) -> Tensor:
        """Join the ends of branches."""
        return torch.cat(ends, 1) if self.joined == "cat" else torch.stack(ends).sum(0)


class NamedLayer(NamedTuple):
    """A layer, and what messages call it."""

    said: str
    layer: nn.Module
