"""The record of what `measure` found: margins in float64, and their normalizations."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..core import logspace
from ..core.arguments import check_flag
from ..core.records import Row, Table, short_repr
from ..core.saved_records import Record
from ..homogeneity import Homogeneity
from ..losses import Loss
from .input_margins import InputMargins
from .intervals import CONFIDENCE
from .quantiles import quantiles
from .spectral import log_spectral_norm
from .summary import list_rows, list_verdict
from .table import Margin, MarginTable

NEAR_SUPPORT = 0.01
"""`support` lists the samples whose margin exceeds the smallest by at most this fraction of it: 1%,
since the margins of support vectors agree in the limit only, and runs stop before it.
"""

FORMULAS = {
    "global": "q / ||theta||^L",
    "layers": "q / prod_i ||W_i||^k_i",
    "partial": "q / ||w||^L_w, w the parameters of positive exponent",
    "quasi": "q e^(-a*), where sum_p e^(-2 a* lambda_p) ||theta_p||^2 = 1",
    "bartlett": "q / (prod_i ||W_i||_2 (sum_i (||W_i||_2,1 / ||W_i||_2)^(2/3))^(3/2))",
    "input": "min_j s_j / ||grad_x s_j||",
    "relative input": "min_j s_j / ||x * grad_x s_j||",
}
"""The rows of `MarginReport.margins` in their order; s_j are the score gaps to other classes."""
_PREFIXES = {"global": "", "layers": "layer_", "partial": "partial_", "quasi": "quasi_"}
"""How histories call these rows: `layer_normalized_margin`, `layer_smoothed_margin` of "layers"."""


def _no_classes() -> Tensor:
    """Of reports that rows of histories are made of, which nobody asks for classes."""
    return torch.empty(0, dtype=torch.int64, device="cpu")


@dataclass(frozen=True)
class MarginReport(Record):
    """Margins of a net on data, in float64, with their normalizations.

    A normalized margin is None where the net lacks the homogeneity that it needs.
    """

    #: (n,), float64, on the CPU: Margins, not normalized: y_n Phi(x_n) for one output, Phi_{y_n} -
    #: max_{j != y_n} Phi_j for several
    q: Tensor
    log_loss: float  #: Natural log of the loss *summed* over samples
    #: Degrees of the net in evaluation mode; for a net blocked by later biases only, with these
    #: biases ignored
    homogeneity: Homogeneity
    norm: float  #: Euclidean norm ||theta|| of all parameters that the normalization counts
    loss: Loss  #: The loss that `log_loss` and the smoothed margins are about
    #: Natural logs of ||theta||^L ("global"), of prod ||W_i||^{k_i} ("layers"), of
    #: ||w_hat||^{L_hat} ("partial") and a* ("quasi", see `margins`); None where the net is not
    #: homogeneous in that sense. That of "bartlett" joins them when it is first asked for.
    log_norms: dict[str, float | None] = field(repr=False)
    #: Why a norm of `log_norms` is None, or what it leaves out, by the same names
    reasons: dict[str, str] = field(default_factory=dict, repr=False)
    #: (n,), int64: The class of each sample, 0 or 1 for one output
    labels: Tensor = field(default_factory=_no_classes, repr=False)
    #: Distances to the decision boundary, where `measure` was asked for them
    input_margins: InputMargins | None = field(default=None, repr=False)
    #: The names of the classes, where they were given; tables show them in place of numbers
    class_names: tuple[str, ...] | None = field(default=None, repr=False)
    #: What is wrong with the scores, and what to do: the net ends in a softmax, a log-softmax or a
    #: sigmoid, its samples see each other, it is noisy, weights are none of its parameters. "" for
    #: others.
    warning: str = field(default="", repr=False)
    #: Whether the scores are probabilities, whose differences are no margins
    saturated: bool = field(default=False, repr=False)
    #: (n,), int64: The class of the largest score but that of the label: the answer, where it is
    #: wrong
    others: Tensor = field(default_factory=_no_classes, repr=False)
    #: The share of samples whose answer is right or nearly right; None where `measure` was not told
    #: what that is
    near_accuracy: float | None = field(default=None, repr=False)
    #: Whether the net was not trained on the samples; None where `measure` was not told
    heldout: bool | None = None
    _chain: list[Tensor] = field(default_factory=list, repr=False, compare=False)
    """The matrices of a chain of layers, until the row "bartlett" is first asked for: their norms
    take as long as a few hundred forward passes.
    """

    _shown = ("n", "accuracy", "q_min", "log10_mean_loss")

    @property
    def n(self) -> int:
        """The number of samples that were measured."""
        return len(self.q)

    @cached_property
    def q_min(self) -> float:
        """The smallest margin; positive exactly when every sample is classified correctly."""
        return self.q.min().item()

    @property
    def order(self) -> int | Fraction | None:
        """The order L of homogeneity in all counted parameters, or None if there is none."""
        return self.homogeneity.order if self.log_norms["global"] is not None else None

    @property
    def answers(self) -> Tensor:
        """The class that the net gives each sample, (N,), int64; never its label where q <= 0."""
        return torch.where(self.q > 0, self.labels, self.others)

    @property
    def accuracy(self) -> float:
        """The share of samples with positive margin, in [0, 1]; ties count as errors."""
        return int(np.count_nonzero(self.q.numpy() > 0)) / self.n

    @property
    def log10_mean_loss(self) -> float:
        """The base-10 log of the *mean* loss, as in the tables of Lyu and Li (2019)."""
        return logspace.log10_mean(self.log_loss, self.n)

    @property
    def margins(self) -> MarginTable:
        """Every normalization of the margins by name: global, layers, partial, quasi, bartlett,
        input and relative input.

        Each has a value, a smoothed value, the normalized margin of every sample with quantiles,
        also class by class, and a note on why it does not apply. "layers" are those of Lyu and Li
        2019, (4) and (5), "partial" those of two-homogeneity 2024, Theorem 3.6. "quasi" are of nets
        in which every bias counts, in every layer: with psi_a, which multiplies parameter p by
        e^{a lambda_p} and the scores by e^a, a* is where psi_{-a*}(theta) has norm 1. They do not
        change along psi, and are the "global" ones where all exponents are 1 / L (beyond the
        papers; the symmetry is that of Kunin et al. 2023).
        """
        return MarginTable(FORMULAS, self._row)

    @property
    def normalized_margin(self) -> float | None:
        """The margin q_min / ||theta||^L, normalized by all parameters (Lyu and Li 2019, (2))."""
        return self._divided("global")[0]

    @property
    def smoothed_margin(self) -> float | None:
        """The smoothed margin l^{-1}(summed loss) / ||theta||^L, never above `normalized_margin`.

        Lyu and Li 2019, Definitions A.3 and F.1.
        """
        return self._divided("global")[1]

    @property
    def error(self) -> float:
        """The share of samples that are not classified correctly; ties count as errors."""
        return int(np.count_nonzero(self.q.numpy() <= 0)) / self.n

    @property
    def error_interval(self) -> tuple[float, float]:
        """Bounds of the error on all data of this kind, with confidence 95% (Clopper, Pearson).

        They hold for samples that the net was not trained on.
        """
        from scipy.stats import binomtest  # late: scipy.stats takes half a second to load

        found = binomtest(int((self.q <= 0).sum()), self.n).proportion_ci(CONFIDENCE)
        return float(found.low), float(found.high)

    @property
    def z(self) -> float | None:
        """The mean of the margins over their standard deviation; None where all are equal.

        On held-out samples it ranks nets as well as the error on one and a half to four times as
        many labels, most where errors are rare. It does not estimate the error. Beyond the papers.
        """
        # The largest margin may be beyond what float64 can square.
        q = self.q / (self.q.abs().max() or 1.0)
        spread = q.std(correction=0).item()
        return q.mean().item() / spread if spread else None

    @property
    def margin_weighted_error(self) -> float | None:
        """The share of wrong margins, sum |q| [q <= 0] / sum |q|; None where all are 0.

        On held-out samples it ranks nets, also those of different kinds. Beyond the papers.
        """
        sizes = self.q.abs() / (self.q.abs().max() or 1.0)
        total = sizes.sum().item()
        return sizes[self.q <= 0].sum().item() / total if total else None

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
        return int(np.count_nonzero(self.q.numpy() <= self.q_min + share * abs(self.q_min)))

    def to_dict(self) -> dict[str, Any]:
        """Return every number but the list of margins, ready for JSON.

        The keys are those of a row of a training history.
        """
        numbers = ("log10_mean_loss", "log_loss", "accuracy", "q_min", "norm")
        found = {prefix: self._divided(name) for name, prefix in _PREFIXES.items()}
        return (
            {name: getattr(self, name) for name in numbers}
            | {"order": None if self.order is None else float(self.order)}
            | {f"{prefix}normalized_margin": value for prefix, (value, _) in found.items()}
            | {f"{prefix}smoothed_margin": smoothed for prefix, (_, smoothed) in found.items()}
            | {"near_support": self.near_support(NEAR_SUPPORT)}
        )

    def summary(self, *, full: bool = False) -> str:
        """Describe the report in at most 12 lines, as `print` does; `full`: all that is known.

        The whole keeps apart how sure the net is of its data, what compares nets, and how far
        optimization has come, which does not compare nets.
        """
        full = check_flag("full", full)
        return self._told(self._table(list_rows if full else list_verdict)).text()

    def __repr__(self) -> str:
        # Normalized margins of a net that is wrong somewhere are negative, and say nothing.
        normalized = ["normalized_margin", "smoothed_margin", "norm", "order"]
        return short_repr(self, *self._shown, *(normalized if self.q_min > 0 else ()))

    def _table(self, rows: Callable[["MarginReport"], list[Row]] = list_verdict) -> Table:
        """The rows of `summary`."""
        kind = {True: "held-out ", False: "training ", None: ""}[self.heldout]
        title = f"Margins of {self.n:,} {kind}sample{'s' * (self.n != 1)}"
        return Table(title, rows(self), warning=self.warning)

    def __getstate__(self) -> dict[str, Any]:
        if self._chain:  # a pickled or saved report holds no weights
            self._row("bartlett")
        return vars(self)

    def __copy__(self) -> "MarginReport":
        return replace(self)  # not by `__getstate__`, which takes long

    def _row(self, name: str) -> Margin:
        """One row of the table `margins`."""
        if name in ("input", "relative input"):
            return self._input_row(name)
        if name == "bartlett" and self._chain:  # a frozen record keeps it in a list
            self.log_norms[name] = log_spectral_norm(self._chain)
            self._chain.clear()
        value, smoothed = self._divided(name)
        note, rest = self.reasons.get(name, ""), (self.q, self.log_norms.get(name) or 0.0)
        return Margin(
            name, FORMULAS[name], value, smoothed, note, self.labels, *rest, self.class_names
        )

    def _divided(self, name: str) -> tuple[float | None, float | None]:
        """The smallest and the smoothed margin in a normalization, or None twice."""
        if (log_norm := self.log_norms.get(name)) is None:
            return None, None
        ratio = logspace.scaled_ratio
        # Where the loss is flat its rounding is far more than that of the margins it is made of.
        smoothed = min(self.loss.inverse_link(self.log_loss), self.q_min)
        return ratio(self.q_min, log_norm), ratio(smoothed, log_norm)

    def _input_row(self, name: str) -> Margin:
        """A row of input margins, "input" or "relative input"; its value is the 25% quantile."""
        found = self.input_margins
        if found is None:
            note = "not measured: nm.measure(..., input_margins=True)"
            return Margin(name, FORMULAS[name], None, None, note, None, self.q)
        distances = found.relative if name.startswith("relative") else found.distances
        # Not the smallest, which is one sample, and of no use to compare nets by.
        (quarter,) = quantiles(distances, (0.25,))
        rest = ("the value is the 25% quantile", found.labels, distances, 0.0, found.class_names)
        return Margin(name, FORMULAS[name], quarter, None, *rest)
