"""Objectives over measures of neurons: L[rho] = R(int Phi d rho) + int V d rho, R convex, Phi and V
2-homogeneous.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..core.matrices import binary_data
from ..core.records import short_repr
from ..errors import DataError


@dataclass(frozen=True)
class Regularity:
    """Bounds that the theory asks for, on the unit sphere in R^dimension, Euclidean norms.

    k : length of Phi. M_R >= |grad R|, C_R >= |Hessian of R|. B_Phi >= |Phi|, M_Phi, M_V :
        Lipschitz constants of Phi_i and V. b_V <= V <= B_V.

    Source: Wei et al. 2018, Assumptions E.1, E.2, E.3.
    """

    dimension: int
    k: int
    M_R: float
    C_R: float
    B_Phi: float
    M_Phi: float
    b_V: float  # noqa: N815 (the name in the paper)
    B_V: float
    M_V: float


@dataclass(frozen=True)
class Functional:
    """features : Phi, positions (N, p) -> (N, k).

    risk : R, (k,) -> a number, at least 0.
    penalty : V, (N, p) -> (N,). All differentiable torch functions.

    regularity : where it is known.
    """

    features: Callable[[Tensor], Tensor]
    risk: Callable[[Tensor], Tensor]
    penalty: Callable[[Tensor], Tensor]
    regularity: Regularity | None = None

    __repr__ = short_repr

    def value(self, positions: Tensor, weights: Tensor) -> Tensor:
        """L of the particles: positions (N, p), weights (N,)."""
        return self.risk(weights @ self.features(positions)) + weights @ self.penalty(positions)

    def slopes(self, positions: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """L, L' at each particle (N,), and minus its gradient there, the velocity (N, p)."""
        at = positions.detach().requires_grad_(True)
        features, penalty = self.features(at), self.penalty(at)
        total = (weights @ features.detach()).requires_grad_(True)
        risk = self.risk(total)
        (pull,) = torch.autograd.grad(risk, total)
        first = features @ pull + penalty
        (gradient,) = torch.autograd.grad(first.sum(), at)
        return (risk + weights @ penalty).detach(), first.detach(), -gradient


def regularized_logistic(X, y, *, regularization: float, bias: bool = True) -> Functional:
    """Mean logistic loss of f = int b relu(a . x~) d rho(a, b) plus regularization times int |(a,
    b)|^2 d rho.

    Positions are rows (a, b), p = d + 1, or d + 2 with a bias. Its least value is that of
    `solvers.f1_logistic`.
    X : (n, d).
    y : (n,) labels {-1, +1} or {0, 1}. Raises DataError.

    Source: Wei et al. 2018, Example 4.2 (the mean, as in its proofs).
    """
    data = binary_data(X, y, bias=bias)
    if not 0 < regularization < np.inf:
        raise DataError(f"regularization must be positive and finite; got {regularization}")
    Z, labels = torch.tensor(data.Z), torch.tensor(data.y)
    lengths, n = np.linalg.norm(data.Z, axis=1), len(data)

    def features(positions: Tensor) -> Tensor:
        return labels * positions[:, -1:] * (positions[:, :-1] @ Z.T).relu()

    bounds = Regularity(
        dimension=data.Z.shape[1] + 1,
        k=n,
        M_R=n**-0.5,
        C_R=0.25 / n,
        B_Phi=float(np.linalg.norm(lengths / 2)),
        M_Phi=float(lengths.max()),
        b_V=regularization,
        B_V=regularization,
        M_V=0.0,
    )
    return Functional(
        features,
        risk=lambda q: torch.nn.functional.softplus(-q).mean(),
        penalty=lambda positions: regularization * positions.square().sum(1),
        regularity=bounds,
    )
