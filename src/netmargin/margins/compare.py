"""Several nets or checkpoints on the same data: which differences are real."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from ..core.arguments import check_count, check_flag, check_instance, check_optional
from ..core.caller import hear_warnings, warn_caller
from ..core.progress import Progress
from ..core.records import printable
from ..errors import ArgumentError, DataError
from ..losses import Loss
from ..nets.accepted_models import check_model
from ..nets.arrays import Arrays
from ..nets.data import Choice, Data, open_data, read_pair, takes_data
from ..nets.equal_samples import warn_of_seen
from ..nets.row_order import warn_of_dropped_rows
from ..nets.shared import digest_of
from .comparison import Comparison, Difference, name_together
from .input_margins import InputMargins, input_margins as measure_input_margins
from .intervals import ERROR, INPUT, WEIGHTED_ERROR, Z, difference_intervals
from .measurement import measure
from .near_answers import Groups
from .report import MarginReport
from .summary import FITS

_CALIBRATION = "a change of calibration alone can make it"
"""Of numbers that are made of the sizes of margins: such a change moves them, and no answer."""


@takes_data
def compare(
    models: Mapping[str, nn.Module] | Sequence[nn.Module],
    data: Data | None = None,
    heldout: Data | None = None,
    *,
    input_margins: bool = False,
    layer: str | None = None,
    progress: bool = True,
    loss: Loss | str | nn.Module | None = None,
    batch_size: int = 200,
    rivals: int | None = None,
    class_names: Sequence[str] | None = None,
    within: int | None = None,
    groups: Groups | None = None,
    scores: Choice | None = None,
) -> Comparison:
    """Say which of several nets, or checkpoints of one, to use: which differences on the same
    samples are more than chance.

    Held-out data decide: `nm.compare(models, heldout=test)`. The first sentence of the answer is on
    the errors: how many fewer one net makes, with its 95% interval, or that these samples do not
    tell them apart, and how many would. z = mean q / std q and the margin-weighted error see more
    with few labels, but a change of calibration, such as label smoothing, moves them: such a
    difference is called real only where the error says the same.

    Parameters
    ----------
    models : dict of str to nn.Module, or list of them
        At least two nets. For checkpoints load each into a net of its own.
    data : tuple (X, y), or iterable of (x, y), or None, default None
        Samples, as for `measure`; beside held-out data those that the nets were trained on, alone
        any. An iterable must yield the same order each time.
    heldout : tuple (X, y), iterable of (x, y), or None, default None
        Labelled data that no net was trained on, 200 samples or more.
    input_margins : bool, default False
        Whether input margins are measured, on `data` where given: with their 25% quantile nets of
        one architecture are compared that were trained in one way, and fit the data.
    layer : str or None, default None
        The name of a module of every net, in whose output input margins are measured in place of
        the inputs; see `nm.input_margins` for token numbers.
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
        An iterable yields other samples, or in another order, each time, or the data cannot be
        used, as in `measure`.
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
    >>> found = nm.compare(nets, heldout=heldout, progress=False)
    >>> print(found.verdict[0])
    30 epochs: 131 fewer errors than 1 epochs (95%: 108 to 154).
    >>> [(d.number, d.value > 0, d.real) for d in found.differences]
    [('error', True, True), ('z', False, True), ('margin-weighted error', True, True)]

    Source: beyond the papers; McNemar's exact test, jackknife as in Efron and Tibshirani 1993.
    """
    named = _name_models(models)
    batch_size = check_count("batch_size", batch_size)
    input_margins = check_flag("input_margins", input_margins)
    progress = check_flag("progress", progress)
    check_optional(check_instance, "layer", layer, str, "the name of a module")
    if layer is not None and not input_margins:
        raise ArgumentError(
            f"layer={layer!r} says where input margins are measured, which were not asked for: give"
            " input_margins=True, too, or leave it out."
        )
    if data is None and heldout is None:
        raise DataError("compare needs labelled data: nm.compare(models, heldout=(X, y)).")
    data, heldout = map(_tell_passes, (data, heldout))
    if data is not None and heldout is not None:
        warn_of_seen(check_model(next(iter(named.values()))), data, heldout)
    first: Any = heldout if data is None else data
    training: list[MarginReport] = []
    reports: list[MarginReport] = []
    warned: list[tuple[str, str]] = []
    with Progress(progress, "compare") as display:
        for index, (name, model) in enumerate(named.items()):
            shown = f"{name}, net {index + 1} of {len(named)}"
            measured = partial(
                measure,
                model,
                loss=loss,
                batch_size=batch_size,
                class_names=class_names,
                within=within,
                groups=groups,
            )
            near: bool | InputMargins = input_margins
            with hear_warnings() as heard, display.part(shown, index, 1, len(named)):
                if near and layer is not None:
                    near = measure_input_margins(
                        model,
                        first,
                        layer=layer,
                        rivals=rivals,
                        batch_size=batch_size,
                        progress=False,
                    )
                known = None if heldout is None else data is None
                few = None if isinstance(near, InputMargins) else rivals
                found = measured(first, input_margins=near, rivals=few, heldout=known)
                (reports if data is None or heldout is None else training).append(found)
                if data is not None and heldout is not None:
                    reports.append(measured(heldout, heldout=True))
            warned += [(name, message) for message in heard]
    for message in name_together(warned):
        warn_caller(message)
    return compare_reports(tuple(named), reports, training)


def compare_reports(
    names: tuple[str, ...], reports: list[MarginReport], training: Sequence[MarginReport] = ()
) -> Comparison:
    """Compare nets by their reports on the samples that do so, and on training data or none."""
    kind = "held-out" if reports[0].heldout else "these"
    differences = _differences(kind, names, reports)
    near = _distance_differences("training" if training else kind, names, training or reports)
    return Comparison(names, tuple(reports), tuple(training), (*differences, *near))


class _SamePasses:
    """Batches, every pass over which has to give the same ones: else nothing could be paired."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches, self._digest = batches, b""

    def __iter__(self) -> Iterator[Any]:
        digest, read = hashlib.blake2b(digest_size=16), 0
        for index, batch in enumerate(self._batches):
            yield batch  # first, so that a bad one is refused by whom it is for
            x, y = read_pair(batch, f"batch {index}", "x")
            digest.update(digest_of(x, y))
            read += len(y)
        warn_of_dropped_rows(self._batches, read)
        if read and self._digest not in (b"", digest.digest()):
            raise DataError(
                "The data are others, or in another order, each time they are read. Pass a"
                " DataLoader with shuffle=False and without augmentation, or (X, y)."
            )
        self._digest = digest.digest()


