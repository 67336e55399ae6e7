"""Probabilities in place of scores: whether a net ends in softmax or sigmoid, and what to pass."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..core import logspace
from .model import (
    are_probabilities,
    call_with,
    find_end,
    require_log_odds,
    require_scores_before_sigmoid,
)

_ROWS = 16
"""Rows that are looked at. Where no operation tells, at least half as many must sum to 1: scores of
other nets do so in none, and those of a toy net (the identity on unit vectors) are few.
"""
_ROUNDING_UNITS = 8
"""A softmax sums to 1 up to so many units of rounding, and one more a class: exponentials and
quotient have two or three each. At least units of float32, as it may have been converted.
"""
_UNTOLD = 0.05
"""Errors of the best threshold, a share of the rarer class, from which a net is held to be at its
start: what was trained to another threshold errs less.
"""
_HEAD = 4
"""Parameters at the end of a net that are negated: weight and bias of its head are among them."""
_MODULES = (nn.Softmax, nn.LogSoftmax, nn.Sigmoid)
"""Modules that can be left out of a net: they do nothing else."""


class Doubt(NamedTuple):
    """What is said of scores that are probabilities: "" for other scores."""

    text: str = ""
    saturated: bool = False
    """Whether differences of scores are no margins; those of log-probabilities still are."""


def doubt_scores(model: nn.Module, x: Any, outputs: Tensor) -> Doubt:
    """Say of the scores of a batch x that they are probabilities, and what to pass instead."""
    require_scores_before_sigmoid(model, x[:_ROWS], outputs[:_ROWS])
    rows = logspace.as_float64(outputs[:_ROWS].detach())
    logs = rows.max().item() <= 0
    if rows.shape[1] == 1 or not (logs or are_probabilities(rows)):
        return Doubt()
    last = find_end(model, x[:_ROWS])[0].kind
    seen = f"the net ends in a {last}"
    if not last:
        last, seen = _guess_by_sums(rows, outputs.dtype)
    if not last or last.startswith("log-") != logs:
        return Doubt()
    said = (
        f"These scores are logs of probabilities: {seen}. Normalized margins and certificates need"
        " the scores before it; margins, distances and the cross-entropy are the same"
        if logs
        else f"These scores are probabilities: {seen}. Differences of probabilities are no margins:"
        " they end at 1 however sure the net is. Margins, estimated distances and losses are not"
        " those of its scores, and do not compare it with other nets"
    )
    instead = (
        f"Pass model[:-1], the same net without its {last}"
        if isinstance(model, nn.Sequential) and isinstance(model[-1], _MODULES)
        else f"Let forward return the scores before the {last}; in place of a method such as"
        " predict_proba pass the net that it calls"
    )
    return Doubt(f"{said}. {instead}.", not logs)


def doubt_signs(
    scores: Tensor,
    signs: Tensor,
    *,
    free: Callable[[], bool],
    homogeneous: Callable[[], bool],
    settled: bool,
) -> Doubt:
    """Say that no score (n,) of one output changes its sign; OutputsError where not `settled`.
    Nothing is said at the start of training: no threshold is right for a net that is `free` to.
    """
    low, high = scores.min().item(), scores.max().item()
    if bool((signs == signs[0]).all()) or not (0 <= low < high or low < high <= 0):
        return Doubt()
    ups = (signs[torch.argsort(scores)] > 0).long()
    downs = len(ups) - ups.sum()
    wrong = downs + (2 * ups - 1).cumsum(0).min()  # by the best threshold
    if (len(ups) < _ROWS or wrong > _UNTOLD * min(downs, ups.sum())) and free():
        return Doubt()
    right, right_by_half = ((where * signs > 0).sum() for where in (scores, scores - 0.5))
    probable = low >= 0 and high <= 1 and bool(right_by_half > right) and not homogeneous()
    if probable and not settled:
        require_log_odds("they lie from 0 to 1, and more answers are right that change at 1/2")
    return Doubt(
        f"The only score is never {'below' if low >= 0 else 'above'} 0, where the answer of one"
        " output changes: all samples of one class count as wrong. Let forward return what goes"
        " into a sigmoid, or subtract where it changes: scores=lambda out: out - 50, for example.",
        probable,
    )


def has_free_sign(model: nn.Module, x: Any) -> bool:
    """Whether the only score gets the other sign on some of x where a parameter is negated: it does
    if the net ends in a linear layer, and does not if it ends in a ReLU, a square or a percentage.
    """
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with suppress(Exception), torch.no_grad(), torch.random.fork_rng():
        side = call_with(model, kept, x).sum()
        return any(
            bool((call_with(model, kept | {name: -p}, x) * side < 0).any())
            for name, p in list(model.named_parameters())[: -_HEAD - 1 : -1]
        )
    return False  # its code bears no other weights


def _guess_by_sums(rows: Tensor, dtype: torch.dtype) -> tuple[str, str]:
    """What computed rows of scores, and what shows it, for what is written by hand."""
    n, classes = rows.shape
    # Rows of zeros and ones alone may be anything, such as one-hot inputs handed on.
    if 2 * n < _ROWS or bool((rows == rows.round()).all()):
        return "", ""
    unit = max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
    tolerance = (_ROUNDING_UNITS + classes) * unit
    if bool((rows >= 0).all()):
        sums, found = rows.sum(1) - 1, ("softmax", "each row of them is in [0, 1] and sums to 1")
    else:
        sums, found = torch.logsumexp(rows, 1), ("log-softmax", "e to them sums to 1 in each row")
    return found if bool((sums.abs() <= tolerance).all()) else ("", "")
