"""Runs a model once and follows the degree of every value through the operations that happen.

The run is intercepted below autograd, where modules, functionals, tensor methods and arbitrary
`forward`s have all become the same few hundred ATen operations; control flow is simply followed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..nets.eager_mode import EagerMode
from .degree import CONSTANT, AnyDegree, Constraint, Unknown, scale_degree
from .modes import Escapes, list_tensors, list_written_tensors
from .observation import observe_exponents
from .registry import RULES
from .trace import Trace


class Follower(EagerMode):
    """A mode that applies the rule of every operation to a trace."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace
        self._pending_epsilon: dict[int, float] = {}
        # Of every operation the storages that it reads and writes, and the constraints it imposes.
        self._steps: list[tuple[set[int], set[int], list[Constraint]]] = []

    @contextmanager
    def following(self, model: nn.Module) -> Iterator[None]:
        """Follow the modules and operations of `model`, and what leaves the graph, in a block."""
        with self.trace.path.following(model), Escapes(self.trace.escape), self:
            yield

    def finish(self, outputs: Tensor) -> AnyDegree:
        """Close the trace and return the degree of the net's outputs."""
        # The constraints of operations on which neither the outputs nor a branch depends go.
        needed = {self.trace.storage(outputs), *self.trace.read_outside}
        kept: list[Constraint] = []
        for read, written, constraints in reversed(self._steps):
            if written & needed:
                needed |= read
                kept[:0] = constraints
        self.trace.constraints = kept
        self._settle_epsilon("", outputs)
        return self.trace.escaped or self.trace.degree(outputs)

    def _settle_epsilon(self, name: str, *values: Any) -> None:
        """Decide whether numbers added to `values` guard the operation `name`, or block it."""
        for position, value in enumerate(values):
            storage = self.trace.storage(value) if isinstance(value, Tensor) else None
            if storage not in self._pending_epsilon:
                continue
            epsilon = self._pending_epsilon[storage]
            root = name in ("rsqrt", "sqrt", "reciprocal") or (
                name == "pow" and position == 0 and _is_root(values)
            )
            if root or (name in ("div", "true_divide") and position == 1):
                self.trace.neglect(self.trace.degree(value), epsilon)
            elif name in ("clone", "_to_copy"):
                self.trace.added_epsilon = epsilon  # the copy holds it as well
            else:
                reason = f"adds the number {epsilon:g}, which does not scale with the parameters"
                self.trace.same(self.trace.degree(value), CONSTANT, reason, "leave it out")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Update degrees by one operation, and run it."""
        kwargs = kwargs or {}
        inputs = list_tensors((args, kwargs))
        before = len(self.trace.constraints)
        if not func.is_view:
            self._settle_epsilon(func._schema.name.removeprefix("aten::").removesuffix("_"), *args)
        degrees = self._degrees_of_outputs(func, args, kwargs, inputs)
        result = func(*args, **kwargs)
        written = list_written_tensors(func, args, kwargs)
        made = [*written, *list_tensors(result)]
        for target in written:
            self._overwrite(target, degrees[0])
            self._pending_epsilon.pop(self.trace.storage(target), None)
        if self.trace.from_input(*inputs):
            for tensor in made:
                self.trace.mark_from_input(tensor)
        if self.trace.added_epsilon is not None:
            for tensor in list_tensors(result):
                self._pending_epsilon[self.trace.storage(tensor)] = self.trace.added_epsilon
            self.trace.added_epsilon = None
        read = set(map(self.trace.storage, inputs))
        constraints = self.trace.constraints[before:]
        self._steps.append((read, set(map(self.trace.storage, made)), constraints))
        # Python may branch on shapes that depend on numbers.
        if torch.Tag.dynamic_output_shape in func.tags:
            self.trace.read_outside |= read
        if written:
            return result
        for index, output in enumerate(list_tensors(result)):
            if self.trace.storage(output) in self.trace.degrees:  # a view
                continue
            self.trace.numbers += output.numel()
            secondary = index >= len(degrees)
            if secondary and degrees[0] and output.is_floating_point():
                reason = f"no rule for output {index + 1} of {func._schema.name}"
                self.trace.record(output, self.trace.unknown(reason))
            else:
                self.trace.record(output, CONSTANT if secondary else degrees[index])
        return result

    def _degrees_of_outputs(
        self, func: Any, args: Any, kwargs: Any, tensors: list[Tensor]
    ) -> tuple[AnyDegree, ...]:
        """Apply the rule of an operation, or find out what it does without one."""
        name = func._schema.name.removeprefix("aten::")
        known = RULES.get(name) or (
            RULES.get(name.removesuffix("_")) if func._schema.is_mutable else None
        )
        if known is not None:
            degrees = known(self.trace, *args, **kwargs)
            return degrees if isinstance(degrees, tuple) else (degrees,)
        if func.is_view:  # the degree belongs to the storage
            return (self.trace.degree(tensors[0]),)
        return self._degrees_without_rule(name, func, args, kwargs, tensors)

    def _degrees_without_rule(
        self, name: str, func: Any, args: Any, kwargs: Any, tensors: list[Tensor]
    ) -> tuple[AnyDegree, ...]:
        """Observe numerically how an operation scales, where its inputs can be scaled together."""
        inputs = [self.trace.degree(tensor) for tensor in tensors]
        for degree in inputs:
            if isinstance(degree, Unknown):
                return (degree,)
        scaled = [degree for degree in inputs if degree]
        if not scaled:
            return (CONSTANT,)
        degree, exponents = scaled[0], None
        if all(other == degree for other in scaled):
            exponents = observe_exponents(func, args, kwargs, list(map(bool, inputs)))
        if exponents is None:
            return (self.trace.unknown(f"no rule says how {name} scales"),)
        follows_none = f"{name} follows no power of the factor by which its inputs are multiplied"
        if exponents[0] is None:
            return (self.trace.invariant(degree, follows_none, "nn.ReLU or a power of it"),)
        seen = "its exponent was observed over factors from 1e-6 to 1e6"
        self.trace.observed[f"{self.trace.place}: no rule says how {name} scales; {seen}"] = None
        # Others, such as the factors beside a determinant, count where something reads them.
        return tuple(
            self.trace.unknown(follows_none) if k is None else scale_degree(degree, k)
            for k in exponents
        )

    def _overwrite(self, target: Tensor, degree: AnyDegree) -> None:
        """Give `target`, which was written in place, a new degree."""
        # Of a part that is overwritten the rest keeps its degree, so that both must agree.
        size = target.numel() * target.element_size()
        whole = target.is_sparse or size == target.untyped_storage().nbytes()
        old = self.trace.degrees.get(self.trace.storage(target), CONSTANT)
        if not whole and old != degree and target.is_floating_point():
            degree = self.trace.same(
                old,
                degree,
                "writes values that scale differently into parts of one tensor",
                "use separate tensors",
            )
        self.trace.record(target, degree)
        self.trace.forget_parameter(target)


def _is_root(arguments: Any) -> bool:
    """True for the arguments of a power that would be infinite, or as steep as a root, at 0."""
    exponent = arguments[1] if len(arguments) > 1 else None
    return isinstance(exponent, (int, float)) and exponent < 1
