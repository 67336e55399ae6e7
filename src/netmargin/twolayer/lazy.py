"""The lazy regime: nets whose neurons hardly move are linear in their movement, and approach the
max margin of the tangent kernel first.
"""

import numpy as np

from ..core.matrices import SolverData, as_array, binary_data
from ..errors import DataError
from ..solvers.kernel import KernelSolution, kernel_max_margin


def tangent_max_margin(
    positions, X, y, *, bias: bool = True, power: int = 1, tol: float = 1e-6
) -> KernelSolution:
    """max of min_n y_n (1/m) sum_j <grad phi(w_j, x_n), delta_j> over movements of the neurons with
    mean_j |delta_j|^2 <= 1.

    What large nets with small steps maximize before they leave their tangent plane: a hard margin
    with the kernel (1/m) sum_j <grad phi(w_j, x), grad phi(w_j, x')>, phi(w, x) = b relu(a .
    x~)^power.

    positions : (m, D + 1), rows w_j = (a_j, b_j), such as `runs.snapshots[0].positions(0)`; for
        power 2 only the a_j move. Other parameters as for `kernel_max_margin`. Raises DataError.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]
    >>> options = {"width": 400, "steps": 300, "scale": 30.0, "paired": True, "rate": lambda t: np.full(len(t), 0.01 / 30)}
    >>> runs = nm.twolayer.train_both_layers(X, y, snapshots=[0], progress=False, **options)
    >>> start, end = (snapshot.positions(0) for snapshot in runs.snapshots)
    >>> bool(nm.twolayer.tangent_margin(start, end, X, y) > 0.95 * nm.twolayer.tangent_max_margin(start, X, y).margin)
    True

    Source: Chizat and Bach 2020, Section 7 and Figure 3; Lyu and Li 2019, Section 5.
    """
    data, w = binary_data(X, y, bias=bias), _neurons(positions)
    gradients = _outer_gradients(w, data, power)
    return kernel_max_margin(sum(g @ g.T for g in gradients) / len(w), data.y, tol=tol)


def tangent_margin(positions, moved, X, y, *, bias: bool = True, power: int = 1) -> float:
    """The margin in the tangent plane at `positions` of the movement to `moved`, divided by its
    size: at most `tangent_max_margin`.

    moved : (m, D + 1), the same neurons later. Raises DataError, also where nothing moved.
    """
    data, w, delta = (
        binary_data(X, y, bias=bias),
        _neurons(positions),
        _neurons(moved) - _neurons(positions),
    )
    if power == 2:
        delta[:, -1] = 0.0
    size = np.sqrt((delta**2).sum(1).mean())
    if not size > 0:
        raise DataError(
            "No neuron has moved, so there is no direction to measure. Take a later snapshot."
        )
    z = np.maximum(data.Z @ w[:, :-1].T, 0.0)
    slope = (z > 0) if power == 1 else 2 * z
    outputs = (slope * (data.Z @ delta[:, :-1].T)) @ w[:, -1] + z**power @ delta[:, -1]
    return float((data.y * outputs).min()) / (len(w) * float(size))


def _outer_gradients(w: np.ndarray, data: SolverData, power: int):
    """Features (n, columns) whose inner products sum to m times the kernel."""
    z = np.maximum(data.Z @ w[:, :-1].T, 0.0)
    slope = (z > 0) * w[:, -1] if power == 1 else 2 * z * w[:, -1]
    for column in data.Z.T:
        yield slope * column[:, None]
    if power == 1:
        yield z


def _neurons(positions) -> np.ndarray:
    w = as_array(positions, "positions").copy()
    if w.ndim != 2 or not np.isfinite(w).all():
        raise DataError(
            f"positions must be a finite array of shape (m, D + 1); got shape {w.shape}"
        )
    return w
