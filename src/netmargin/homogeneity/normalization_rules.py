"""Degree rules of normalization layers, attention, and functions without any homogeneity."""

from typing import Any

import torch
from torch import Tensor

from .degree import CONSTANT, AnyDegree, Degree, Unknown, add_degrees
from .registry import RULES, rule
from .trace import Trace
from .vocabulary import STORED_STATISTICS


@rule("_prelu_kernel", "prelu")
def _learned_slope(trace: Trace, value: Any, slope: Any) -> AnyDegree:
    trace.invariant(
        trace.degree(slope),
        f"slope {trace.parameter(slope)!r} multiplies one side of the kink only",
        "nn.LeakyReLU with a fixed slope",
    )
    return trace.degree(value)


@rule("native_layer_norm")
def _normalize_layer(
    trace: Trace, value: Any, _: Any, scale: Any, shift: Any, epsilon: Any
) -> AnyDegree:
    return _apply_normalization(trace, value, scale, shift, epsilon)


@rule("native_group_norm")
def _normalize_group(trace: Trace, value: Any, scale: Any, shift: Any, *rest: Any) -> AnyDegree:
    return _apply_normalization(trace, value, scale, shift, rest[-1])


@rule("_fused_rms_norm")
def _normalize_rms(
    trace: Trace, value: Any, _: Any, scale: Any = None, epsilon: Any = None
) -> AnyDegree:
    return _apply_normalization(
        trace, value, scale, None, torch.finfo(value.dtype).eps if epsilon is None else epsilon
    )


@rule(
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional",
    "cudnn_batch_norm",
    "batch_norm",
)
def _normalize_batch(trace: Trace, value: Any, scale: Any, shift: Any, *rest: Any) -> AnyDegree:
    # The stored mean and variance come first, except in the "legit" variants without them.
    *statistics, training, momentum, epsilon = rest[:5]
    if training:
        return _apply_normalization(trace, value, scale, shift, epsilon)
    return _apply_stored_statistics(trace, value, scale, shift, *statistics, momentum, epsilon)


@rule("_native_batch_norm_legit_no_training", "_batch_norm_no_update")
def _apply_stored_statistics(
    trace: Trace,
    value: Any,
    scale: Any,
    shift: Any,
    mean: Any,
    variance: Any,
    _momentum: Any,
    epsilon: Any,
    *_: Any,
) -> AnyDegree:
    if trace.statistics_follow(value, mean, variance):
        return _apply_normalization(trace, value, scale, shift, epsilon)
    instead = "nn.GroupNorm or nn.LayerNorm, or analyse in training mode (batch statistics)"
    degree = trace.invariant(trace.degree(value), STORED_STATISTICS, instead)
    return _apply_affine(trace, degree, value, scale, shift)


_ATTENTION = "softmax of attention scores"


@rule(
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_fused_attention_overrideable",
)
def _attention(
    trace: Trace, query: Any, key: Any, value: Any, *rest: Any, **options: Any
) -> AnyDegree:
    # The softmax must not change under a scaling, so queries times keys must be invariant, and what
    # is added to them: masks, or learned biases of positions. The outputs scale with the values.
    called = _ATTENTION
    for added in (*rest, *options.values()):
        if isinstance(added, Tensor) and added.is_floating_point():
            _forbid_scaling(trace, trace.degree(added), called)
    weights = _forbid_scaling(trace, trace.product(query, key), called)
    return add_degrees(weights, trace.degree(value))


# -- functions without any homogeneity


@rule("mkldnn_rnn_layer", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell")
def _gated(trace: Trace, *values: Any, **__: Any) -> tuple[AnyDegree, ...]:
    # Sigmoids and tanhs of sums of all inputs and weights; states, and what backward passes need.
    given = [trace.degree(value) for value in values if isinstance(value, Tensor)]
    fixed = [_forbid_scaling(trace, degree, "a recurrent layer with gates") for degree in given]
    return (next((d for d in fixed if isinstance(d, Unknown)), CONSTANT),) * 4


_NAMES_OF_FUNCTIONS = {
    # Activations.
    "tanh": "tanh", "sigmoid": "sigmoid", "gelu": "GELU", "silu": "SiLU", "elu": "ELU",
    "celu": "CELU", "softplus": "softplus", "mish": "Mish", "hardswish": "Hardswish",
    "hardsigmoid": "Hardsigmoid", "log_sigmoid_forward": "log-sigmoid", "glu": "GLU",
    "softshrink": "Softshrink", "hardshrink": "Hardshrink",
    # Normalizations of scores.
    "_softmax": "softmax", "_safe_softmax": "softmax", "_log_softmax": "log-softmax",
    "logsumexp": "log-sum-exp",
    # Elementary functions and roundings.
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log1p": "log1p", "sin": "sin",
    "cos": "cos", "erf": "erf", "atan": "atan", "round": "round", "floor": "floor", "ceil": "ceil",
}  # fmt: skip
"""ATen operation -> the function's name for a sentence."""

for _name, _called in _NAMES_OF_FUNCTIONS.items():
    RULES[_name] = lambda trace, value, *_, called=_called, **__: _forbid_scaling(
        trace,
        trace.degree(value),
        # Scores of classes have no more than two axes, those of queries and keys have.
        _ATTENTION if called == "softmax" and value.ndim > 2 else called,
    )


def _forbid_scaling(trace: Trace, degree: AnyDegree, called: str) -> AnyDegree:
    """Require that the argument of a function without homogeneity does not scale."""
    if "attention" in called:
        replacement = (
            "normalize queries and keys without affine parameters, or keep their weights out of the"
            " scaled group"
        )
    elif "softmax" in called:
        replacement = "return the scores before it"
    else:
        replacement = "nn.ReLU or a power of it"
    return trace.invariant(degree, f"{called} is not homogeneous", replacement)


def _apply_affine(
    trace: Trace, degree: AnyDegree, value: Tensor, scale: Tensor | None, shift: Tensor | None
) -> AnyDegree:
    """Apply the learned scale and shift of a normalization layer."""
    if scale is not None:
        degree = add_degrees(degree, trace.degree(scale))
    return trace.add_bias(degree, shift, value) if shift is not None else degree


def _apply_normalization(
    trace: Trace, value: Tensor, scale: Tensor | None, shift: Tensor | None, epsilon: float
) -> AnyDegree:
    """Cancel the degree of a normalized value, neglecting the epsilon that guards its size."""
    degree = trace.degree(value)
    trace.neglect(degree, epsilon)
    return _apply_affine(
        trace, CONSTANT if isinstance(degree, Degree) else degree, value, scale, shift
    )
