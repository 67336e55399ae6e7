"""Casts in the forward pass of a copy, which go to the type that the copy computes in.

A net that casts its inputs or its scores to float32 does not mix types in float32. In a float64
copy of it the same casts would, or would round what certificates are about.
"""

import re
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_MARK = "_casts_follow_its_parameters"
_TO_FLOATING = {Tensor.float, Tensor.double, Tensor.half, Tensor.bfloat16}


def let_casts_follow(twin: nn.Module) -> None:
    """Let the casts of a copy go to the type of its parameters wherever it is called."""
    # Torch's own layers cast nothing, and watching costs some microseconds for each operation.
    for module in twin.modules():
        hooked = module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module)
        if hooked or not type(module).__module__.startswith("torch.nn.modules."):
            vars(twin)[_MARK] = True


def following_casts(net: Any, dtype: torch.dtype | None = None) -> AbstractContextManager[Any]:
    """A context for a pass of a net in which casts go to a type where it is such a copy."""
    wrapped = getattr(net, "_modules", {}).values()
    if not any(_MARK in vars(part) for part in (net, *wrapped) if isinstance(part, nn.Module)):
        return nullcontext()
    own = (p.dtype for p in net.parameters() if p.is_floating_point())
    return CastsTo(dtype or next(own, torch.float64))


class CastsTo(TorchFunctionMode):
    """A mode in which casts between floating types, and new floating tensors, have one type."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _writes(func) or "out" in kwargs:
            return func(*args, **kwargs)
        if func in _TO_FLOATING:
            return args[0].to(self._dtype, **kwargs)
        # A type may be a name or a class of tensors, such as "torch.FloatTensor".
        if func is Tensor.type and re.search("float|double|half", str(args[1:]), re.IGNORECASE):
            return args[0].to(self._dtype)
        args = [self._follow(a) for a in args]
        if kwargs:
            kwargs = {key: self._follow(value) for key, value in kwargs.items()}
        return self._follow(func(*args, **kwargs))

    def _follow(self, value: Any) -> Any:
        """The one type in place of another floating one, and tensors in it; all else as it is."""
        if isinstance(value, torch.dtype):
            return self._dtype if value.is_floating_point else value
        if isinstance(value, Tensor) and value.dtype != self._dtype and value.is_floating_point():
            return value.to(self._dtype)
        return value


@cache  # asked at every operation
def _writes(func: Any) -> bool:
    """Whether a function writes to its first argument, or reads its memory as it is."""
    name = getattr(func, "__name__", "")
    in_place = name.endswith("_") and not name.endswith("__")
    kept = ("__set__", "__setitem__", "untyped_storage", "view")
    return in_place or name.startswith("__i") or name in kept
