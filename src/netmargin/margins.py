"""Margins of a net on data, and every normalization of them."""

import math
import warnings
from dataclasses import dataclass, field
from fractions import Fraction

import torch
from torch import Tensor, nn

from .core import logspace
from .core.accepted_models import check_model, noise_of, require_finite
from .core.arguments import check_count, check_instance
from .core.batches import Data, Labels, batches, open_data
from .core.nets import in_mode, scores
from .core.records import short_repr
from .errors import ModelError, NonFiniteOutputError, NotHomogeneousError
from .homogeneity import Homogeneity, Kind, analyse
from .losses import Loss, as_loss

NEAR_SUPPORT = 0.01
"""`support` lists the samples whose margin exceeds the smallest by at most this fraction of it."""


@dataclass(frozen=True)
class MarginReport:
    """Margins of a net on data, in float64, with their normalizations.

    q : margins, shape (N,), on the CPU: y_n Phi(x_n) for one output, Phi_{y_n} - max_{j != y_n}
        Phi_j for several.
    log_loss : natural log of the loss *summed* over samples.
    homogeneity : of the net, in evaluation mode; for a net blocked by later biases only, with these
        biases ignored.
    log_norms : natural logs of ||theta|| over all parameters that count, of prod ||W_i||^{k_i}, of
        ||w_hat||^{L_hat}.

    A normalized margin is None where the net lacks the homogeneity that it needs.
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
        """Number of samples."""
        return len(self.q)

    @property
    def q_min(self) -> float:
        """Smallest margin; positive exactly when every sample is classified correctly."""
        return self.q.min().item()

    @property
    def order(self) -> int | Fraction | None:
        """L of the net in all counted parameters, or None."""
        return self.homogeneity.order if self.log_norms["global"] is not None else None

    @property
    def accuracy(self) -> float:
        """Share of samples with positive margin; ties count as errors."""
        return (self.q > 0).double().mean().item()

    @property
    def log10_mean_loss(self) -> float:
        """Base-10 log of the *mean* loss, as in the tables of Lyu and Li (2019)."""
        return logspace.log10_mean(self.log_loss, self.n)

    @property
    def normalized_margin(self) -> float | None:
        """q_min / ||theta||^L (Lyu and Li 2019, (2))."""
        return self._normalized(self.q_min, "global")

    @property
    def layer_normalized_margin(self) -> float | None:
        """q_min / prod ||W_i||^{k_i} (Lyu and Li 2019, (4)); Table 1 and Figure 1 there."""
        return self._normalized(self.q_min, "layers")

    @property
    def partial_normalized_margin(self) -> float | None:
        """q_min / ||w_hat||^L over the parameters w_hat with positive exponent (two-homogeneity
        2024, Theorem 3.6).
        """
        return self._normalized(self.q_min, "partial")

    @property
    def smoothed_margin(self) -> float | None:
        """l^{-1}(summed loss) / ||theta||^L (Lyu and Li 2019, Definitions A.3 and F.1); never above
        `normalized_margin`.
        """
        return self._normalized(self.loss.inverse_link(self.log_loss), "global")

    @property
    def layer_smoothed_margin(self) -> float | None:
        """l^{-1}(summed loss) / prod ||W_i||^{k_i} (Lyu and Li 2019, (5))."""
        return self._normalized(self.loss.inverse_link(self.log_loss), "layers")

    @property
    def partial_smoothed_margin(self) -> float | None:
        """l^{-1}(summed loss) / ||w_hat||^L (two-homogeneity 2024, Theorem 3.6)."""
        return self._normalized(self.loss.inverse_link(self.log_loss), "partial")

    @property
    def support(self) -> Tensor:
        """Indices of the samples within 1% of the smallest margin, smallest first; a stream's
        samples count in its order of iteration.
        """
        order = torch.argsort(self.q, stable=True)
        return order[self.q[order] <= self.q_min + NEAR_SUPPORT * abs(self.q_min)]

    def near_support(self, share: float) -> int:
        """How many margins exceed the smallest by at most `share` of it."""
        return int((self.q <= self.q_min + share * abs(self.q_min)).sum())

    def to_dict(self) -> dict:
        """Every number but the list of margins, JSON-ready; keys are those of a training
        history.
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
        """A page of text."""
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
            f"normalized margin                {_shown(self.normalized_margin)}",
            f"  divided by the layer product   {_shown(self.layer_normalized_margin)}",
            f"  over the scaled part only      {_shown(self.partial_normalized_margin)}",
            f"smoothed normalized margin       {_shown(self.smoothed_margin)}",
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


