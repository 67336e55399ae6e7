"""The record that `certify` returns."""

from dataclasses import dataclass, field, fields
from decimal import ROUND_FLOOR
from enum import StrEnum
from typing import Any

import numpy as np
from torch import Tensor

from ..core.arguments import check_number
from ..core.records import Certainty, Row, Table, number, values_of
from ..core.saved_records import Record
from ..result import Status
from .multipliers import multipliers

_NOTABLE_ROUNDING = 1e-3
"""A share of q_min from which its rounding is said: numbers are shown with three digits."""


class Completeness(StrEnum):
    """Whether the constraints that took part suffice; the members are sentences."""

    ALL = (
        "every constraint took part: other multipliers lower the relative epsilon by at most the"
        " tolerance (proved but for rounding, which is measured)"
    )
    PROVED = (
        "constraints that took no part could lower the relative epsilon by at most the tolerance"
        " (proved but for rounding, which is measured)"
    )
    OPEN = (
        "other multipliers could lower epsilon, down to epsilon_lower; where constraints took no"
        " part, raise max_constraints"
    )


@dataclass(frozen=True)
class KKTCertificate(Record):
    """A certificate of how far theta is from a KKT point of (P), from `certify`.

    (P): min ||theta||^2 / 2 subject to s_nj(theta) >= 1, with s_nj = Phi_{y_n} - Phi_j for all j !=
    y_n, or y_n Phi for a net with one output. Everything is at theta~ = theta / q_min^{1/L}, whose
    smallest s is 1, in float64. It is an (epsilon, delta)-KKT point: epsilon = || theta~ - sum
    lambda grad s ||, delta = max lambda (s - 1), with lambda >= 0 for the smallest epsilon.

    Source: Lyu and Li 2019, Definition C.6 and Lemma C.8.
    """

    #: The smallest epsilon found, recomputed by a backward pass with the multipliers
    epsilon: float
    #: A lower bound of every epsilon, proved but for rounding, which is measured and allowed for
    epsilon_lower: float
    delta: float  #: The largest lambda (s - 1)
    #: ||theta~||; epsilon is 0 at a KKT point, and equal to the norm with multipliers 0
    norm: float
    order: float  #: L, over the parameters that the norm is of
    q_min: float  #: The smallest margin of the net itself
    #: The share of q_min by which the rounding of float64 may change it, as measured, see
    #: docs/conventions.md. Multipliers and delta are no more accurate.
    q_rounding: float
    #: (m, 2): Sample and class of the constraints with positive multipliers (class -1 for a net
    #: with one output), largest multiplier first
    constraints: Tensor
    multipliers: Tensor  #: (m,): The multipliers lambda of these constraints
    #: The cosine between theta and -grad(loss), beta in the paper; on kinks with the gradient that
    #: autograd gives, so not that of a flow that slides along them (`Trajectory`)
    alignment: float
    #: Epsilon of Lemma C.8's multipliers, which are proportional to the slopes of the loss; not
    #: relative, as `epsilon`
    loss_epsilon: float
    loss_delta: float  #: Delta of these multipliers
    #: The bound of that lemma on loss_delta; for a `Loss` of yours with the K that `check_b3`
    #: measures. None where its hypotheses fail.
    lemma_delta: float | None
    completeness: Completeness  #: Whether the constraints that took part suffice
    #: FINISHED, or INTERRUPTED: both epsilons and the lower bound hold, but could be tighter
    status: Status
    radius: float  #: The radius within which gradients were taken, relative to ||theta~||, or 0
    #: The smallest epsilon found with them, for nets that sit on kinks (Dutta et al. 2013)
    radius_epsilon: float
    #: Its own delta: the largest lambda (s - 1), with s at theta~ and lambda added up over the
    #: gradients of a constraint; other multipliers of the same epsilon may have less
    radius_delta: float
    #: The share of pre-activations of the support that are within the radius of a kink
    kink_share: float | None
    seconds: float  #: Wall-clock time of the computation
    samples: int  #: The number of samples
    _gram: np.ndarray = field(repr=False)
    _values: np.ndarray = field(repr=False)

    _shown = (
        "relative_epsilon",
        "relative_radius_epsilon",
        "radius_delta",
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
        """The sine of the angle between theta and the cone of constraint gradients.

        It is epsilon / ||theta~||, between 0 and 1.
        """
        return self.epsilon / self.norm

    @property
    def relative_radius_epsilon(self) -> float:
        """The quotient radius_epsilon / ||theta~||, between 0 and 1."""
        return self.radius_epsilon / self.norm

    @property
    def relative_loss_epsilon(self) -> float:
        """The quotient loss_epsilon / ||theta~||, 0 to sqrt 2, as the multipliers are not free."""
        return self.loss_epsilon / self.norm

    @property
    def support(self) -> Tensor:
        """The samples with positive multipliers, largest first, each once, int64."""
        samples = self.constraints[:, 0]
        return samples.new_tensor(list(dict.fromkeys(samples.tolist())))

    def trade_off(self, delta: float) -> float:
        """Compute the smallest epsilon with max lambda (s - 1) <= delta, of gradients at theta~.

        It is over the constraints that took part, and accurate to about 1e-8 of the norm. Raises
        ArgumentError for a delta below 0.
        """
        delta = check_number("delta", delta, at_least=0, infinite=True)
        # A multiplier may be at most delta / (s - 1); on the margin it has no bound.
        excess = np.maximum(self._values - 1, 0.0)
        with np.errstate(divide="ignore"):
            upper = np.where(excess > 1e-12, delta / np.maximum(excess, 1e-300), np.inf)
        linear = self.order * self._values
        p = multipliers(self._gram, linear, upper)
        return float(np.sqrt(max(self.norm**2 - 2 * linear @ p + p @ self._gram @ p, 0.0)))

    def curve(self, points: int = 9) -> tuple[np.ndarray, np.ndarray]:
        """Compute the trade-off between delta and epsilon as two arrays of shape (points,).

        The deltas go from 1e-4 of this certificate's delta up to it; the epsilons follow from
        `trade_off`.
        """
        deltas = np.geomspace(1e-4, 1.0, points) * max(self.delta, 1e-300)
        return deltas, np.array([self.trade_off(delta) for delta in deltas])

    def to_dict(self) -> dict[str, Any]:
        """Return every number as JSON-ready values."""
        public = [field.name for field in fields(self) if not field.name.startswith("_")]
        relative = ("relative_epsilon", "relative_radius_epsilon", "relative_loss_epsilon")
        return values_of(self, *public, *relative, "support")

    def _table(self) -> Table:
        """How far the net is from a KKT point, what is proved of it, and what it rests on."""
        least = number(self.epsilon_lower / self.norm, ROUND_FLOOR)
        rows: list[Row] = [
            ("relative epsilon", (number(self.relative_epsilon), Certainty.MEASURED)),
            "Epsilon over the norm of the weights. 0: a KKT point, where to first order no small"
            " change of the weights of a smooth net gains margin; 1: nothing like one.",
            ("no multipliers give less than", (least, Certainty.PROVED)),
            "Proved but for rounding, which is measured, for exactly these weights.",
        ]
        if self.radius > 0:
            near = number(self.relative_radius_epsilon)
            rows.append((f"with gradients within {self.radius:.0e}", (near, Certainty.MEASURED)))
            rows.append(
                "Within this share of the norm of the weights gradients jump at kinks: for ReLU"
                " nets this number counts, with the next. Delta and cosine below are of radius 0."
            )
            rows.append(("and delta", (number(self.radius_delta), Certainty.MEASURED)))
            if self.kink_share is not None:
                rows.append(("pre-activations that near a kink", f"{100 * self.kink_share:.2g}%"))
        epsilon, delta = number(self.relative_loss_epsilon), number(self.loss_delta)
        pairs = f"{len(self.multipliers):,} pairs of a sample and a rival class"
        rows += [
            ("delta", (number(self.delta), Certainty.MEASURED)),
            "The largest product of a multiplier and what its score gap exceeds 1 by: 0 at a KKT"
            " point. trade_off(delta) is the epsilon that less leaves.",
            ("cosine of theta and -grad loss", f"{self.alignment:.9f}"),
            ("by the loss's own multipliers", f"relative epsilon {epsilon}, delta {delta}"),
            ("support", f"{len(self.support):,} of {self.samples:,} samples, by {pairs}"),
            ("the heaviest", ", ".join(map(str, self.support[:10].tolist()))),
        ]
        if self.q_rounding > _NOTABLE_ROUNDING:
            held = f"{self.q_min:.3g}, holds to a part of {self.q_rounding:.1g}"
            said = f"the smallest margin, {held}, and so do delta and the multipliers"
            rows.append(("rounding", said))
        rows += [("completeness", str(self.completeness)), ("status", str(self.status))]
        return Table("Certificate of a max-margin point", rows)
