"""Training both layers of wide two-layer nets by ascent of the smooth margin, many runs in one tensor program."""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ..losses import Exponential, Logistic, Loss
from ..solvers.data import binary_data
from ..solvers.solution import ReLUMeasure
from ..training.loop import flushed_denormals
from ..training.progress import Progress
from .step_sizes import step_sizes

_RESCALED = 10
_LARGEST_LOG = 80.0
_TOGETHER = 2**18
"""So many outputs of neurons stay in cache: of wider nets, runs take turns."""


@dataclass(frozen=True)
class TwoLayerRuns:
    """Training runs side by side; R runs, K records, the first at the start.

    times : (K,), steps taken. margins : (K, R), the margin over the mass, which is at most gamma_1: min_n y_n h(x_n) / (mean_j |w_j|^2), for power 2
    without the fixed output weights. log_masses : (K, R), natural logs of that mass.
    measures : the nets at the end, weights summing to 1.
    """

    times: np.ndarray
    margins: np.ndarray
    log_masses: np.ndarray
    measures: list[ReLUMeasure]

    @property
    def best(self) -> np.ndarray:
        """(R,), the largest recorded margins."""
        return self.margins.max(0)


def train_both_layers(
    X,
    y,
    *,
    width: int,
    steps: int,
    rate: Callable[[np.ndarray], np.ndarray] | None = None,
    loss: Loss | None = None,
    power: int = 1,
    bias: bool = True,
    scale: float = 1.0,
    seeds: Sequence[int] = (0,),
    records: int = 100,
    dtype: torch.dtype = torch.float32,
    progress: bool = True,
) -> TwoLayerRuns:
    """w_j(t + 1) = w_j(t) + eta(t) m grad_j F, F = -log mean_n l(y_n h(x_n)), h(x) = (1/m) sum_j b_j relu(a_j . x~)^power.

    For power 1 w_j = (a_j, b_j) and both layers move; for power 2 (smooth) the b_j stay signs. The net starts balanced: a_j uniform on the sphere of radius
    `scale`, b_j = +-scale (power 2: +-1), so |a_j| = |b_j| nearly persists. Weights are kept relative to their size, which grows like exp(sqrt t) and is kept as its log.

    Parameters
    ----------
    X : (n, d); y : (n,) labels {-1, +1} or {0, 1}. width : neurons m. steps : iterations, each with all samples.
    rate : eta of the array of times t, the same for all runs; 0.5 / sqrt(t + 1) by default. loss : `Exponential()` (the default) or `Logistic()`.
    bias : x~ = (x, 1). seeds : one run each. records : how often margins are measured, in float64. dtype : of the steps. progress : show the best margin.

    Raises DataError : as the solvers. ValueError : parameters outside their range.

    >>> import netmargin as nm
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]
    >>> runs = nm.twolayer.train_both_layers(X, y, width=200, steps=2000, seeds=(0, 1), progress=False)
    >>> optimum = nm.solvers.f1_max_margin(X, y).margin
    >>> bool((runs.best > 0.95 * optimum).all() and (runs.best <= optimum * (1 + 1e-6)).all())
    True

    Source: Chizat and Bach 2020, Section 3 and (6), Theorem 3, Section 7.
    """
    data = binary_data(X, y, bias=bias)
    width, steps, records = operator.index(width), operator.index(steps), operator.index(records)
    loss = loss or Exponential()
    if min(width, steps, records) < 1 or not seeds or not 0 < scale < math.inf or power not in (1, 2):
        raise ValueError(
            f"need width, steps, records >= 1, a seed, scale > 0 and power 1 or 2; got {width}, {steps}, {records}, {seeds}, {scale}, {power}"
        )
    if not isinstance(loss, (Exponential, Logistic)) or loss.power != 1:
        raise ValueError(f"loss must be Exponential() or Logistic(); got {loss!r}")
    eta = step_sizes(steps, rate or (lambda t: 0.5 / np.sqrt(t + 1)))
    runs = _Runs(data.Z, data.y, width, power, scale, seeds, loss, dtype)
    times = sorted({round(t) for t in np.linspace(0, steps, records + 1)})
    rows = [runs.measured()]
    with flushed_denormals(), Progress(progress, "both layers") as display:
        for start, end in pairwise(times):
            display.show(runs.first_run(start), steps - start)
            runs.advance(eta[start:end].tolist())
            rows.append(runs.measured())
    margins, log_masses = (np.array(column) for column in zip(*rows, strict=True))
    return TwoLayerRuns(np.array(times), margins, log_masses, runs.measures(bias))


