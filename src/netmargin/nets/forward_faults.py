"""What a few samples show of a net before anything is said of single samples: noise, weights that
it does not hold, samples that see each other.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from ..core.devices import draw_normal
from ..errors import ModelError, NetmarginError, NonFiniteOutputError
from .advice import explain_forward_errors
from .casts import CastsTo
from .eager_mode import EagerMode
from .model import call_with, require_finite, scores
from .named_inputs import map_floating

SAMPLES = 16
"""Samples that are looked at. Two draws of dropout at 1/2 agree on a sample with one input in half
of all cases, on sixteen samples once in 65,000.
"""
_ALONE = 4
"""Samples that are scored alone, of a net whose forward decides nothing by values: statistics of a
batch, attention and the like change them all, or all but one.
"""
_ROUNDING_UNITS = 1e3
"""Two evaluations may differ by this many units of rounding, as sums on a GPU may."""
_SUSPECTED = 1e-5
"""Relative difference of a sample alone and in its batch, 80 units of float32, from which on it is
computed again in float64: convolutions of one sample and of many stay below it.
"""
_SEEN = 1e-9
"""The same difference in float64 from which on samples see each other: a net that loses seven
digits to cancellation stays below it, and nobody reads the tenth digit of a margin.
"""


class _Watched(EagerMode):
    """A mode that notes which weights operations take, and whether Python reads values."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: dict[int, Tensor] = {}  # kept alive, so that ids stay theirs
        self.decides = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in filter(is_weight, tree_leaves((args, kwargs))):
            self.weights[id(value)] = value
        self.decides |= func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def find_faults(model: nn.Module, x: Any, *, weights: bool = True) -> str:
    """What makes numbers of single samples of a net meaningless, seen on a few of x, or ''."""
    x, watched = x[:SAMPLES], _Watched()
    with torch.no_grad(), torch.random.fork_rng():
        with watched:
            whole = scores(model, x)
        if bool(whole.isnan().any()):
            require_finite(model)
            raise NonFiniteOutputError(
                "The model's outputs are NaN on finite inputs. Check its weights."
            )
        size, noise = _size_of(whole), _difference(whole, scores(model, x))
        if noise > _ROUNDING_UNITS * torch.finfo(whole.dtype).eps * size:
            return (
                "The model is noisy: two evaluations of the same inputs in evaluation mode differ"
                f" by {noise:.2g} in outputs of size {size:.2g}, and numbers are those of single"
                " draws. Put nn.Dropout in place of a dropout function, `if self.training:` around"
                " noise."
            )
        rows = len(x) if watched.decides else min(len(x), _ALONE)
        spread = torch.linspace(0, len(x) - 1, rows, device="cpu").long().tolist()
        strange = describe_strange(model, watched.weights.values()) if weights else ""
        return " ".join(filter(None, (strange, find_company(model, x, whole, spread))))


def require_no_faults(model: nn.Module, x: Any, *, weights: bool = True) -> None:
    """Raise ModelError for a model of which nothing can be proved or certified sample by sample."""
    if faults := find_faults(model, x, weights=weights):
        raise ModelError(faults)


def is_weight(value: Any) -> bool:
    """Whether a value that an operation takes is a weight, and not computed or a constant."""
    if not isinstance(value, Tensor) or isinstance(value, nn.Parameter):
        return isinstance(value, nn.Parameter)
    # Views of weights are leaves as well where gradients are off.
    return value.requires_grad and value.is_leaf and not value._is_view()


def describe_strange(model: nn.Module, weights: Any) -> str:
    """A sentence about those of some weights that are no parameters of the model, or ''."""
    own = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    strange = [tuple(weight.shape) for weight in weights if id(weight) not in own]
    if not strange:
        return ""
    return (
        "The model, or a copy of it, computes with weights that are none of its parameters"
        f" ({len(strange)}, the first of shape {strange[0]}): layers in a Python list or dict,"
        " outside of it, or held by a function. They count in no norm and no order. Put layers into"
        " nn.ModuleList or nn.ModuleDict, tensors into nn.Parameter, functions into methods."
    )


def find_company(model: nn.Module, x: Any, whole: Tensor, rows: Sequence[int]) -> str:
    """A sentence where those of x that are `rows` score otherwise alone than in `whole`, or ''."""
    if len(x) < 2 or not bool(torch.isfinite(whole).any()) or bool(whole.isnan().any()):
        return ""
    try:
        gaps = [_difference(whole[row], scores(model, x[row : row + 1])[0]) for row in rows]
        worst, gap = rows[gaps.index(max(gaps))], max(gaps)
    except NetmarginError:  # such as statistics of one sample
        worst, gap = rows[0], math.inf
    doubtful = _SEEN if whole.dtype == torch.float64 else _SUSPECTED
    if gap <= doubtful * _size_of(whole):
        return ""
    # Where a net takes no sample alone, it takes a batch of its copies.
    alone = [worst] * (1 if math.isfinite(gap) else len(x))
    exact = map_floating(Tensor.double, x)
    score = scoring_in_float64(model)
    try:
        whole = score(exact)
        gap = _difference(whole[worst], score(exact[alone])[0])
        # What the last digit of an input moves is lost to rounding, as where a score cancels to 0.
        source, unit = torch.Generator().manual_seed(0), torch.finfo(torch.float64).eps
        changed = map_floating(lambda z: z * (1 + unit * draw_normal(z, source)), exact)
        lost = _difference(whole, score(changed))
    except NetmarginError:
        return ""
    size = _size_of(whole)
    if gap <= max(_SEEN * size, _ROUNDING_UNITS * lost if math.isfinite(lost) else 0.0):
        return ""
    return (
        f"Samples see each other: scores of sample {worst} differ by {gap:.2g}, of {size:.2g},"
        f" when it is scored alone and in a batch of {len(x)} samples, in evaluation mode. Every"
        " number depends on the batch size. Let forward keep dimension 0 apart: batch_first=True"
        " in attention, stored statistics in BatchNorm, no mean, softmax or `if` over the batch."
    )


def scoring_in_float64(model: nn.Module) -> Callable[[Any], Tensor]:
    """What scores float64 inputs, with all that the net computes in float64, casts included."""
    named = (*model.named_parameters(), *model.named_buffers())
    # Copies, as what was made in inference mode has no graph.
    exact = {n: t.detach().to(torch.float64, copy=True) for n, t in named if t.is_floating_point()}

    def score(x: Any) -> Tensor:
        with explain_forward_errors(x), CastsTo(torch.float64):
            return call_with(model, exact, x)

    return score


def _size_of(outputs: Tensor) -> float:
    """The largest finite output."""
    return outputs.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().item()


def _difference(a: Tensor, b: Tensor) -> float:
    """The largest difference of outputs; equal infinite ones have none, NaN differs infinitely."""
    return torch.where(a == b, 0.0, (a - b).abs()).nan_to_num(nan=math.inf).max().item()
