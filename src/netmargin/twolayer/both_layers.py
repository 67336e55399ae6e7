"""Training both layers of wide two-layer nets by ascent of the smooth margin: many runs, of several
widths and data sets, in few tensor programs.
"""

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeGuard

import numpy as np
import torch

from ..core.denormals import flush_denormals
from ..core.matrices import SolverData, binary_data
from ..core.progress import Progress
from ..core.records import short_repr
from ..core.threads import fitting_threads
from ..errors import DataError
from ..losses import Loss
from ..solvers.solution import ReLUMeasure
from .bucket import buckets
from .run import Run
from .smooth_margin import margin_loss
from .step_sizes import step_sizes

_LARGEST_LOG = 600.0


@dataclass(frozen=True)
class Snapshot:
    """All R runs at one time.

    measures : the nets as probability measures on the sphere, neurons in their order, vanished ones
        with weight 0; their `decision_function` on a grid draws the classifier.
    log_masses : (R,), natural logs of mean_j |w_j|^2.
    duals : per run (n,), weights of the samples with sum 1, for `slackness`: the slopes of the
        smooth margin, averaged over the steps since the record before (finite steps throw them
        about; at the start, and with `resample`, as they are then).
    """

    time: int
    measures: list[ReLUMeasure]
    log_masses: np.ndarray
    duals: list[np.ndarray]

    __repr__ = short_repr

    def positions(self, run: int) -> np.ndarray:
        """The neurons w_j = (a_j, b_j) themselves, (m, D + 1). Raises DataError where their squares
        are beyond float64.
        """
        measure, log_mass = self.measures[run], self.log_masses[run]
        if log_mass > _LARGEST_LOG:
            raise DataError(
                f"The neurons of run {run} have a mass of e^{log_mass:.0f}, beyond float64. Take an"
                " earlier snapshot."
            )
        sizes = np.sqrt(math.exp(log_mass) * len(measure.weights) * measure.weights)[:, None]
        return (
            sizes * measure.atoms
            if measure.power == 1
            else np.column_stack([sizes * measure.atoms[:, :-1], measure.atoms[:, -1]])
        )


@dataclass(frozen=True)
class TwoLayerRuns:
    """Training runs side by side; R runs, K records, the first at the start.

    times : (K,), steps.
    margins : (K, R), the margin over the mass, which is at most gamma_1: min_n y_n h(x_n) / (mean_j
        |w_j|^2), for power 2 without the fixed output weights.
    log_masses : (K, R), natural logs of that mass. A run that reached its target keeps its values.
    snapshots : the nets at the times asked for, and at the end.
    steps : (R,), how many each took.
    halvings : (R,), how often its step size had to be halved.
    """

    times: np.ndarray
    margins: np.ndarray
    log_masses: np.ndarray
    snapshots: list[Snapshot]
    steps: np.ndarray
    halvings: np.ndarray

    __repr__ = short_repr

    @property
    def best(self) -> np.ndarray:
        """(R,), the largest recorded margins."""
        return self.margins.max(0)

    @property
    def measures(self) -> list[ReLUMeasure]:
        """The nets at the end."""
        return self.snapshots[-1].measures


Rate = Callable[[np.ndarray], np.ndarray]


