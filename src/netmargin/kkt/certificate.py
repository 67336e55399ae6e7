"""What a certificate says."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor

from ..core.records import short_repr
from .multipliers import multipliers


class Completeness(StrEnum):
    """Whether the constraints that were looked at suffice. Members are sentences."""

    ALL = "every constraint took part: no other multipliers give a smaller epsilon"
    PROVED = (
        "constraints that took no part could lower the relative epsilon by at most the tolerance"
    )
    OPEN = (
        "constraints that took no part could lower epsilon, down to epsilon_lower; raise"
        " max_constraints"
    )


@dataclass(frozen=True)
class KKTCertificate:
    """How far theta is from a KKT point of (P): min ||theta||^2 / 2 subject to s_nj(theta) >= 1 for
    all samples n and classes j != y_n.

    Everything is at theta~ = theta / q_min^{1/L}, which is feasible. It is an (epsilon, delta)-KKT
    point (Lyu and Li 2019, Definition C.6): epsilon = || theta~ - sum lambda grad s ||, delta = max
    lambda (s - 1), lambda >= 0 chosen for the smallest epsilon. float64.

    epsilon : recomputed by a backward pass with the multipliers.
    epsilon_lower : proved, no multipliers of any constraints do better.
    norm : ||theta~||; epsilon = 0 at a KKT point, = norm with multipliers 0.
    constraints : (m, 2), sample and class of the constraints with positive multipliers (class -1
        for a net with one output), largest multiplier first.
    multipliers : (m,).
    support : their samples.
    alignment : beta, the cosine between theta and -grad(loss).
    loss_epsilon, loss_delta : those of Lemma C.8's multipliers, which are proportional to the
        slopes of the loss.
    lemma_delta : the bound of that lemma on loss_delta, for the exponential loss, the logistic loss
        and the cross-entropy; None where its hypotheses fail.
    radius, radius_epsilon : the smallest epsilon found with gradients from within radius ||theta~||
        of theta~, which is what nets need that sit on kinks (Dutta et al. 2013).
    kink_share : of the pre-activations of the support, the share that the radius reaches.
    """

    epsilon: float
    epsilon_lower: float
    delta: float
    norm: float
    order: float
    q_min: float
    constraints: Tensor
    multipliers: Tensor
    alignment: float
    loss_epsilon: float
    loss_delta: float
    lemma_delta: float | None
    completeness: Completeness
    radius: float
    radius_epsilon: float
    kink_share: float | None
    seconds: float
    samples: int
    _gram: np.ndarray = field(repr=False)
    _values: np.ndarray = field(repr=False)

    def __repr__(self) -> str:
        return short_repr(
            self,
            "relative_epsilon",
            "relative_radius_epsilon",
            "delta",
            "order",
            "q_min",
            "samples",
            "support",
            "completeness",
            "seconds",
        )

    @property
    def relative_epsilon(self) -> float:
        """epsilon / ||theta~||, between 0 and 1: the sine of the angle between theta and the cone
        of constraint gradients.
        """
        return self.epsilon / self.norm

    @property
    def relative_radius_epsilon(self) -> float:
        """radius_epsilon / ||theta~||."""
        return self.radius_epsilon / self.norm

    @property
    def support(self) -> Tensor:
        """Samples with positive multipliers, the largest first, each once."""
        return torch.tensor(list(dict.fromkeys(self.constraints[:, 0].tolist())), dtype=torch.int64)

    def trade_off(self, delta: float) -> float:
        """The smallest epsilon with max lambda (s - 1) <= delta, over the constraints that took
        part; to about 1e-8 of the norm.
        """
        excess = np.maximum(self._values - 1, 0.0)
        with np.errstate(divide="ignore"):
            upper = np.where(excess > 1e-12, delta / np.maximum(excess, 1e-300), np.inf)
        linear = self.order * self._values
        p = multipliers(self._gram, linear, upper)
        return float(np.sqrt(max(self.norm**2 - 2 * linear @ p + p @ self._gram @ p, 0.0)))

    def curve(self, points: int = 9) -> tuple[np.ndarray, np.ndarray]:
        """The trade-off between delta and epsilon: deltas from 1e-4 of the delta above up to it,
        and the epsilons, both (points,).
        """
        deltas = np.geomspace(1e-4, 1.0, points) * max(self.delta, 1e-300)
        return deltas, np.array([self.trade_off(delta) for delta in deltas])

    def to_dict(self) -> dict:
        """Every number, JSON-ready."""
        numbers = (
            "epsilon",
            "epsilon_lower",
            "relative_epsilon",
            "delta",
            "norm",
            "order",
            "q_min",
            "alignment",
            "loss_epsilon",
        )
        more = (
            "loss_delta",
            "lemma_delta",
            "radius",
            "radius_epsilon",
            "relative_radius_epsilon",
            "kink_share",
            "seconds",
            "samples",
        )
        lists = {
            "constraints": self.constraints.tolist(),
            "multipliers": self.multipliers.tolist(),
            "support": self.support.tolist(),
        }
        return (
            {name: getattr(self, name) for name in (*numbers, *more)}
            | {"completeness": str(self.completeness)}
            | lists
        )

    def summary(self) -> str:
        """A page of text."""
        lines = [
            (
                f"epsilon / norm                   {self.relative_epsilon:.3g}  (0: a KKT point of"
                " the max-margin problem; 1: nothing like one)"
            ),
            f"  at least                       {self.epsilon_lower / self.norm:.3g}",
            f"delta                            {self.delta:.3g}",
            f"cosine of theta and -grad loss   {self.alignment:.9f}",
            (
                "  the loss's own multipliers     epsilon / norm"
                f" {self.loss_epsilon / self.norm:.3g}, delta {self.loss_delta:.3g}"
            ),
            (
                f"rests on                         {len(self.support)} of {self.samples} samples,"
                f" by {len(self.multipliers)} constraints"
            ),
        ]
        if self.radius > 0:
            shown = (
                ""
                if self.kink_share is None
                else f"; {100 * self.kink_share:.2g}% of the pre-activations are that near a kink"
            )
            lines.insert(
                2,
                f"  with gradients within {self.radius:.0e}  "
                f" {self.relative_radius_epsilon:.3g}{shown}",
            )
        heaviest = ", ".join(str(n) for n in self.support[:10].tolist())
        return "\n".join(
            [*lines, f"heaviest support samples         {heaviest}", str(self.completeness)]
        )
