"""Nets of which it is known which output, or what before its last sigmoid, is their scores."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..errors import ModelError
from .accepted_models import unwrap
from .score_outputs import Choice, take_output, tell_outputs, tensor_of_scores

_MARK = "_netmargin_reading"
"""The attribute that holds the `Reading` of a net, in the copies of it that `name_scores` makes."""
_ENDS = {
    "sigmoid": "sigmoid", "sigmoid_": "sigmoid", "expit": "sigmoid", "special_expit": "sigmoid",
    "softmax": "softmax", "special_softmax": "softmax", "softmin": "softmax",
    "log_softmax": "log-softmax", "special_log_softmax": "log-softmax",
}  # fmt: skip
"""Functions that return probabilities, or logs of them, and what they are called."""
_COPIES = (
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "ravel", "contiguous", "clone",
    "__getitem__", "float", "double", "half", "bfloat16", "to", "type", "cpu", "select", "view_as",
    "reshape_as", "index_select",
)  # fmt: skip
"""Functions that return what they were given: in another shape or type, or some of it."""
_CUTS = ("clamp", "clamp_", "clip", "clip_", "clamp_min", "clamp_max")
"""Functions that return it up to a tiny number."""


class Reading(NamedTuple):
    """How the scores of a net are read, and what reports say of it."""

    choice: Choice | None = None  # which output; None is what the net returns
    sigmoid: tuple[int, int] = (-1, 0)  # which call of a sigmoid is left out, and of how many
    as_log_odds: bool | None = None  # whether it is a probability; None is not settled
    said: str = ""


class End(NamedTuple):
    """What made a tensor of probabilities, "" for others, and which call of a sigmoid it is."""

    kind: str = ""
    place: int = -1  # -1 where no sigmoid returned exactly these numbers


def name_scores(model: Any, **changes: Any) -> nn.Module | Any:
    """The net, or nets, of the same tensors, with scores read as fields of `Reading` say."""
    if isinstance(model, Mapping):
        return {name: name_scores(net, **changes) for name, net in model.items()}
    if isinstance(model, (list, tuple)):
        return [name_scores(net, **changes) for net in model]
    model = unwrap(model)
    if not isinstance(model, nn.Module):
        return (lambda: name_scores(model(), **changes)) if callable(model) else model
    reading = reading_of(model)._replace(**changes)
    alike = object.__new__(type(model))
    alike.__dict__.update(vars(model))
    # A chain without its last layer stays one, of layers that every function knows.
    if reading.sigmoid[1] and type(model) is nn.Sequential and type(model[-1]) is nn.Sigmoid:
        alike, reading = model[:-1], reading._replace(sigmoid=(-1, 0))
    alike.__dict__[_MARK] = reading
    return alike


def settle_scores(model: nn.Module) -> nn.Module:
    """The net, whose scores are not taken for probabilities later on, whatever they look like."""
    return name_scores(model, as_log_odds=bool(reading_of(model).as_log_odds))


def reading_of(model: Any) -> Reading:
    """How the scores of a net are read."""
    reading: Reading = getattr(model, "__dict__", {}).get(_MARK, Reading())
    return reading


def read_outputs(model: Any, call: Callable[[], Any]) -> Any:
    """What `call`, a forward pass of a net, returns; the scores where they are named."""
    reading = reading_of(model)
    if reading == Reading():
        return call()
    index, count = reading.sigmoid
    with Ends(index) if count else nullcontext(Ends()) as seen:
        outputs = call()
    if seen.sigmoids != count:
        raise ModelError(
            "The model computes more sigmoids in one call than in another. Let forward return what"
            " goes into the last one."
        )
    said = ""
    if reading.choice is not None:
        outputs, said = take_output(outputs, reading.choice)
    if reading.as_log_odds:
        found = tensor_of_scores(outputs)
        outputs = torch.logit(found, torch.finfo(found.dtype).eps)  # finite at 0 and 1
    tell_outputs(*filter(None, (said, reading.said)))
    return outputs


class Ends(TorchFunctionMode):
    """A mode that knows which tensors are probabilities, and leaves out one of the sigmoids."""

    def __init__(self, left_out: int = -1) -> None:
        super().__init__()
        self.sigmoids, self._left_out = 0, left_out
        self._made: dict[int, tuple[Tensor, End]] = {}  # the tensors are kept: ids are theirs alone

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function, or leave it out."""
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        first, end = args[0] if args else kwargs.get("input"), End()
        if name in _COPIES:
            end = self.of(first)
        elif name in _CUTS:
            end = End(self.of(first).kind)
        elif name in _ENDS:
            end = End(_ENDS[name])
        if end.kind == "sigmoid" and name in _ENDS:
            end, self.sigmoids = End("sigmoid", self.sigmoids), self.sigmoids + 1
            if end.place == self._left_out:
                return first
        found = func(*args, **kwargs)
        written = first if name == "__setitem__" else found
        self._made.pop(id(written), None)
        if end.kind and isinstance(found, Tensor):
            self._made[id(found)] = found, end
        return found

    def of(self, tensor: Any) -> End:
        """What made a tensor."""
        return self._made.get(id(tensor), (None, End()))[1]
