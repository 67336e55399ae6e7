"""Ways to look into a forward pass: its operations, its modules, and the tensors that leave it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

ROUGH = (torch.float16, torch.bfloat16)
"""Floating types whose rounding is larger than what an answer may be off by without a word."""


class EagerMode(TorchDispatchMode):
    """A dispatch mode that never meets torch.compile, and so need not import it (2 s) at its first
    operation.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class ModulePath:
    """Which module of a net runs now, by its path; '' is the net itself."""

    def __init__(self) -> None:
        self._running: list[str] = []

    @property
    def where(self) -> str:
        """Path of the innermost module that runs."""
        return self._running[-1] if self._running else ""

    @contextmanager
    def following(self, model: nn.Module) -> Iterator[None]:
        """Keep `where` up to date while the model runs."""

        def leave(*_) -> None:
            self._running.pop()

        handles = []
        for name, module in model.named_modules():
            handles.append(
                module.register_forward_pre_hook(lambda *_, name=name: self._running.append(name))
            )
            handles.append(module.register_forward_hook(leave, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


class Escapes(TorchFunctionMode):
    """Tells of tensors that turn into Python or numpy numbers without any ATen operation.

    tell : called with the tensor and the name of the method.
    """

    def __init__(self, tell: Callable[[object, str], None]):
        super().__init__()
        self._tell = tell

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in ("tolist", "numpy", "__array__", "__dlpack__") and args:
            self._tell(args[0], f"{name.strip('_')}()")
        return func(*args, **(kwargs or {}))
