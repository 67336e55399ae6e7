"""Probabilities in the place of scores: whether a net ends in a softmax or a sigmoid, and what to
pass instead.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..core import logspace
from .eager_mode import EagerMode
from .model import call_net, require_scores_before_sigmoid
from .score_outputs import tensor_of_scores

_ROWS = 16
"""Rows that are looked at. Where no operation tells, at least half as many must sum to 1: scores of
other nets do so in none, and those of a toy net (the identity on unit vectors) are few.
"""
_ROUNDING_UNITS = 8
"""A softmax in floating point sums to 1 up to so many units of rounding, and one more a class: the
exponentials and the quotient have two or three each. At least units of float32: probabilities may
have been converted.
"""
_OPERATIONS = {
    "_softmax": "softmax",
    "_safe_softmax": "softmax",
    "_log_softmax": "log-softmax",
    "sigmoid": "sigmoid",
    "sigmoid_": "sigmoid",
}
"""ATen operations that end a net with probabilities, or their logs, and what they are called."""

_COPIES = ("_to_copy", "clone", "clamp", "index", "index_select")
"""ATen operations whose results are what they were given, up to a class or a tiny number."""
_MODULES = (nn.Softmax, nn.LogSoftmax, nn.Sigmoid)
"""Modules that can be left out of a net: they do nothing else."""


class Doubt(NamedTuple):
    """What is said of scores that are probabilities: "" for other scores."""

    text: str = ""
    saturated: bool = False
    """Whether differences of scores are no margins; those of log-probabilities still are."""


def doubt_scores(model: nn.Module, x: Any, outputs: Tensor) -> Doubt:
    """Say of the scores of a batch x that they are probabilities, and what to pass instead.

    Only scores that are all in [0, 1], or all at most 0, cost a forward pass of a few samples.
    Raises OutputsError for a net that is to be read before its sigmoid.
    """
    require_scores_before_sigmoid(model, x[:_ROWS], outputs[:_ROWS])
    rows = logspace.as_float64(outputs[:_ROWS].detach())
    low, high = rows.min().item(), rows.max().item()
    if not (high <= 0 or (low >= 0 and high <= 1)):
        return Doubt()
    last = _find_last(model, x[:_ROWS])
    seen = f"the net ends in a {last}"
    if not last:
        last, seen = _guess_by_sums(rows, outputs.dtype)
    logs = last.startswith("log-")
    if not last or logs != (high <= 0):
        return Doubt()
    alone = rows.shape[1] == 1
    text = f"{_describe(logs, seen, alone)}. {_say_instead(last, model, alone)}."
    return Doubt(text, alone or not logs)


def _guess_by_sums(rows: Tensor, dtype: torch.dtype) -> tuple[str, str]:
    """What computed rows of scores, and what shows it, for what is written by hand."""
    n, classes = rows.shape
    # Rows of zeros and ones alone may be anything, such as one-hot inputs handed on.
    if 2 * n < _ROWS or bool((rows == rows.round()).all()):
        return "", ""
    if classes == 1:  # scores of other nets are negative for one class
        beside = bool((rows >= 0).all() and (rows < 0.5).any() and (rows > 0.5).any())
        return ("sigmoid", "they lie from 0 to 1, on both sides of 1/2") if beside else ("", "")
    unit = max(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)
    tolerance = (_ROUNDING_UNITS + classes) * unit
    if bool((rows >= 0).all()):
        sums, found = rows.sum(1) - 1, ("softmax", "each row of them is in [0, 1] and sums to 1")
    else:
        sums, found = torch.logsumexp(rows, 1), ("log-softmax", "e to them sums to 1 in each row")
    return found if bool((sums.abs() <= tolerance).all()) else ("", "")


def _find_last(model: nn.Module, x: Any) -> str:
    """What the operation is called that computed the scores; "" if it is another one."""
    made: dict[int, tuple[Tensor, str]] = {}

    class Watched(EagerMode):
        """Keeps what the operations return, so that no later tensor takes over their memory."""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            operation = func._schema.name.removeprefix("aten::")
            name = _OPERATIONS.get(operation)
            if operation in _COPIES:
                name = made.get(_memory_of(args[0]), (None, name))[1]
            if name:
                made[_memory_of(found)] = found, name
            return found

    try:
        with torch.no_grad(), torch.random.fork_rng(), Watched():
            scores = tensor_of_scores(call_net(model, x), len(x))
    # The net has just been scored: where it fails now, its code bears no watching.
    except Exception:
        return ""
    return made.get(_memory_of(scores), (scores, ""))[1]


def _memory_of(tensor: Tensor) -> int:
    """Where a tensor lies; its views, such as those of squeeze, lie there as well."""
    return tensor.untyped_storage().data_ptr()


def _describe(logs: bool, seen: str, alone: bool) -> str:
    """What is wrong with scores that are probabilities, or logs of them; `alone`: one output."""
    these = f"These scores are {'logs of ' * logs}probabilities: {seen}"
    if alone:
        side = "their logs never above" if logs else "probabilities never below"
        return (
            f"{these}. The answer of one output changes at 0, and {side} it: all samples of one"
            " class count as wrong"
        )
    if logs:
        return (
            f"{these}. Margins, distances and the cross-entropy are those of the scores before it;"
            " normalized margins and certificates need these scores themselves"
        )
    return (
        f"{these}. Differences of probabilities are no margins: they end at 1 however sure the net"
        " is. Margins, estimated distances and losses are not those of its scores, and do not"
        " compare it with other nets"
    )


def _say_instead(last: str, model: nn.Module, alone: bool) -> str:
    """What to pass in place of a net with this end."""
    if alone and "softmax" in last:
        return f"Let forward return the scores of both classes, before the {last}"
    if isinstance(model, nn.Sequential) and isinstance(model[-1], _MODULES):
        return f"Pass model[:-1], the same net without its {last}"
    return (
        f"Let forward return the scores before the {last}; in place of a method such as"
        " predict_proba pass the net that it calls"
    )
