"""Losses as callers give them - names, torch's criteria, their own - read as a `Loss`."""

from typing import Any

from torch import Tensor, nn

from ..core.arguments import check_instance, suggest_word
from ..errors import ArgumentError
from .families import BY_NAME, CrossEntropy, Logistic
from .loss import Loss

TESTED_CLASSES = {type(loss) for loss in BY_NAME.values()}
"""Our own tests check their derivatives and inverses, so no call has to check them again."""
_OF_TORCH: dict[type[Any], type[CrossEntropy | Logistic]] = {
    nn.CrossEntropyLoss: CrossEntropy,
    nn.BCEWithLogitsLoss: Logistic,
    nn.SoftMarginLoss: Logistic,
}
"""The losses of torch that are one of ours; labels are encoded by us, as signs or class indices."""
_WANTED = (
    f"a loss: None, one of the names {', '.join(BY_NAME)}, a netmargin.losses.Loss, or"
    " torch.nn.CrossEntropyLoss()"
)


def as_loss(loss: Any) -> Loss:
    """The loss that a caller means; every public function reads its argument `loss` by this one.

    Parameters
    ----------
    loss : None, str, Loss or torch.nn.Module
        None for the cross-entropy, a name from `BY_NAME`, a `Loss`, or torch's CrossEntropyLoss
        with its default options; for nets with one output BCEWithLogitsLoss or SoftMarginLoss too.

    Returns
    -------
    Loss
        A loss whose derivative and inverse agree with its values at a few margins.

    Raises
    ------
    ArgumentError
        For anything else; for class weights or label smoothing, which change what a margin is; and
        for a loss whose derivative or inverse is wrong, with the margin where that is seen.

    Examples
    --------
    >>> import torch
    >>> from netmargin.losses import as_loss
    >>> as_loss("exponential"), as_loss(None), as_loss(torch.nn.CrossEntropyLoss())
    (<Exponential exponential>, <CrossEntropy cross-entropy>, <CrossEntropy cross-entropy>)

    Source: Lyu and Li 2019, assumption (B3), which the numerical check looks at.
    """
    if loss is None:
        return CrossEntropy()
    if isinstance(loss, str):
        if loss not in BY_NAME:
            said = f"loss must be {_WANTED}; got {loss!r}. {suggest_word(loss, BY_NAME)}"
            raise ArgumentError(said.rstrip())
        return BY_NAME[loss]
    if type(loss) in _OF_TORCH:
        return _read_torch_loss(loss)
    if isinstance(loss, type) and loss in _OF_TORCH:
        raise ArgumentError(
            f"loss must be {_WANTED}; got the class {loss.__name__}. Write {loss.__name__}()."
        )
    found = check_instance("loss", loss, Loss, _WANTED)
    # By type, not isinstance: a subclass may override what our tests have checked.
    if type(found) not in TESTED_CLASSES and found.flaw:
        raise ArgumentError(f"loss {found.name!r} contradicts itself: {found.flaw}")
    return found


def _read_torch_loss(loss: nn.Module) -> Loss:
    """Our counterpart of a loss of torch; ArgumentError where its options change the margin."""
    given, usual = (vars(x) | x._buffers for x in (loss, type(loss)()))  # weights are buffers
    # ignore_index drops samples, and a margin is at stake for each of them; the reduction only
    # scales the loss.
    for name in ("weight", "pos_weight", "label_smoothing", "ignore_index", "reduction"):
        value: Any = given.get(name)
        held = isinstance(value, Tensor)
        if held or value != usual.get(name):
            shown = f"a tensor of {value.numel()} weights" if held else repr(value)
            raise ArgumentError(
                f"loss: {type(loss).__name__} with {name}={shown} is not the loss of a margin that"
                f" this library knows. Pass {type(loss).__name__}() with its default options."
            )
    found = _OF_TORCH[type(loss)]()
    if not isinstance(loss, nn.CrossEntropyLoss):
        found.binary_only = type(loss).__name__
    return found
