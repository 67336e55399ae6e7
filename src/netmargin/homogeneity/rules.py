"""How each operation acts on degrees. To teach netmargin a new operation, add a rule here (or
register one with `rule`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .degree import CONSTANT, ZERO, AnyDegree, add_degrees, scale_degree
from .modes import ROUGH
from .registry import rule
from .trace import Trace

# -- linear maps of one argument, and everything else that is 1-homogeneous and piecewise linear in
# it


@rule(
    "relu", "leaky_relu", "rrelu_with_noise", "abs", "neg", "positive", "clone", "lift_fresh", "alias", "detach",
    "sum", "mean", "nansum", "amax", "amin", "cumsum", "trace", "median", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d",
    "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d", "reflection_pad1d", "reflection_pad2d",
    "reflection_pad3d", "replication_pad1d", "replication_pad2d", "replication_pad3d", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "roll", "flip", "gather", "index_select", "index", "sort", "topk", "repeat", "_unsafe_view", "tril", "triu",
    "native_dropout", "embedding", "linalg_vector_norm", "std", "diag_embed", "im2col", "col2im", "take", "unfold_backward",
    "transpose", "t", "squeeze", "unsqueeze", "swapaxes", "view_copy", "_reshape_copy", "expand_copy", "masked_select", "as_strided", "select_copy", "slice_copy", "transpose_copy",
)  # fmt: skip
def _same_as_first(trace: Trace, value, *_, **__) -> AnyDegree:
    return trace.degree(value)


@rule("_to_copy")
def _converted(trace: Trace, value, *_, dtype=None, **__) -> AnyDegree:
    degree = trace.degree(value)
    if not degree or dtype is None or dtype == value.dtype:
        return degree
    if dtype == torch.bool:  # asks whether a value is 0
        return CONSTANT
    if dtype in ROUGH:
        trace.casts[f"cast to {str(dtype).removeprefix('torch.')} in {trace.place}"] = None
    if dtype.is_floating_point:
        return degree
    return trace.invariant(
        degree, f"truncates to {str(dtype).removeprefix('torch.')}", "keep floating numbers"
    )


@rule("var_mean")
def _variance_and_mean(trace: Trace, value, *_, **__) -> tuple[AnyDegree, ...]:
    return scale_degree(trace.degree(value), 2), trace.degree(value)


@rule("std_mean", "aminmax")
def _two_of_the_same(trace: Trace, value, *_, **__) -> tuple[AnyDegree, ...]:
    return trace.degree(value), trace.degree(value)


@rule("max", "min")
def _extreme(trace: Trace, value, other=None, *_, **__) -> AnyDegree:
    return _elementwise(trace, value, other) if isinstance(other, Tensor) else trace.degree(value)


@rule(
    "sign",
    "sgn",
    "argmax",
    "argmin",
    "argsort",
    "signbit",
    "isnan",
    "isinf",
    "isfinite",
    "heaviside",
)
def _scale_invariant(trace: Trace, value, *_, **__) -> AnyDegree:
    return CONSTANT


@rule(
    "empty_like",
    "zeros_like",
    "new_zeros",
    "new_empty",
    "zeros",
    "empty",
    "zero",
    "new_empty_strided",
    "empty_strided",
)
def _zeros(trace: Trace, *_, **__) -> AnyDegree:
    return ZERO


@rule(
    "ones_like",
    "new_ones",
    "rand_like",
    "randn_like",
    "bernoulli",
    "uniform",
    "normal",
    "random",
    "exponential",
)
def _constant(trace: Trace, *_, **__) -> AnyDegree:
    return CONSTANT


@rule("full", "new_full", "full_like", "fill")
def _filled(trace: Trace, _, *rest, **kwargs) -> AnyDegree:
    value = kwargs.get("fill_value", rest[-1] if rest else 1)
    return trace.degree(value)


@rule("scalar_tensor")
def _scalar(trace: Trace, value, *_, **__) -> AnyDegree:
    return trace.degree(value)


@rule("copy")
def _copied(trace: Trace, _, source, *__, **___) -> AnyDegree:
    return trace.degree(source)


@rule("constant_pad_nd")
def _padded(trace: Trace, value, _, number=0, *__) -> AnyDegree:
    return trace.same(
        trace.degree(value), trace.degree(number), "pads with a number other than 0", "pad with 0"
    )


# -- products, quotients, powers


@rule(
    "mul",
    "mm",
    "bmm",
    "mv",
    "dot",
    "vdot",
    "outer",
    "ger",
    "convolution",
    "_convolution",
    "matmul",
    "linear",
    "cross",
)
def _product(trace: Trace, a, b, bias=None, *_, **__) -> AnyDegree:
    product = trace.product(a, b)
    return trace.add_bias(product, bias, a, b) if isinstance(bias, Tensor) else product


@rule("addmm", "_sparse_addmm", "baddbmm", "addmv", "addbmm", "addr", "addcmul")
def _sum_with_product(trace: Trace, bias, a, b, *_, beta=1, alpha=1, **__) -> AnyDegree:
    product = trace.product(a, b)
    return product if beta == 0 else trace.add_bias(product, bias, a, b)


@rule("div", "true_divide")
def _quotient(trace: Trace, a, b, *_, rounding_mode=None, **__) -> AnyDegree:
    quotient = add_degrees(trace.degree(a), scale_degree(trace.degree(b), -1))
    return (
        quotient
        if rounding_mode is None
        else trace.invariant(quotient, "rounds a quotient", "divide without rounding")
    )


@rule("reciprocal")
def _reciprocal(trace: Trace, value) -> AnyDegree:
    return scale_degree(trace.degree(value), -1)


@rule("square", "var")
def _square(trace: Trace, value, *_, **__) -> AnyDegree:
    return scale_degree(trace.degree(value), 2)


@rule("sqrt")
def _square_root(trace: Trace, value) -> AnyDegree:
    return scale_degree(trace.degree(value), 0.5)


@rule("rsqrt")
def _inverse_square_root(trace: Trace, value) -> AnyDegree:
    return scale_degree(trace.degree(value), -0.5)


@rule("pow")
def _power(trace: Trace, base, exponent) -> AnyDegree:
    if isinstance(exponent, Tensor):
        if trace.degree(exponent) or exponent.numel() != 1:
            return trace.unknown("a power whose exponent is a tensor")
        exponent = exponent.item()
    return scale_degree(trace.degree(base), exponent)


@rule("_weight_norm_interface", "_weight_norm")
def _weight_norm(trace: Trace, direction, magnitude, *_) -> AnyDegree:
    return trace.degree(magnitude)


# -- sums, comparisons, selections: both sides must scale alike


@rule("lerp")
def _interpolated(trace: Trace, a, b, weight) -> AnyDegree:
    trace.invariant(
        trace.degree(weight), "interpolates with a weight that scales", "use a fixed weight"
    )
    return _elementwise(trace, a, b)


@rule("add")
def _plus(trace: Trace, a, b, *_, **__) -> AnyDegree:
    for value, other in ((a, b), (b, a)):
        if isinstance(value, (int, float)) and value > 0 and trace.degree(other):
            trace.adds_epsilon(value)
            return trace.degree(other)
    return _sum(trace, a, b)


@rule("sub", "rsub", "fmod", "remainder", "hypot")
def _sum(trace: Trace, a, b, *_, **__) -> AnyDegree:
    for signal, bias in ((a, b), (b, a)):
        if trace.parameter(bias) and not trace.parameter(signal):
            return trace.add_bias(trace.degree(signal), bias, signal)
    return _elementwise(trace, a, b)


@rule("maximum", "minimum", "fmax", "fmin")
def _elementwise(trace: Trace, a, b, *_, **__) -> AnyDegree:
    return trace.same(
        trace.degree(a),
        trace.degree(b),
        "combines two branches that scale with different powers of the parameters",
        "normalize the stronger branch without affine parameters, or give both branches the same"
        " number of layers",
    )


@rule(
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "bitwise_and",
    "bitwise_or",
    "isclose",
)
def _comparison(trace: Trace, a, b, *_, **__) -> AnyDegree:
    trace.same(
        trace.degree(a),
        trace.degree(b),
        "compares with a threshold that does not scale",
        "compare with 0",
    )
    return CONSTANT


@rule("where")
def _selection(trace: Trace, condition, a=None, b=None) -> AnyDegree:
    if a is None:
        return CONSTANT
    return _elementwise(trace, a, b)


@rule("cat", "stack", "_stack", "concat", "block_diag")
def _concatenation(trace: Trace, tensors: Sequence[Tensor], *_, **__) -> AnyDegree:
    degree: AnyDegree = ZERO
    for tensor in tensors:
        degree = trace.same(
            degree,
            trace.degree(tensor),
            "joins values that scale with different powers of the parameters",
            "normalize them before joining",
        )
    return degree


@rule(
    "index_put",
    "scatter",
    "scatter_add",
    "index_add",
    "index_copy",
    "masked_scatter",
    "slice_scatter",
    "select_scatter",
)
def _scattered(trace: Trace, target, *rest, **__) -> AnyDegree:
    degree = trace.degree(target)
    for value in rest:
        if isinstance(value, Tensor) and value.is_floating_point():
            degree = trace.same(
                degree,
                trace.degree(value),
                "writes values that scale differently",
                "use separate tensors",
            )
    return degree


@rule("masked_fill")
def _masked(trace: Trace, value, _, number) -> AnyDegree:
    return trace.same(
        trace.degree(value),
        trace.degree(number),
        "fills with a number that does not scale",
        "fill with 0 or infinity",
    )


def _cut_off(trace: Trace, value, *levels) -> AnyDegree:
    degree = trace.degree(value)
    for level in levels:
        if level is not None:
            degree = trace.same(
                degree,
                trace.degree(level),
                "cuts off at a level that does not scale",
                "use ReLU (cut off at 0)",
            )
    return degree


@rule("clamp")
def _clamped(trace: Trace, value, low=None, high=None) -> AnyDegree:
    if isinstance(low, (int, float)) and low > 0 and high is None and trace.degree(value):
        trace.adds_epsilon(low)
        return trace.degree(value)
    return _cut_off(trace, value, low, high)


@rule("clamp_min")
def _clamped_below(trace: Trace, value, low) -> AnyDegree:
    return _clamped(trace, value, low)


@rule("clamp_max")
def _clamped_above(trace: Trace, value, high) -> AnyDegree:
    return _cut_off(trace, value, high)


@rule("threshold")
def _threshold(trace: Trace, value, level, replacement) -> AnyDegree:
    return _cut_off(trace, value, level, replacement)


@rule("hardtanh")
def _hardtanh(trace: Trace, value, low=-1.0, high=1.0) -> AnyDegree:
    return _cut_off(trace, value, low, high)


@rule("_local_scalar_dense", "is_nonzero", "equal")
def _leaves_the_graph(trace: Trace, value, *_) -> AnyDegree:
    trace.escape(value, "item()")
    return CONSTANT
