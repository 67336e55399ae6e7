"""The net, and the one place that calls it: scores, device and dtype, mode, copies in float64."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..core.devices import holds_float64, where_float64_is
from ..errors import ModelError
from .accepted_models import check_model, require_shapes
from .advice import explain_forward_errors
from .casts import following_casts, let_casts_follow
from .counted_weights import find_masks
from .named_inputs import arguments_of, map_tensors
from .named_scores import End, Ends, read_outputs
from .score_outputs import OutputsError, rows_of_scores, tensor_of_scores
from .whole_tensors import are_finite, hold_nan

_COMPILED = "_compiled_call_impl"
"""Where `net.compile()` leaves what a call of the net runs."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def call_net(net: Any, x: Any) -> Any:
    """What a net, or a method of one, returns for x, which stays as it is. Every pass goes here or
    by `call_with`.
    """
    with (
        explain_forward_errors(x),
        following_casts(net),
        _uncompiled(getattr(net, "__self__", net)),
    ):
        # The net may overwrite its inputs: it gets copies, through which derivatives go. They cost
        # 2 of 600 microseconds in a step of training on 100 digits.
        places, names = arguments_of(net, map_tensors(Tensor.clone, x))
        return read_outputs(net, lambda: net(*places, **names))


@contextmanager
def _uncompiled(net: nn.Module) -> Iterator[None]:
    """Run a net as it is written, also where `net.compile()` has compiled it or a part in place."""
    parts = [vars(module) for module in net.modules()]
    compiled = [(part, part.pop(_COMPILED)) for part in parts if _COMPILED in part]
    try:
        yield
    finally:
        for part, call in compiled:
            part[_COMPILED] = call


def scores(model: nn.Module, x: Any) -> Tensor:
    """The model's outputs on a batch as shape (N, C) where float64 is; C = 1 for a binary net."""
    return where_float64_is(rows_of_scores(call_net(model, x), len(x)))


def call_with(model: nn.Module, tensors: Mapping[str, Tensor], x: Any) -> Tensor:
    """The scores of a net, as it shapes them, with tensors in place of parameters and buffers."""
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    new = {id(named[name]): tensor for name, tensor in tensors.items()}
    # Every place of a tied weight once: torch's own `tie_weights` exchanges the weights of a module
    # with several names once for each, and puts the exchanged ones back at the end.
    places = {
        f"{path}.{name}" if path else name: new[id(old)]
        for path, module in model.named_modules()
        for own in (module._parameters, module._buffers)
        for name, old in own.items()
        if id(old) in new
    }
    dtype = next((t.dtype for t in tensors.values() if t.is_floating_point()), None)
    given = arguments_of(model, map_tensors(Tensor.clone, x), dtype)
    call = partial(torch.func.functional_call, model, places, *given, tie_weights=False)
    # What hooks and forwards write, such as the `weight` of nn.utils.weight_norm, was made of the
    # tensors given here: the net gets back what it had.
    written = [(vars(module), dict(vars(module))) for module in model.modules()]
    try:
        with following_casts(model, dtype), _uncompiled(model):
            found = read_outputs(model, call)
    finally:
        for attributes, before in written:
            attributes.clear()
            attributes.update(before)
    return tensor_of_scores(found, None if isinstance(x, tuple) else len(x))


def count_outputs(model: nn.Module, x: Any) -> int:
    """The number of outputs of a net."""
    return _score_two(model, x).shape[1]


def require_differentiable(model: nn.Module, x: Any) -> int:
    """The number of outputs of a net, which are seen to have derivatives in its parameters."""
    with torch.enable_grad():
        outputs = _score_two(model, x)
    if not outputs.requires_grad and any(p.requires_grad for p in model.parameters()):
        raise ModelError(
            "The model's outputs have no derivative in its parameters. Remove .detach(), .data,"
            " torch.no_grad() and numpy from its forward."
        )
    return outputs.shape[1]


def _score_two(model: nn.Module, x: Any) -> Tensor:
    """The scores of two samples: with batch statistics a net has none of one."""
    outputs = scores(model, x[:2])
    require_scores_before_sigmoid(model, x[:2], outputs)
    return outputs


def require_scores_before_sigmoid(model: nn.Module, x: Any, found: Tensor) -> None:
    """Raise OutputsError where the only scores, `found` for x, are probabilities by a net's end."""
    if found.ndim not in (1, 2) or found[0].numel() != 1 or not are_probabilities(found):
        return
    end, sigmoids = find_end(model, x)
    if end.place >= 0:
        said = "log odds: what goes into the sigmoid in which the net ends"
        raise OutputsError(
            "The model ends in a sigmoid, and the sign of a probability is no decision. Let forward"
            " return what goes into it.",
            lambda _: {"sigmoid": (end.place, sigmoids), "said": said},
        )
    if end.kind in ("sigmoid", "softmax"):
        require_log_odds(f"the net ends in a {end.kind}")


