"""Several nets or checkpoints on the same data: which differences are real."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn

from ..core.arguments import check_count, check_flag
from ..core.caller import hear_warnings, warn_caller
from ..core.progress import Progress
from ..core.records import printable
from ..errors import ArgumentError, DataError
from ..losses import Loss
from ..nets.data import Choice, Data, takes_data
from .comparison import Comparison, Difference, name_together
from .intervals import (
    ERROR,
    INPUT,
    WEIGHTED_ERROR,
    Interval,
    Z,
    difference_intervals,
    z_interval,
)
from .measurement import measure
from .near_answers import Groups
from .report import MarginReport
from .summary import FITS

_CALIBRATION = "a change of calibration alone can make it"
"""Of numbers that are made of the sizes of margins: such a change moves them, and no answer."""


@takes_data
def compare(
    models: Mapping[str, nn.Module] | Sequence[nn.Module],
    data: Data,
    heldout: Data | None = None,
    *,
    input_margins: bool = True,
    progress: bool = True,
    loss: Loss | str | nn.Module | None = None,
    batch_size: int = 200,
    rivals: int | None = None,
    class_names: Sequence[str] | None = None,
    within: int | None = None,
    groups: Groups | None = None,
    scores: Choice | None = None,
) -> Comparison:
    """Compare several nets, or checkpoints of one, on the same data, and say which differences are
    real.

    What chooses between nets is held-out data: the error, z = mean q / std q and margin-weighted
    error of `MarginReport`. On training data it is the 25% quantile of the input margins, for nets
    of one architecture, trained in one way, that both fit the data.

    A difference is real if its 95% interval leaves out 0, and no note says why the number does not
    compare these nets: changes of calibration, such as label smoothing, move all but the error. So
    z and the margin-weighted error are real where the error says the same, input margins never.

    Parameters
    ----------
    models : dict of str to nn.Module, or list of them
        At least two nets. For checkpoints load each into a net of its own.
    data : tuple (X, y), or iterable of (x, y)
        The training data, as for `measure`; an iterable must yield the same order each time.
    heldout : tuple (X, y), iterable of (x, y), or None, default None
        Labelled data that no net was trained on, 200 samples or more.
    input_margins : bool, default True
        Whether input margins are measured on the training data. Nets of token numbers have none.
    progress : bool, default True
        Whether to show which net is measured, as they come.
    loss, batch_size, rivals, class_names, within, groups, scores : optional
        As for `measure`.

    Returns
    -------
    Comparison
        A report for each net, and the differences of all pairs.

    Raises
    ------
    ArgumentError
        There are fewer than two models, or another argument cannot be used.
    DataError
        An iterable yields its samples in another order each time, or the data cannot be used, as
        in `measure`.
    ModelError
        A model cannot be used, as in `measure`.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> X, y = nm.datasets.digits(limit=400)
    >>> data, heldout = (X[:200], y[:200]), (X[200:], y[200:])
    >>> nets = {}
    >>> for epochs in (1, 30):
    ...     _ = torch.manual_seed(0)
    ...     nets[f"{epochs} epochs"] = net = nm.models.mlp([64, 32, 10])
    ...     _ = nm.train(net, data, until=nm.Epochs(epochs), progress=False)
    >>> found = nm.compare(nets, data, heldout, progress=False)
    >>> [(d.number, d.value > 0, d.real) for d in found.differences if d.data == "held-out"]
    [('error', True, True), ('z', False, True), ('margin-weighted error', True, True)]

    Source: beyond the papers; jackknife as in Efron and Tibshirani 1993.
    """
    named = _name_models(models)
    batch_size = check_count("batch_size", batch_size)
    input_margins = check_flag("input_margins", input_margins)
    progress = check_flag("progress", progress)
    training, held, warned = [], [], []
    with Progress(progress, "compare") as display:
        for index, (name, model) in enumerate(named.items()):
            display.draw(index, len(named) - index, f"{name}, net {index + 1} of {len(named)}")
            measured = partial(
                measure,
                model,
                loss=loss,
                batch_size=batch_size,
                class_names=class_names,
                within=within,
                groups=groups,
            )
            with hear_warnings() as heard:
                training.append(measured(data, input_margins=input_margins, rivals=rivals))
                if heldout is not None:
                    held.append(measured(heldout))
            warned += [(name, message) for message in heard]
    for message in name_together(warned):
        warn_caller(message)
    return compare_reports(tuple(named), training, held)


def compare_reports(
    names: tuple[str, ...], training: list[MarginReport], held: list[MarginReport]
) -> Comparison:
    """Compare nets by their reports on training data, and on held-out data or none."""
    differences, z_intervals = _held_out_differences(names, held)
    return Comparison(
        names,
        tuple(training),
        tuple(held),
        (*differences, *_training_differences(names, training)),
        z_intervals,
    )


def _name_models(models: Mapping[str, nn.Module] | Sequence[nn.Module]) -> dict[str, nn.Module]:
    """The models by name, those of a list by their number."""
    if isinstance(models, Mapping):
        named = {printable(str(name)): model for name, model in models.items()}
    elif isinstance(models, Sequence) and not isinstance(models, (str, bytes)):
        named = {f"net {index}": model for index, model in enumerate(models)}
    else:
        named = {}
    if len(named) < 2:
        raise ArgumentError(
            "models must be a dict of at least two nets by name, such as {'plain': first,"
            f" 'with decay': second}}, or a list of them; got {type(models).__name__}"
        )
    return named


def _held_out_differences(
    names: tuple[str, ...], reports: list[MarginReport]
) -> tuple[list[Difference], tuple[Interval | None, ...]]:
    """The differences of what held-out data say of nets, and the interval of z for each net."""
    if not reports:
        return [], ()
    _require_same_order(reports)
    q = [report.q.numpy() for report in reports]
    errors = _pair_up("held-out", ERROR, names, reports, [r.error for r in reports], q)
    differences = list(errors)
    weighted = [report.margin_weighted_error for report in reports]
    for number, values in ((Z, [report.z for report in reports]), (WEIGHTED_ERROR, weighted)):
        pairs = zip(_pair_up("held-out", number, names, reports, values, q), errors, strict=True)
        differences += [
            replace(found, note=found.note or _calibration_note(found, error))
            for found, error in pairs
        ]
    return differences, tuple(map(z_interval, q))


def _calibration_note(found: Difference, error: Difference) -> str:
    """What is said of a difference that a change of calibration alone can make, or ""."""
    if not found.more_than_chance:
        return ""
    assert found.value is not None  # as its interval is
    assert error.value is not None
    # A larger z is better, a larger error worse.
    says_the_same = ((found.value > 0) == (error.value > 0)) != (found.number == Z)
    return "" if error.real and says_the_same else _CALIBRATION


def _training_differences(names: tuple[str, ...], reports: list[MarginReport]) -> list[Difference]:
    """The differences of input margins on training data."""
    _require_same_order(reports)
    distances = [r.input_margins.distances.numpy() for r in reports if r.input_margins is not None]
    if not distances:
        return []
    values = [report.margins["input"].value for report in reports]
    misfits = [name for name, r in zip(names, reports, strict=True) if r.error > FITS]
    differences = []
    for found in _pair_up("training", INPUT, names, reports, values, distances):
        notes = [
            f"{name} does not fit its training data"
            for name in (found.first, found.second)
            if name in misfits
        ]
        note = f"{'; '.join(notes)}: do not compare" if notes else ""
        note = found.note or note or _CALIBRATION * found.more_than_chance
        differences.append(replace(found, note=note))
    return differences


def _pair_up(
    data: str,
    number: str,
    names: Sequence[str],
    reports: Sequence[MarginReport],
    values: Sequence[float | None],
    samples: Sequence[np.ndarray],
) -> list[Difference]:
    """The differences of a number for all pairs of nets."""
    found = []
    for (i, j), interval in difference_intervals(number, samples).items():
        first, second, note = values[i], values[j], ""
        no_margins = [names[k] for k in (i, j) if reports[k].saturated and number != ERROR]
        if no_margins:
            first = None
            note = f"not compared, {' and '.join(no_margins)} returns probabilities"
        if first is None or second is None:
            value, interval = None, None
        else:
            value = first - second
        found.append(Difference(data, number, names[i], names[j], value, interval, note))
    return found


def _require_same_order(reports: list[MarginReport]) -> None:
    """Raise DataError where the labels differ from net to net: samples could not be paired."""
    labels = [report.labels for report in reports if report.labels is not None]
    if any(not torch.equal(other, labels[0]) for other in labels[1:]):
        raise DataError(
            "The data come in another order, or number, each time they are read, so that samples"
            " cannot be paired. Pass a DataLoader with shuffle=False, or (X, y)."
        )
