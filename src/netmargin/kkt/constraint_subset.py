"""Some of the constraints, with a number by which they are preferred."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class ConstraintSubset:
    """A choice of K constraints."""

    samples: Tensor  # n of each, (K,), int64
    classes: Tensor  # j of each, (K,), int64; -1 for a net with one output
    merit: Tensor  # by which constraints are preferred, the larger the better, (K,)

    def __len__(self) -> int:
        return len(self.samples)

    def union(self, other: "ConstraintSubset") -> "ConstraintSubset":
        """The constraints of this subset and then those of another, without repetitions."""
        parts = zip(vars(self).values(), vars(other).values(), strict=True)
        return ConstraintSubset(*map(torch.cat, parts)).distinct()

    def distinct(self) -> "ConstraintSubset":
        """The subset without repetitions, in order of first appearance."""
        pairs = enumerate(zip(self.samples.tolist(), self.classes.tolist(), strict=True))
        kept = sorted({pair: index for index, pair in reversed([*pairs])}.values())
        return ConstraintSubset(self.samples[kept], self.classes[kept], self.merit[kept])

    def best(self, count: int) -> "ConstraintSubset":
        """The constraints of largest merit, in order; ties go to the earlier ones."""
        order = torch.argsort(self.merit, descending=True, stable=True)[:count]
        return ConstraintSubset(self.samples[order], self.classes[order], self.merit[order])
