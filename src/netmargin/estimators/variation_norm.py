"""The infinitely wide two-layer ReLU net as a classifier of scikit-learn."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import norm
from sklearn.utils import check_random_state

from ..core.arguments import check_choice, check_flag
from ..core.deadline import Deadline
from ..errors import ArgumentError
from ..solvers import TwoLayerFit, f1_max_margin, f1_soft_margin, fit_two_layer_net
from .classifier import MaxMarginClassifier

_SEEDS = 2**31
"""Seeds of the search are drawn below this."""
_SEPARATING_COST = 10.0
"""The recommended cost of a sample, in units of that at which it alone is worth a neuron: ten times
that separated all but the contradictions of two moons and of iris.
"""


class SparseNets:
    """What the classifier and the regressor of few neurons share."""

    solutions_: list[Any]

    @property
    def n_neurons_(self) -> int:
        """The number of neurons."""
        net = self.solutions_[0]
        return len(net.neurons if isinstance(net, TwoLayerFit) else net.weights)

    @property
    def local_gap_(self) -> float:
        """The relative gap that local search believes in."""
        return float(self.solutions_[0].local_gap)

    def _read_gap(self, solution: Any) -> Any:
        """The gap that `tol` is about."""
        return solution.local_gap if isinstance(solution, TwoLayerFit) else solution.gap

    def _read_options(self: Any, deadline: Deadline) -> dict[str, Any]:
        """The options of all solvers. Raises ArgumentError for what is no random state."""
        try:
            seed = int(check_random_state(self.random_state).randint(_SEEDS))
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                "random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None;"
                f" got {self.random_state!r}"
            ) from error
        return {
            "bias": self.bias,
            "tol": self.tol,
            "time_limit": deadline.share(1),
            "seed": seed,
            "progress": self.verbose,
        }

    def _prove(self: Any, possible: bool, what: str) -> dict[str, Any]:
        """The option of a solver that proves nets, none for local search alone."""
        pricing = check_choice("pricing", self.pricing, ("local", "auto", "complete"))
        if pricing != "local" and not possible:
            raise ArgumentError(f"pricing={pricing!r} proves {what} only: pass pricing='local'.")
        return {} if pricing == "local" else {"pricing": pricing}

    def _choose_start(self: Any, before: list[Any] | None, inputs: int, outputs: int) -> Any:
        """The net of the last fit, for a warm start, if it has as many inputs and outputs."""
        net = before[0] if check_flag("warm_start", self.warm_start) and before else None
        sizes = inputs + check_flag("bias", self.bias), outputs
        fits = (
            isinstance(net, TwoLayerFit) and (net.neurons.shape[1], net.outputs.shape[1]) == sizes
        )
        return net if fits else None


def measure_inputs(X: np.ndarray, weights: np.ndarray, bias: bool) -> float:
    """The root of sum_n weights_n |x~_n|^2 over inputs X (n, d), their biases included: what
    neurons of length 1 get out of labels that are tossed with a coin grows like it.
    """
    size = norm(np.sqrt(weights)[:, None] * X)  # of scipy, which squares without overflow
    return float(np.hypot(size, bias * np.sqrt(weights.sum()))) or 1.0


@dataclass(kw_only=True, eq=False, repr=False)
class VariationNormClassifier(SparseNets, MaxMarginClassifier):
    """The best infinitely wide two-layer ReLU net in the variation norm, which has few neurons.

    It minimizes ||theta||^2 / 2 plus the losses, for all classes together, as
    `solvers.fit_two_layer_net` does: training with weight decay, solved. C=None is the hard margin:
    data that cannot be separated then get margin_ 0, constant scores and a warning that names a C.

    `fit` ends where local search finds no neuron that is worth much more than it costs.

    Parameters
    ----------
    C : float or None, default 10.0
        Cost of the losses, > 0, in units of (sum_n |x~_n|^2)^(-1/2) over the samples x~ = (x, 1),
        or x without a bias: so neither the size of the features nor the number of samples changes
        which C is good. None for a hard margin.
    loss : {"squared_hinge", "hinge", "logistic"}
        What C is the cost of, as in `solvers.fit_two_layer_net`.
    bias, class_weight : optional
        As of `ReLUKernelClassifier`.
    tol : float, default 5e-2
        Relative gap up to which the status is LOCALLY_OPTIMAL, as local search believes, or with
        `pricing` OPTIMAL, as is proved; there the search ends. Below 5e-2 predictions hardly move.
    time_limit : float, optional
        Seconds after which `fit` ends with the best net so far and a warning. No limit by default.
    warm_start : bool, default False
        Whether `fit` begins with the net of the last one, where it had as many features and
        classes: for a path over C.
    pricing : {"local", "auto", "complete"}
        "auto" and "complete" go on to prove that no neuron is missing, as in
        `solvers.f1_max_margin`: of two classes, for loss="hinge" or C=None, a few hundred samples.
    random_state : int, RandomState or None, default 0
        Seed of the search.
    verbose : bool, default False
        Whether to show rounds and gaps as they come.

    Attributes
    ----------
    solutions_ : list
        The net of all classes, a `solvers.TwoLayerFit`: `solutions_[0].neurons` and `.outputs`,
        `solutions_[0].to_network()` is a torch module. With `pricing`, the solution of
        `solvers.f1_soft_margin` or `f1_max_margin`.
    local_gap_ : float
        The relative gap that local search believes in; it proves nothing.
    gap_ : float
        The relative gap of the proved bracket; wide for pricing="local".
    margin_ : float
        The least margin over ||theta||^2.
    n_neurons_ : int
        The number of neurons.

    Examples
    --------
    >>> from netmargin.estimators import VariationNormClassifier
    >>> X, y = [[1, 1], [-1, -1], [1, -1], [-1, 1]], ["same", "same", "other", "other"]
    >>> xor = VariationNormClassifier(C=None).fit(X, y)
    >>> xor.predict([[2, 3], [-1, 2]]).tolist(), xor.n_neurons_
    (['same', 'other'], 4)

    Source: Chizat and Bach 2020, (4).
    """

    C: Any = 10.0
    loss: Any = "squared_hinge"
    bias: Any = True
    class_weight: Any = None
    tol: Any = 5e-2
    time_limit: Any = None
    warm_start: Any = False
    pricing: Any = "local"
    random_state: Any = 0
    verbose: Any = False

    def _solve(self, X: Any, index: Any, caps: Any, tol: Any, deadline: Any, before: Any) -> Any:
        options, hard = self._read_options(deadline), caps is None
        loss = check_choice("loss", self.loss, ("squared_hinge", "hinge", "logistic"))
        weights = np.ones(len(X)) if hard else caps / self.C
        cost = 1.0 if hard else self.C / measure_inputs(X, weights, check_flag("bias", self.bias))
        classes = len(np.unique(index))
        possible = len(self.classes_) == 2 and (hard or loss == "hinge")
        if proof := self._prove(possible, "two classes with loss='hinge' or C=None"):
            if hard:
                return [f1_max_margin(X, index, **options, **proof)]
            return [f1_soft_margin(X, index, C=cost, sample_weight=weights, **options, **proof)]
        options["start"] = self._choose_start(before, X.shape[1], classes if classes > 2 else 1)
        options |= {"loss": "hard_margin" if hard else loss, "C": cost}
        return [fit_two_layer_net(X, index, sample_weight=weights, **options)]

    def _recommend_cost(self, X: Any) -> Any:
        # At the root of n a sample of the usual length is worth a neuron.
        return float(f"{_SEPARATING_COST * np.sqrt(len(X)):.0e}")

    def _compute_scores(self, X: Any) -> Any:
        net = self.solutions_[0]
        scores = net.decision_function(X).reshape(len(X), -1)
        if len(self.classes_) == 2:
            return scores
        present = net.classes
        if len(present) == 2:
            scores = np.column_stack([-scores, scores])
        # Classes whose samples all weigh nothing are not predicted.
        below = scores.min(1, keepdims=True) - 1
        everywhere = np.repeat(below, len(self.classes_), axis=1)
        everywhere[:, present] = scores
        return everywhere
