"""Training both layers of wide two-layer nets by gradient ascent of the smooth margin."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from ..core.arguments import check_count, check_flag, check_number, check_seed
from ..core.matrices import SolverData, binary_data
from ..core.progress import Progress
from ..errors import ArgumentError
from ..losses import Loss
from ..nets.threads import fitting_threads
from ..result import Status
from ..training.history import show_row
from .options import Rate, check_resample, count_runs, draw_neurons, one_per_run, step_sizes
from .run import Run
from .run_group import group_runs
from .smooth_margin import margin_loss
from .two_layer_runs import TwoLayerRuns, take_snapshot


def train_both_layers(
    X: Any,
    y: Any,
    *,
    width: int | Sequence[int],
    steps: int,
    rate: Rate | Sequence[Rate] | None = None,
    loss: Loss | str | None = None,
    power: int = 1,
    bias: bool = True,
    scale: float = 1.0,
    paired: bool = False,
    seeds: Sequence[int] = (0,),
    resample: Callable[[int], tuple[Any, ...]] | None = None,
    records: int = 100,
    snapshots: Sequence[int] = (),
    dtype: torch.dtype = torch.float32,
    progress: bool = True,
) -> TwoLayerRuns:
    """Train both layers of wide two-layer nets by gradient ascent of the smooth margin.

    w_j(t + 1) = w_j(t) + eta(t) m grad_j F with F = -log mean_n l(y_n h(x_n)) and h(x) = (1/m)
    sum_j b_j relu(a_j . x~)^power. For power 1 w_j = (a_j, b_j) and both layers move; for power 2
    (smooth) the b_j stay signs. The net starts balanced: a_j uniform on the sphere of radius
    `scale`, b_j = +-scale (power 2: +-1), so |a_j| = |b_j| nearly persists. Their size, which grows
    like exp(sqrt t), is kept as its log.

    R runs go on at once: `width`, `rate` and `seeds` may be sequences with one entry for each; what
    is single holds for all.

    A run whose loss grows by a factor e between two records, or is not finite, goes back to the
    first of them and halves its step sizes, with a warning. Another warning names runs whose steps
    threw all neurons off a sample, which then moves none. Ctrl-C returns the records so far.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Inputs.
    y : array_like, shape (n,)
        Labels {-1, +1} or {0, 1}.
    width : int or sequence of int
        The number m of neurons, even where `paired`.
    steps : int
        Iterations, each with all samples.
    rate : float, callable, or sequence of them, optional
        eta > 0, or a function of the array of times t; 0.5 / sqrt(t + 1) by default.
    loss : Loss or str, optional
        A loss with an exponential tail, `Exponential()` by default; one of your own too.
    power : {1, 2}, default 1
        The power of the ReLU.
    bias : bool, default True
        Whether x~ = (x, 1), else x~ = x.
    scale : float, default 1.0
        The size of the neurons at the start. Large ones begin in the lazy regime, with a rate of
        order 1 / scale (`tangent_max_margin`).
    paired : bool, default False
        Whether neuron j + m / 2 begins as (a_j, -b_j), so that h = 0.
    seeds : sequence of int, default (0,)
        Seeds of the starts, one for each run.
    resample : callable, optional
        Step t takes the samples `resample(t)`, a pair (X, y) that depends on t alone: fresh ones,
        or X + noise. Margins are measured on the data all the same.
    records : int, default 100
        How often margins are measured, in float64.
    snapshots : sequence of int, optional
        Times from 0 to `steps` at which to keep the nets; those at the end are always kept.
    dtype : torch.dtype, default torch.float32
        The precision of the steps.
    progress : bool, default True
        Whether to show loss and margin of the first run as they come.

    Returns
    -------
    TwoLayerRuns
        Margins and log masses, float64 of shape (K, R) for K records, and the nets.

    Raises
    ------
    DataError
        If the data have wrong shapes or labels, or are not finite.
    ArgumentError
        If another argument is out of its range, or lists have different lengths.
    DivergenceError
        If a run diverges at every step size.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]
    >>> options = {"width": [100, 200], "steps": 2000, "seeds": (0, 1), "progress": False}
    >>> runs = nm.twolayer.train_both_layers(X, y, **options)
    >>> optimum = nm.solvers.f1_max_margin(X, y).margin
    >>> bool((runs.best > 0.95 * optimum).all() and (runs.best <= optimum * (1 + 1e-6)).all())
    True

    Source: Chizat and Bach 2020, Section 3 and (6), (9), Theorem 3, Sections 5 and 7.
    """
    steps, records = check_count("steps", steps), check_count("records", records)
    count = count_runs(width, rate, seeds)
    widths = [check_count("width", m) for m in one_per_run(width, count)]
    scale, power = check_number("scale", scale, above=0), check_count("power", power, at_most=2)
    if check_flag("paired", paired) and any(m % 2 for m in widths):
        raise ArgumentError(f"width must be even where neurons are paired; got {widths}")
    if dtype not in (torch.float32, torch.float64):
        raise ArgumentError(f"dtype must be torch.float32 or torch.float64; got {dtype!r}")
    kept = {check_count("snapshots", t, at_least=0, at_most=steps) for t in snapshots}
    loss = margin_loss(loss)
    data = binary_data(X, y, bias=bias)
    settings = zip(
        widths,
        one_per_run((lambda t: 0.5 / np.sqrt(t + 1)) if rate is None else rate, count),
        [check_seed(seed) for seed in one_per_run(seeds, count)],
        strict=True,
    )
    # Neurons are drawn at size 1, and their scale is kept as a log, as it is throughout.
    runs = []
    for index, (m, eta, seed) in enumerate(settings):
        a, b = draw_neurons(data.Z.shape[1], m, paired=paired, seed=seed)
        runs.append(
            Run(
                index=index,
                data=data,
                a=a,
                b=b,
                log_scale=math.log(scale),
                rates=step_sizes(steps, eta),
                power=power,
                loss=loss,
            )
        )
    samples = None if resample is None else check_resample(resample, data, bias)
    times = sorted({round(t) for t in np.linspace(0, steps, records + 1)} | kept)
    shown = check_flag("progress", progress)
    return _train(runs, dtype, times, kept, samples, bias, shown)


def _train(
    runs: list[Run],
    dtype: torch.dtype,
    times: list[int],
    kept: set[int],
    resample: Callable[[int], SolverData] | None,
    bias: bool,
    progress: bool,
) -> TwoLayerRuns:
    """Advance all runs from record to record until the steps end or Ctrl-C comes."""
    # The record of the start, to which a run that diverges at once goes back.
    for run in runs:
        run.measure()
    started = [run.active for run in runs]
    groups, reached, taken = group_runs(runs, dtype), [0], []
    rows, status = [_list_measurements(runs)], Status.FINISHED
    # Runs of one group step together, but a step of a small one among many is still small.
    work = sum(len(run.data.Z) * run.a.size for run in runs)
    with fitting_threads(work), Progress(progress, "both layers") as display:
        # Shallow copies are a way back: runs get new arrays, and never write into old ones.
        before = [replace(run) for run in runs]
        try:
            for start, end in pairwise(times):
                if start in kept:
                    taken.append(take_snapshot(runs, start, bias))
                show_row(display, runs[0].progress_row(start), times[-1] - start)
                for group in groups:
                    group.advance(start, end, resample)
                row, after = _list_measurements(runs), [replace(run) for run in runs]
                rows.append(row)
                reached.append(end)
                before = after
        except KeyboardInterrupt:
            runs, status = before, Status.INTERRUPTED
    # The end is kept even where Ctrl-C came between the times asked for.
    if not taken or taken[-1].time != reached[-1]:
        taken.append(take_snapshot(runs, reached[-1], bias))
    for run, active in zip(runs, started, strict=True):
        run.warn_of_lost_samples(active)
    margins, log_masses = (np.array(column) for column in zip(*rows, strict=True))
    halvings = np.array([run.halvings for run in runs])
    return TwoLayerRuns(np.array(reached), margins, log_masses, taken, halvings, status)


def _list_measurements(runs: list[Run]) -> tuple[list[float], list[float]]:
    """Margins and log masses of all runs, one row of the result."""
    return [run.margin for run in runs], [run.log_mass for run in runs]
