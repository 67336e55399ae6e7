"""What every public function does, whatever its caller has set: it computes under numpy's own rules
for underflow, and says in words that memory ran out.
"""

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..errors import NetmarginError, OutOfMemoryError
from .memory import is_of_memory, shorten

_OURS = __name__.partition(".")[0]

P = ParamSpec("P")
T = TypeVar("T")


def guard(package: dict[str, Any]) -> None:
    """Guard the functions, and the methods of the classes, that a package lists; `package` are its
    globals, which read the guarded ones then, as does the module that each was defined in.
    """
    for name in package["__all__"]:
        found = package.get(name)  # what is loaded when it is used is guarded in its own module
        if inspect.isfunction(found):
            package[name] = guarded(found)
            setattr(sys.modules[found.__module__], name, package[name])
        for base in found.__mro__ if isinstance(found, type) else ():
            if base.__module__.startswith(_OURS):
                for own, method in list(vars(base).items()):
                    if inspect.isfunction(method) and not own.startswith("_"):
                        setattr(base, own, guarded(method))


def guarded(function: Callable[P, T]) -> Callable[P, T]:
    """The function, where `np.seterr(all="raise")` of its caller does not end it for a number that
    underflows, and a MemoryError of numpy or torch becomes an OutOfMemoryError.
    """
    if hasattr(function, "_guarded"):
        return function

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T:
        strict: Any = {kind: "ignore" for kind, how in np.geterr().items() if how != "warn"}
        try:
            with np.errstate(**strict):
                return function(*given, **named)
        except Exception as error:
            if isinstance(error, NetmarginError) or not is_of_memory(error):
                raise
            raise OutOfMemoryError(
                f"The memory does not suffice ({shorten(error)}). Take fewer samples, or a machine"
                " with more memory."
            ) from error

    call._guarded = True  # type: ignore[attr-defined]
    return call
