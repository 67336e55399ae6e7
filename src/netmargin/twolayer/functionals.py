"""Objectives over measures of neurons, L[rho] = R(int Phi d rho) + int V d rho.

R is convex, Phi and V are 2-homogeneous.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..core.arguments import check_number
from ..core.matrices import binary_data
from ..core.records import short_repr
from ..core.saved_records import Record


@dataclass(frozen=True)
class Regularity(Record):
    """Bounds that the theory asks for, on the unit sphere in R^dimension, in Euclidean norms.

    Attributes
    ----------
    dimension : int
        The dimension p of positions.
    k : int
        The length of Phi.
    M_R, C_R : float
        M_R >= |grad R| and C_R >= |Hessian of R|.
    B_Phi, M_Phi : float
        B_Phi >= |Phi|; M_Phi is a Lipschitz constant of every Phi_i.
    b_V, B_V, M_V : float
        b_V <= V <= B_V; M_V is a Lipschitz constant of V.

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
    """An objective L[rho] = R(int Phi d rho) + int V d rho, made of differentiable torch functions.

    Attributes
    ----------
    features : callable
        Phi, from positions (N, p) to (N, k).
    risk : callable
        R, from (k,) to a number, at least 0.
    penalty : callable
        V, from positions (N, p) to (N,).
    regularity : Regularity or None
        Constants of R, Phi and V where they are known.
    """

    features: Callable[[Tensor], Tensor]
    risk: Callable[[Tensor], Tensor]
    penalty: Callable[[Tensor], Tensor]
    regularity: Regularity | None = None

    __repr__ = short_repr

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


def regularized_logistic(X, y, *, regularization: float, bias: bool = True) -> Functional:
    """The regularized logistic loss as a functional of measures of neurons.

    L[rho] = mean_n log(1 + exp(-y_n f(x_n))) + regularization int |(a, b)|^2 d rho with f = int b
    relu(a . x~) d rho(a, b). Positions are rows (a, b) of length p = d + 1, or d + 2 with a bias.
    Its least value is that of `solvers.f1_logistic`.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Inputs.
    y : array_like, shape (n,)
        Labels {-1, +1} or {0, 1}.
    regularization : float
        The factor of the squared size, positive.
    bias : bool, default True
        Whether x~ = (x, 1), else x~ = x.

    Returns
    -------
    Functional
        For positions in float64, with its `regularity`.

    Raises
    ------
    DataError
        If the data have a wrong shape or labels, or are not finite.
    ArgumentError
        If `regularization` is not a positive finite number.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> problem = nm.twolayer.regularized_logistic([[1.0], [-1.0]], [1, -1], regularization=0.1)
    >>> silent = torch.zeros(1, 3, dtype=torch.float64)
    >>> round(problem.value(silent, torch.ones(1, dtype=torch.float64)).item(), 6)  # log 2
    0.693147

    Source: Wei et al. 2018, Example 4.2 (the mean, as in its proofs).
    """
    data = binary_data(X, y, bias=bias)
    regularization = check_number("regularization", regularization, above=0)
    Z, labels = torch.tensor(data.Z), torch.tensor(data.y)
    # On the sphere |b relu(a . x~)| is largest, |x~| / 2, at |a| = |b|.
    lengths, n = np.linalg.norm(data.Z, axis=1), len(data)

    def features(positions: Tensor) -> Tensor:
        return labels * positions[:, -1:] * (positions[:, :-1] @ Z.T).relu()

    # Each logistic loss has slopes up to 1 and curvatures up to 1/4; their mean divides by n.
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
