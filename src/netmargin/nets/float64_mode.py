"""A mode that runs a forward pass in float64, also where it casts or makes float32 constants."""

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

ROUGH = (torch.float16, torch.bfloat16)
"""The floating types whose rounding is named in an answer: they keep about three digits or two."""


class EagerMode(TorchDispatchMode):
    """A dispatch mode that does not import torch.compile, which takes 2 s, at its first operation.

    It never meets compiled code.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Float64Mode(EagerMode):
    """A mode that computes in float64 whatever the types of weights, constants and casts.

    rounding : whether casts to half precision still round.
    """

    def __init__(self, rounding: bool = False):
        super().__init__()
        self._rounding = rounding

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run one operation in float64."""
        in_place = func._schema.is_mutable
        args = list(args) if in_place else [_to_float64(a) for a in args]
        kwargs = dict(kwargs or {})
        asked = kwargs.get("dtype")
        if asked in (torch.float32, *ROUGH):
            kwargs["dtype"] = torch.float64  # a cast would round
        self.change_arguments(func, args, kwargs)
        result = func(*args, **kwargs)
        if in_place or func.is_view:  # these must return the tensor that they were given
            return result
        if asked in ROUGH and self._rounding and isinstance(result, Tensor):
            result = result.to(asked)
        return _to_float64(result)

    def change_arguments(self, func, args: list, kwargs: dict) -> None:
        """Change arguments of an operation in place, before it runs; here none."""


def _to_float64(value):
    """Convert the floating tensors in nested lists and tuples."""
    if isinstance(value, Tensor):
        return value.to(torch.float64) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_float64(v) for v in value)
    return value