def require_log_odds(seen: str) -> None:
    """Raise OutputsError for a net whose scores, one each, are `seen` to be probabilities."""
    said = f"log odds of the net's outputs, which are probabilities: {seen}"
    raise OutputsError(
        f"These scores are probabilities, whose sign is no decision: {seen}. Let forward return the"
        " scores before them.",
        lambda _: {"as_log_odds": True, "said": said},
    )


def are_probabilities(found: Tensor) -> bool:
    """Whether all numbers lie in [0, 1]."""
    return bool(((found >= 0) & (found <= 1)).all())


def find_end(model: nn.Module, x: Any) -> tuple[End, int]:
    """What a net computes its scores of x by in the end, and how many sigmoids it has in all."""
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        with torch.no_grad(), torch.random.fork_rng(), Ends() as seen:
            return seen.of(call_with(model, kept, x)), seen.sigmoids
    # The net has just been scored: where it fails now, its code bears no watching.
    except Exception:
        return End(), 0


def device_and_dtype(model: nn.Module) -> tuple[torch.device, torch.dtype]:
    """The device and the floating dtype that the model computes with. Raises ModelError."""
    parameters = list(check_model(model).parameters())
    if not parameters:
        raise ModelError(
            "The model has no parameters, so its margin has no normalization. Layers in a Python"
            " list belong into nn.ModuleList."
        )
    require_shapes(model)
    floating = [p for p in parameters if p.is_floating_point()]
    return parameters[0].device, floating[0].dtype if floating else torch.get_default_dtype()


def able_to_float64(model: nn.Module) -> nn.Module:
    """The model itself, or a copy on the CPU of one whose device has no float64."""
    device, _ = device_and_dtype(model)
    return model if holds_float64(device) else copy.deepcopy(model).cpu()


def float64_copy(model: nn.Module) -> nn.Module:
    """A copy of the model in float64, casts included, and evaluation mode, to certify."""
    model = check_model(model)
    able = able_to_float64(model)
    require_finite(model)
    twin = (copy_model(model) if able is model else able).double().eval()
    for module in twin.modules():
        # They change gradients, and what is proved by gradients with them.
        module._backward_hooks.clear()
        module._backward_pre_hooks.clear()
    let_casts_follow(twin)
    for weight, mask in find_masks(twin):
        weight.data.mul_(mask)  # so that norms see the 0 that it is multiplied by
    # Channels last, quicker for float32 convolutions, is the slower layout in float64.
    twin.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return twin


def copy_model(model: nn.Module) -> nn.Module:
    """A copy of a model with all that it holds. Raises ModelError where there can be none."""
    # Tensors that a module computed from its parameters, as `nn.utils.weight_norm` keeps them, are
    # copied by value: with their graph they cannot be, and the next forward pass makes them anew.
    computed = {
        id(value): value.detach().clone()
        for module in model.modules()
        for value in vars(module).values()
        if isinstance(value, Tensor) and not value.is_leaf
    }
    make: Any = nn.UninitializedBuffer  # torch copies lazy parameters, but no lazy buffers
    lazy = {id(b): make(device=b.device, dtype=b.dtype) for b in model.buffers() if is_lazy(b)}
    try:
        return copy.deepcopy(model, computed | lazy)
    except Exception as error:  # modules are the caller's code, and may raise anything
        raise ModelError(
            f"The model cannot be copied: {type(error).__name__}: {error}. Keep what copy.deepcopy"
            " refuses (files, locks, generators) outside of it."
        ) from error


@contextmanager
def in_mode(model: nn.Module, *, training: bool) -> Any:
    """Set every module to training or evaluation mode within, and back to its own afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.train(training)
    try:
        yield
    finally:
        for module, own in modes:
            object.__setattr__(module, "training", own)  # a module's own takes ten times as long


def require_finite(model: nn.Module) -> None:
    """Raise ModelError for parameters that are NaN or infinite, and for buffers that are NaN."""
    for name, parameter in model.named_parameters():
        if not are_finite(parameter.detach()):
            raise ModelError(
                f"Parameter {name!r} holds NaN or infinite values. Load an earlier checkpoint."
            )
    # Buffers may be infinite: masks of attention are so on purpose.
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point() and hold_nan(buffer):
            raise ModelError(f"Buffer {name!r} holds NaN. Load an earlier checkpoint.")


def with_gradients(function: _Function) -> _Function:
    """Let a public function differentiate where it is called under no_grad or inference_mode."""
    # To leave inference mode switches gradients on as well.
    return torch.inference_mode(False)(function)
