"""A two-layer net of several outputs that a solver found, and how near it is to the best."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from ..core.matrices import evaluation_inputs
from ..errors import DataError
from ..models import ReLUPower
from ..result import Bracket, RegularizedSolution
from .neurons.activations import Activation
from .solution import build_net


@dataclass(frozen=True, kw_only=True)
class TwoLayerFit(RegularizedSolution):
    """A two-layer net f(x) = sum_j outputs_j phi(neurons_j . x~), with how near it is to the best.

    `dual`, (n, R), are weights of the samples' margins over their R = C rivals, 0 for the own
    class; R = 1 for two classes, and K for targets. `lower_bound` is loose: few fits are certified.
    """

    #: (k, D): First-layer weights of length 1; x~ is x, or (x, 1) with a bias, so D = d or d + 1
    neurons: np.ndarray
    outputs: np.ndarray  #: (k, K): Output weights; K = 1 for two classes and for one target
    bias: bool  #: Whether neurons have a bias
    slope: float  #: The activation phi(t) is t^power for t >= 0, (slope t)^power below
    power: int  #: Of the activation
    loss: str  #: What was minimized, as in `fit_two_layer_net`
    classes: np.ndarray | None  #: (C,): In the order of the outputs; None for targets
    #: The least objective of any net if the search has missed no neuron; it proves nothing
    local_bound: float
    looked: str  #: How hard was searched for a better neuron
    #: Of classes: the least margin over ||theta||^2 of the net with balanced layers, the
    #: `normalized_margin` of `netmargin.measure`; for power 2 over sum_j |outputs_j|
    margin: float | None
    #: Which samples contradict each other, or what to do where no net keeps the constraints
    note: str = ""

    @property
    def local_gap(self) -> float:
        """The relative gap if the search has missed no neuron; it proves nothing."""
        return Bracket(min(self.local_bound, self.objective), self.objective).gap

    @property
    def norm(self) -> float:
        """The variation norm sum_j |outputs_j|; for power 1 half of ||theta||^2."""
        return float(np.linalg.norm(self.outputs, axis=1).sum())

    @property
    def upper_bound(self) -> float | None:
        """What `lower_bound` proves of the margin, which no net exceeds; of a hard margin alone."""
        if self.loss != "hard_margin":
            return None
        return per_square(1.0, self.lower_bound, self.power) if self.lower_bound > 0 else np.inf

    @property
    def support(self) -> np.ndarray:
        """The indices of the samples with a dual weight other than 0, ascending."""
        return np.flatnonzero(self.dual.any(1))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores at X (N, d): (N,) for one output, positive for classes[1]; else (N, K)."""
        Z = evaluation_inputs(X, self.neurons.shape[1], bias=self.bias)
        features = Activation(self.slope, self.power).feature(Z @ self.neurons.T)
        F: np.ndarray = features @ self.outputs
        return F[:, 0] if F.shape[1] == 1 else F

    def predict(self, X: Any) -> np.ndarray:
        """The class (N,) of the largest score at X (N, d), or the values of targets."""
        scores = self.decision_function(X)
        if self.classes is None:
            return scores
        return self.classes.take(scores > 0 if scores.ndim == 1 else scores.argmax(1))

    def to_network(self) -> nn.Sequential:
        """The same function as a float64 net Linear - activation - Linear with K outputs, whose
        layers have one norm (power 1). Raises DataError for a net without neurons.
        """
        if not len(self.neurons):
            raise DataError("The solution has no neurons (f = 0), so there is no net to build.")
        sizes = np.sqrt(np.linalg.norm(self.outputs, axis=1, keepdims=True))
        inner, outer = sizes * self.neurons, self.outputs / sizes**self.power
        # max(t, 0)^2 is the square of the leaky ReLU only where that is nowhere negative.
        slope = self.slope if self.power == 1 else -abs(self.slope)
        bend = nn.LeakyReLU(slope) if slope else nn.ReLU()
        return build_net(inner, outer, self.bias, bend, *[ReLUPower(2)] * (self.power - 1))


def per_square(margin: float, norm: float, power: int) -> float:
    """A margin over ||theta||^2, which is twice the norm where both layers share the neurons."""
    return margin / norm / (2 if power == 1 else 1)
