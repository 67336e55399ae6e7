"""Ways to look into a forward pass: its modules, its tensors, and those that leave it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves


class ModulePath:
    """The path of the module of a net that runs now; '' is the net itself."""

    def __init__(self) -> None:
        self._running: list[str] = []

    @property
    def where(self) -> str:
        """Path of the innermost module that runs."""
        return self._running[-1] if self._running else ""

    @contextmanager
    def following(self, model: nn.Module) -> Iterator[None]:
        """Keep `where` up to date while the model runs in a block."""

        def leave(*_: Any) -> None:
            self._running.pop()

        with ExitStack() as hooks:
            for name, module in model.named_modules():
                hooks.enter_context(
                    module.register_forward_pre_hook(lambda *_, at=name: self._running.append(at))
                )
                # Also after an error, or a module that catches one would leave a wrong path.
                hooks.enter_context(module.register_forward_hook(leave, always_call=True))
            yield


class Escapes(TorchFunctionMode):
    """A mode that tells of tensors that become Python or numpy numbers, and by which method."""

    def __init__(self, tell: Callable[[object, str], None]) -> None:
        super().__init__()
        self._tell = tell

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("tolist", "numpy", "__array__", "__dlpack__") and args:
            self._tell(args[0], f"{name.strip('_')}()")
        return func(*args, **(kwargs or {}))


def list_written_tensors(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """List the tensors that an in-place operation or an `out=` variant writes its result to."""
    return [
        args[index] if index < len(args) else kwargs[name] for index, name in _find_written(func)
    ]


@cache  # a schema is translated from C++ whenever it is read, which takes as long as a small layer
def _find_written(func: Any) -> tuple[tuple[int, str], ...]:
    """Where the arguments of an operation that it writes to stand, and their names."""
    return tuple(
        (index, argument.name)
        for index, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None
        and argument.alias_info.is_write
        and (index == 0 or argument.is_out)
    )


def list_tensors(tree: Any) -> list[Tensor]:
    """List every tensor in nested lists, tuples and dicts, in order."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
