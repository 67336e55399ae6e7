"""One pass over the data that measures every margin of a net."""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ..core import logspace
from ..core.arguments import check_choice, check_count, check_flag, check_instance, check_optional
from ..core.memory import advise_on_memory
from ..errors import ArgumentError, NonFiniteOutputError
from ..homogeneity import Homogeneity, analyse
from ..losses import Loss, as_loss
from ..nets.data import Choice, Data, open_model_and_data, takes_data
from ..nets.labels import ClassNames
from ..nets.model import in_mode, scores as score
from ..nets.row_order import require_order
from .boundaries import Boundaries, differentiable_scores, find_boundaries, token_layer
from .input_margins import InputMargins
from .near_answers import Groups, NearAnswers
from .normalization import measure_norms, normalizing_homogeneity
from .of_outputs import best_others, margins, require_finite_margins
from .report import MarginReport
from .scored_batches import ScoredBatch, pass_over
from .spectral import read_chain


@takes_data
def measure(
    model: nn.Module,
    data: Data,
    *,
    heldout: bool | None = None,
    loss: Loss | str | nn.Module | None = None,
    batch_size: int = 200,
    homogeneity: Homogeneity | None = None,
    input_margins: bool | InputMargins = False,
    rivals: int | None = None,
    statistics: str = "follow",
    class_names: Sequence[str] | None = None,
    within: int | None = None,
    groups: Groups | None = None,
    scores: Choice | None = None,
) -> MarginReport:
    """Margins of `model` on `data`, normalized by the model's own homogeneity.

    `print(report)` says what to do with the answer: how many samples are wrong, of which classes,
    and what to look at next; `report.summary(full=True)` explains every number. The net runs in
    evaluation mode, on its own device and in its own dtype, and is as it was afterwards. Data are
    streamed: what is kept per sample is its margin, its class and the next best one (24 bytes).

    Parameters
    ----------
    model : nn.Module
        A net that returns scores of shape (N,), (N, 1) (binary) or (N, C).
    data : tuple (X, y), or iterable of (x, y)
        All samples at once, X of shape (N, ...) and y of shape (N,), or batches of them. Labels are
        {-1, +1} or {0, 1} (binary), or class indices. Inputs by name, such as a dict with `labels`,
        are read as well: see docs/inputs.md.
    heldout : bool or None, default None
        Whether the net was not trained on these samples: True for validation or test data, False
        for training data. The numbers are the same; what is said of them is not.
    loss : Loss, str, torch criterion or None, default None
        The loss whose log and smoothed margins are reported, as `losses.as_loss` reads it; the
        cross-entropy (logistic for one output) by default.
    batch_size : int, default 200
        Samples per forward pass when data is a pair.
    homogeneity : Homogeneity or None, default None
        The answer of `analyse` in evaluation mode, to save that analysis when one model is measured
        often.
    input_margins : bool or InputMargins, default False
        Whether distances to the decision boundary are measured as well, with one backward pass per
        class and batch; or what `nm.input_margins` found for the same data, where it needs options.
    rivals, statistics : optional
        As for `nm.input_margins`, how many classes distances look at; as for `nm.analyse`.
    class_names : sequence of str or None, default None
        Names of the classes in the order of the class indices (of two classes, that of label -1 or
        0 first), which tables and summaries show in place of numbers.
    within, groups : int and dict of str to list, or None, default None
        How many classes an answer may be off, and lists of classes, by numbers or names, that are
        nearly right for each other: the report has the share of such answers, too.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, where it returns several: a key or an index, a tuple of
        these, or a function of what it returns. By default the names, shapes and labels decide.

    Returns
    -------
    MarginReport
        Margins q of shape (N,), float64, the summed log-loss, and `report.margins`, every
        normalized margin that the net allows; a `warning` where they mean little.

    Raises
    ------
    DataError
        Data are empty, NaN or infinite, labels are of the wrong kind or number, or the model
        rejects the inputs.
    ModelError
        The model is no module or has no parameters, its parameters are all zero or not finite, or
        its outputs have a wrong shape.
    NonFiniteOutputError
        Its outputs, or the loss of them, are NaN or infinite.
    ArgumentError
        Another argument cannot be used.

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
    model, samples = open_model_and_data(model, data)
    loss = as_loss(loss)
    if heldout is not None:
        hint = (
            "nm.page and nm.compare take data by this name, here they are nm.measure(model, data)."
        )
        heldout = check_flag("heldout", heldout, hint)
    batch_size = check_count("batch_size", batch_size)
    rivals = check_optional(check_count, "rivals", rivals)
    what = "the answer of netmargin.analyse(model, X)"
    check_optional(check_instance, "homogeneity", homogeneity, Homogeneity, what)
    if homogeneity is not None:
        homogeneity.require_parameters_of(model)
    if not isinstance(input_margins, InputMargins):
        input_margins = check_flag("input_margins", input_margins)
    if input_margins is True:  # the report names samples by their rows
        require_order(samples)
    if rivals is not None and input_margins is not True:
        raise ArgumentError(
            "rivals says how many classes are looked at when distances are measured. Give"
            " input_margins=True, too, or leave it out."
        )
    check_choice("statistics", statistics, ("follow", "fixed"))
    names = ClassNames(class_names)
    nearly = NearAnswers(within, groups, names)

    tokens: tuple[str, nn.Module] | None = None

    def compute_scores(x: Any) -> tuple[Tensor, Tensor]:
        nonlocal tokens
        if input_margins is not True:
            return x, score(model, x)
        tokens = token_layer(model, x)
        return differentiable_scores(model, x, tokens and tokens[1])

    def begin(x: Any, outputs: Tensor) -> Homogeneity:
        # The net is analysed on the first batch, the only inputs that are at hand for certain.
        found = homogeneity or analyse(model, x, statistics=statistics)
        loss.require_outputs(outputs.shape[1])
        nearly.require_number(outputs.shape[1])
        return found

    def compute(batch: ScoredBatch) -> tuple[Tensor, Tensor, Tensor, float, Boundaries | None]:
        near = None
        if input_margins is True:
            near = find_boundaries(batch.point, batch.outputs, batch.targets, rivals=rivals)
        others = best_others(batch.outputs.detach(), batch.targets)
        return batch.hard, batch.classes, others, _sum_losses(loss, batch.soft), near

    parts, analysis, doubt = pass_over(
        model,
        samples,
        batch_size,
        names,
        score=compute_scores,
        begin=begin,
        compute=compute,
        faults=homogeneity.warning if homogeneity else None,
        slopes=input_margins is True,
    )
    *found, log_losses, boundaries = zip(*parts, strict=True)
    q, classes, others = map(torch.cat, found)
    log_loss = _add_losses(log_losses)
    warning = doubt.text
    if input_margins is True:
        input_margins = InputMargins.joined(boundaries, q, classes, warning)
        input_margins = replace(input_margins, layer=tokens[0] if tokens else "")
        warning = input_margins.warning
    if input_margins and len(input_margins.q) != len(q):
        raise ArgumentError(
            f"input_margins holds {input_margins.n} samples, and the data {len(q)}. Pass"
            " what nm.input_margins found for these data."
        )
    report = make_report(model, analysis, loss, q, log_loss)
    if input_margins:
        own = names.names or input_margins.class_names
        input_margins = replace(input_margins, class_names=own)
    chain, note = read_chain(model)
    return replace(
        report,
        reasons=report.reasons | {"bartlett": note},
        _chain=chain,
        labels=classes,
        input_margins=input_margins or None,
        class_names=names.names,
        warning=warning,
        saturated=doubt.saturated,
        others=others,
        near_accuracy=nearly.share(classes, others, q > 0) if nearly else None,
        heldout=heldout,
    )


def measure_margins(
    model: nn.Module, given: Iterable[tuple[Any, Tensor]], loss: Loss
) -> tuple[Tensor, float]:
    """Margins (N,) on the CPU and the log-loss, as of `measure`, which has taken the net before.

    Of `given` batches the inputs are where the net is, and the labels are encoded.
    """
    found, measured = list[tuple[Tensor, float]](), 0
    with in_mode(model, training=False), torch.no_grad():
        for x, y in given:
            with advise_on_memory(len(x)):
                found.append(measure_scores(score(model, x), y, loss, measured=measured))
            measured += len(x)
    q, log_losses = zip(*found, strict=True)
    return torch.cat(q), _add_losses(log_losses)


def measure_scores(
    outputs: Tensor, y: Tensor, loss: Loss, *, measured: int = 0
) -> tuple[Tensor, float]:
    """Margins (n,) on the CPU and the log-loss of a batch of scores (n, C), after others."""
    y = y.to(outputs.device)
    hard, soft = margins(outputs, y)
    require_finite_margins(soft, outputs, y, measured=measured)
    return hard.cpu(), _sum_losses(loss, soft)


def _add_losses(log_losses: Iterable[float]) -> float:
    """The log of a sum from logs of its parts: deep in training a loss is no float64."""
    return functools.reduce(logspace.log_add, log_losses, -math.inf)


def _sum_losses(loss: Loss, soft: Tensor) -> float:
    """The natural log of the summed loss of a batch, from its soft margins."""
    log_loss = loss.log_sum(soft)
    if math.isnan(log_loss):
        raise NonFiniteOutputError(
            f"The loss {loss.name} is not defined at margin {soft.min().item():g}. Use a loss that"
            " is defined for all margins."
        )
    return log_loss


def make_report(
    model: nn.Module, analysis: Homogeneity, loss: Loss, q: Tensor, log_loss: float
) -> MarginReport:
    """The report that a row of a history is made of, of a net whose margins q (N,) are known."""
    total, logs, reasons = measure_norms(model, analysis)
    return MarginReport(q, log_loss, normalizing_homogeneity(analysis), total, loss, logs, reasons)
