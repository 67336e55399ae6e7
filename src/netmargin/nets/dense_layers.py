"""Dense layers whose gradients are outer products: which layers of a net these are, and hooks that
record their inputs and let a gradient be taken in their outputs.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from .model import call_net

_WORTH_FACTORING = 4
"""A weight is kept as two factors if it has this many times as many entries as both together: for
smaller ones the rows of a matrix cost no more, and are multiplied in one product.
"""


@contextmanager
def shift_outputs(
    twin: nn.Module, added: dict[str, Tensor], incoming: dict[str, Tensor]
) -> Iterator[None]:
    """Add zeros to the outputs of dense layers within, and put their inputs in `incoming`."""

    def hook(name: str) -> Callable[..., Any]:
        def shift(module: Any, inputs: Any, output: Any) -> Any:
            incoming[name] = inputs[0]
            return output + added[name]

        return shift

    with ExitStack() as hooks:
        for name in added:
            hooks.enter_context(twin.get_submodule(name).register_forward_hook(hook(name)))
        yield


def find_dense_layers(twin: nn.Module, names: set[str], x: Tensor) -> tuple[str, ...]:
    """The nn.Linear layers that are run on one vector of a sample x, with weights of their own."""
    calls: dict[nn.Module, list[int]] = {}
    candidates = {
        name: module
        for name, module in twin.named_modules()
        if type(module) is nn.Linear
        and f"{name}.weight" in names
        and (module.bias is None or f"{name}.bias" in names)  # type: ignore[redundant-expr]
        and module.weight.numel() > _WORTH_FACTORING * sum(module.weight.shape)
    }

    def record_rows(module: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        # One row for each vector that the layer is applied to: tokens or patches give several.
        calls.setdefault(module, []).append(output.numel() // module.out_features)

    with ExitStack() as hooks, torch.no_grad(), _Uses() as uses:
        for module in candidates.values():
            hooks.enter_context(module.register_forward_hook(record_rows))
        call_net(twin, x)
    return tuple(
        name
        for name, module in candidates.items()
        if calls.get(module) == [1] and all(uses.of(p) == 1 for p in module.parameters())
    )


class _Uses(TorchFunctionMode):
    """Counts the operations that take each tensor: tied weights and ones used by hand have two."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[int, int] = {}

    def of(self, tensor: Tensor) -> int:
        """Return how many operations took the tensor."""
        return self._counts.get(id(tensor), 0)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for item in tree_leaves((args, kwargs)):
            if isinstance(item, Tensor):
                self._counts[id(item)] = self.of(item) + 1
        return func(*args, **(kwargs or {}))
