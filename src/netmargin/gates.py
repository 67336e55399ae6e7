"""The gates of ReLU nets: pre-activations of every relu in a forward pass, and relus with prescribed gates."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_RELUS = {torch.relu, torch.relu_, torch.Tensor.relu, torch.Tensor.relu_, F.relu}


class Gates(TorchFunctionMode):
    """Inside, relu(z) is gate * z. Records z and its output of every call, in order.

    gates : one tensor of factors per call, boolean or not, or None for relu itself. With fixed gates the net is a polynomial of its parameters.
    """

    def __init__(self, gates: Sequence[Tensor] | None = None):
        super().__init__()
        self.gates = gates
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func not in _RELUS:
            return func(*args, **(kwargs or {}))
        z = args[0] if args else (kwargs or {})["input"]
        call = len(self.inputs)
        output = torch.relu(z) if self.gates is None else z * self.gates[call]
        self.inputs.append(z)
        self.outputs.append(output)
        return output