def train_both_layers(
    X,
    y,
    *,
    width: int | Sequence[int],
    steps: int,
    rate: Rate | Sequence[Rate] | None = None,
    loss: Loss | None = None,
    power: int = 1,
    bias: bool = True,
    scale: float = 1.0,
    paired: bool = False,
    seeds: Sequence[int] = (0,),
    target: float | Sequence[float] | None = None,
    resample: Callable[[int], tuple] | None = None,
    records: int = 100,
    snapshots: Sequence[int] = (),
    dtype: torch.dtype = torch.float32,
    progress: bool = True,
) -> TwoLayerRuns:
    """w_j(t + 1) = w_j(t) + eta(t) m grad_j F, F = -log mean_n l(y_n h(x_n)), h(x) = (1/m) sum_j
    b_j relu(a_j . x~)^power.

    For power 1 w_j = (a_j, b_j) and both layers move; for power 2 (smooth) the b_j stay signs. The
    net starts balanced: a_j uniform on the sphere of radius `scale`, b_j = +-scale (power 2: +-1),
    so |a_j| = |b_j| nearly persists. Weights are kept relative to their size, which grows like
    exp(sqrt t) and is kept as its log.

    R runs go on at once. `width`, `rate`, `seeds` and `target` may be sequences with one entry for
    each, and X and y lists of data sets of one dimension; what is single holds for all. Runs of
    similar size share tensors, padded; each result is that of the run alone, to rounding.

    Parameters
    ----------
    X : (n, d).
    y : (n,) labels {-1, +1} or {0, 1}; or lists of R of them.
    width : neurons m.
    steps : iterations, each with all samples.
    rate : eta of the array of times t; 0.5 / sqrt(t + 1) by default.
    loss : `Exponential()` (the default) or `Logistic()`.
    bias : x~ = (x, 1).
    scale : large ones begin in the lazy regime, with a rate of order 1 / scale
        (`tangent_max_margin`).
    paired : neuron j + m / 2 begins as (a_j, -b_j), so that h = 0.
    target : a run stops when its margin reaches this.
    resample : step t takes the samples `resample(t)`, (X, y), a function of t alone, in place of
        the data, where the margins are still measured: fresh ones for the population objective, X +
        noise for a smoothed one.
    records : how often margins are measured, in float64.
    snapshots : times at which to keep the nets.
    dtype : of the steps.
    progress : show the first run.

    Where the loss grows by a factor e between two records, or is not finite, the run goes back to
    the last record and halves its step size, and says so.

    Raises
    ------
    DataError : as the solvers.
    ValueError : parameters outside their range.
    DivergenceError : a run that diverges at every step size.

    Ctrl-C returns the records so far.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]
    >>> runs = nm.twolayer.train_both_layers(X, y, width=[100, 200], steps=2000, seeds=(0, 1), progress=False)
    >>> optimum = nm.solvers.f1_max_margin(X, y).margin
    >>> bool((runs.best > 0.95 * optimum).all() and (runs.best <= optimum * (1 + 1e-6)).all())
    True

    Source: Chizat and Bach 2020, Section 3 and (6), (9), Theorem 3, Sections 5 and 7.
    """
    steps, records = operator.index(steps), operator.index(records)
    several = isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 2
    counted = {
        "width": width,
        "rate": rate,
        "seeds": seeds,
        "target": target,
        "X": X if several else None,
    }
    lengths = {len(value) for value in counted.values() if _is_list(value) and len(value) != 1}
    if len(lengths) > 1 or 0 in lengths or (several and len(y) != len(X)):
        raise ValueError(
            "width, rate, seeds, target and the lists X and y must have one entry, or one for each"
            f" run; got lengths {sorted(lengths)}"
        )
    count = max(lengths, default=1)
    widths = [operator.index(m) for m in _each(width, count)]
    if (
        min(*widths, steps, records) < 1
        or not 0 < scale < math.inf
        or power not in (1, 2)
        or (paired and any(m % 2 for m in widths))
    ):
        raise ValueError(
            "need width, steps, records >= 1, scale > 0, power 1 or 2, even widths where paired;"
            f" got {widths}, {steps}, {records}, {scale}, {power}"
        )
    if any(not 0 <= operator.index(t) <= steps for t in snapshots):
        raise ValueError(f"snapshots must be times between 0 and {steps}; got {list(snapshots)}")
    loss = margin_loss(loss)
    sets = [
        binary_data(*pair, bias=bias) for pair in (zip(X, y, strict=True) if several else [(X, y)])
    ]
    if len({data.Z.shape[1] for data in sets}) > 1:
        raise DataError(
            "All data sets must have the same dimension; got"
            f" {sorted({data.Z.shape[1] - bias for data in sets})}"
        )
    default = [lambda t: 0.5 / np.sqrt(t + 1)] if rate is None else rate
    runs = [
        Run(
            index,
            data,
            *_start(data, m, power, scale, paired, seed),
            step_sizes(steps, eta),
            math.inf if stop is None else stop,
            power,
            loss,
        )
        for index, (data, m, eta, seed, stop) in enumerate(
            zip(
                _each(sets, count),
                widths,
                _each(default, count),
                _each(seeds, count),
                _each(target, count),
                strict=True,
            )
        )
    ]

    samples = None if resample is None else _checked(resample, sets[0], bias)
    times = sorted({round(t) for t in np.linspace(0, steps, records + 1)} | set(snapshots))
    return _train(
        runs,
        dtype,
        times,
        set(snapshots),
        samples,
        bias,
        progress,
    )


