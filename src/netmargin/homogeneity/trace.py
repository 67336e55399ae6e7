"""Runs a model once and follows the degree of every value through the operations that actually happen.

The run is intercepted below autograd, where modules, functionals, tensor methods and arbitrary `forward`s have all become
the same few hundred ATen operations; control flow is simply followed. Views share storage with what they view, so a
degree belongs to a storage.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TypeVar

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from .degree import CONSTANT, ZERO, AnyDegree, Constraint, Degree, Unknown

Rule = TypeVar("Rule", bound=Callable[..., AnyDegree | tuple[AnyDegree, ...]])
RULES: dict[str, Callable[..., AnyDegree | tuple[AnyDegree, ...]]] = {}

NEGLIGIBLE = 1e-3
"""Positive numbers up to this are read as an epsilon, and neglected (with a note), where they guard a root or a quotient."""


def rule(*operations: str) -> Callable[[Rule], Rule]:
    """Register the degree rule of ATen (or custom) operations, by name without overload: 'relu', 'add', 'mylib::op'.

    A rule is called as `rule(trace, *args, **kwargs)` with the operation's own arguments and returns the degree of its
    only useful output, or a tuple with one degree per output. In-place variants (`relu_`) use the same rule.
    """

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(operations, function))
        return function

    return register


class EagerMode(TorchDispatchMode):
    """A dispatch mode that never meets torch.compile, and so need not import it (2 s) at its first operation."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Trace(EagerMode):
    """The degrees of all values met so far, and the constraints that their sums and functions impose."""

    def __init__(self, model: nn.Module, x):
        super().__init__()
        self.epsilons: set[float] = set()
        self.constraints: list[Constraint] = []
        self.notes: dict[str, None] = {}
        self.escaped: Unknown | None = None
        self._modules: list[str] = []
        self._types = {name: type(module).__name__ for name, module in model.named_modules()}
        self._degrees: dict[int, AnyDegree] = {}
        self._parameters: dict[int, str] = {}
        self._alive: list[Tensor] = list(_tensors(x))
        self._from_input = {self._storage(tensor) for tensor in self._alive}
        self._added_epsilon: float | None = None
        self._pending_epsilon: dict[int, float] = {}
        for tensor in self._alive:
            self._degrees[self._storage(tensor)] = CONSTANT
        for name, parameter in model.named_parameters():
            storage = self._storage(parameter)
            if storage in self._degrees:
                other = self._parameters[storage]
                self._degrees[storage] = Unknown("", f"parameters {other!r} and {name!r} share one storage")
            else:
                self._degrees[storage] = Degree.of(name)
                self._parameters[storage] = name

    def degree(self, value) -> AnyDegree:
        """Degree of a tensor or a number."""
        if isinstance(value, Tensor):
            storage = self._storage(value)
            if storage not in self._degrees:  # a buffer, or a tensor made outside the forward pass
                self._alive.append(value)
                zero = value.is_floating_point() and not value.is_sparse and value.numel() > 0 and not bool(value.any())
                self._degrees[storage] = ZERO if zero else CONSTANT
            return self._degrees[storage]
        fixed_by_scaling = value == 0 or (isinstance(value, float) and math.isinf(value))
        return ZERO if fixed_by_scaling else CONSTANT

    def parameter(self, value) -> str | None:
        """The name of the parameter that `value` is (a view of), or None."""
        return self._parameters.get(self._storage(value)) if isinstance(value, Tensor) else None

    @property
    def where(self) -> str:
        """Path of the module that runs now; '' is the model itself."""
        return self._modules[-1] if self._modules else ""

    @property
    def place(self) -> str:
        """Path and type of the module that runs now, for a sentence."""
        return f"{self.where or 'the model'} ({self._types[self.where]})"

    def note(self, text: str) -> None:
        """Remember something that the reader of the analysis should know, once."""
        self.notes[text] = None

    def product(self, *values) -> AnyDegree:
        """Degree of a product of values."""
        return add_degrees(*(self.degree(v) for v in values))

    def same(self, a: AnyDegree, b: AnyDegree, reason: str, replacement: str, bias: str | None = None) -> AnyDegree:
        """Require that two degrees agree and return the common one; `a` is the signal where they do not."""
        if isinstance(a, Unknown) or b is ZERO:
            return a
        if isinstance(b, Unknown) or a is ZERO:
            return b
        assert isinstance(a, Degree)
        assert isinstance(b, Degree)
        if a != b:
            self.constraints.append(Constraint(b - a, self.where, reason, replacement, bias))
        return a

    def invariant(self, degree: AnyDegree, reason: str, replacement: str) -> AnyDegree:
        """Require that a value does not scale at all, as a function without homogeneity needs; the result is constant."""
        if isinstance(degree, Unknown):
            return degree
        return self.same(CONSTANT, degree, reason, replacement)

    def from_input(self, *values) -> bool:
        """True if one of the values depends on the inputs of the net."""
        return any(isinstance(v, Tensor) and self._storage(v) in self._from_input for v in values)

    def add_bias(self, signal: AnyDegree, bias: Tensor, *parts) -> AnyDegree:
        """Require that `bias` scales like the signal it is added to, which is made of `parts`.

        A parameter added to features of the inputs is a bias, and is remembered as one; added to weights it is a weight.
        """
        name = self.parameter(bias)
        if name is None or not (isinstance(signal, Degree) and signal and self.from_input(*parts)):
            return self.same(
                signal,
                self.degree(bias),
                "adds a value that scales with another power of the parameters",
                "normalize the stronger branch without affine parameters, or give both branches the same number of layers",
            )
        return self.same(
            signal,
            self.degree(bias),
            f"bias {name!r} scales differently from the signal it is added to",
            f"{self._types[self.where]}(..., bias=False)",
            bias=name,
        )

    def adds_epsilon(self, value: float) -> None:
        """Called by a rule: its output holds a small number, to be neglected if it goes on to guard a root or a quotient."""
        self._added_epsilon = value

    def finish(self, outputs: Tensor) -> AnyDegree:
        """The degree of the net's outputs."""
        self._settle_epsilon("", outputs)
        return self.escaped or self.degree(outputs)

    def _settle_epsilon(self, name: str, *values) -> None:
        for position, value in enumerate(values):
            storage = self._storage(value) if isinstance(value, Tensor) else None
            if storage not in self._pending_epsilon:
                continue
            epsilon = self._pending_epsilon.pop(storage)
            if name in ("rsqrt", "sqrt", "reciprocal", "pow") or (name in ("div", "true_divide") and position == 1):
                self.epsilons.add(epsilon)
                self.note(f"neglects the epsilon {epsilon:g} in {self.place}")
            elif name in ("clone", "_to_copy"):
                self._added_epsilon = epsilon  # the copy holds it as well
            else:
                reason = f"adds the number {epsilon:g}, which does not scale with the parameters"
                self.same(self.degree(value), CONSTANT, reason, "leave it out")

    def unknown(self, reason: str) -> Unknown:
        """The degree of what cannot be known, with the place where that happened."""
        return Unknown(self.where, reason)

    @contextmanager
    def following(self, model: nn.Module) -> Iterator[None]:
        """Keep `where` up to date while the model runs."""

        def leave(*_) -> None:
            self._modules.pop()

        handles = []
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(lambda *_, name=name: self._modules.append(name)))
            handles.append(module.register_forward_hook(leave, always_call=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        inputs = list(_tensors((args, kwargs)))
        if not func.is_view:
            self._settle_epsilon(func._schema.name.removeprefix("aten::").removesuffix("_"), *args)
        degrees = self._degrees_of_outputs(func, args, kwargs, inputs)
        result = func(*args, **kwargs)
        written = _written(func, args, kwargs)
        for target in written:
            self._overwrite(target, degrees[0])
        if self.from_input(*inputs):
            self._from_input |= {self._storage(tensor) for tensor in (*written, *_tensors(result))}
        if self._added_epsilon is not None:
            for tensor in _tensors(result):
                self._pending_epsilon[self._storage(tensor)] = self._added_epsilon
            self._added_epsilon = None
        if written:
            return result
        for index, output in enumerate(_tensors(result)):
            storage = self._storage(output)
            if storage in self._degrees:  # a view
                continue
            self._alive.append(output)  # so that its storage is not reused by another tensor
            secondary = index >= len(degrees)
            if secondary and degrees[0] and output.is_floating_point():
                self._degrees[storage] = self.unknown(f"no rule for output {index + 1} of {func._schema.name}")
            else:
                self._degrees[storage] = CONSTANT if secondary else degrees[index]
        return result

    def _degrees_of_outputs(self, func, args, kwargs, tensors: list[Tensor]) -> tuple[AnyDegree, ...]:
        name = func._schema.name.removeprefix("aten::")
        known = RULES.get(name) or (RULES.get(name.removesuffix("_")) if func._schema.is_mutable else None)
        if known is not None:
            degrees = known(self, *args, **kwargs)
            return degrees if isinstance(degrees, tuple) else (degrees,)
        inputs = [self.degree(tensor) for tensor in tensors]
        for degree in inputs:
            if isinstance(degree, Unknown):
                return (degree,)
        if not any(inputs):
            return (CONSTANT,)
        return (self.unknown(f"no rule says how {name} scales"),)

    def _overwrite(self, target: Tensor, degree: AnyDegree) -> None:
        storage = self._storage(target)
        whole = target.is_sparse or target.numel() * target.element_size() == target.untyped_storage().nbytes()
        old = self._degrees.get(storage, CONSTANT)
        self._alive.append(target)
        if not whole and old != degree and target.is_floating_point():
            degree = self.same(old, degree, "writes values that scale differently into parts of one tensor", "use separate tensors")
        self._degrees[storage] = degree
        self._parameters.pop(storage, None)

    @staticmethod
    def _storage(tensor: Tensor) -> int:
        try:
            return tensor.untyped_storage()._cdata
        except NotImplementedError:  # sparse tensors have none
            return id(tensor)


def add_degrees(*degrees: AnyDegree) -> AnyDegree:
    """Degree of a product; exact zeros and unknowns are absorbing, in this order."""
    if any(d is ZERO for d in degrees):
        return ZERO
    total = CONSTANT
    for degree in degrees:
        if isinstance(degree, Unknown):
            return degree
        assert isinstance(degree, Degree)
        total = total + degree
    return total


def scale_degree(degree: AnyDegree, factor: float | Fraction) -> AnyDegree:
    """Degree of a power of a value."""
    return degree * Fraction(factor).limit_denominator(10**6) if isinstance(degree, Degree) else degree


def _written(func, args, kwargs) -> list[Tensor]:
    """The tensors that an in-place operation or an `out=` variant writes its result to."""
    targets = []
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write and (index == 0 or argument.is_out):
            targets.append(args[index] if index < len(args) else kwargs[argument.name])
    return targets


def _tensors(tree) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _tensors(item)
    elif isinstance(tree, dict):
        yield from _tensors(list(tree.values()))
