"""Runs a model once and follows the degree of every value through the operations that happen.

The run is intercepted below autograd, where modules, functionals, tensor methods and arbitrary
`forward`s have all become the same few hundred ATen operations; control flow is simply followed.
Views share storage with what they view, so a degree belongs to a storage.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor, nn

from .degree import (
    CONSTANT,
    AnyDegree,
    Constraint,
    Degree,
    Epsilon,
    Unknown,
    scale_degree,
)
from .modes import EagerMode, Escapes, iterate_tensors, list_written_tensors
from .observation import observe_exponents
from .registry import RULES
from .requirements import Requirements


class Trace(Requirements, EagerMode):
    """The degrees of all values met so far, and the constraints that their operations impose.

    Parameters
    ----------
    model : torch.nn.Module
        The net whose parameters are followed.
    x : tensor, or nested tuples of tensors
        The inputs of the pass, which do not scale.
    buffers : dict of str to tensor
        The buffers that may follow the parameters, as the pass meets them.

    Attributes
    ----------
    epsilons : dict of Epsilon
        The guards met, in order, which are neglected at first.
    casts : dict of str
        Sentences that say where values that scale are rounded to a half-precision type.
    observed : dict of str
        Sentences about operations without a rule, whose exponents were observed numerically.
    numbers : int
        How many numbers the pass computed: a measure of its cost.
    escaped : Unknown or None
        The first value that scales and left the graph, of which nothing further is known.
    """

    def __init__(self, model: nn.Module, x, buffers: Mapping[str, Tensor]):
        super().__init__(model, x, buffers)
        self.numbers = 0
        # Dicts without values are sets that keep their order, so that answers are reproducible.
        self.epsilons: dict[Epsilon, None] = {}
        self.casts: dict[str, None] = {}
        self.observed: dict[str, None] = {}
        self.escaped: Unknown | None = None
        self._added_epsilon: float | None = None
        self._pending_epsilon: dict[int, float] = {}

    def adds_epsilon(self, value: float) -> None:
        """Say, in a rule, that the output holds the number `value`.

        It is neglected if the output goes on to guard a root or a quotient.
        """
        self._added_epsilon = value

    def neglect(self, guarded: AnyDegree, value: float) -> None:
        """Say, in a rule, that the number `value` only keeps a root or a quotient finite.

        guarded : the degree of what it is added to.
        """
        if not guarded or value == 0:
            return
        epsilon = Epsilon(self.where, value, self.place)
        self.epsilons[epsilon] = None
        if isinstance(guarded, Degree):
            reason, replacement = (
                f"the number {value:g} guards a root or a quotient",
                "make it smaller, or what it guards larger",
            )
            self.constraints.append(
                Constraint(guarded, self.where, reason, replacement, epsilon=epsilon)
            )

    def escape(self, value, how: str) -> None:
        """Record that a tensor turned into Python or numpy numbers, which no rule can follow.

        how : the method that was called, for a sentence.
        """
        if isinstance(value, Tensor) and self.degree(value) and self.escaped is None:
            self.escaped = self.unknown(
                f"{how} turned a value that scales into numbers that torch does not see"
            )

    def finish(self, outputs: Tensor) -> AnyDegree:
        """Close the trace and return the degree of the net's outputs."""
        self._settle_epsilon("", outputs)
        return self.escaped or self.degree(outputs)

    def _settle_epsilon(self, name: str, *values) -> None:
        """Decide whether numbers added to `values` guard the operation `name`, or block it."""
        for position, value in enumerate(values):
            storage = self.storage(value) if isinstance(value, Tensor) else None
            if storage not in self._pending_epsilon:
                continue
            epsilon = self._pending_epsilon[storage]
            root = name in ("rsqrt", "sqrt", "reciprocal") or (
                name == "pow" and position == 0 and _is_root(values)
            )
            if root or (name in ("div", "true_divide") and position == 1):
                self.neglect(self.degree(value), epsilon)
            elif name in ("clone", "_to_copy"):
                self._added_epsilon = epsilon  # the copy holds it as well
            else:
                reason = f"adds the number {epsilon:g}, which does not scale with the parameters"
                self.same(self.degree(value), CONSTANT, reason, "leave it out")

    @contextmanager
    def following(self, model: nn.Module) -> Iterator[None]:
        """Follow the modules and operations of `model`, and what leaves the graph, in a block."""
        with self.path.following(model), Escapes(self.escape), self:
            yield

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Update degrees by one operation, and run it."""
        kwargs = kwargs or {}
        inputs = list(iterate_tensors((args, kwargs)))
        if not func.is_view:
            self._settle_epsilon(func._schema.name.removeprefix("aten::").removesuffix("_"), *args)
        degrees = self._degrees_of_outputs(func, args, kwargs, inputs)
        result = func(*args, **kwargs)
        written = list_written_tensors(func, args, kwargs)
        for target in written:
            self._overwrite(target, degrees[0])
            self._pending_epsilon.pop(self.storage(target), None)
        if self.from_input(*inputs):
            self._from_input |= {
                self.storage(tensor) for tensor in (*written, *iterate_tensors(result))
            }
        if self._added_epsilon is not None:
            for tensor in iterate_tensors(result):
                self._pending_epsilon[self.storage(tensor)] = self._added_epsilon
            self._added_epsilon = None
        if written:
            return result
        for index, output in enumerate(iterate_tensors(result)):
            storage = self.storage(output)
            if storage in self._degrees:  # a view
                continue
            self.numbers += output.numel()
            self._alive.append(output)  # so that its storage is not reused by another tensor
            secondary = index >= len(degrees)
            if secondary and degrees[0] and output.is_floating_point():
                self._degrees[storage] = self.unknown(
                    f"no rule for output {index + 1} of {func._schema.name}"
                )
            else:
                self._degrees[storage] = CONSTANT if secondary else degrees[index]
        return result

    def _degrees_of_outputs(
        self, func, args, kwargs, tensors: list[Tensor]
    ) -> tuple[AnyDegree, ...]:
        """Apply the rule of an operation, or find out what it does without one."""
        name = func._schema.name.removeprefix("aten::")
        known = RULES.get(name) or (
            RULES.get(name.removesuffix("_")) if func._schema.is_mutable else None
        )
        if known is not None:
            degrees = known(self, *args, **kwargs)
            return degrees if isinstance(degrees, tuple) else (degrees,)
        if func.is_view:  # the degree belongs to the storage
            return (self.degree(tensors[0]),)
        return self._degrees_without_rule(name, func, args, kwargs, tensors)

    def _degrees_without_rule(
        self, name: str, func, args, kwargs, tensors: list[Tensor]
    ) -> tuple[AnyDegree, ...]:
        """Observe numerically how an operation scales, where its inputs can be scaled together."""
        inputs = [self.degree(tensor) for tensor in tensors]
        for degree in inputs:
            if isinstance(degree, Unknown):
                return (degree,)
        if not any(inputs):
            return (CONSTANT,)
        exponents = (
            observe_exponents(func, args, kwargs, list(map(bool, inputs)))
            if _alike(inputs)
            else None
        )
        if exponents is None:
            return (self.unknown(f"no rule says how {name} scales"),)
        degree = next(d for d in inputs if d)
        if not exponents:
            reason = f"{name} follows no power of the factor by which its inputs are multiplied"
            return (self.invariant(degree, reason, "nn.ReLU or a power of it"),)
        seen = "its exponent was observed over factors from 1e-6 to 1e6"
        self.observed[f"{self.place}: no rule says how {name} scales; {seen}"] = None
        return tuple(scale_degree(degree, k) for k in exponents)

    def _overwrite(self, target: Tensor, degree: AnyDegree) -> None:
        """Give `target`, which was written in place, a new degree."""
        storage = self.storage(target)
        # Of a part that is overwritten the rest keeps its degree, so that both must agree.
        whole = (
            target.is_sparse
            or target.numel() * target.element_size() == target.untyped_storage().nbytes()
        )
        old = self._degrees.get(storage, CONSTANT)
        self._alive.append(target)
        if not whole and old != degree and target.is_floating_point():
            degree = self.same(
                old,
                degree,
                "writes values that scale differently into parts of one tensor",
                "use separate tensors",
            )
        self._degrees[storage] = degree
        self._parameters.pop(storage, None)


def _alike(degrees: list[AnyDegree]) -> bool:
    """True if all degrees that scale are the same, so that their values can be scaled together."""
    scaled = [d for d in degrees if d]
    return all(d == scaled[0] for d in scaled)


def _is_root(arguments) -> bool:
    """True for the arguments of a power that would be infinite, or as steep as a root, at 0."""
    exponent = arguments[1] if len(arguments) > 1 else None
    return isinstance(exponent, (int, float)) and exponent < 1