def _tell_passes(data: Data | None) -> Data | None:
    """The data; an iterable of batches watches over what each net gets."""
    samples = None if data is None else open_data(data)
    return data if samples is None or isinstance(samples, Arrays) else _SamePasses(samples)


def _name_models(models: Any) -> dict[str, nn.Module]:
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


def _differences(
    kind: str, names: tuple[str, ...], reports: Sequence[MarginReport]
) -> list[Difference]:
    """The differences of what margins of new samples say of nets."""
    q = [report.q.numpy() for report in reports]
    errors = _pair_up(kind, ERROR, names, reports, [r.error for r in reports], q)
    differences = list(errors)
    weighted = [report.margin_weighted_error for report in reports]
    for number, values in ((Z, [report.z for report in reports]), (WEIGHTED_ERROR, weighted)):
        pairs = zip(_pair_up(kind, number, names, reports, values, q), errors, strict=True)
        differences += [
            replace(found, note=found.note or _calibration_note(found, error))
            for found, error in pairs
        ]
    return differences


def _calibration_note(found: Difference, error: Difference) -> str:
    """What is said of a difference that a change of calibration alone can make, or ""."""
    if not found.more_than_chance:
        return ""
    assert found.value is not None  # as its interval is
    assert error.value is not None
    # A larger z is better, a larger error worse.
    says_the_same = ((found.value > 0) == (error.value > 0)) != (found.number == Z)
    return "" if error.real and says_the_same else _CALIBRATION


def _distance_differences(
    kind: str, names: tuple[str, ...], reports: Sequence[MarginReport]
) -> list[Difference]:
    """The differences of input margins, where they were measured."""
    distances = [r.input_margins.distances.numpy() for r in reports if r.input_margins is not None]
    if not distances:
        return []
    values = [report.margins["input"].value for report in reports]
    misfits = [name for name, r in zip(names, reports, strict=True) if r.error > FITS]
    differences = []
    for found in _pair_up(kind, INPUT, names, reports, values, distances):
        notes = [
            f"{name} is wrong on more than {FITS:.0%} of them"
            for name in (found.first, found.second)
            if name in misfits
        ]
        note = f"{'; '.join(notes)}: do not compare" if notes else ""
        note = found.note or note or _CALIBRATION * found.more_than_chance
        differences.append(replace(found, note=note))
    return differences


def _pair_up(
    kind: str,
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
        found.append(Difference(kind, number, names[i], names[j], value, interval, note))
    return found
