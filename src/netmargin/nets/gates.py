"""The gates of ReLU nets: pre-activations of relus, relus with prescribed gates, smoothed ones."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_IN_PLACE = {torch.relu_, torch.Tensor.relu_}
_RELUS = {torch.relu, torch.Tensor.relu, F.relu} | _IN_PLACE


class Gates(TorchFunctionMode):
    """A context in which relu(z) is gate * z, or itself, and which records z and the outputs."""

    def __init__(self, gates: Sequence[Tensor] | None = None) -> None:
        super().__init__()
        self.gates = gates
        self.inputs: list[Tensor] = []
        self.outputs: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _RELUS:
            return func(*args, **(kwargs or {}))
        changed = args[0] if args else (kwargs or {})["input"]
        # An in-place relu would overwrite the z that is recorded: it works on a copy, and the
        # result is written back.
        in_place = func in _IN_PLACE or (
            func is F.relu and (args[1:2] == (True,) or (kwargs or {}).get("inplace", False))
        )
        z = changed.clone() if in_place else changed
        output = self._replace_output(z)
        self.inputs.append(z)
        self.outputs.append(output)
        return changed.copy_(output) if in_place else output

    def _replace_output(self, z: Tensor) -> Tensor:
        """Return the tensor that takes the place of relu(z) in the present call."""
        return torch.relu(z) if self.gates is None else z * self.gates[len(self.inputs)]


class SmoothedReLUs(Gates):
    """A context in which relu(z) is (z + sqrt(z^2 + w^2)) / 2, w = width * rms(z) held fixed.

    Descent stops too early at kinks; minima of the smoothed net move onto them as the width falls.
    """

    def __init__(self, width: float) -> None:
        super().__init__()
        self._width = width

    def _replace_output(self, z: Tensor) -> Tensor:
        # Relative to the size of z, so that rescaling a layer rescales the smoothed net with it.
        w = self._width * z.detach().square().mean().sqrt()
        return 0.5 * (z + torch.sqrt(z.square() + w.square()))
