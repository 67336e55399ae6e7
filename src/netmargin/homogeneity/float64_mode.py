"""A mode that makes chosen epsilons of a forward pass in float64 negligible."""

from functools import cache

import torch

from ..nets.float64_mode import Float64Mode
from .modes import ModulePath

_NEGLIGIBLE = 1e-300
"""Value of an epsilon that is made negligible: not 0, which may divide by 0, and far below the
numbers of an ordinary forward pass.
"""
_SAME_EPSILON = 1e-2
"""Relative difference up to which two numbers in one module are the same epsilon: one of them may
be rounded to half precision, which is off by less.
"""


class NegligibleEpsilons(Float64Mode):
    """A mode in which chosen epsilons are negligible beside what float64 computes.

    path : tells which module runs.
    neglected : pairs of the path of a module and a number. Such arguments called eps, and such
        numbers that are added or clamped to, become negligible.
    precision : the epsilon of the type of the parameters.
    rounding : whether casts to half precision still round.
    """

    def __init__(
        self,
        path: ModulePath,
        neglected: frozenset[tuple[str, float]],
        precision: float,
        rounding: bool,
    ):
        super().__init__(rounding)
        self._path, self._neglected, self._precision = path, neglected, precision

    def change_arguments(self, func, args: list, kwargs: dict) -> None:
        """Replace epsilons among the arguments of an operation."""
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

    def _replace(self, number):
        """Return next to nothing for an epsilon that is neglected, and other numbers as given."""
        # A number chosen by the type of the computation was that of the parameters' own type.
        if number == torch.finfo(torch.float64).eps:
            number = self._precision
        here = [value for where, value in self._neglected if where == self._path.where]
        is_neglected = any(abs(number - value) <= _SAME_EPSILON * value for value in here)
        return _NEGLIGIBLE if is_neglected else number


@cache  # a schema is translated from C++ whenever it is read, which takes as long as a small layer
def _find_epsilons(func) -> tuple[tuple[int, str], ...]:
    """Where the arguments of an operation that are called eps stand, and their names."""
    arguments = enumerate(func._schema.arguments)
    return tuple((i, a.name) for i, a in arguments if a.name in ("eps", "epsilon"))
