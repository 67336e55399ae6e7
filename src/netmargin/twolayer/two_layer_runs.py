"""Records."""

import math
from dataclasses import dataclass

import numpy as np

from ..core.records import short_repr
from ..errors import DataError
from ..solvers.solution import ReLUMeasure
from .run import Run

_LARGEST_LOG_MASS = 600.0
"""Neurons are given back while their mass is below e^600, about 1e260: float64 ends at e^709, and
whoever uses them multiplies them by inputs and sums them up.
"""


@dataclass(frozen=True)
class Snapshot:
    """All R runs at one time.

    measures : the nets as probability measures on the sphere, neurons in their order, vanished ones
        with weight 0; their `decision_function` on a grid draws the classifier.
    log_masses : (R,), natural logs of mean_j |w_j|^2.
    duals : per run (n,), weights of the samples with sum 1, for `slackness`: the slopes of the
        smooth margin, averaged over the steps since the record before (finite steps throw them
        about; at the start, and with `resample`, as they are then).
    """

    time: int
    measures: list[ReLUMeasure]
    log_masses: np.ndarray
    duals: list[np.ndarray]

    __repr__ = short_repr

    def positions(self, run: int) -> np.ndarray:
        """The neurons w_j = (a_j, b_j) themselves, (m, D + 1). Raises DataError where their squares
        are beyond float64.
        """
        measure, log_mass = self.measures[run], self.log_masses[run]
        if log_mass > _LARGEST_LOG_MASS:
            raise DataError(
                f"The neurons of run {run} have a mass of e^{log_mass:.0f}, beyond float64. Take an"
                " earlier snapshot."
            )
        sizes = np.sqrt(math.exp(log_mass) * len(measure.weights) * measure.weights)[:, None]
        return (
            sizes * measure.atoms
            if measure.power == 1
            else np.column_stack([sizes * measure.atoms[:, :-1], measure.atoms[:, -1]])
        )


@dataclass(frozen=True)
class TwoLayerRuns:
    """Training runs side by side; R runs, K records, the first at the start.

    times : (K,), steps.
    margins : (K, R), the margin over the mass, which is at most gamma_1: min_n y_n h(x_n) / (mean_j
        |w_j|^2), for power 2 without the fixed output weights.
    log_masses : (K, R), natural logs of that mass. A run that reached its target keeps its values.
    snapshots : the nets at the times asked for, and at the end.
    steps : (R,), how many each took.
    halvings : (R,), how often its step size had to be halved.
    """

    times: np.ndarray
    margins: np.ndarray
    log_masses: np.ndarray
    snapshots: list[Snapshot]
    steps: np.ndarray
    halvings: np.ndarray

    __repr__ = short_repr

    @property
    def best(self) -> np.ndarray:
        """(R,), the largest recorded margins."""
        return self.margins.max(0)

    @property
    def measures(self) -> list[ReLUMeasure]:
        """The nets at the end."""
        return self.snapshots[-1].measures


def take_snapshot(runs: list[Run], time: int, bias: bool) -> Snapshot:
    return Snapshot(
        time,
        [run.as_measure(bias) for run in runs],
        np.array([run.log_mass for run in runs]),
        [run.dual for run in runs],
    )
