"""The tangent kernel of any net, at its present parameters."""

from typing import Any

import numpy as np
import torch
from torch import nn

from ..core.arguments import check_count
from ..errors import ArgumentError
from ..nets.arrays import as_inputs
from ..nets.counted_weights import hold_frozen_weights
from ..nets.data import Choice, open_model_and_inputs, takes_data
from ..nets.forward_faults import require_no_faults
from ..nets.gradients import SampleGradients, StoredGradients
from ..nets.model import float64_copy, require_differentiable, with_gradients
from ..nets.named_inputs import map_floating


@takes_data
@with_gradients
def empirical_ntk(
    model: nn.Module, X: Any, X2: Any = None, *, output: int = 0, scores: Choice | None = None
) -> np.ndarray:
    """The tangent kernel <grad f(x), grad f(x')> of any net at its present parameters.

    f is one output of the net, in evaluation mode; gradients are taken in float64, over the
    parameters that require gradients, in chunks that fit the memory.

    Parameters
    ----------
    model : nn.Module
        A net with scores of shape (N,), (N, 1) or (N, C).
    X : array_like, shape (n, ...)
        Inputs of the model, or a dict of inputs by name: see docs/inputs.md.
    X2 : array_like, shape (m, ...), or None, default None
        Other inputs; X itself by default.
    output : int, default 0
        Index of the output f, below C.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

    Returns
    -------
    ndarray, shape (n, m), float64
        Inner products of the gradients at each x in X and x' in X2.

    Raises
    ------
    ArgumentError, DataError
        If `output` is no index of an output, inputs are not finite or the model cannot take them.
    ModelError
        If no parameters require gradients, or the model has noise in evaluation mode, samples that
        see each other or weights that are none of its parameters, or cannot be differentiated
        sample by sample.

    Examples
    --------
    >>> import torch
    >>> from netmargin.kernels import empirical_ntk
    >>> linear = torch.nn.Linear(2, 1, bias=False)                        # the gradient is x
    >>> empirical_ntk(linear, [[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])

    Source: Wei et al. 2019, Section 2, at finite width. Beyond the papers.
    """
    model, X = open_model_and_inputs(model, X)
    if X2 is not None:
        _, X2 = open_model_and_inputs(model, X2)
    twin = float64_copy(model)
    output = check_count("output", output, at_least=0)
    hold_frozen_weights(twin, "no tangent kernel")

    def prepare(inputs: Any, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs as the net takes them, and weights (n, C) that pick the one output."""
        x = as_inputs(inputs, name).to(next(twin.parameters()).device)
        x = map_floating(torch.Tensor.double, x)
        require_no_faults(twin, x)
        outputs = require_differentiable(twin, x)
        if output >= outputs:
            raise ArgumentError(
                f"output must be below {outputs}, the number of the model's outputs; got {output}"
            )
        weights = torch.zeros(len(x), outputs, dtype=torch.float64, device=x.device)
        weights[:, output] = 1.0
        return x, weights

    left = prepare(X, "X")
    source = SampleGradients(twin, dict(twin.named_parameters()), left[0])
    right = None if X2 is None else StoredGradients(source, *prepare(X2, "X2"))
    return StoredGradients(source, *left).inner(right).cpu().numpy()
