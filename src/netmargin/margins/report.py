"""The record of what `measure` found: margins in float64, and their normalizations."""

from dataclasses import dataclass, field
from fractions import Fraction

import torch
from torch import Tensor

from ..core import logspace
from ..core.records import short_repr
from ..core.saved_records import Record
from ..homogeneity import Homogeneity
from ..losses import Loss

NEAR_SUPPORT = 0.01
"""`support` lists the samples whose margin exceeds the smallest by at most this fraction of it: 1%,
since the margins of support vectors agree in the limit only, and runs stop before it.
"""


@dataclass(frozen=True)
class MarginReport(Record):
    """Margins of a net on data, in float64, with their normalizations.

    A normalized margin is None where the net lacks the homogeneity that it needs.

    Attributes
    ----------
    q : Tensor, shape (N,), float64, on the CPU
        Margins, not normalized: y_n Phi(x_n) for one output, Phi_{y_n} - max_{j != y_n} Phi_j for
        several.
    log_loss : float
        Natural log of the loss *summed* over samples.
    homogeneity : Homogeneity
        Degrees of the net in evaluation mode; for a net blocked by later biases only, with these
        biases ignored.
    norm : float
        Euclidean norm ||theta|| of all parameters that the normalization counts.
    loss : Loss
        The loss that `log_loss` and the smoothed margins are about.
    log_norms : dict
        Natural logs of ||theta||^L ("global"), of prod ||W_i||^{k_i} ("layers") and of
        ||w_hat||^{L_hat} ("partial"); None where the net is not homogeneous in that sense.
    """

    q: Tensor
    log_loss: float
    homogeneity: Homogeneity
    norm: float
    loss: Loss
    log_norms: dict[str, float | None] = field(repr=False)

    def __repr__(self) -> str:
        return short_repr(
            self,
            "n",
            "accuracy",
            "q_min",
            "normalized_margin",
            "layer_normalized_margin",
            "log10_mean_loss",
            "norm",
            "order",
        )

    @property
    def n(self) -> int:
        """The number of samples that were measured."""
        return len(self.q)

    @property
    def q_min(self) -> float:
        """The smallest margin; positive exactly when every sample is classified correctly."""
        return self.q.min().item()

    @property
    def order(self) -> int | Fraction | None:
        """The order L of homogeneity in all counted parameters, or None if there is none."""
        return self.homogeneity.order if self.log_norms["global"] is not None else None

    @property
    def accuracy(self) -> float:
        """The share of samples with positive margin, in [0, 1]; ties count as errors."""
        return (self.q > 0).double().mean().item()

    @property
    def log10_mean_loss(self) -> float:
        """The base-10 log of the *mean* loss, as in the tables of Lyu and Li (2019)."""
        return logspace.log10_mean(self.log_loss, self.n)

    @property
    def normalized_margin(self) -> float | None:
        """The margin q_min / ||theta||^L, normalized by all parameters (Lyu and Li 2019, (2))."""
        return self._normalized(self.q_min, "global")

    @property
    def layer_normalized_margin(self) -> float | None:
        """The margin q_min / prod ||W_i||^{k_i}, normalized layer by layer.

        Lyu and Li 2019, (4); in Table 1 and Figure 1 there.
        """
        return self._normalized(self.q_min, "layers")

    @property
    def partial_normalized_margin(self) -> float | None:
        """The margin q_min / ||w_hat||^L over the parameters w_hat with positive exponent only.

        Two-homogeneity 2024, Theorem 3.6.
        """
        return self._normalized(self.q_min, "partial")

    @property
    def smoothed_margin(self) -> float | None:
        """The smoothed margin l^{-1}(summed loss) / ||theta||^L, never above `normalized_margin`.

        Lyu and Li 2019, Definitions A.3 and F.1.
        """
        return self._normalized(self.loss.inverse_link(self.log_loss), "global")

    @property
    def layer_smoothed_margin(self) -> float | None:
        """The smoothed margin l^{-1}(summed loss) / prod ||W_i||^{k_i} (Lyu and Li 2019, (5))."""
        return self._normalized(self.loss.inverse_link(self.log_loss), "layers")

    @property
    def partial_smoothed_margin(self) -> float | None:
        """The smoothed margin l^{-1}(summed loss) / ||w_hat||^L (two-homogeneity, Theorem 3.6)."""
        return self._normalized(self.loss.inverse_link(self.log_loss), "partial")

    @property
    def support(self) -> Tensor:
        """The indices of the samples within 1% of the smallest margin, smallest margin first.

        int64, shape (k,). The samples of a stream are numbered in its order of iteration.
        """
        # Stable, so that equal margins stay in the order of the samples.
        order = torch.argsort(self.q, stable=True)
        return order[self.q[order] <= self.q_min + NEAR_SUPPORT * abs(self.q_min)]

    def near_support(self, share: float) -> int:
        """Return how many margins exceed the smallest by at most `share` of it."""
        return int((self.q <= self.q_min + share * abs(self.q_min)).sum())

    def to_dict(self) -> dict:
        """Return every number but the list of margins, ready for JSON.

        The keys are those of a row of a training history.
        """
        return {
            "log10_mean_loss": self.log10_mean_loss,
            "log_loss": self.log_loss,
            "accuracy": self.accuracy,
            "q_min": self.q_min,
            "norm": self.norm,
            "order": None if self.order is None else float(self.order),
            "normalized_margin": self.normalized_margin,
            "layer_normalized_margin": self.layer_normalized_margin,
            "partial_normalized_margin": self.partial_normalized_margin,
            "smoothed_margin": self.smoothed_margin,
            "layer_smoothed_margin": self.layer_smoothed_margin,
            "partial_smoothed_margin": self.partial_smoothed_margin,
            "near_support": self.near_support(NEAR_SUPPORT),
        }

    def summary(self) -> str:
        """Return a page of text: sizes, margins, their normalizations and what blocks them."""
        quantiles = torch.quantile(
            self.q, torch.tensor([0.01, 0.5, 0.99], dtype=torch.float64)
        ).tolist()
        lines = [
            (
                f"{self.n} samples, {100 * self.accuracy:.2f}% correct, log10 mean {self.loss.name}"
                f" loss {self.log10_mean_loss:.3f}"
            ),
            f"smallest margin q_min            {self.q_min:.6g}",
            (
                f"margins at 1%, 50%, 99%          {quantiles[0]:.4g}, {quantiles[1]:.4g},"
                f" {quantiles[2]:.4g}"
            ),
            f"norm of the parameters           {self.norm:.6g}",
            f"order of homogeneity             {'none' if self.order is None else self.order}",
            f"normalized margin                {_describe_margin(self.normalized_margin)}",
            f"  divided by the layer product   {_describe_margin(self.layer_normalized_margin)}",
            f"  over the scaled part only      {_describe_margin(self.partial_normalized_margin)}",
            f"smoothed normalized margin       {_describe_margin(self.smoothed_margin)}",
            f"samples within 1%, 10% of q_min  {self.near_support(0.01)}, {self.near_support(0.1)}",
        ]
        lines += [f"homogeneity: {line}" for line in self.homogeneity.accuracy_lines()[:1]]
        lines += [f"note: {note}" for note in self.homogeneity.notes]
        if self.order is None:
            lines += [f"blocked by {blocker}" for blocker in self.homogeneity.blockers]
        return "\n".join(lines)

    def _normalized(self, value: float, how: str) -> float | None:
        log_norm = self.log_norms[how]
        return None if log_norm is None else logspace.scaled_ratio(value, log_norm)


def _describe_margin(value: float | None) -> str:
    """A normalized margin in the summary, or why there is none."""
    return "none: the net is not homogeneous in this sense" if value is None else f"{value:.6g}"
