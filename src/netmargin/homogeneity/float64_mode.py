"""A mode that runs a forward pass in float64, with chosen epsilons made negligible."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ..nets.eager_mode import EagerMode
from .modes import ModulePath

ROUGH = (torch.float16, torch.bfloat16)
"""The floating types whose rounding is named in an answer: they keep about three digits or two."""

_NEGLIGIBLE = 1e-300
"""Value of an epsilon that is made negligible: not 0, which may divide by 0, and far below the
numbers of an ordinary forward pass.
"""
_SAME_EPSILON = 1e-2
"""Relative difference up to which two numbers in one module are the same epsilon: one of them may
be rounded to half precision, which is off by less.
"""


class Float64Mode(EagerMode):
    """A mode that computes in float64 whatever the types of weights, constants and casts.

    `neglected` are pairs of a module's path and a number that is negligible there, `precision` is
    the epsilon of the parameters' type, and `rounding` whether casts to half precision still round.
    """

    def __init__(
        self,
        path: ModulePath,
        neglected: frozenset[tuple[str, float]],
        precision: float,
        rounding: bool,
    ) -> None:
        super().__init__()
        self._path, self._neglected = path, neglected
        self._precision, self._rounding = precision, rounding

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation in float64."""
        in_place = func._schema.is_mutable
        args = list(args) if in_place else [_to_float64(a) for a in args]
        kwargs = dict(kwargs or {})
        asked = kwargs.get("dtype")
        if asked in (torch.float32, *ROUGH):
            kwargs["dtype"] = torch.float64  # a cast would round
        self._set_epsilons(func, args, kwargs)
        result = func(*args, **kwargs)
        if in_place or func.is_view:  # these must return the tensor that they were given
            return result
        if asked in ROUGH and self._rounding and isinstance(result, Tensor):
            result = result.to(asked)
        return _to_float64(result)

    def _set_epsilons(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Replace epsilons among the arguments of an operation, in place."""
        for index, name in _find_epsilons(func):
            given = args[index] if index < len(args) else kwargs.get(name)
            # Without one, normalizations take the precision of the type.
            value = self._replace(torch.finfo(torch.float64).eps if given is None else given)
            if index < len(args):
                args[index] = value
            else:
                kwargs[name] = value
        if func.overloadpacket.__name__.removesuffix("_") in ("add", "clamp", "clamp_min"):
            args[:] = [self._replace(a) if isinstance(a, (int, float)) else a for a in args]

    def _replace(self, number: Any) -> Any:
        """Return next to nothing for an epsilon that is neglected, and other numbers as given."""
        # A number chosen by the type of the computation was that of the parameters' own type.
        if number == torch.finfo(torch.float64).eps:
            number = self._precision
        here = [value for where, value in self._neglected if where == self._path.where]
        is_neglected = any(abs(number - value) <= _SAME_EPSILON * value for value in here)
        return _NEGLIGIBLE if is_neglected else number


@cache  # a schema is translated from C++ whenever it is read, which takes as long as a small layer
def _find_epsilons(func: Any) -> tuple[tuple[int, str], ...]:
    """Where the arguments of an operation that are called eps stand, and their names."""
    arguments = enumerate(func._schema.arguments)
    return tuple((i, a.name) for i, a in arguments if a.name in ("eps", "epsilon"))


def _to_float64(value: Any) -> Any:
    """Convert the floating tensors in nested lists and tuples."""
    if isinstance(value, Tensor):
        return value.to(torch.float64) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(_to_float64(v) for v in value)
    return value
