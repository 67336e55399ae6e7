"""Degree rules of sums, comparisons and selections, whose sides must scale alike."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .degree import CONSTANT, AnyDegree
from .registry import rule
from .trace import Trace


@rule("lerp")
def _interpolate(trace: Trace, a: Any, b: Any, weight: Any) -> AnyDegree:
    trace.invariant(
        trace.degree(weight), "interpolates with a weight that scales", "use a fixed weight"
    )
    return _elementwise(trace, a, b)


@rule("add")
def _plus(trace: Trace, a: Any, b: Any, *_: Any, **__: Any) -> AnyDegree:
    # A positive number added to a value that scales may be the guard of a root or a quotient that
    # follows: the trace decides when it sees that operation.
    for value, other in ((a, b), (b, a)):
        if isinstance(value, (int, float)) and value > 0 and trace.degree(other):
            trace.adds_epsilon(value)
            return trace.degree(other)
    return _sum(trace, a, b)


@rule("sub", "rsub", "fmod", "remainder", "hypot")
def _sum(trace: Trace, a: Any, b: Any, *_: Any, **__: Any) -> AnyDegree:
    # A parameter added to what is not one is a bias, whichever side it stands on.
    for signal, bias in ((a, b), (b, a)):
        if trace.parameter(bias) and not trace.parameter(signal):
            return trace.add_bias(trace.degree(signal), bias, signal)
    return _elementwise(trace, a, b)


@rule("maximum", "minimum", "fmax", "fmin")
def _elementwise(trace: Trace, a: Any, b: Any, *_: Any, **__: Any) -> AnyDegree:
    return trace.agree(
        (a, b),
        "combines two branches that scale with different powers of the parameters",
        "normalize the stronger branch without affine parameters, or give both branches the same"
        " number of layers",
    )


@rule("max", "min")
def _extreme(trace: Trace, value: Any, other: Any = None, *_: Any, **__: Any) -> AnyDegree:
    return _elementwise(trace, value, other) if isinstance(other, Tensor) else trace.degree(value)


@rule(
    "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "bitwise_and", "bitwise_or",
    "isclose",
)  # fmt: skip
def _comparison(trace: Trace, a: Any, b: Any, *_: Any, **__: Any) -> AnyDegree:
    trace.agree((a, b), "compares with a threshold that does not scale", "compare with 0")
    return CONSTANT


@rule("where")
def _selection(trace: Trace, condition: Any, a: Any = None, b: Any = None) -> AnyDegree:
    if a is None:  # the indices at which the condition holds
        return CONSTANT
    return _elementwise(trace, a, b)


@rule("cat", "stack", "_stack", "concat", "block_diag")
def _concatenation(trace: Trace, tensors: Sequence[Tensor], *_: Any, **__: Any) -> AnyDegree:
    reason = "joins values that scale with different powers of the parameters"
    return trace.agree(tensors, reason, "normalize them before joining")


@rule(
    "index_put", "scatter", "scatter_add", "index_add", "index_copy", "masked_scatter",
    "slice_scatter", "select_scatter",
)  # fmt: skip
def _scatter(trace: Trace, target: Any, *rest: Any, **__: Any) -> AnyDegree:
    written = [v for v in rest if isinstance(v, Tensor) and v.is_floating_point()]
    reason = "writes values that scale differently"
    return trace.agree((target, *written), reason, "use separate tensors")


@rule("masked_fill")
def _fill_masked(trace: Trace, value: Any, _: Any, number: Any) -> AnyDegree:
    reason = "fills with a number that does not scale"
    return trace.agree((value, number), reason, "fill with 0 or infinity")


@rule("clamp_max", "threshold")
def _cut_off(trace: Trace, value: Any, *levels: Any) -> AnyDegree:
    """Require that all levels at which a value is cut off scale like it."""
    given = [level for level in levels if level is not None]
    reason = "cuts off at a level that does not scale"
    return trace.agree((value, *given), reason, "use ReLU (cut off at 0)")


@rule("clamp", "clamp_min")
def _clamp(trace: Trace, value: Any, low: Any = None, high: Any = None) -> AnyDegree:
    # max(value, 1e-12) guards what follows as value + 1e-12 does.
    if isinstance(low, (int, float)) and low > 0 and high is None and trace.degree(value):
        trace.adds_epsilon(low)
        return trace.degree(value)
    return _cut_off(trace, value, low, high)


@rule("hardtanh")
def _hardtanh(trace: Trace, value: Any, low: Any = -1.0, high: Any = 1.0) -> AnyDegree:
    return _cut_off(trace, value, low, high)


@rule("_local_scalar_dense", "is_nonzero", "equal")
def _leaves_the_graph(trace: Trace, *values: Any) -> AnyDegree:
    for value in values:
        trace.escape(value, "item()")
    return CONSTANT
