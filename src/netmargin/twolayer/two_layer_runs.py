"""Records of training both layers: the nets at chosen times, and the margins over time."""

import math
from dataclasses import dataclass

import numpy as np

from ..core.records import Certainty, Table, number
from ..core.saved_records import Record
from ..errors import DataError
from ..result import Status
from ..solvers.solution import ReLUMeasure
from .run import Run

_LARGEST_LOG_MASS = 600.0
"""Neurons are given back while their mass is below e^600, about 1e260: float64 ends at e^709, and
whoever uses them multiplies them by inputs and sums them up.
"""
_SHOWN = 20
"""Runs that are printed, a screen."""


@dataclass(frozen=True)
class Snapshot(Record):
    """All R runs at one time."""

    time: int  #: The number of steps taken
    #: The nets as probability measures on the sphere, neurons in their order, vanished ones with
    #: weight 0; their `decision_function` on a grid draws the classifier
    measures: list[ReLUMeasure]
    log_masses: np.ndarray  #: (R,): Natural logs of mean_j |w_j|^2
    #: (n,): Weights of the samples with sum 1, for `slackness`: the slopes of the smooth margin,
    #: averaged over the steps since the record before (finite steps throw them about; at the start,
    #: and with `resample`, as they are then)
    duals: list[np.ndarray]

    def positions(self, run: int) -> np.ndarray:
        """The neurons w_j = (a_j, b_j) of one run, shape (m, D + 1), float64.

        Raises DataError where their squares are beyond float64.
        """
        measure, log_mass = self.measures[run], self.log_masses[run]
        if log_mass > _LARGEST_LOG_MASS:
            raise DataError(
                f"a mass of e^{log_mass:.0f} is beyond float64: take an earlier snapshot"
            )
        sizes = np.sqrt(math.exp(log_mass) * len(measure.weights) * measure.weights)[:, None]
        moving = measure.atoms.shape[1] - (measure.power == 2)  # without fixed output weights
        return np.column_stack([sizes * measure.atoms[:, :moving], measure.atoms[:, moving:]])


@dataclass(frozen=True)
class TwoLayerRuns(Record):
    """Training runs side by side: R runs, K records, the first at the start."""

    times: np.ndarray  #: (K,): Steps taken at each record
    #: (K, R): The margin over the mass, min_n y_n h(x_n) / (mean_j |w_j|^2), for power 2 without
    #: the fixed output weights; at most gamma_1
    margins: np.ndarray
    log_masses: np.ndarray  #: (K, R): Natural logs of that mass
    snapshots: list[Snapshot]  #: The nets at the times asked for, and at the end
    halvings: np.ndarray  #: (R,): How often the step sizes of each run had to be halved
    status: Status  #: FINISHED, or INTERRUPTED after the last record

    @property
    def best(self) -> np.ndarray:
        """The largest recorded margin of each run, shape (R,)."""
        best: np.ndarray = self.margins.max(0)
        return best

    @property
    def measures(self) -> list[ReLUMeasure]:
        """The nets at the end as probability measures, one for each run."""
        return self.snapshots[-1].measures

    def _table(self) -> Table:
        """The margins of every run, at most gamma_1."""
        numbers = zip(self.margins[-1], self.best, self.log_masses[-1], strict=True)
        rows = [(str(run), *map(number, found)) for run, found in enumerate(numbers)]
        measured = [(head, Certainty.MEASURED) for head in ("margin at the end", "best")]
        title = f"Training of both layers, {self.times[-1]:,} steps"
        more = [f"and {len(rows) - _SHOWN:,} more runs: see margins"] * (len(rows) > _SHOWN)
        notes = [*more, str(self.status)]
        return Table(title, rows[:_SHOWN], ["run", *measured, "log mass"], notes)


def take_snapshot(runs: list[Run], time: int, bias: bool) -> Snapshot:
    """Record all runs as they are at this time."""
    return Snapshot(
        time,
        [run.as_measure(bias) for run in runs],
        np.array([run.log_mass for run in runs]),
        [run.dual for run in runs],
    )
