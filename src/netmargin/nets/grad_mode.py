"""Derivatives whatever the caller switched off."""

from collections.abc import Callable
from typing import TypeVar

import torch

_Function = TypeVar("_Function", bound=Callable)


def with_gradients(function: _Function) -> _Function:
    """Let a public function differentiate where it is called under no_grad or inference_mode.

    Nobody who asks for a certificate or a flow there wants one without gradients.

    Examples
    --------
    >>> w = torch.ones(1, requires_grad=True)
    >>> with torch.inference_mode():
    ...     with_gradients(lambda: (2 * w).requires_grad)()
    True
    """
    # To leave inference mode switches gradients on as well.
    return torch.inference_mode(False)(function)
