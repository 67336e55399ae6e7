"""What every public function does, whatever its caller has set: it computes under numpy's own rules
for underflow, takes no denormal number for 0, and says in words that memory ran out.
"""

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from ..errors import NetmarginError, OutOfMemoryError
from .denormals import flush_denormals
from .memory import is_of_memory, shorten

Function = TypeVar("Function", bound=Callable[..., Any])


def guard(package: dict[str, Any]) -> None:
    """Guard the functions, and methods of classes, that a package lists, where they are defined."""
    for name in package["__all__"]:
        found = package.get(name)  # what is loaded when it is used is guarded in its own module
        if inspect.isfunction(found):
            package[name] = guarded(found)
            setattr(sys.modules[found.__module__], name, package[name])
        for base in found.__mro__ if isinstance(found, type) else ():
            for own, method in list(vars(base).items()):
                ours = inspect.isfunction(method) and method.__module__.startswith("netmargin")
                if ours and not own.startswith("_"):
                    setattr(base, own, guarded(method))


def guarded(function: Function) -> Function:
    """The function, whatever its caller has set, with OutOfMemoryError in words."""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        strict: Any = {kind: "ignore" for kind, how in np.geterr().items() if how != "warn"}
        try:
            with np.errstate(**strict), flush_denormals(on=False):
                return function(*given, **named)
        except Exception as error:
            if isinstance(error, NetmarginError) or not is_of_memory(error):
                raise
            raise OutOfMemoryError(
                f"The memory does not suffice ({shorten(error)}). Take fewer samples, or a machine"
                " with more memory."
            ) from error

    call._guarded = True  # type: ignore[attr-defined]
    return function if hasattr(function, "_guarded") else cast(Function, call)
