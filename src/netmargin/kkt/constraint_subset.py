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
        samples, classes, merit = map(
            torch.cat, zip(vars(self).values(), vars(other).values(), strict=True)
        )
        pairs = enumerate(zip(samples.tolist(), classes.tolist(), strict=True))
        kept = sorted({pair: index for index, pair in reversed([*pairs])}.values())
        return ConstraintSubset(samples[kept], classes[kept], merit[kept])

    def best(self, count: int) -> "ConstraintSubset":
        """The constraints of largest merit, in order; ties go to the earlier ones."""
        order = torch.argsort(self.merit, descending=True, stable=True)[:count]
        return ConstraintSubset(self.samples[order], self.classes[order], self.merit[order])
