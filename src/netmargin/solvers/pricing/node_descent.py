"""Good multipliers for the bounds of nodes, by descent from those of their parents.

What is minimized is the bound of `node_bound`, smoothed by -eps log det(mu I - W), with mu at its
minimum, where eps tr S^{-1} + |w|^2 = 1 for S = mu I - W and w = S^{-1} h / 2. Its derivatives in
the multipliers are those of h . w + <W, M> with M = eps S^{-1} + w w'. It is jointly convex in
tau, nu, a, b. A node takes a few steps of Adam (Kingma and Ba 2015), many nodes at once; mu follows
by one Newton step each. Nothing here is trusted: `SignedTerms.judge` decides what a node proves.
"""

import torch
from torch import Tensor

from .node_bound import Nodes, Quadratics, SignedTerms

_RATE, _MOMENTUM, _MEMORY = 0.1, 0.8, 0.9
"""Step length and the two averages of Adam: 12 steps reach as far as they can with these."""
_JUDGED_EVERY = 4
"""Steps after which nodes are judged, which costs about as much as a step."""
_LAST_NEWTON_STEPS = 2
"""Steps from the smoothed mu to that of the bound itself: it is nearly reached after two."""
_SAFE = 0.9
"""mu - 1 / tr S^{-1} is above the largest eigenvalue of W; so much of the way keeps a distance."""
_ABOVE_ROUNDING = 1 + 1e-12
"""Over the largest eigenvalue of a matrix, whose rounding would hide a smaller step."""
_TINY = 1e-300
"""Keeps what is 0 from dividing by 0."""