def measure(
    model: nn.Module,
    data: Data,
    *,
    loss: Loss | str | nn.Module | None = None,
    batch_size: int = 200,
    homogeneity: Homogeneity | None = None,
) -> MarginReport:
    """Margins of `model` on `data`, normalized by the model's own homogeneity.

    Runs in evaluation mode, without gradients, on the model's device, and leaves every module in
    the mode it was in. Data are streamed: what is kept per sample is its margin (8 bytes).

    Parameters
    ----------
    model : a module that returns scores of shape (N,), (N, 1) (binary) or (N, C).
    data : a pair (X, y), or an iterable of (x, y) batches. Labels are {-1, +1} or {0, 1} (binary),
        or class indices.
    loss : of which the log-loss and the smoothed margins are reported, as `losses.as_loss` reads
        it; cross-entropy (logistic for one output) by default.
    batch_size : samples per forward pass when data is a pair.
    homogeneity : the answer of `analyse` in evaluation mode, to save that analysis when measuring
        one model often.

    Raises
    ------
    DataError : empty, NaN or infinite data, labels of the wrong kind or number, inputs that the
        model rejects.
    ModelError : no module, no parameters, all-zero or non-finite parameters or outputs, outputs of
        a wrong shape.
    ArgumentError : another argument that cannot be used.

    A model with noise in evaluation mode is measured with a warning: its margins are those of one
    draw.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> report = nm.measure(net, ([[1.0, 0.0], [0.0, -2.0]], [1, -1]))
    >>> report.q.tolist(), report.norm, round(report.normalized_margin, 12), report.support.tolist()
    ([3.0, 8.0], 5.0, 0.6, [0])

    Source: Lyu and Li 2019, Sections 4.1, 4.4 and Appendices A, F, G; two-homogeneity 2024, Section
    3.4.
    """
    model, samples, loss = check_model(model), open_data(data), as_loss(loss)
    batch_size = check_count("batch_size", batch_size)
    check_instance(
        "homogeneity",
        homogeneity,
        Homogeneity,
        "the answer of netmargin.analyse(model, X)",
        optional=True,
    )
    labels: Labels | None = None
    q: list[Tensor] = []
    log_loss = -math.inf
    with in_mode(model, training=False), torch.no_grad():
        for x, y in batches(samples, batch_size, model):
            outputs = scores(model, x)
            if homogeneity is None:
                require_finite(model)
                if noise := noise_of(model, x):
                    warnings.warn(
                        f"{noise} These margins are those of one draw.", UserWarning, stacklevel=2
                    )
                homogeneity = normalizing_homogeneity(analyse(model, x))
            labels = labels or Labels(outputs.shape[1])
            hard, soft = margins(outputs, labels.encode(y).to(outputs.device))
            if not torch.isfinite(soft).all():
                first = sum(len(part) for part in q) + int(
                    torch.nonzero(~torch.isfinite(soft))[0, 0]
                )
                raise NonFiniteOutputError(
                    f"The model's outputs are NaN or infinite on sample {first}. Check its weights."
                )
            q.append(hard.cpu())
            batch_loss = loss.log_sum(soft)
            if math.isnan(batch_loss):
                raise NonFiniteOutputError(
                    f"The loss {loss.name} is not defined at margin {soft.min().item():g}. Use a"
                    " loss that is defined for all margins."
                )
            log_loss = logspace.log_add(log_loss, batch_loss)
    assert homogeneity is not None
    norm, log_norms = norms(model, homogeneity)
    return MarginReport(torch.cat(q), log_loss, homogeneity, norm, loss, log_norms)


def margins(outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Margins and soft margins from scores of shape (N, C) and signs (C = 1) or class indices;
    float64, shape (N,).
    """
    if outputs.shape[1] == 1:
        q = y * logspace.as_float64(outputs[:, 0])
        return q, q
    gaps = score_gaps(outputs, y)
    return gaps.amin(1), -torch.logsumexp(-gaps, 1)


def score_gaps(outputs: Tensor, y: Tensor) -> Tensor:
    """s_nj = Phi_{y_n} - Phi_j in float64, and +infinity at j = y_n; shape (N, C)."""
    outputs = logspace.as_float64(outputs)
    gaps = outputs.gather(1, y[:, None]) - outputs
    return gaps.scatter(1, y[:, None], math.inf)


def normalizing_homogeneity(homogeneity: Homogeneity) -> Homogeneity:
    """The homogeneity by which margins are normalized: later biases are ignored where nothing else
    is in the way.
    """
    try:
        return homogeneity.ignoring_biases()
    except NotHomogeneousError:
        return homogeneity


def norms(model: nn.Module, homogeneity: Homogeneity) -> tuple[float, dict[str, float | None]]:
    """||theta|| over what counts, and the `log_norms` of a `MarginReport`. Raises ModelError."""
    counted = {n: p.detach() for n, p in model.named_parameters() if n not in homogeneity.ignored}
    squares = {
        n: torch.linalg.vector_norm(p, dtype=torch.float64).item() ** 2 for n, p in counted.items()
    }
    total = math.fsum(squares.values())
    if total == 0:
        raise ModelError(
            "All parameters are zero, so the margin cannot be normalized. Initialize the model"
            " first."
        )
    if not math.isfinite(total):
        bad = [n for n, s in squares.items() if not math.isfinite(s)]
        raise ModelError(
            f"Parameter {bad[0]!r} holds NaN or infinite values. Load an earlier checkpoint, or"
            " lower the rate."
        )

    def log_norm(names) -> float:
        square = math.fsum(squares[n] for n in names)
        return 0.5 * math.log(square) if square > 0 else -math.inf

    groups, members, order = homogeneity.groups, homogeneity.members, homogeneity.order
    log_norms: dict[str, float | None] = {"global": None, "layers": None, "partial": None}
    if order is not None:
        scaled = [n for name, k in groups.items() if k > 0 for n in members[name]]
        log_norms["partial"] = float(sum(k for k in groups.values() if k > 0)) * log_norm(scaled)
        if homogeneity.kind in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS):
            log_norms["global"] = float(order) * log_norm(squares)
            log_norms["layers"] = math.fsum(
                float(k) * log_norm(members[name]) for name, k in groups.items() if k
            )
    return math.sqrt(total), log_norms


def _shown(value: float | None) -> str:
    return "none: the net is not homogeneous in this sense" if value is None else f"{value:.6g}"
