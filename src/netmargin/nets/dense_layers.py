"""Dense layers whose gradients are outer products: which layers of a net these are, and hooks that
record their inputs and let a gradient be taken in their outputs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from .model import call_net

_WORTH_FACTORING = 4
"""A weight is kept as two factors if it has this many times as many entries as both together: for
smaller ones the rows of a matrix cost no more, and are multiplied in one product.
"""


@contextmanager
def shift_outputs(
    twin: nn.Module, added: dict[str, Tensor], incoming: dict[str, Tensor]
) -> Iterator[None]:
    """Within, add zeros to the output of each named dense layer, and put its input in `incoming`.

    A gradient in the zeros is one in the output of the layer.
    """

    def hook(name: str) -> Callable:
        def shift(module, inputs, output):
            incoming[name] = inputs[0]
            return output + added[name]

        return shift

    modules = dict(twin.named_modules())
    handles = [modules[name].register_forward_hook(hook(name)) for name in added]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def find_dense_layers(twin: nn.Module, names: set[str], x: Tensor) -> tuple[str, ...]:
    """The names of the nn.Linear layers whose gradients are outer products.

    They are run once per sample, on one vector, and their parameters are used nowhere else: the net
    is run on one sample x to see that. `names` are those of the parameters to differentiate in.
    """
    calls: dict[str, list[int]] = {}
    handles = []
    candidates = {
        name: module
        for name, module in twin.named_modules()
        if type(module) is nn.Linear
        and f"{name}.weight" in names
        and (module.bias is None or f"{name}.bias" in names)
        and module.weight.numel() > _WORTH_FACTORING * sum(module.weight.shape)
    }

    def record_rows(name: str) -> Callable:
        # One row for each vector that the layer is applied to: tokens or patches give several.
        return lambda module, inputs, output: calls.setdefault(name, []).append(
            output.numel() // module.out_features
        )

    for name, module in candidates.items():
        handles.append(module.register_forward_hook(record_rows(name)))
    try:
        with torch.no_grad(), _Uses() as uses:
            call_net(twin, x)
    finally:
        for handle in handles:
            handle.remove()
    return tuple(
        name
        for name, module in candidates.items()
        if calls.get(name) == [1] and all(uses.of(p) == 1 for p in module.parameters())
    )


class _Uses(TorchFunctionMode):
    """Counts the operations that take each tensor: tied weights and ones used by hand have two."""

    def __init__(self):
        super().__init__()
        self._counts: dict[int, int] = {}

    def of(self, tensor: Tensor) -> int:
        """Return how many operations took the tensor."""
        return self._counts.get(id(tensor), 0)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        # Tensors may stand in lists, as in torch.cat: arguments are searched to any depth.
        waiting = [*args, *(kwargs or {}).values()]
        while waiting:
            item = waiting.pop()
            if isinstance(item, (list, tuple)):
                waiting.extend(item)
            elif isinstance(item, Tensor):
                self._counts[id(item)] = self.of(item) + 1
        return func(*args, **(kwargs or {}))
