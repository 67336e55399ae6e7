"""The lazy regime, in which nets whose neurons hardly move are linear in their movement.

They approach the max margin of the tangent kernel first.
"""

import numpy as np

from ..core.matrices import SolverData, as_array, binary_data
from ..errors import DataError
from ..solvers import KernelSolution, kernel_max_margin


def tangent_max_margin(
    positions, X, y, *, bias: bool = True, power: int = 1, tol: float = 1e-6
) -> KernelSolution:
    """The largest margin that movements of the neurons reach in the tangent plane of a net.

    max of min_n y_n (1/m) sum_j <grad phi(w_j, x_n), delta_j> over movements with mean_j
    |delta_j|^2 <= 1, phi(w, x) = b relu(a . x~)^power. Large nets with small steps maximize this
    before they leave their tangent plane: a hard margin with the kernel (1/m) sum_j
    <grad phi(w_j, x), grad phi(w_j, x')>.

    Parameters
    ----------
    positions : array_like, shape (m, D + 1)
        Rows w_j = (a_j, b_j), such as `runs.snapshots[0].positions(0)`; for power 2 only the a_j
        move.
    X : array_like, shape (n, d)
        Inputs.
    y : array_like, shape (n,)
        Labels {-1, +1} or {0, 1}.
    bias : bool, default True
        Whether x~ = (x, 1), else x~ = x; D is its dimension.
    power : {1, 2}, default 1
        The power of the ReLU.
    tol : float, default 1e-6
        Relative gap between margin and upper bound up to which the status is OPTIMAL.

    Returns
    -------
    KernelSolution
        The margin and its upper bound, as those of `kernel_max_margin`.

    Raises
    ------
    DataError
        If positions or data have wrong shapes or labels, or are not finite.
    ArgumentError
        If `tol` is out of its range.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1, -1, 1, -1]
    >>> options = {"width": 400, "steps": 300, "scale": 30.0, "paired": True, "progress": False}
    >>> rate = lambda t: np.full(len(t), 0.01 / 30)
    >>> runs = nm.twolayer.train_both_layers(X, y, rate=rate, snapshots=[0], **options)
    >>> start, end = (snapshot.positions(0) for snapshot in runs.snapshots)
    >>> best = nm.twolayer.tangent_max_margin(start, X, y).margin
    >>> bool(nm.twolayer.tangent_margin(start, end, X, y) > 0.95 * best)
    True

    Source: Chizat and Bach 2020, Section 7 and Figure 3; Lyu and Li 2019, Section 5.
    """
    data, w = binary_data(X, y, bias=bias), _read_neurons(positions)
    gradients = _compute_outer_gradients(w, data, power)
    return kernel_max_margin(sum(g @ g.T for g in gradients) / len(w), data.y, tol=tol)


def tangent_margin(positions, moved, X, y, *, bias: bool = True, power: int = 1) -> float:
    """The margin of a movement of the neurons in the tangent plane, divided by its size.

    min_n y_n (1/m) sum_j <grad phi(w_j, x_n), delta_j> / sqrt(mean_j |delta_j|^2) with delta the
    movement from `positions` to `moved`; at most the margin of `tangent_max_margin`.

    Parameters
    ----------
    positions : array_like, shape (m, D + 1)
        Rows w_j = (a_j, b_j), where the tangent plane touches.
    moved : array_like, shape (m, D + 1)
        The same neurons later.
    X : array_like, shape (n, d)
        Inputs.
    y : array_like, shape (n,)
        Labels {-1, +1} or {0, 1}.
    bias : bool, default True
        Whether x~ = (x, 1), else x~ = x; D is its dimension.
    power : {1, 2}, default 1
        The power of the ReLU; for power 2 movements of the b_j are ignored.

    Returns
    -------
    float
        The normalized margin of the movement.

    Raises
    ------
    DataError
        If positions or data have wrong shapes or labels, are not finite, or no neuron has moved.

    Examples
    --------
    A neuron (a, b) = (1, 1) sees the input 1; moving both by the same amount has slope sqrt 2.

    >>> import netmargin as nm
    >>> margin = nm.twolayer.tangent_margin([[1.0, 1.0]], [[1.1, 1.1]], [[1.0]], [1], bias=False)
    >>> round(margin, 6)
    1.414214

    Source: Chizat and Bach 2020, Section 7 and Figure 3.
    """
    data, w, delta = (
        binary_data(X, y, bias=bias),
        _read_neurons(positions),
        _read_neurons(moved) - _read_neurons(positions),
    )
    if power == 2:
        delta[:, -1] = 0.0
    # The size of a movement is a mean over neurons, as the mass of a net is.
    size = np.sqrt((delta**2).sum(1).mean())
    if not size > 0:
        raise DataError(
            "No neuron has moved, so there is no direction to measure. Take a later snapshot."
        )
    z = np.maximum(data.Z @ w[:, :-1].T, 0.0)
    slope = (z > 0) if power == 1 else 2 * z
    outputs = (slope * (data.Z @ delta[:, :-1].T)) @ w[:, -1] + z**power @ delta[:, -1]
    return float((data.y * outputs).min()) / (len(w) * float(size))


def _compute_outer_gradients(w: np.ndarray, data: SolverData, power: int):
    """Features (n, columns) whose inner products sum to m times the kernel.

    They come one coordinate at a time: all together would be n x m x (D + 1) numbers.
    """
    z = np.maximum(data.Z @ w[:, :-1].T, 0.0)
    slope = (z > 0) * w[:, -1] if power == 1 else 2 * z * w[:, -1]
    for column in data.Z.T:
        yield slope * column[:, None]
    if power == 1:
        yield z


def _read_neurons(positions) -> np.ndarray:
    """Neurons as a float64 array of shape (m, D + 1). Raises DataError."""
    w = as_array(positions, "positions").copy()
    if w.ndim != 2 or not np.isfinite(w).all():
        raise DataError(
            f"positions must be a finite array of shape (m, D + 1); got shape {w.shape}"
        )
    return w
