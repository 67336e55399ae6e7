"""Objectives R(int Phi d rho) + int V d rho over neurons; R convex, Phi and V 2-homogeneous."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...core.arguments import check_number
from ...core.matrices import binary_data
from ...core.records import Shown


@dataclass(frozen=True)
class Regularity:
    """Bounds on the unit sphere in Euclidean norms (Wei et al. 2018, Assumptions E.1 to E.3)."""

    dimension: int  # p, of positions
    k: int  # the length of Phi
    M_R: float  # >= |grad R|
    C_R: float  # >= |Hessian of R|
    B_Phi: float  # >= |Phi|
    M_Phi: float  # a Lipschitz constant of every Phi_i
    b_V: float  # <= V  # noqa: N815 (the name in the paper)
    B_V: float  # >= V
    M_V: float  # a Lipschitz constant of V along the sphere
    C_Phi: float = math.inf  # a Lipschitz constant of every grad Phi_i (Theorem E.21)
    C_V: float = math.inf  # a Lipschitz constant of grad V


@dataclass(frozen=True)
class Functional(Shown):
    """L[rho] = R(int Phi d rho) + int V d rho, of functions of torch tensors."""

    features: Callable[[Tensor], Tensor]  # Phi, from positions (N, p) to (N, k)
    risk: Callable[[Tensor], Tensor]  # R >= 0, from (k,) to a number
    penalty: Callable[[Tensor], Tensor]  # V, from positions (N, p) to (N,)
    regularity: Regularity | None = None

    def value(self, positions: Tensor, weights: Tensor) -> Tensor:
        """L of the particles with positions (N, p) and weights (N,), a tensor of one number."""
        return self.risk(weights @ self.features(positions)) + weights @ self.penalty(positions)

    def slopes(self, positions: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """L, and at each particle its first variation L' (N,) and the velocity -grad L' (N, p)."""
        at = positions.detach().requires_grad_(True)
        features, penalty = self.features(at), self.penalty(at)
        total = (weights @ features.detach()).requires_grad_(True)
        risk = self.risk(total)
        (pull,) = torch.autograd.grad(risk, total)
        first = features @ pull + penalty
        (gradient,) = torch.autograd.grad(first.sum(), at)
        return (risk + weights @ penalty).detach(), first.detach(), -gradient


def regularized_logistic(
    X: Any, y: Any, *, regularization: float, bias: bool = True, power: int = 1
) -> Functional:
    """The regularized logistic loss of nets f, functions of rho; its infimum: `f1_logistic`.

    With power 1, f = int b relu(a . x~) d rho, positions are float64 rows (a, b): the nets of Wei
    et al. 2018, Example 4.2 (the mean, as in its proofs), not differentiable at kinks, where its
    Assumption 4.1 and hence its theorems do not hold. With power 2, f = int relu(a . x~)^2 -
    relu(c . x~)^2 d rho, rows (a, c): squared ReLU with both signs, which meets all assumptions.
    """
    data = binary_data(X, y, bias=bias)
    regularization = check_number("regularization", regularization, above=0)
    Z, labels = torch.tensor(data.Z), torch.tensor(data.y)
    lengths, n, D = np.linalg.norm(data.Z, axis=1), len(data), data.Z.shape[1]
    shapes = [D, 1 if power == 1 else D]

    def features(positions: Tensor) -> Tensor:
        inner, outer = torch.split(positions, shapes, dim=1)
        first = (inner @ Z.T).relu()
        if power == 1:
            return labels * outer * first
        return labels * (first.square() - (outer @ Z.T).relu().square())

    # On the sphere |b relu(a . x~)| is largest, |x~| / 2, at |a| = |b|. The other is |x~|^2 at a
    # along x~: a quadratic form in a . x~ and c . x~, with eigenvalues |x~|^2 and -|x~|^2.
    sizes = lengths / 2 if power == 1 else lengths**2
    slopes = lengths if power == 1 else 2 * lengths**2
    # Each logistic loss has slopes up to 1 and curvatures up to 1/4; their mean divides by n.
    bounds = Regularity(
        dimension=sum(shapes),
        k=n,
        M_R=n**-0.5,
        C_R=0.25 / n,
        B_Phi=float(np.linalg.norm(sizes)),
        M_Phi=float(slopes.max()),
        b_V=regularization,
        B_V=regularization,
        M_V=0.0,
        C_Phi=math.inf if power == 1 else float(slopes.max()),
        C_V=2 * regularization,
    )
    return Functional(
        features,
        risk=lambda q: torch.nn.functional.softplus(-q).mean(),
        penalty=lambda positions: regularization * positions.square().sum(1),
        regularity=bounds,
    )
