"""What a measure of neurons attains in exact arithmetic, rounded against it."""

import numpy as np

from ..core.matrices import SolverData, split_lengths
from .extended import round_down, round_up
from .hull import normalize_rows
from .solution import ReLUMeasure

_EXTENDED = 100_000_000
"""Samples times neurons times dimensions up to which sums are in the longest floats: a second."""
_ROUNDED = 1e-15
"""Room for the few roundings of a result to float64."""


def attained_margin(measure: ReLUMeasure, data: SolverData) -> float:
    """At most the least y_n f(z_n) over the mass of a measure of neurons."""
    rows, exponents = normalize_rows(data.Z)
    outputs, hidden, mass = _evaluate(measure, rows)
    values = (data.y * outputs - hidden).astype(np.longdouble)
    least = np.ldexp(values, measure.power * exponents).min() / mass
    return round_down(least - _ROUNDED * abs(least))


def attained_hinge_objective(measure: ReLUMeasure, data: SolverData, costs: np.ndarray) -> float:
    """At least half the mass plus sum_n costs_n max(0, 1 - y_n f(z_n))."""
    outputs, hidden, mass = _evaluate(measure, data.Z)
    hinges = np.maximum(1 - data.y * outputs + hidden, 0)
    return float(0.5 * mass + costs @ hinges) * (1 + (len(data) + 8) * _ROUNDED)


def attained_logistic_objective(measure: ReLUMeasure, data: SolverData, price: float) -> float:
    """At least the mean logistic loss plus the price of the mass."""
    outputs, hidden, mass = _evaluate(measure, data.Z)
    loss = np.logaddexp(0, hidden - data.y * outputs).mean()
    return float(loss + price * mass) * (1 + (len(data) + 8) * _ROUNDED)


def attained_squared_objective(
    measure: ReLUMeasure, data: SolverData, weights: np.ndarray, price: float
) -> float:
    """At least half the weighted mean squared residual plus half the price of the mass."""
    outputs, hidden, mass = _evaluate(measure, data.Z)
    squares = (np.abs(outputs - data.y) + hidden) ** 2
    return float((weights @ squares / len(data) + price * mass) / 2) * (
        1 + (len(data) + 8) * _ROUNDED
    )


def attained_residual(measure: ReLUMeasure, Z: np.ndarray, y: np.ndarray) -> float:
    """At least the largest |f(z_n) - y_n|."""
    outputs, hidden, _ = _evaluate(measure, Z)
    largest = (np.abs(outputs - y) + hidden).max()
    return round_up(largest + _ROUNDED * largest)


def _evaluate(measure: ReLUMeasure, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The values (n,) at Z (n, D), the most by which they are off, and the mass."""
    (n, D), k, power = Z.shape, len(measure.weights), measure.power
    activation = measure.activation
    dtype = np.longdouble if n * D * k <= _EXTENDED else np.float64
    atoms: np.ndarray = measure.atoms.astype(dtype)
    weights: np.ndarray = measure.weights.astype(dtype)
    squares = np.square(atoms[:, :-1]).sum(1)
    outer = weights * atoms[:, -1]
    outputs = activation.feature(Z.astype(dtype) @ atoms[:, :-1].T) @ outer
    size = activation.largest * (squares ** (0.5 * power) @ np.abs(outer))
    # A product is off by D ulps of its absolute terms, twice that if squared, the sum by k.
    ulps = (power * D + k + 16) * np.finfo(dtype).eps
    # Lengths are 1 to rounding only: of (a, b), or of a where b is a sign.
    mass = weights @ (squares + atoms[:, -1] ** 2 if power == 1 else squares)
    return outputs, ulps * split_lengths(Z)[0] ** power * size, mass
