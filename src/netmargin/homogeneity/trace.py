"""What is known of the values of a forward pass, and what its operations require of them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from ..nets.forward_faults import is_weight
from ..nets.named_inputs import tensors_of
from .degree import CONSTANT, ZERO, AnyDegree, Constraint, Degree, Epsilon, Unknown, add_degrees
from .modes import ModulePath


class Trace:
    """The degrees of all values met so far, and the constraints that their operations impose.

    Rules read and write it. Views share storage with what they view, so a degree belongs to a
    storage. `model` is the net, whose parameters have degree 1 in themselves; `x` the inputs, which
    do not scale; `buffers` those that may follow the parameters, as the pass meets them.
    """

    def __init__(self, model: nn.Module, x: Any, buffers: Mapping[str, Tensor]) -> None:
        self.path = ModulePath()
        self.constraints: list[Constraint] = []  # that a scaling must satisfy
        self.statistics: dict[str, Degree] = {}  # how the stored statistics follow
        # Dicts without values are sets that keep their order, so that answers are reproducible.
        self.blind: dict[str, None] = {}  # where a number meets what could not be followed
        self.epsilons: dict[Epsilon, None] = {}  # the guards met, which are neglected at first
        self.casts: dict[str, None] = {}  # where what scales is rounded to half precision
        self.observed: dict[str, None] = {}  # operations whose exponents were observed
        self.numbers = 0  # that the pass computed: a measure of its cost
        self.strange: list[Tensor] = []  # weights that are no parameters of the net
        self.escaped: Unknown | None = None  # the first value that scales and left the graph
        self.read_outside: set[int] = set()  # storages that Python read, and may branch on
        self.added_epsilon: float | None = None
        self.degrees: dict[int, AnyDegree] = {}
        self._types = {name: type(module).__name__ for name, module in model.named_modules()}
        self._parameters: dict[int, str] = {}
        self._buffers = {self.storage(buffer): name for name, buffer in buffers.items()}
        # Tensors are kept alive, or their storages would be given to others.
        self._alive: list[Tensor] = []
        self._from_input: set[int] = set()
        for tensor in tensors_of(x):
            self.record(tensor, CONSTANT)
            self.mark_from_input(tensor)
        for name, parameter in model.named_parameters():
            storage = self.storage(parameter)
            if storage in self.degrees:
                # Scaling one would scale the other too: exponents in each have no meaning.
                other = self._parameters[storage]
                self.degrees[storage] = Unknown(
                    "", f"parameters {other!r} and {name!r} share one storage"
                )
            else:
                self.degrees[storage] = Degree.of(name)
                self._parameters[storage] = name

    def record(self, tensor: Tensor, degree: AnyDegree) -> None:
        """Give a tensor a degree."""
        self._alive.append(tensor)
        self.degrees[self.storage(tensor)] = degree

    def mark_from_input(self, tensor: Tensor) -> None:
        """Remember that a tensor depends on the inputs of the net."""
        self._from_input.add(self.storage(tensor))

    def forget_parameter(self, tensor: Tensor) -> None:
        """Forget that a tensor, which was written over, was a parameter."""
        self._parameters.pop(self.storage(tensor), None)

    def degree(self, value: Any) -> AnyDegree:
        """The degree of a tensor or a number."""
        if isinstance(value, Tensor):
            storage = self.storage(value)
            if storage not in self.degrees:  # a buffer, or a tensor made outside the forward pass
                if is_weight(value):
                    self.strange.append(value)
                zero = (
                    value.is_floating_point()
                    and not value.is_sparse
                    and value.numel() > 0
                    and not bool(value[value.isfinite()].any())  # infinite ones are masks
                )
                self.record(value, ZERO if zero else CONSTANT)
            return self.degrees[storage]
        fixed_by_scaling = value == 0 or (isinstance(value, float) and math.isinf(value))
        return ZERO if fixed_by_scaling else CONSTANT

    def parameter(self, value: Any) -> str | None:
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

    def from_input(self, *values: Any) -> bool:
        """True if one of the values depends on the inputs of the net."""
        return any(isinstance(v, Tensor) and self.storage(v) in self._from_input for v in values)

    @staticmethod
    def storage(tensor: Tensor) -> int:
        """A key of the memory of a tensor, which it shares with its views."""
        try:
            return int(tensor.untyped_storage()._cdata)
        except NotImplementedError:  # sparse tensors have none
            return id(tensor)

    def product(self, *values: Any) -> AnyDegree:
        """The degree of a product of values."""
        return add_degrees(*(self.degree(v) for v in values))

    def same(
        self, a: AnyDegree, b: AnyDegree, reason: str, replacement: str, bias: str | None = None
    ) -> AnyDegree:
        """Require that two degrees agree; return the common one, or that of `a` otherwise."""
        if b is ZERO:
            return a
        if a is ZERO:
            return b
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            if not (a and b):
                # One side is a number: no finite range of factors tells where its effect begins.
                self.blind[f"{self.place} {reason}, after what could not be followed"] = None
            return a if isinstance(a, Unknown) else b
        assert isinstance(a, Degree)
        assert isinstance(b, Degree)
        if a != b:
            self.constraints.append(Constraint(b - a, self.where, reason, replacement, bias))
        return a

    def agree(self, values: Iterable[Any], reason: str, replacement: str) -> AnyDegree:
        """Require that values scale alike; return their common degree."""
        degree: AnyDegree = ZERO
        for value in values:
            degree = self.same(degree, self.degree(value), reason, replacement)
        return degree

    def invariant(self, degree: AnyDegree, reason: str, replacement: str) -> AnyDegree:
        """Require that a value does not scale at all; return the degree of a constant."""
        if isinstance(degree, Unknown):
            return degree
        return self.same(CONSTANT, degree, reason, replacement)

    def add_bias(self, signal: AnyDegree, bias: Tensor, *parts: Any) -> AnyDegree:
        """Require that a bias scales like the signal it is added to, which is made of `parts`."""
        name = self.parameter(bias)
        if name is None or not (isinstance(signal, Degree) and signal and self.from_input(*parts)):
            return self.same(
                signal,
                self.degree(bias),
                "adds a value that scales with another power of the parameters",
                "normalize the stronger branch without affine parameters, or give both branches the"
                " same number of layers",
            )
        return self.same(
            signal,
            self.degree(bias),
            f"bias {name!r} scales differently from the signal it is added to",
            f"{self._types[self.where]}(..., bias=False)",
            bias=name,
        )

    def statistics_follow(self, value: Tensor, mean: Tensor, variance: Tensor) -> bool:
        """Let a stored mean and variance scale like a value and its square, if they may."""
        degree = self.degree(value)
        names = [self._buffers.get(self.storage(buffer)) for buffer in (mean, variance)]
        if not isinstance(degree, Degree):
            return False
        for name, here in zip(names, (degree, degree * 2), strict=True):
            if name is None:
                return False
            self.same(
                self.statistics.setdefault(name, here),
                here,
                "stores the statistics of values that scale differently",
                "use one normalization for each",
            )
        return True

    def unknown(self, reason: str) -> Unknown:
        """The degree of what cannot be known, with the place where that happened."""
        return Unknown(self.where, reason)

    def adds_epsilon(self, value: float) -> None:
        """Say, in a rule, that the output holds `value`, neglected if that guards a root."""
        self.added_epsilon = value

    def neglect(self, guarded: AnyDegree, value: float) -> None:
        """Say, in a rule, that `value` only keeps a root or a quotient of `guarded` finite."""
        if not guarded or value == 0:
            return
        epsilon = Epsilon(self.where, value, self.place)
        self.epsilons[epsilon] = None
        if isinstance(guarded, Degree):
            reason = f"the number {value:g} guards a root or a quotient"
            replacement = "make it smaller, or what it guards larger"
            self.constraints.append(
                Constraint(guarded, self.where, reason, replacement, epsilon=epsilon)
            )

    def escape(self, value: Any, how: str) -> None:
        """Record that a tensor turned, by the method `how`, into numbers outside of torch."""
        if not isinstance(value, Tensor):
            return
        self.read_outside.add(self.storage(value))
        if self.degree(value) and self.escaped is None:
            self.escaped = self.unknown(
                f"{how} turned a value that scales into numbers that torch does not see"
            )