class _Runs:
    """Neurons of R runs, a : (R, m, D), b : (R, m), times e^log_scale, with one buffer for their outputs on all samples (of a few runs at a time)."""

    def __init__(
        self, Z: np.ndarray, y: np.ndarray, m: int, power: int, scale: float, seeds: Sequence[int], loss: Loss, dtype: torch.dtype
    ):
        self._power, self._loss = power, loss
        self._Z, self._y = torch.from_numpy(Z), torch.from_numpy(y)
        self._inputs, self._labels = self._Z.to(dtype), self._y.to(dtype)
        starts = [np.random.default_rng(seed) for seed in seeds]
        a = np.stack([random.normal(size=(m, Z.shape[1])) for random in starts])
        a /= np.linalg.norm(a, axis=2, keepdims=True)
        b = np.stack([random.choice([-1.0, 1.0], m) for random in starts])
        self._a, self._b = torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype)
        self._log_scale = torch.full((len(seeds),), math.log(scale), dtype=torch.float64)
        together = max(1, min(len(seeds), _TOGETHER // (m * len(Z))))
        self._outputs = torch.empty(together, m, len(Z), dtype=dtype)

    def advance(self, rates: list[float]) -> None:
        """Steps of all runs with these rates; runs that do not fit in cache together take turns of all these steps."""
        count = len(self._outputs)
        for first in range(0, len(self._a), count):
            part = slice(first, first + count)
            for start in range(0, len(rates), _RESCALED):
                growth = torch.exp((2 * self._log_scale[part]).clamp(max=_LARGEST_LOG))[:, None].to(self._a.dtype)
                for eta in rates[start : start + _RESCALED]:
                    self._step(self._a[part], self._b[part], growth, eta)
                self._rescale(part)

    def _step(self, a: Tensor, b: Tensor, growth: Tensor, eta: float) -> None:
        """One step. The update is homogeneous in the neurons, so it is the same for the rescaled ones, whose outputs are `growth` times larger in truth."""
        z = self._outputs[: len(a)]
        torch.matmul(a, self._inputs.T, out=z).relu_()
        h = (torch.matmul(b[:, None, :], z if self._power == 1 else z.square()) / a.shape[1])[:, 0]
        v = _shares(self._labels * h * growth, self._loss) * self._labels
        if self._power == 1:
            # v where z > 0, in place: half the passes over the m x n outputs that a mask takes.
            torch.ops.aten.threshold_backward.grad_input(v[:, None, :].expand_as(z), z, 0, grad_input=z)
        else:
            z.mul_(v[:, None, :])
        pull = torch.matmul(z, self._inputs)
        if self._power == 1:
            moved = (a * pull).sum(2)  # sum_n v_n relu(a . x_n), by Euler's theorem
        a.addcmul_(pull, b[:, :, None], value=eta * self._power)
        if self._power == 1:
            b.add_(moved, alpha=eta)

    def _rescale(self, part: slice) -> None:
        """Bring the mass of each run back to about 1."""
        size = torch.sqrt(self._a[part].square().sum(2).mean(1))
        self._a[part] /= size[:, None, None]
        if self._power == 1:
            self._b[part] /= size[:, None]
        self._log_scale[part] += torch.log(size.double())

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """Margins over the mass and log masses, in float64."""
        a, b = self._a.double(), self._b.double()
        outputs = [bb @ (aa @ self._Z.T).relu_() ** self._power / len(bb) for aa, bb in zip(a, b, strict=True)]
        mass = self._masses(a, b).mean(1)
        self._q = self._y * torch.stack(outputs)
        return (self._q.amin(1) / mass).numpy(), (torch.log(mass) + 2 * self._log_scale).numpy()

    def first_run(self, t: int) -> dict:
        """What a progress line shows, as of the last measurement."""
        q = self._q[0] * torch.exp((2 * self._log_scale[0]).clamp(max=_LARGEST_LOG))
        mass = self._masses(self._a[0].double(), self._b[0].double()).mean()
        return {
            "epoch": t,
            "log10_mean_loss": (self._loss.log_sum(q) - math.log(len(q))) / math.log(10),
            "accuracy": (q > 0).double().mean().item(),
            "normalized_margin": (self._q[0].min() / mass).item(),
        }

    def measures(self, bias: bool) -> list[ReLUMeasure]:
        """The nets as probability measures on the sphere."""
        found = []
        for a, b in zip(self._a.double(), self._b.double(), strict=True):
            mass = self._masses(a, b)
            used = mass > 0
            units = torch.cat([a, b[:, None]], 1) if self._power == 1 else torch.cat([a / mass.sqrt()[:, None], b[:, None]], 1)
            atoms = units / mass.sqrt()[:, None] if self._power == 1 else units
            found.append(
                ReLUMeasure(atoms=atoms[used].numpy(), weights=(mass / mass.sum())[used].numpy(), bias=bias, power=self._power)
            )
        return found

    def _masses(self, a: Tensor, b: Tensor) -> Tensor:
        return a.square().sum(-1) + b.square() if self._power == 1 else a.square().sum(-1)


def _shares(q: Tensor, loss: Loss) -> Tensor:
    """-l'(q_n) / sum_k l(q_k), shape (R, n)."""
    if isinstance(loss, Exponential):
        return torch.softmax(-q, 1)
    log_losses = torch.where(q > 15, -q, torch.log(torch.nn.functional.softplus(-q)))
    return torch.exp(torch.nn.functional.logsigmoid(-q) - torch.logsumexp(log_losses, 1, keepdim=True))
