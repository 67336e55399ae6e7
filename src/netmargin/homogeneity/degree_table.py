"""The degree of every value met in a forward pass, by the memory that holds it."""

import math

from torch import Tensor, nn

from .degree import CONSTANT, ZERO, AnyDegree, Degree, Unknown
from .modes import ModulePath, iterate_tensors


class DegreeTable:
    """Degrees of tensors by storage, since a view scales with what it views.

    Parameters
    ----------
    model : torch.nn.Module
        The net, whose parameters have degree 1 in themselves.
    x : tensor, or nested tuples of tensors
        The inputs of the pass, which do not scale.
    """

    def __init__(self, model: nn.Module, x):
        super().__init__()
        self.path = ModulePath()
        self._types = {name: type(module).__name__ for name, module in model.named_modules()}
        self._degrees: dict[int, AnyDegree] = {}
        self._parameters: dict[int, str] = {}
        # Tensors are kept alive, or their storages would be given to others.
        self._alive: list[Tensor] = list(iterate_tensors(x))
        self._from_input = {self.storage(tensor) for tensor in self._alive}
        for tensor in self._alive:
            self._degrees[self.storage(tensor)] = CONSTANT
        for name, parameter in model.named_parameters():
            storage = self.storage(parameter)
            if storage in self._degrees:
                # Scaling one would scale the other too: exponents in each have no meaning.
                other = self._parameters[storage]
                self._degrees[storage] = Unknown(
                    "", f"parameters {other!r} and {name!r} share one storage"
                )
            else:
                self._degrees[storage] = Degree.of(name)
                self._parameters[storage] = name

    def degree(self, value) -> AnyDegree:
        """The degree of a tensor or a number."""
        if isinstance(value, Tensor):
            storage = self.storage(value)
            if storage not in self._degrees:  # a buffer, or a tensor made outside the forward pass
                self._alive.append(value)
                zero = (
                    value.is_floating_point()
                    and not value.is_sparse
                    and value.numel() > 0
                    and not bool(value.any())
                )
                self._degrees[storage] = ZERO if zero else CONSTANT
            return self._degrees[storage]
        fixed_by_scaling = value == 0 or (isinstance(value, float) and math.isinf(value))
        return ZERO if fixed_by_scaling else CONSTANT

    def parameter(self, value) -> str | None:
        """The name of the parameter that `value` is (a view of), or None."""
        return self._parameters.get(self.storage(value)) if isinstance(value, Tensor) else None

    @property
    def where(self) -> str:
        """Path of the module that runs now; '' is the model itself."""
        return self.path.where

    @property
    def place(self) -> str:
        """Path and type of the module that runs now, for a sentence."""
        return f"{self.where or 'the model'} ({self._types[self.where]})"

    def from_input(self, *values) -> bool:
        """True if one of the values depends on the inputs of the net."""
        return any(isinstance(v, Tensor) and self.storage(v) in self._from_input for v in values)

    @staticmethod
    def storage(tensor: Tensor) -> int:
        """A key of the memory of a tensor, which it shares with its views."""
        try:
            return tensor.untyped_storage()._cdata
        except NotImplementedError:  # sparse tensors have none
            return id(tensor)
