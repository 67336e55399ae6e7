"""Samples with labels or targets as the problem that `slide_columns` solves, and back."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.matrices import Floats, SolverData, floor_to_powers, split_lengths
from ...errors import DataError
from ..contradictions import Contradictions, contradicting_pairs
from .activations import Activation
from .labels import Rivals, Signs
from .losses import LogisticLoss, Loss, QuadraticLoss, hinge_loss, squared_hinge_loss, squared_loss

CONSTRAINTS = ("hard_margin", "equality")
"""Losses that are constraints, which have no cost."""
OF_CLASSES = ("squared_hinge", "hinge", "hard_margin", "logistic")
OF_TARGETS = ("squared", "equality")
_ROUNDING = 1e-9
"""Room for the rounding of sums, relative to their terms: 2e-10 for a million of them."""
_BOUND_ROUNDING = 1e-12
"""The same of a proved bound for each sample: some 1e-15 of the largest sum or singular value."""
_TINY = 1e-300
"""Keeps samples without weight from dividing by 0."""


@dataclass(frozen=True)
class FitProblem:
    """Samples without copies, in units in which inputs and targets have size 1.

    With an activation of degree p, outputs A of neurons are A length^p / size in these units.
    """

    kind: str  # of OF_CLASSES or OF_TARGETS
    Z: np.ndarray  # (m, D), without samples of weight 0
    loss: Loss
    activation: Activation
    length: float
    size: float
    labels: np.ndarray  # (m,) classes, or (m, K) targets, in units of size
    first: np.ndarray  # (m,): a sample of the caller for each
    group: np.ndarray  # (n,): which of them a sample of the caller is
    share: Floats  # (n,): its part of their weights

    @classmethod
    def of(
        cls,
        Z: np.ndarray,
        labels: Any,
        weights: np.ndarray,
        kind: str,
        C: float,
        activation: Activation,
    ) -> "FitProblem":
        """Of inputs Z (n, D), classes (n,) from 0 on or targets (n, K), and weights (n,)."""
        used = np.flatnonzero(weights)
        rows = np.column_stack([Z, labels])[used]
        _, first, groups = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        group = np.zeros(len(Z), int)
        group[used], first = groups.reshape(-1), used[first]
        costs = C * np.bincount(group, weights)
        share = weights * C / costs[group]
        if kind in CONSTRAINTS:
            costs = np.full(len(first), np.inf)
            share = np.isin(np.arange(len(Z)), first).astype(float)
        Z, labels = Z[first], labels[first]
        # Powers of 2, which round nothing; the median one, as a few samples may be far out.
        lengths = split_lengths(Z)[0]
        length = float(floor_to_powers(np.median(lengths[lengths > 0]))) if lengths.any() else 1.0
        size = 1.0
        if kind in OF_TARGETS and labels.any():
            size = float(floor_to_powers(np.abs(labels).max()))
            labels = labels / size
        with np.errstate(over="ignore", under="ignore"):
            unit = float(np.float64(length) ** activation.power)
            costs = costs * (size * unit)
            within = np.isfinite(costs**2) if kind not in CONSTRAINTS else costs > 0
        if not (0 < unit < np.inf and (costs > 0).all() and within.all()):
            raise DataError(
                f"C times inputs of length {length:.0e} is beyond float64. Multiply X, y or C by a"
                " power of 10."
            )
        loss = _build_loss(kind, labels, costs)
        return cls(kind, Z / length, loss, activation, length, size, labels, first, group, share)

    @property
    def unit(self) -> float:
        """What outputs of neurons, norms and objectives are in the caller's units."""
        return self.size / self.length**self.activation.power

    def convert_start(self, W: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Neurons of the caller to begin with. Raises DataError for a wrong shape."""
        shape = self.Z.shape[1], self.loss.labels.outputs
        if (W.shape[1], A.shape[1]) != shape:
            raise DataError(
                f"start must be a net of {shape[0]} inputs, a bias among them, and {shape[1]}"
                f" outputs; it has {W.shape[1]} and {A.shape[1]}."
            )
        return W, A / self.unit

    def find_contradictions(self) -> tuple[np.ndarray, str] | None:
        """Why no net keeps the constraints, if samples on one ray forbid it: weights (m, R) of
        their margins, under which every neuron is worth 0, and the reason in words.
        """
        if self.kind not in CONSTRAINTS or not isinstance(self.loss, QuadraticLoss):
            return None
        even = self.activation.slope * (-1) ** self.activation.power == 1
        tops = np.take_along_axis(self.Z, np.abs(self.Z).argmax(1)[:, None], 1)
        Z = np.where(even & (tops < 0), -1.0, 1.0) * self.Z
        if self.kind == "equality":  # of values on one ray, only those at one point are compared
            ids = np.unique(self.labels, axis=0, return_inverse=True)[1].reshape(-1)
            pairs, valued = contradicting_pairs(Z, ids), self.labels.any(1)
            found = Contradictions(
                pairs, np.flatnonzero(~Z.any(1) & valued), None, "equal", pairs[:0]
            )
        else:
            found = Contradictions.among(SolverData(Z, self.labels), bias=False)
        dual = np.zeros(self.loss.target.shape)
        if len(found.zeros):
            i = found.zeros[0]
            dual[i] = self.loss.target[i]
        elif len(found.pairs):
            i, j = found.pairs[0]
            ratio = (np.abs(tops[i, 0]) / np.abs(tops[j, 0])) ** self.activation.power
            if self.kind == "equality":
                dual[i], dual[j] = self.labels[i] - self.labels[j], self.labels[j] - self.labels[i]
            else:
                # Each over the class of the other: opposite where both have the same outputs.
                K = self.loss.labels.outputs
                dual[[i, j]] = np.eye(K)[self.labels[[j, i]]] if K > 1 else 1.0
                dual[j] *= ratio
        else:
            return None
        named = replace(found, pairs=self.first[found.pairs], zeros=self.first[found.zeros])
        return dual, named.note(dual[:, 0], "")

    def spread_dual(self, p: Floats) -> Floats:
        """Weights (n, R) of the caller's margins for those (m, R) of the problem."""
        return p[self.group, :] * self.share[:, None] * (self.unit / self.size)

    def bound_proved(self, C: np.ndarray) -> float:
        """What coefficients C (m, K) prove of the objective, in the problem's units."""
        largest = bound_responses(self.Z, C, self.activation)
        factor = self.loss.scale(C, 1 / largest if largest > 0 else np.inf)
        if not np.isfinite(factor):
            return 0.0
        bound = self.loss.bound(C * factor)
        # Terms of both signs cancel for targets alone.
        terms = np.abs(C * factor * self.labels).sum() if self.kind in OF_TARGETS else bound
        return max(0.0, bound - _ROUNDING * terms)


def _build_loss(kind: str, labels: np.ndarray, costs: np.ndarray) -> Loss:
    """The loss of this kind of classes (m,) or targets (m, K), with a cost (m,) each."""
    if kind in OF_TARGETS:
        return squared_loss(labels, costs)
    count = int(labels.max()) + 1
    read = Signs(np.where(labels > 0, 1.0, -1.0)[:, None]) if count == 2 else Rivals(labels, count)
    if kind == "logistic":
        return LogisticLoss(read, costs[:, None])
    return squared_hinge_loss(read, costs) if kind == "squared_hinge" else hinge_loss(read, costs)


def bound_responses(Z: np.ndarray, C: np.ndarray, activation: Activation) -> float:
    """At least |sum_n phi(w . z_n) C_n| for every neuron w of length 1; C (n, K). Loose, but cheap.

    phi(t) is a linear function and a multiple of |t|, or at most a multiple of t^2. In a direction
    b of length 1, sum |w . z_n| |C_n . b| is by Cauchy-Schwarz at most the root of sum |C_n| (w .
    z_n)^2 times that of sum (C_n . b)^2 / |C_n|, each of which has a largest value over all w, b.
    """
    sizes = np.linalg.norm(C, axis=1)
    roots = np.sqrt(sizes)[:, None]
    spread = float(np.linalg.norm(roots * Z, 2))
    if activation.power == 2:
        bound = activation.largest * spread**2
    else:
        turned = float(np.linalg.norm(C / np.maximum(roots, _TINY), 2))
        straight = float(np.linalg.norm(Z.T @ C, 2))
        bound = abs(activation.line) * straight + abs(activation.kink) / 2 * spread * turned
    return bound * (1 + _BOUND_ROUNDING * len(Z))
