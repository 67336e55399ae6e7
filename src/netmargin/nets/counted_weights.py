"""Which weights count: pruned ones as 0, and in derivatives those that require gradients."""

from collections.abc import Iterator

from torch import Tensor, nn

from ..errors import ModelError


def effective_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The parameters of a net by name, detached, with 0 where torch.nn.utils.prune masks them."""
    masks = {id(parameter): mask for parameter, mask in find_masks(model)}
    for name, parameter in model.named_parameters():
        weight = parameter.detach()
        yield name, weight * masks[id(parameter)] if id(parameter) in masks else weight


def find_masks(model: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    """The pruned parameters of a net, each with its mask."""
    for module in model.modules():
        for name, mask in module._buffers.items():
            whole = module._parameters.get(f"{name.removesuffix('_mask')}_orig")
            if name.endswith("_mask") and mask is not None and whole is not None:
                yield whole, mask


def require_trained_weights(model: nn.Module, lacking: str) -> None:
    """Raise ModelError where all parameters are frozen, so that there is what is `lacking`."""
    if not any(p.requires_grad for p in model.parameters()):
        raise ModelError(
            f"No parameter of the model requires a gradient, so there is {lacking}. Unfreeze some:"
            " model.requires_grad_(True)."
        )


def hold_frozen_weights(twin: nn.Module, lacking: str) -> list[str]:
    """Make frozen parameters of a copy buffers: theta is what is trained; return their names."""
    require_trained_weights(twin, lacking)
    frozen = [name for name, p in twin.named_parameters() if not p.requires_grad]
    for module in twin.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None and not parameter.requires_grad:
                del module._parameters[name]
                module.register_buffer(name, parameter.detach())
    return frozen
