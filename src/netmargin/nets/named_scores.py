"""Nets of which it is known which output, or what before its last sigmoid, is their scores."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..errors import ModelError
from .accepted_models import unwrap
from .score_outputs import Choice, take_output, tell_outputs

_MARK = "_netmargin_reading"
"""The attribute that holds the `Reading` of a net, in the copies of it that `name_scores` makes."""
_SIGMOIDS = ("sigmoid", "sigmoid_", "expit", "special_expit")
_COPIES = (
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "ravel", "contiguous", "clone",
    "__getitem__", "float", "double", "to", "cpu", "select", "view_as", "reshape_as",
)  # fmt: skip
"""Functions that return what they were given, in another shape or type."""


class Reading(NamedTuple):
    """How the scores of a net are read, and what reports say of it."""

    choice: Choice | None = None  # which output; None is what the net returns
    sigmoid: tuple[int, int] = (-1, 0)  # which call of a sigmoid is left out, and of how many
    said: str = ""


def name_scores(model: Any, **changes: Any) -> Any:
    """The net with its scores read as fields of `Reading` say; it shares everything with `model`.

    Of a dict or a list of nets each, of a function those that it makes. Others stay as they are.
    """
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


def reading_of(model: Any) -> Reading:
    """How the scores of a net are read."""
    return getattr(model, "__dict__", {}).get(_MARK, Reading())


def read_outputs(model: Any, call: Callable[[], Any]) -> Any:
    """What a forward pass of a net, which `call` makes, returns; the scores where they are named.

    Raises ModelError where the outputs are not what the names are about.
    """
    reading = reading_of(model)
    if reading == Reading():
        return call()
    index, count = reading.sigmoid
    with Sigmoids(index) if count else nullcontext(Sigmoids()) as seen:
        outputs = call()
    if seen.count != count:
        raise ModelError(
            "The model computes more sigmoids in one call than in another. Let forward return what"
            " goes into the last one."
        )
    said = ""
    if reading.choice is not None:
        outputs, said = take_output(outputs, reading.choice)
    tell_outputs(*filter(None, (said, reading.said)))
    return outputs


class Sigmoids(TorchFunctionMode):
    """A mode that counts sigmoids, and knows which of them made a tensor.

    left_out : the index of one that returns what it is given; -1 for none.
    """

    def __init__(self, left_out: int = -1):
        super().__init__()
        self.count, self._left_out = 0, left_out
        self._made: dict[int, tuple[Tensor, int]] = {}  # the tensors are kept: ids are theirs alone

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Run a function, or leave it out."""
        kwargs, name = kwargs or {}, getattr(func, "__name__", "")
        first = args[0] if args else kwargs.get("input")
        made = self._made.get(id(first), (None, -1))[1] if name in _COPIES else -1
        if name in _SIGMOIDS:
            made, self.count = self.count, self.count + 1
            if made == self._left_out:
                return first
        found = func(*args, **kwargs)
        if made >= 0 and isinstance(found, Tensor):
            self._made[id(found)] = found, made
        elif id(found) in self._made:  # written over
            del self._made[id(found)]
        return found

    def made(self, tensor: Tensor) -> int:
        """The index of the sigmoid that made a tensor; -1 for none."""
        return self._made.get(id(tensor), (None, -1))[1]
