"""Degree rules of maps, products, quotients and powers; those of sums are in sum_rules.py.

To teach netmargin a new operation, add a rule here, or register one with `rule`.
"""

from typing import Any

import torch
from torch import Tensor

from .degree import CONSTANT, ZERO, AnyDegree, add_degrees, scale_degree
from .float64_mode import ROUGH
from .registry import RULES, rule
from .trace import Trace

# -- functions of one argument that are homogeneous of order 1 in it


@rule(
    # Activations.
    "relu", "leaky_relu", "rrelu_with_noise", "abs", "neg", "positive", "native_dropout",
    # Reductions, norms included.
    "sum", "mean", "nansum", "amax", "amin", "cumsum", "trace", "median", "linalg_vector_norm",
    "norm", "std", "sort", "topk",
    # Pools, upsampling, padding.
    "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d",
    "upsample_bilinear2d", "upsample_bicubic2d", "upsample_trilinear3d", "reflection_pad1d",
    "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
    "replication_pad3d",
    # Copies, views, indexing, rearrangements.
    "clone", "lift_fresh", "alias", "detach", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle",
    "roll", "flip", "gather", "index_select", "index", "repeat", "_unsafe_view", "tril", "triu",
    "embedding", "diag_embed", "im2col", "col2im", "take", "unfold_backward", "transpose", "t",
    "squeeze", "unsqueeze", "swapaxes", "view_copy", "_reshape_copy", "expand_copy",
    "masked_select", "as_strided", "select_copy", "slice_copy", "transpose_copy", "scalar_tensor",
)  # fmt: skip
def _same_as_first(trace: Trace, value: Any, *_: Any, **__: Any) -> AnyDegree:
    return trace.degree(value)


@rule("_to_copy")
def _convert(trace: Trace, value: Any, *_: Any, dtype: Any = None, **__: Any) -> AnyDegree:
    degree = trace.degree(value)
    if not degree or dtype is None or dtype == value.dtype:
        return degree
    if dtype == torch.bool:  # asks whether a value is 0
        return CONSTANT
    if dtype in ROUGH:
        trace.casts[f"cast to {str(dtype).removeprefix('torch.')} in {trace.place}"] = None
    if dtype.is_floating_point or dtype.is_complex:
        return degree
    return trace.invariant(
        degree, f"truncates to {str(dtype).removeprefix('torch.')}", "keep floating numbers"
    )


@rule("var_mean")
def _variance_and_mean(trace: Trace, value: Any, *_: Any, **__: Any) -> tuple[AnyDegree, ...]:
    return scale_degree(trace.degree(value), 2), trace.degree(value)


@rule("unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk")
def _parts(trace: Trace, value: Any, *_: Any, **__: Any) -> tuple[AnyDegree, ...]:
    return (trace.degree(value),) * int(max(value.shape))


@rule("std_mean", "aminmax")
def _two_of_the_same(trace: Trace, value: Any, *_: Any, **__: Any) -> tuple[AnyDegree, ...]:
    return trace.degree(value), trace.degree(value)


@rule(
    "empty_like", "zeros_like", "new_zeros", "new_empty", "zeros", "empty", "zero",
    "new_empty_strided", "empty_strided",
)  # fmt: skip
def _zeros(trace: Trace, *_: Any, **__: Any) -> AnyDegree:
    return ZERO


@rule(
    # Signs, places and questions, which no factor above 0 changes.
    "sign", "sgn", "argmax", "argmin", "argsort", "signbit", "isnan", "isinf", "isfinite",
    "heaviside",
    # Ones and random numbers.
    "ones_like", "new_ones", "rand_like", "randn_like", "bernoulli", "uniform", "normal", "random",
    "exponential",
)  # fmt: skip
def _constant(trace: Trace, *_: Any, **__: Any) -> AnyDegree:
    return CONSTANT


@rule("full", "new_full", "full_like", "fill")
def _fill(trace: Trace, _: Any, *rest: Any, **kwargs: Any) -> AnyDegree:
    value = kwargs.get("fill_value", rest[-1] if rest else 1)
    return trace.degree(value)


@rule("copy", "_weight_norm_interface", "_weight_norm")
def _same_as_second(trace: Trace, _: Any, value: Any, *__: Any, **___: Any) -> AnyDegree:
    # What is copied, or the magnitude beside a direction.
    return trace.degree(value)


@rule("constant_pad_nd")
def _pad(trace: Trace, value: Any, _: Any, number: Any = 0, *__: Any) -> AnyDegree:
    return trace.agree((value, number), "pads with a number other than 0", "pad with 0")


# -- products, quotients, powers


@rule(
    "mul", "mm", "bmm", "mv", "dot", "vdot", "outer", "ger", "convolution", "_convolution",
    "matmul", "linear", "cross",
)  # fmt: skip
def _product(trace: Trace, a: Any, b: Any, bias: Any = None, *_: Any, **__: Any) -> AnyDegree:
    product = trace.product(a, b)
    return trace.add_bias(product, bias, a, b) if isinstance(bias, Tensor) else product


@rule("addmm", "_sparse_addmm", "baddbmm", "addmv", "addbmm", "addr", "addcmul")
def _sum_with_product(
    trace: Trace, bias: Any, a: Any, b: Any, *_: Any, beta: Any = 1, alpha: Any = 1, **__: Any
) -> AnyDegree:
    product = trace.product(a, b)
    return product if beta == 0 else trace.add_bias(product, bias, a, b)


@rule("div", "true_divide")
def _quotient(
    trace: Trace, a: Any, b: Any, *_: Any, rounding_mode: Any = None, **__: Any
) -> AnyDegree:
    quotient = add_degrees(trace.degree(a), scale_degree(trace.degree(b), -1))
    if rounding_mode is None:
        return quotient
    return trace.invariant(quotient, "rounds a quotient", "divide without rounding")


_POWERS = {"reciprocal": -1, "square": 2, "var": 2, "sqrt": 0.5, "rsqrt": -0.5}
"""ATen operation -> the power of its argument that it scales with."""

for _name, _exponent in _POWERS.items():
    RULES[_name] = lambda trace, value, *_, power=_exponent, **__: scale_degree(
        trace.degree(value), power
    )


@rule("pow")
def _power(trace: Trace, base: Any, exponent: Any) -> AnyDegree:
    # A 0-dimensional constant is as good as a number; an exponent that scales follows no power.
    if isinstance(exponent, Tensor):
        if not (trace.degree(base) or trace.degree(exponent)):  # tables of positions and the like
            return CONSTANT
        if trace.degree(exponent) or exponent.numel() != 1:
            return trace.unknown("a power whose exponent is a tensor")
        exponent = exponent.item()
    return scale_degree(trace.degree(base), exponent)