class NodeDescent:
    """Descent of the bounds of nodes: those with a bound up to `target` are closed, and the search
    ends at a point above it. `best` is the largest sum that was met, at the unit vector `witness`.
    """

    def __init__(self, terms: SignedTerms, target: float) -> None:
        self._terms, self._target = terms, target
        self._identity = torch.eye(terms.dimension, dtype=torch.float64, device="cpu")
        self.best, self.witness = -float("inf"), torch.zeros_like(self._identity[0])

    def descend(
        self, nodes: Nodes, steps: int, smoothing: float, *, first: float = 0.0, decay: float = 1.0
    ) -> Nodes:
        """Take so many steps, smoothed by eps = `smoothing`, or from `first` on down to it by the
        factor `decay`; returns the nodes that stay open, with their bounds and branches. All others
        are proved to be at most the target, unless `best` exceeds it.
        """
        momentum = [torch.zeros_like(part) for part in (nodes.scale, nodes.a, nodes.b)]
        eps = max(first, smoothing)
        for step in range(steps + 1):
            above = self._terms.form_quadratics(nodes)
            inverse = self._invert(nodes, above, eps)
            last = step == steps
            if last or step % _JUDGED_EVERY == _JUDGED_EVERY - 1:
                self._judge(nodes, above, inverse, _LAST_NEWTON_STEPS if last else 1)
                keep = nodes.bound > self._target
                if self.best > self._target or not keep.any():
                    return nodes.select(keep)
                if not keep.all():
                    nodes, above, inverse = nodes.select(keep), above.select(keep), inverse[keep]
                    momentum = [part[keep] for part in momentum]
            w = 0.5 * _times(inverse, above.linear)
            trace = inverse.diagonal(dim1=1, dim2=2).sum(1)
            reached = eps * trace + w.square().sum(1)
            # Of trace 1, as it is at the optimum: the inherited speeds would explode otherwise.
            moment = (eps * inverse + w[:, :, None] * w[:, None, :]) / reached[:, None, None]
            w_scaled = w / reached[:, None]
            if last:
                break
            slope = -eps * inverse.square().sum((1, 2)) - 2 * (w * _times(inverse, w)).sum(1)
            nodes.mu = _newton_step(nodes.mu, reached, slope, trace)
            self._step(nodes, above.tau, moment, w_scaled, momentum, step)
            eps = max(eps * decay, smoothing)
        nodes.branch = self._choose_branches(nodes, moment, w_scaled)
        return nodes

    def _invert(self, nodes: Nodes, above: Quadratics, eps: float) -> Tensor:
        """The inverses (B, D, D) of mu I - W; mu is raised where it is not positive definite."""
        factor, failed = torch.linalg.cholesky_ex(self._subtract(nodes.mu, above.matrix))
        if failed.any():
            bad = failed.nonzero()[:, 0]
            # Of numbers beyond float64, LAPACK would find no eigenvalues.
            finite = above.matrix[bad].nan_to_num(0.0, 0.0, 0.0)
            largest = torch.linalg.eigvalsh(finite)[:, -1].clamp_min(0.0) * _ABOVE_ROUNDING
            # Somewhere below the optimum, from where Newton's method converges.
            nodes.mu[bad] = largest + 0.2 * above.linear[bad].norm(dim=1) + eps
            factor[bad], failed = torch.linalg.cholesky_ex(
                self._subtract(nodes.mu[bad], above.matrix[bad])
            )
            # Without a factorization nothing is proved: at mu = inf no bound is a number.
            nodes.mu[bad[failed > 0]] = torch.inf
            factor[bad[failed > 0]] = self._identity
        # The upper triangle's memory order: symmetric, so that this is a view in the right order.
        return torch.cholesky_inverse(factor).mT

    def _subtract(self, mu: Tensor, matrix: Tensor) -> Tensor:
        """The matrices mu I - W."""
        return mu[:, None, None] * self._identity - matrix

    def _judge(self, nodes: Nodes, above: Quadratics, inverse: Tensor, newton_steps: int) -> None:
        """Improve the bounds of nodes with the best mu; keep the best of the points w."""
        mu = nodes.mu
        for more in range(newton_steps + 1):
            w = 0.5 * _times(inverse, above.linear)
            # `fmin`, as numbers beyond float64 prove nothing.
            nodes.bound = torch.fmin(nodes.bound, self._terms.judge(above, mu, w))
            if more == newton_steps or not (nodes.bound > self._target).any():
                break
            slope = -2 * (w * _times(inverse, w)).sum(1) - _TINY
            trace = inverse.diagonal(dim1=1, dim2=2).sum(1)
            moved = _newton_step(mu, w.square().sum(1), slope, trace).clamp_min(0.0)
            factor, failed = torch.linalg.cholesky_ex(self._subtract(moved, above.matrix))
            if failed.any():
                break
            mu, inverse = moved, torch.cholesky_inverse(factor).mT
        points = w / w.norm(dim=1, keepdim=True).clamp_min(_TINY)
        values = self._terms.values(points)
        top = int(values.argmax())
        if values[top] > self.best:
            self.best, self.witness = float(values[top]), points[top]

    def _step(
        self,
        nodes: Nodes,
        tau: Tensor,
        moment: Tensor,
        w: Tensor,
        momentum: list[Tensor],
        step: int,
    ) -> None:
        """One step of Adam in all multipliers but mu, back onto where they are valid."""
        terms, undecided, P = self._terms, nodes.side == 0, self._terms.positive
        rows, along = moment.reshape(-1, terms.dimension), w @ terms.X.T
        quadratic = ((rows @ terms.XP.T).view(len(w), -1, P) * terms.XP.T).sum(1)
        slopes = [
            torch.where(
                undecided,
                0.25 * terms.cP * (tau * quadratic - 1 / tau),
                terms.mean * nodes.side * along[:, :P],
            ),
            -0.5 * terms.dN * along[:, P:],
            (rows @ terms.half_dX.T).view_as(nodes.b),
        ]
        for part, slope in zip(momentum, slopes, strict=True):
            part.lerp_(slope, 1 - _MOMENTUM)
        rate = _RATE / (1 - _MOMENTUM ** (step + 1))
        nodes.scale_speed = _average(nodes.scale_speed, slopes[0].square_())
        moved = nodes.scale - rate * momentum[0] / nodes.scale_speed.sqrt().add_(_TINY)
        nodes.scale = torch.where(undecided, moved, moved.clamp_min(0.0))
        # One speed for a and b together: with several, the projection has wrong fixed points.
        squares = slopes[1].square_() + slopes[2].square_().sum(1)
        nodes.cone_speed = _average(nodes.cone_speed, squares)
        length = rate / nodes.cone_speed.sqrt().add_(_TINY)
        nodes.a, nodes.b = _project(
            nodes.a - length * momentum[1], nodes.b - length[:, None] * momentum[2]
        )

    def _choose_branches(self, nodes: Nodes, moment: Tensor, w: Tensor) -> Tensor:
        """The undecided sample of each node whose term the bound overestimates most."""
        XP = self._terms.XP
        images = (moment.reshape(-1, len(XP.T)) @ XP.T).view(len(w), -1, len(XP))
        spread = (images * XP.T).sum(1).clamp_min_(0.0).sqrt_()
        gain = self._terms.cP * (spread - 0.5 * (w @ XP.T).abs())
        gain = torch.where(nodes.side == 0, gain, -torch.inf)
        if not gain.shape[1]:
            return torch.full_like(nodes.branch, -1)
        return torch.where((nodes.side == 0).any(1), gain.argmax(1), -1)


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    """The products (B, D) of matrices (B, D, D) and vectors (B, D)."""
    return torch.matmul(matrix, vector[:, :, None])[:, :, 0]


def _newton_step(mu: Tensor, reached: Tensor, slope: Tensor, trace: Tensor) -> Tensor:
    """One step towards the mu above the eigenvalues of W with `reached` 1, whose slope is given."""
    # reached^(-1/2) is nearly linear in mu.
    moved = mu + 2 * reached * (1 - reached.sqrt()) / slope
    return torch.maximum(moved, mu - _SAFE / trace)


def _average(speed: Tensor, squares: Tensor) -> Tensor:
    """The running mean of squares, which begins with the first of them."""
    return torch.where(speed == 0, squares, _MEMORY * speed + (1 - _MEMORY) * squares)


def _project(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Project a (B, N) and b (B, D, N) onto |a| + |b| <= 1; changes b."""
    size_a, size_b = a.abs(), b.square().sum(1).sqrt_()
    excess = 0.5 * (size_a + size_b - 1).clamp_min_(0.0)
    # Where one of the two would become negative, it is 0 and the other at most 1.
    new_a = (size_a - excess).clamp_(0.0, 1.0)
    new_b = torch.minimum((size_b - excess).clamp_min_(0.0), 1 - new_a)
    b *= (new_b / size_b.clamp_min_(_TINY))[:, None]
    return torch.copysign(new_a, a), b
