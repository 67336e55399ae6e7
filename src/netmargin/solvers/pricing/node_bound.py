"""The bound of a node: the most that a sum of signed ReLUs takes on a part of the unit ball.

The sum is f(w) = sum_P c relu(z) - sum_N d relu(z) with z = w . x and c, d > 0, and the part says
on which side of some hyperplanes of samples in P the point w lies. Each term is bounded by a
function that is at most quadratic in w, |w| <= 1:

* undecided in P: c relu(z) <= c z / 2 + (c / 4)(tau z^2 + 1 / tau) for every tau > 0;
* decided in P: c z on the active side, 0 on the other; and as sigma z >= 0 for its side sigma, -1
  or +1, nu sigma z may be added for every nu >= 0;
* in N: -d relu(z) <= -(d / 2)((1 + a) z + z (b . w)) for every number a and vector b with |a| + |b|
  <= 1, because |z| >= |a| |z| + |b| |w| |z|.

The sum of these is constant + h . w + w'W w. Its maximum over the ball is at most constant + mu +
h'(mu I - W)^{-1} h / 4 for every mu >= 0 for which mu I - W is positive definite. So every choice
of the multipliers tau, nu, a, b and mu proves a bound; only how good it is depends on them, and
children inherit them. The vector b is what makes bounds good: at the root of 118 samples in 15
dimensions they are 2.7 times the maximum with it and 6.6 times without.
"""

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from ...core.matrices import EPS, split_lengths


@dataclass
class Nodes:
    """The multipliers of B nodes, and what they hand on to their children; float64."""

    side: Tensor  # (B, P): of each hyperplane, +1 active, -1 inactive, 0 undecided
    scale: Tensor  # (B, P): log tau of undecided samples, nu of decided ones in units of mean |c|
    a: Tensor  # (B, N), with b the multipliers of negative terms, |a| + |b| <= 1
    b: Tensor  # (B, D, N)
    mu: Tensor  # (B,): the multiplier of the ball
    scale_speed: Tensor  # (B, P): mean squares of past gradients, 0 for none, for step lengths
    cone_speed: Tensor  # (B, N): the same for a and b
    share: Tensor  # (B,): the share of the tree below the node, 2^-depth
    bound: Tensor  # (B,): the best bound proved so far
    branch: Tensor  # (B,), int: the sample in P to decide next, -1 where none is left

    def __len__(self) -> int:
        return len(self.mu)

    def select(self, index: Tensor | slice) -> "Nodes":
        """Some of the nodes."""
        return Nodes(*(getattr(self, field.name)[index] for field in fields(self)))

    @staticmethod
    def join(parts: "list[Nodes]") -> "Nodes":
        """All nodes of several groups."""
        if len(parts) == 1:
            return parts[0]
        return Nodes(
            *(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Nodes))
        )


@dataclass
class Quadratics:
    """The functions constant + h . w + w'W w of B nodes that lie above the sum."""

    constant: Tensor  # (B,)
    linear: Tensor  # (B, D): the vectors h
    matrix: Tensor  # (B, D, D): the matrices W
    tau: Tensor  # (B, P): the multipliers, meaningless at decided samples
    size: Tensor  # (B,): the sum of absolute values of all terms, which rounding is relative to

    def select(self, index: Tensor) -> "Quadratics":
        """Some of them."""
        return Quadratics(*(getattr(self, field.name)[index] for field in fields(self)))


class SignedTerms:
    """The sum f(w) = sum_i c_i relu(w . x_i), not all c_i = 0, its terms sorted by sign."""

    def __init__(self, X: np.ndarray, c: np.ndarray) -> None:
        order = np.concatenate([np.flatnonzero(c > 0), np.flatnonzero(c < 0)])
        self.X = torch.from_numpy(np.ascontiguousarray(X[order]))
        self.c = torch.from_numpy(np.ascontiguousarray(c[order]))
        self.positive, self.dimension = int((c > 0).sum()), X.shape[1]
        self.XP, self.XN = self.X[: self.positive], self.X[self.positive :]
        self.cP, self.dN = self.c[: self.positive], -self.c[self.positive :]
        self.half_dX = -0.5 * self.dN[:, None] * self.XN
        self.mean = float(self.c.abs().mean())
        self.lengths = torch.from_numpy(split_lengths(X[order])[0])
        # A sum of so many terms is off by at most so many ulps of its absolute terms; 4 is ample.
        self._ulps = 4 * (len(self.c) + self.dimension + 32) * EPS

    def values(self, W: Tensor) -> Tensor:
        """The sums f(w) for each row w of W (k, D)."""
        return torch.relu(W @ self.X.T) @ self.c

    def form_quadratics(self, nodes: Nodes) -> Quadratics:
        """The quadratic functions above f on the parts of the ball that the nodes stand for."""
        undecided = nodes.side == 0
        tau = torch.where(undecided, nodes.scale, 0.0).exp_()
        curvature = torch.where(undecided, 0.25 * self.cP * tau, 0.0)
        constant = torch.where(undecided, 0.25 * self.cP / tau, 0.0).sum(1)
        slope = torch.where(
            undecided,
            0.5 * self.cP,
            self.cP * (nodes.side > 0) + self.mean * nodes.scale * nodes.side,
        )
        factor = torch.cat([slope, -0.5 * self.dN * (1 + nodes.a)], 1)
        # Samples come last, so that all nodes are one product of matrices.
        curved = curvature[:, None, :] * self.XP.T
        matrix = curved.flatten(0, 1) @ self.XP
        matrix += nodes.b.flatten(0, 1) @ self.half_dX
        matrix = matrix.view(len(nodes), self.dimension, self.dimension)
        size = (
            constant
            + (factor.abs() + self.c.abs()) @ self.lengths
            + curvature @ self.lengths[: self.positive].square()
        )
        return Quadratics(
            constant, factor @ self.X, 0.5 * (matrix + matrix.transpose(1, 2)), tau, size
        )

    def judge(self, above: Quadratics, mu: Tensor, w: Tensor) -> Tensor:
        """Upper bounds (B,) of the functions over the ball, proved in float64.

        Wanted are multipliers mu (B,) for which a Cholesky factorization of mu I - W was found,
        and about the w (B, D) that solves 2 (mu I - W) w = h.

        With S = (mu + room) I - W and the residual r = h - 2 S w,

            h'S^{-1} h / 4 = h . w - w'S w + r'S^{-1} r / 4.

        The factorization proves that the smallest eigenvalue of S is at least room / 2, since
        rounding in W and in the factors is less than that; so the last term is at most |r|^2 /
        (2 room), however w was found.
        """
        size = above.size + mu
        room = 2 * self.dimension * self._ulps * size
        S_w = (mu + room)[:, None] * w - torch.matmul(above.matrix, w[:, :, None])[:, :, 0]
        residual = above.linear - 2 * S_w
        bound = (
            above.constant
            + (mu + room)
            + ((above.linear - S_w) * w).sum(1)
            + residual.square().sum(1) / (2 * room)
        )
        return bound + self._ulps * size * (1 + w.square().sum(1))
