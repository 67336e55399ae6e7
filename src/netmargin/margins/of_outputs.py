"""Margins and soft margins from the scores that a net returned."""

import math

import torch
from torch import Tensor

from ..core import logspace
from ..errors import ClassNotOfferedError, NonFiniteOutputError
from ..nets.whole_tensors import are_finite

_OFF = 1e-5
"""A smallest margin that is off by less is not worth a word: float32 has seven digits."""


def margins(outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Margins and soft margins of a batch, not normalized, float64, shape (N,) each.

    q_n = y_n Phi(x_n), or the least of the gaps Phi_{y_n} - Phi_j; and -log sum_j e^{-gap_j}, which
    is the same for one output. outputs : scores (N, C). y : signs -1, +1 for one output, class
    indices for several. Source: Lyu and Li 2019, Appendix F.
    """
    gaps = score_gaps(outputs, y)
    return gaps.amin(1), soft_margins(gaps)


def soft_margins(gaps: Tensor) -> Tensor:
    """The soft margins -log sum_j e^{-gap_j}, shape (..., N), of score gaps (..., N, C)."""
    return gaps[..., 0] if gaps.shape[-1] == 1 else -torch.logsumexp(-gaps, -1)


def score_gaps(outputs: Tensor, y: Tensor) -> Tensor:
    """The gaps s_nj = Phi_{y_n} - Phi_j, and +infinity at j = y_n; y_n Phi for one output.

    Shape (N, C), float64, from outputs and labels as `margins` takes them.
    """
    outputs = logspace.as_float64(outputs)
    if outputs.shape[1] == 1:
        return y.unsqueeze(1) * outputs
    own = y.unsqueeze(1)
    gaps = outputs.gather(1, own) - outputs
    # Infinity at the sample's own class leaves both the minimum and e^{-gap} to the other classes.
    return gaps.scatter(1, own, math.inf)


def best_others(outputs: Tensor, y: Tensor) -> Tensor:
    """The class of the largest score but that of the label, int64 on the CPU, shape (N,)."""
    if outputs.shape[1] == 1:
        return (y < 0).long().cpu()
    return outputs.scatter(1, y[:, None], -math.inf).argmax(1).cpu()


def doubt_digits(q: Tensor, dtype: torch.dtype) -> str:
    """A sentence where scores of this type are so small that their margins q lose digits, or ""."""
    least, fine = q.min().item(), torch.finfo(dtype)
    # Both scores are rounded to multiples of the smallest number.
    off = fine.tiny * fine.eps / abs(least) if 0 < abs(least) < fine.tiny else 0.0
    if off < _OFF:
        return ""
    return (
        f"The scores are so small that {str(dtype).removeprefix('torch.')} rounds them to few"
        f" digits: the smallest margin, {least:.2g}, is known to {100 * off:.1g}% of itself at"
        " best. Measure a copy of the net in float64, copy.deepcopy(model).double(), or one with"
        " larger weights."
    )


def require_finite_margins(soft: Tensor, outputs: Tensor, y: Tensor, *, measured: int) -> None:
    """Raise NonFiniteOutputError for the first soft margin of a batch that is NaN or infinite.

    ClassNotOfferedError where the score of the label, or of every class but it, is -infinity.
    `measured` counts the samples before this batch, for the message.
    """
    if are_finite(soft):
        return
    row = int(torch.nonzero(~torch.isfinite(soft))[0, 0])
    sample, offered = f"sample {measured + row}", outputs[row] > -math.inf
    if outputs.shape[1] > 1 and not bool((outputs[row].isnan() | (outputs[row] == math.inf)).any()):
        if not offered[y[row]]:
            raise ClassNotOfferedError(
                f"The label of {sample} is {int(y[row])}, a class that the model does not offer it:"
                " its score is minus infinity. Leave such samples out, or recode them."
            )
        if offered.sum() == 1:
            raise ClassNotOfferedError(
                f"The model offers {sample} one class alone, and no rival: all other scores are"
                " minus infinity. Leave such samples out."
            )
    raise NonFiniteOutputError(
        f"The model's outputs are NaN or infinite on {sample}. Check its weights."
    )
