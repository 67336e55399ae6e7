"""Minimizers of loss + lambda ||theta||^r for falling lambda: weak regularization finds the max margin."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn

from ..batches import Data, Labels, batches, scores
from ..errors import ModelError
from ..gates import Gates, SmoothedReLUs
from ..gradients import double_twin
from ..homogeneity import Kind
from ..kkt.problem import in_memory
from ..losses import CrossEntropy, Loss
from ..margins import margins, measure
from .history import History
from .lbfgs import minimize
from .loop import flushed_denormals
from .progress import Progress
from .relative_loss import relative_gradient

_WIDTHS = (1e-1, 1e-2, 1e-3, 1e-4)
_LARGEST_STEP = 20.0


@dataclass
class RegularizationPath(History):
    """Rows, one per lambda, of the best start there; the keys of `MarginReport.to_dict()`, and

    regularization : lambda. log_objective : natural log of L_lambda. stationarity : |grad log L_lambda| ||theta||, 0 at smooth stationary points, but not on kinks of ReLU.
    start : which one was best. states : the parameters there, by lambda.
    """

    states: dict[float, dict[str, Tensor]] = field(default_factory=dict)


def regularization_path(
    make_model: Callable[[], nn.Module],
    data: Data,
    *,
    lambdas: Sequence[float],
    r: float = 2.0,
    norm: str = "global",
    loss: Loss | None = None,
    starts: int = 5,
    iterations: int = 100,
    seed: int = 0,
    progress: bool = True,
) -> RegularizationPath:
    """Minimize L_lambda = mean_n l(q_n) + lambda ||theta||^r for each lambda, from several starts, each begun where the one before ended; float64, all samples at once.

    What is minimized is log L_lambda, in the log domain, so that neither term can underflow: lambda = 1e-300 is as good as 1e-3. Each lambda begins with the best
    multiple of the last minimizer, and goes on by L-BFGS, through nets with less and less smoothed ReLUs: minima lie on kinks. They are local, as nets are not convex; the
    best start is kept. For two-layer nets `solvers.f1_logistic` has the global minimum (r = 2).

    Parameters
    ----------
    make_model : makes a net with fresh random weights; called once per start, under torch.manual_seed(seed + start). lambdas : > 0; taken from the largest down.
    r : of the penalty, > 0. norm : "global", ||theta|| over all parameters that require gradients, or "layers", lambda sum_i ||W_i||^r over them one by one.
    loss : `CrossEntropy()` by default, for one output the logistic loss. starts : how many. iterations : of L-BFGS, for each lambda, start and smoothing.

    Raises DataError, ModelError : as `measure`. ValueError : parameters out of range. Ctrl-C returns the rows so far.

    >>> import torch, netmargin as nm
    >>> make = lambda: torch.nn.Linear(2, 1, bias=False)
    >>> path = nm.regularization_path(make, ([[2.0, 1.0], [-1.0, -2.0]], [1, -1]), lambdas=[1e-3, 1e-12], starts=1, progress=False)
    >>> abs(path.rows[-1]["normalized_margin"] - 3 / 2**0.5) < 1e-3          # the max margin
    True

    Source: Wei et al. 2018, (2.1) with the mean loss, as its proofs have it, and Theorem 2.1.
    """
    ordered = sorted({float(value) for value in lambdas}, reverse=True)
    if (
        not ordered
        or not 0 < ordered[-1] <= ordered[0] < math.inf
        or not 0 < r < math.inf
        or min(starts, iterations) < 1
        or norm not in ("global", "layers")
    ):
        raise ValueError(
            f'need positive, finite lambdas and r, starts and iterations >= 1, norm "global" or "layers"; got {list(lambdas)}, {r}, {starts}, {iterations}, {norm!r}'
        )
    samples, path = in_memory(data), RegularizationPath()
    runs = []
    for start in range(starts):
        with torch.random.fork_rng():
            torch.manual_seed(seed + start)
            runs.append(_Objective(make_model(), samples, loss or CrossEntropy(), r, norm))
    with flushed_denormals(), Progress(progress, "regularization path") as display:
        try:
            for index, value in enumerate(ordered):
                for run in runs:
                    run.descend(math.log(value), iterations)
                objectives = [run.objective(math.log(value)).item() for run in runs]
                best = min(range(starts), key=lambda k: objectives[k])
                report = measure(runs[best].twin, samples, loss=runs[best].loss)
                head = {
                    "epoch": index,
                    "regularization": value,
                    "log_objective": objectives[best],
                    "stationarity": runs[best].stationarity(math.log(value)),
                    "start": best,
                }
                path.rows.append(head | report.to_dict())
                path.states[value] = {n: p.detach().clone() for n, p in runs[best].twin.state_dict().items()}
                display.show(path.rows[-1], len(ordered) - 1 - index)
            path.status = f"{len(ordered)} values of lambda down to {ordered[-1]:g}"
        except KeyboardInterrupt:
            path.status = f"interrupted after {len(path.rows)} values of lambda"
    return path


class _Objective:
    """log L_lambda of one net as a function of its parameters."""

    def __init__(self, model: nn.Module, data, loss: Loss, r: float, norm: str):
        self.twin, self.loss, self._r = double_twin(copy.deepcopy(model)), loss, r
        self.parameters = [p for p in self.twin.parameters() if p.requires_grad]
        if not self.parameters:
            raise ModelError("No parameter of the model requires a gradient, so there is nothing to regularize. Unfreeze some.")
        homogeneity = measure(self.twin, data, loss=loss).homogeneity
        whole = homogeneity.kind in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS) and not homogeneity.ignored
        self._order = (
            float(homogeneity.order)
            if whole and homogeneity.order is not None and len(self.parameters) == len(list(self.twin.parameters()))
            else None
        )
        self._groups = [self.parameters] if norm == "global" else [[p] for p in self.parameters]
        self._x, y = next(batches(data, len(data), self.twin))
        with torch.no_grad(), Gates() as gates:
            self._y = Labels(scores(self.twin, self._x[:1]).shape[1]).encode(y).to(self._x.device)
        self._has_relus = bool(gates.inputs)

    def objective(self, log_lambda: float) -> Tensor:
        """log L_lambda, differentiable."""
        return torch.logaddexp(self._log_mean_loss(), log_lambda + self._log_penalty())

    def _log_mean_loss(self) -> Tensor:
        outputs = scores(self.twin, self._x)
        value = self.loss.log_sum(margins(outputs.detach(), self._y)[1]) - math.log(len(outputs))
        # Its gradient in the outputs, in closed form and relative to the loss itself.
        pulled = (outputs * relative_gradient(self.loss, outputs, self._y, value)).sum()
        return value + pulled - pulled.detach()

    def _log_penalty(self) -> Tensor:
        squares = torch.stack([torch.stack([p.square().sum() for p in group]).sum() for group in self._groups])
        return torch.logsumexp(0.5 * self._r * torch.log(squares), 0)

    def descend(self, log_lambda: float, iterations: int) -> None:
        """To a minimizer nearby: of nets with smoothed ReLUs first, then of the net itself; only if it is better."""
        self._rescale(log_lambda)
        before, kept = self.objective(log_lambda).item(), [p.detach().clone() for p in self.parameters]

        def smoothed(width: float) -> Tensor:
            with SmoothedReLUs(width):
                return self.objective(log_lambda)

        for width in _WIDTHS if self._has_relus else ():
            minimize(self.parameters, partial(smoothed, width), iterations)
        minimize(self.parameters, partial(self.objective, log_lambda), iterations)
        self._rescale(log_lambda)
        if not self.objective(log_lambda).item() <= before:
            with torch.no_grad():
                for p, value in zip(self.parameters, kept, strict=True):
                    p.copy_(value)

    def stationarity(self, log_lambda: float) -> float:
        """|grad log L| ||theta||."""
        gradients = torch.autograd.grad(self.objective(log_lambda), self.parameters, allow_unused=True)
        size = math.sqrt(sum(g.square().sum().item() for g in gradients if g is not None))
        return size * math.sqrt(sum(p.square().sum().item() for p in self.parameters))

    def _rescale(self, log_lambda: float) -> None:
        """By the best factor, of a net that is homogeneous."""
        if (order := self._order) is None:
            return
        with torch.no_grad():
            q, penalty = margins(scores(self.twin, self._x), self._y)[1], self._log_penalty().item()
            count = math.log(len(q))

            def value(log_factor: float) -> float:
                log_loss = self.loss.log_sum(q * math.exp(order * log_factor)) - count
                log_penalty = log_lambda + penalty + self._r * log_factor
                return max(log_loss, log_penalty) + math.log1p(math.exp(-abs(log_loss - log_penalty)))

            factor = math.exp(minimize_scalar(value, bounds=(-_LARGEST_STEP, _LARGEST_STEP / order), method="bounded").x)
            if value(math.log(factor)) < value(0.0):
                for p in self.parameters:
                    p.mul_(factor)
