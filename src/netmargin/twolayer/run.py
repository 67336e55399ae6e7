"""One run of training both layers: its neurons, and what is known of them."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..core.caller import warn_caller
from ..core.matrices import SolverData
from ..core.saved_records import Record
from ..losses import Loss
from ..solvers.solution import ReLUMeasure
from .smooth_margin import sample_weights

_LARGEST_LOG_GROWTH = 80.0
"""Beyond a growth of e^80, about 1e35, only the least margin has a weight; float32 ends at e^88."""


def output_growth(log_scale: Any) -> Any:
    """The factor by which outputs exceed those of neurons of size 1, capped at e^80."""
    return np.exp(np.minimum(2 * log_scale, _LARGEST_LOG_GROWTH))


@dataclass
class Run(Record):
    """One run of training: its neurons, its settings, and its last measurement."""

    index: int  # its place among all runs
    data: SolverData  # inputs (n, D) and labels (n,)
    a: np.ndarray  # (m, D), divided by e^log_scale
    b: np.ndarray  # (m,), likewise
    log_scale: float
    rates: np.ndarray  # step sizes for each time
    power: int  # of the ReLU, 1 or 2
    loss: Loss  # of the smooth margin
    margin: float = math.nan  # over the mass
    log_mass: float = math.nan
    objective: float = math.nan  # the smooth margin F
    q: np.ndarray = field(default_factory=lambda: np.zeros(0))  # margins at e^log_scale = 1
    dual: np.ndarray = field(default_factory=lambda: np.zeros(0))  # shares in the slopes of F
    active: np.ndarray = field(default_factory=lambda: np.zeros(0))  # (n,), whether any neuron is
    halvings: int = 0  # of the step sizes

    def measure(self) -> None:
        """Measure margin, mass, smooth margin and the weights of the samples, in float64."""
        # In torch, as the steps: NumPy's threads and torch's keep each other waiting.
        a, b, Z = (torch.from_numpy(values) for values in (self.a, self.b, self.data.Z))
        mass = (a.square().sum() + (b.square().sum() if self.power == 1 else 0.0)) / len(a)
        outputs = (Z @ a.T).relu_()
        self.active = outputs.any(1).numpy()
        q = torch.from_numpy(self.data.y) * (outputs**self.power @ b) / len(a)
        self.q = q.numpy()
        self.margin = (q.min() / mass).item()
        self.log_mass = torch.log(mass).item() + 2 * self.log_scale
        slopes = sample_weights(-q[None] * output_growth(self.log_scale), self.loss)[0]
        self.dual = (slopes / slopes.sum()).numpy()
        self.objective = math.log(len(q)) - self.loss.log_sum(q * output_growth(self.log_scale))

    def warn_of_lost_samples(self, before: np.ndarray) -> None:
        """Warn where no neuron is active any more on samples on which some were active `before`."""
        lost = int((before & ~self.active).sum())
        # So that |dw| <= |w|: weights of samples sum to at most 1, relu(z)^2 has the slope 2 z.
        rate = 1 / (self.power * self.data.longest**self.power)
        if lost:
            warn_caller(
                f"run {self.index} ends with no neuron active on {lost} of {len(before)} samples:"
                " they score 0, so that the margin is not above 0, and move no neuron. Take smaller"
                f" rates (up to {rate:.2g} no step is longer than the neuron that it moves), or"
                " more neurons."
            )

    def progress_row(self, t: int) -> dict[str, Any]:
        """The last measurement as a progress line shows it."""
        return {
            "epoch": t,
            "log10_mean_loss": -self.objective / math.log(10),
            "accuracy": float((self.q > 0).mean()),
            "q_min": float(self.q.min()),
            "normalized_margin": self.margin,
        }

    def as_measure(self, bias: bool) -> ReLUMeasure:
        """The net as a probability measure on the sphere, neurons in order."""
        moving = np.column_stack([self.a, self.b]) if self.power == 1 else self.a
        sizes = np.linalg.norm(moving, axis=1, keepdims=True)
        atoms = np.divide(moving, sizes, out=np.zeros_like(moving), where=sizes > 0)
        if self.power == 2:
            atoms = np.column_stack([atoms, self.b])
        return ReLUMeasure(
            atoms=atoms, weights=sizes[:, 0] ** 2 / (sizes**2).sum(), bias=bias, power=self.power
        )
