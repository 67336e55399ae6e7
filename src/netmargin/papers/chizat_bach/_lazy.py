"""The lazy regime: nets whose neurons hardly move approach the tangent margin first."""

from typing import Any

import numpy as np

from ...core.matrices import as_array, binary_data, evaluation_inputs
from ...errors import DataError
from ...solvers import KernelSolution, kernel_max_margin


def tangent_max_margin(positions: Any, X: Any, y: Any, *, bias: bool = True) -> KernelSolution:
    """The largest margin of movements of the neurons in the tangent plane, mean_j |delta_j|^2 <= 1.

    A hard margin with the kernel (1/m) sum_j <grad phi(w_j, x), grad phi(w_j, x')>, phi(w, x) = b
    relu(a . x~), rows w_j = (a_j, b_j). Chizat and Bach 2020, Section 7 and Figure 3; Lyu and Li
    2019, Section 5.
    """
    data, w = binary_data(X, y, bias=bias), _read_neurons(positions)
    return kernel_max_margin(_tangent_kernel(w, data.Z, data.Z), data.y)


def tangent_values(
    solution: KernelSolution, positions: Any, X: Any, others: Any, *, bias: bool = True
) -> np.ndarray:
    """Values (N,) at `others` (N, d) of the function that `tangent_max_margin` found on X."""
    w = _read_neurons(positions)
    Z, samples = (evaluation_inputs(x, w.shape[1] - 1, bias=bias) for x in (others, X))
    return solution.decision_function(_tangent_kernel(w, Z, samples))


def _tangent_kernel(w: np.ndarray, Z: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The mean over neurons of products of gradients, (N, n)."""
    (z, active), (z_, active_) = _activate(w, Z), _activate(w, others)
    products: np.ndarray = (active * w[:, -1] ** 2) @ active_.T * (Z @ others.T) + z @ z_.T
    return products / len(w)


def tangent_margin(positions: Any, moved: Any, X: Any, y: Any, *, bias: bool = True) -> float:
    """The margin of a movement of the neurons in the tangent plane, over sqrt(mean_j |delta_j|^2).

    At most `tangent_max_margin`. Chizat and Bach 2020, Section 7 and Figure 3.
    """
    data, w = binary_data(X, y, bias=bias), _read_neurons(positions)
    delta = _read_neurons(moved) - w
    # The size of a movement is a mean over neurons, as the mass of a net is.
    size = np.sqrt((delta**2).sum(1).mean())
    if not size > 0:
        raise DataError(
            "No neuron has moved, so there is no direction to measure. Take a later snapshot."
        )
    z, active = _activate(w, data.Z)
    outputs = (active * (data.Z @ delta[:, :-1].T)) @ w[:, -1] + z @ delta[:, -1]
    return float((data.y * outputs).min()) / (len(w) * float(size))


def _activate(w: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """relu(a . x~) and its slope, (n, m)."""
    z = np.maximum(Z @ w[:, :-1].T, 0.0)
    return z, 1.0 * (z > 0)


def _read_neurons(positions: Any) -> np.ndarray:
    """Neurons as a float64 array of shape (m, D + 1). Raises DataError."""
    w = as_array(positions, "positions").copy()
    if w.ndim != 2 or not np.isfinite(w).all():
        expected = "a finite array of shape (m, D + 1)"
        raise DataError(f"positions must be {expected}; got shape {w.shape}")
    return w