def _each(value, count: int) -> list:
    """One entry per run."""
    entries = list(value) if _is_list(value) else [value]
    return entries * count if len(entries) == 1 else entries


def _checked(
    resample: Callable[[int], tuple], data: SolverData, bias: bool
) -> Callable[[int], SolverData]:
    def samples(t: int) -> SolverData:
        found = binary_data(*resample(t), bias=bias)
        if found.Z.shape[1] != data.Z.shape[1]:
            raise DataError(
                f"resample({t}) gave inputs of dimension {found.Z.shape[1] - bias}, the data have"
                f" {data.Z.shape[1] - bias}"
            )
        return found

    if not np.array_equal(samples(0).Z, samples(0).Z):
        raise ValueError(
            "resample must give the same samples whenever it is asked for the same t: seed what it"
            " draws with t."
        )
    return samples


def _is_list(value) -> TypeGuard[Sequence]:
    return isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _start(
    data: SolverData, m: int, power: int, scale: float, paired: bool, seed: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Neurons of size 1, and the log of their scale."""
    random, drawn = np.random.default_rng(seed), m // 2 if paired else m
    a = random.normal(size=(drawn, data.Z.shape[1]))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = random.choice([-1.0, 1.0], drawn)
    if paired:
        a, b = np.concatenate([a, a]), np.concatenate([b, -b])
    return a, b, math.log(scale)


def _train(
    runs: list[Run],
    dtype: torch.dtype,
    times: list[int],
    kept: set[int],
    resample: Callable[[int], SolverData] | None,
    bias: bool,
    progress: bool,
) -> TwoLayerRuns:
    for run in runs:
        run.measure()
    groups, reached, taken = buckets(runs, dtype), [0], []
    rows = [_row(runs)]
    # Runs of one group step together, but a step of a small one among many is still small.
    work = sum(len(run.data.Z) * run.a.size for run in runs)
    with fitting_threads(work), flush_denormals(), Progress(progress, "both layers") as display:
        for start, end in pairwise(times):
            if start in kept:
                taken.append(_snapshot(runs, start, bias))
            if all(run.stopped for run in runs):
                break
            display.show(runs[0].shown(start), times[-1] - start)
            before = [replace(run) for run in runs]
            try:
                for group in groups:
                    group.advance(start, end, resample)
            except KeyboardInterrupt:
                runs = before
                warnings.warn(
                    f"interrupted; the runs are returned as they were after step {start}",
                    UserWarning,
                    stacklevel=3,
                )
                break
            rows.append(_row(runs))
            reached.append(end)
    if not taken or taken[-1].time != reached[-1]:
        taken.append(_snapshot(runs, reached[-1], bias))
    margins, log_masses = (np.array(column) for column in zip(*rows, strict=True))
    steps, halvings = (
        np.array(column)
        for column in zip(*[(run.steps, run.halvings) for run in runs], strict=True)
    )
    return TwoLayerRuns(np.array(reached), margins, log_masses, taken, steps, halvings)


def _row(runs: list[Run]) -> tuple[list[float], list[float]]:
    return [run.margin for run in runs], [run.log_mass for run in runs]


def _snapshot(runs: list[Run], time: int, bias: bool) -> Snapshot:
    return Snapshot(
        time,
        [run.as_measure(bias) for run in runs],
        np.array([run.log_mass for run in runs]),
        [run.dual for run in runs],
    )
