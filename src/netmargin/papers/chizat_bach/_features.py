"""Feature functions phi(w, x) of two-layer nets: those of ReLU nets, and your own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.records import Shown
from ...errors import ArgumentError
from ...solvers.solution import ReLUMeasure

_TRIED = 16
"""Random neurons that try a feature: what fails anywhere but in a thin cone fails at one."""


def _negate_last(w: Tensor) -> Tensor:
    """Neurons with the sign of their last parameter turned: opposite ones of (a, b) in b phi(a)."""
    return torch.cat([w[:, :-1], -w[:, -1:]], 1)


@dataclass(frozen=True)
class FeatureMeasure(Shown):
    """The function sum_j weights_j feature(atoms_j, x) of a feature function of your own.

    It has to be 2-homogeneous and balanced (A1): feature(r w, x) = r^2 feature(w, x) for r > 0, and
    feature(opposite(w), x) = -feature(w, x).
    """

    feature: Callable[[Tensor, Tensor], Tensor]  # of (N, p) and (n, d) to (N, n), all float64
    atoms: np.ndarray  # (N, p)
    weights: np.ndarray  # (N,), at least 0
    opposite: Callable[[Tensor], Tensor] = _negate_last  # of (N, p) to (N, p)
    bias = False  # what a neuron does with x is its own affair

    def decision_function(self, X: Any) -> np.ndarray:
        """Values at inputs X (n, d), (n,)."""
        features = self.feature(*map(as_tensor, (self.atoms, X))).detach().numpy()
        values: np.ndarray = self.weights @ features
        return values

    def check(self, inputs: np.ndarray) -> None:
        """Raise ArgumentError, with the difference, unless (A1) holds at random neurons."""
        random, X = np.random.default_rng(0), as_tensor(inputs)
        w = as_tensor(random.normal(size=(_TRIED, self.atoms.shape[1])))
        values = self.feature(w, X)
        if values.shape != (_TRIED, len(X)) or not values.isfinite().all():
            raise ArgumentError(
                "feature must give finite values (N, n) of N neurons and n inputs; got shape"
                f" {tuple(values.shape)} for {_TRIED} and {len(X)}"
            )
        larger, turned = (self.feature(v, X) for v in (3 * w, self.opposite(w)))
        for needed, rest in (
            ("2-homogeneous, feature(3 w, x) = 9 feature(w, x)", larger - 9 * values),
            ("balanced, feature(opposite(w), x) = -feature(w, x)", turned + values),
        ):
            off = rest.abs().max() / values.abs().max().clamp(min=1e-300)
            if off > 1e-6:
                raise ArgumentError(
                    f"feature must be {needed}; at random neurons this is off by {off:.2g} of the"
                    " largest value. Take b phi(a . x) with phi positively homogeneous, or pass the"
                    " `opposite` that turns the sign (by default that of the last parameter of w)."
                )


def find_moving(
    measure: ReLUMeasure | FeatureMeasure,
) -> tuple[Callable[[Tensor, Tensor], Tensor], np.ndarray]:
    """What moves of the atoms (no signs of power 2), and features (N, n) of it and Z (n, D)."""
    if isinstance(measure, FeatureMeasure):
        return measure.feature, measure.atoms
    slope, k = measure.slope, measure.atoms.shape[1] - 1
    phi = torch.nn.LeakyReLU(slope)
    if measure.power == 1:
        return lambda w, Z: w[:, k:] * phi(w[:, :k] @ Z.T), measure.atoms
    signs = as_tensor(measure.atoms[:, k:])
    return lambda a, Z: signs * phi(a @ Z.T).square(), measure.atoms[:, :k]


def as_tensor(values: Any) -> Tensor:
    """Values as a float64 tensor."""
    return torch.as_tensor(values, dtype=torch.float64, device="cpu")
