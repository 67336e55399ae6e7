"""Runs of similar size in one tensor program of gradient ascent, padded to the widest run."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..core.caller import warn_caller
from ..core.denormals import flush_denormals
from ..core.matrices import SolverData
from ..errors import DivergenceError
from .run import Run, output_growth
from .smooth_margin import sample_weights

_RESCALING_INTERVAL = 10
"""Steps between two rescalings of the neurons: rare enough to cost little, and in 10 steps nothing
leaves the range of float32 unless the run diverges.
"""
_CACHED_OUTPUTS = 2**18
"""So many outputs of neurons, 1 MB in float32, stay in cache: beyond them, groups take turns."""
_LARGEST_HALVINGS = 20
"""A step size a million times smaller than the given one that still diverges will never do."""
_LARGEST_FALL = 1.0
"""The smooth margin F may fall by this between two records: the loss grows by a factor e. Less is
what steps of a reasonable size do where the margin is not yet positive.
"""


def group_runs(runs: list[Run], dtype: torch.dtype) -> list["RunGroup"]:
    """Group runs that stay in cache, and whose work padding at most doubles."""
    groups: list[list[Run]] = []
    # Widest first, so that what joins a group is padded rather than enlarges it.
    for run in sorted(runs, key=lambda run: len(run.a), reverse=True):
        last = groups[-1] if groups else [run]
        wide = len(last[0].a)
        fits = (len(last) + 1) * wide * len(run.data) <= _CACHED_OUTPUTS
        if groups and fits and wide <= 2 * len(run.a):
            last.append(run)
        else:
            groups.append([run])
    return [RunGroup(group, dtype) for group in groups]


class RunGroup:
    """Runs that advance together: neurons a (R, m, D) and b (R, m), times e^log_scale, of R loaded
    runs in padded tensors, with one buffer for all outputs.
    """

    def __init__(self, runs: list[Run], dtype: torch.dtype) -> None:
        self._runs, self._dtype = runs, dtype
        self._power, self._loss = runs[0].power, runs[0].loss
        self._loaded: list[Run] = []

    def advance(self, start: int, end: int, resample: Callable[[int], SolverData] | None) -> None:
        """Take the steps start .. end - 1 with all runs; diverging ones repeat at half size."""
        before = {run.index: replace(run) for run in self._runs}
        pending = self._runs
        while pending:
            if [run.index for run in pending] != [run.index for run in self._loaded]:
                self._load(pending)
            self._take_steps(start, end, resample)
            self._store()
            # Of fresh samples only the expected smooth margin rises.
            falls = math.inf if resample else _LARGEST_FALL
            pending = [run for run in pending if _has_diverged(run, before[run.index], falls)]
            for run in pending:
                _go_back(run, before[run.index], start, end)
                self._loaded = []  # the tensors hold what they led to

    def _load(self, runs: list[Run]) -> None:
        """Copy the neurons, rates and samples of these runs into padded tensors."""
        self._loaded = list(runs)
        R, m, (n, D) = len(runs), max(len(run.a) for run in runs), runs[0].data.Z.shape
        # Neurons that are padding are 0, and stay 0: their gradients vanish.
        self._a = torch.zeros(R, m, D, dtype=self._dtype, device="cpu")
        self._b = torch.zeros(R, m, dtype=self._dtype, device="cpu")
        for r, run in enumerate(runs):
            self._a[r, : len(run.a)] = torch.from_numpy(run.a)
            self._b[r, : len(run.b)] = torch.from_numpy(run.b)
        self._log_scale = np.array([run.log_scale for run in runs])
        self._widths = np.array([len(run.a) for run in runs])
        rates = np.array([run.rates for run in runs]).T[:, :, None]
        self._rates = torch.from_numpy(rates).to(self._dtype)
        self._outputs = torch.empty(R, m, n, dtype=self._dtype, device="cpu")
        self._inputs, self._labels = self._as_tensors(runs[0].data)

    def _as_tensors(self, data: SolverData) -> tuple[Tensor, Tensor]:
        """Inputs and labels of a data set as tensors of the precision of the steps."""
        return torch.from_numpy(data.Z).to(self._dtype), torch.from_numpy(data.y).to(self._dtype)

    def _store(self) -> None:
        """Copy the neurons back to the runs, and measure these."""
        a, b = self._a.double().numpy(), self._b.double().numpy()
        for r, run in enumerate(self._loaded):
            m = len(run.a)
            run.a, run.b = a[r, :m].copy(), b[r, :m].copy()
            run.log_scale = float(self._log_scale[r])
            run.measure()
            # Mean weights over many steps solve the dual problem; those of one step jump about.
            pulls = np.abs(self._pulls[r].double().numpy())
            if pulls.any():
                run.dual = pulls / pulls.sum()

    def _take_steps(
        self, start: int, end: int, resample: Callable[[int], SolverData] | None
    ) -> None:
        """Take the steps start .. end - 1 with the loaded runs, on their samples or fresh ones."""
        inputs, labels = self._inputs, self._labels
        with torch.inference_mode(), flush_denormals():
            self._pulls = torch.zeros(
                len(self._a), self._labels.shape[-1], dtype=self._dtype, device="cpu"
            )
            for first in range(start, end, _RESCALING_INTERVAL):
                # The update is homogeneous in the neurons, so it is the same for the rescaled ones,
                # whose outputs are larger in truth.
                growth = output_growth(self._log_scale) / self._widths
                sizes = torch.from_numpy(growth)[:, None].to(self._dtype)
                minus = -labels * sizes
                for t in range(first, min(first + _RESCALING_INTERVAL, end)):
                    if resample is not None:
                        inputs, labels = self._as_tensors(resample(t))
                        minus = -labels * sizes
                        self._outputs = torch.empty(
                            *self._a.shape[:2], len(inputs), dtype=self._dtype, device="cpu"
                        )
                    self._take_step(inputs, minus, labels * self._rates[t])
                self._rescale()

    def _take_step(self, inputs: Tensor, minus: Tensor, moving: Tensor) -> None:
        """Take one step: `minus` turns outputs into minus the margins, `moving` the weights of the
        samples into those that move neurons.
        """
        a, b, z = self._a, self._b, self._outputs
        torch.matmul(a, inputs.mT, out=z).relu_()
        minus_q = torch.bmm(b[:, None, :], z if self._power == 1 else z.square())[:, 0] * minus
        v = sample_weights(minus_q, self._loss).mul_(moving)
        if inputs is self._inputs:
            self._pulls += v
        if self._power == 1:
            # v where z > 0, in place: half the passes over the m x n outputs that a mask takes.
            torch.ops.aten.threshold_backward.grad_input(
                v[:, None, :].expand_as(z), z, 0, grad_input=z
            )
            pull = torch.matmul(z, inputs)
            moved = (a * pull).sum(2)  # sum_n v_n relu(a . x_n), by Euler's theorem
            a.addcmul_(pull, b[:, :, None])
            b.add_(moved)
        else:
            a.addcmul_(torch.matmul(z.mul_(v[:, None, :]), inputs), b[:, :, None], value=2)

    def _rescale(self) -> None:
        """Bring the mass of each run back to about 1, and the factor into its log."""
        size = torch.sqrt(self._a.square().sum((1, 2)).double() / torch.from_numpy(self._widths))
        self._a /= size[:, None, None]
        if self._power == 1:
            self._b /= size[:, None]
        self._log_scale = self._log_scale + torch.log(size).numpy()


def _has_diverged(run: Run, before: Run, falls: float) -> bool:
    """Whether the steps since `before` led to a dead net, to NaN or to a much larger loss."""
    numbers = (run.margin, run.log_mass, run.objective)
    died = before.q.any() and not run.q.any()  # no neuron is active on any sample
    return died or not all(map(math.isfinite, numbers)) or run.objective < before.objective - falls


def _go_back(run: Run, before: Run, start: int, end: int) -> None:
    """Put a run back to where it was, at half its step sizes, or raise DivergenceError."""
    if run.halvings >= _LARGEST_HALVINGS:
        raise DivergenceError(
            f"Run {run.index} diverges at step {start} even with steps of {run.rates[start]:.3g};"
            f" its largest input is {run.data.size:.3g}. Divide X by that, or take smaller rates."
        )
    run.a, run.b, run.log_scale = before.a, before.b, before.log_scale
    run.rates, run.halvings = run.rates / 2, run.halvings + 1
    warn_caller(
        f"run {run.index} diverged between steps {start} and {end}: it goes back to step {start}"
        " with half its step sizes"
    )
