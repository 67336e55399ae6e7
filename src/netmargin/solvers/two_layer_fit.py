"""The best two-layer net of any width for a loss, several outputs and any homogeneous activation,
by sliding columns.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core.arguments import check_choice, check_flag, check_instance, check_number, check_seed
from ..core.deadline import Deadline
from ..core.matrices import as_array, check_sample_weight, evaluation_inputs, finite_rows
from ..core.memory import require_memory
from ..errors import DataError
from ..models import ReLUPower
from ..result import Bracket, Solution, Status, judge_bracket
from .neurons.activations import Activation, read_activation
from .neurons.labels import least_margin
from .neurons.problem import OF_CLASSES, OF_TARGETS, FitProblem
from .neurons.samples import Samples
from .neurons.sliding import slide_columns

_NOT_KEPT = (
    "No net was found that keeps the constraints. Give it more time, or take loss='squared_hinge',"
    " or 'squared' for targets."
)
_COPIES = 16
"""Arrays (n, K) of float64 that a fit holds at once: outputs, margins, weights and their bounds."""


@dataclass(frozen=True, kw_only=True)
class TwoLayerFit(Solution):
    """A two-layer net f(x) = sum_j outputs_j phi(neurons_j . x~), with how near it is to the best.

    Attributes
    ----------
    neurons : ndarray of shape (k, D), float64
        First-layer weights of length 1; x~ is x, or (x, 1) with a bias, so D = d or d + 1.
    outputs : ndarray of shape (k, K), float64
        Output weights; K = 1 for two classes and for one target.
    bias : bool
        Whether neurons have a bias.
    slope, power : float, int
        The activation phi(t): t^power for t >= 0, (slope t)^power below.
    loss : str
        What was minimized, as in `fit_two_layer_net`.
    classes : ndarray of shape (C,) or None
        The classes, in the order of the outputs; None for targets.
    objective : float
        sum_j |outputs_j| + the losses, recomputed in float64.
    local_bound : float
        The least objective of any net if the search has missed no neuron; it proves nothing.
    lower_bound : float
        A number that no net falls below, proved by `dual`; loose.
    looked : str
        How hard was searched for a better neuron.
    margin : float or None
        Of classes: the least margin over ||theta||^2 of the net with balanced layers, the
        `normalized_margin` of `netmargin.measure`; for power 2 over sum_j |outputs_j|.
    dual : ndarray of shape (n, R), float64
        Weights of the samples' margins over their R = C rivals, 0 for the own class; R = 1 for two
        classes, and K for targets.
    certified, status, seconds
        As of `MarginSolution`: certified only where the proved bound is within the tolerance.
    note : str
        Which samples contradict each other, or what to do where no net keeps the constraints.
    """

    neurons: np.ndarray
    outputs: np.ndarray
    bias: bool
    slope: float
    power: int
    loss: str
    classes: np.ndarray | None
    objective: float
    local_bound: float
    lower_bound: float
    looked: str
    margin: float | None
    certified: bool
    status: Status
    dual: np.ndarray
    seconds: float
    note: str = ""

    @property
    def bracket(self) -> Bracket:
        """What is proved and what is attained: [lower_bound, objective]."""
        return Bracket(min(self.lower_bound, self.objective), self.objective)

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
        return _per_square(1.0, self.lower_bound, self.power) if self.lower_bound > 0 else np.inf

    @property
    def support(self) -> np.ndarray:
        """The indices of the samples with a dual weight other than 0, ascending."""
        return np.flatnonzero(self.dual.any(1))

    def decision_function(self, X) -> np.ndarray:
        """Scores at X (N, d): (N,) for one output, positive for classes[1]; else (N, K)."""
        Z = evaluation_inputs(X, self.neurons.shape[1], bias=self.bias)
        F = Activation(self.slope, self.power).feature(Z @ self.neurons.T) @ self.outputs
        return F[:, 0] if F.shape[1] == 1 else F

    def predict(self, X) -> np.ndarray:
        """The class (N,) of the largest score at X (N, d), or the values of targets."""
        scores = self.decision_function(X)
        if self.classes is None:
            return scores
        return self.classes[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def to_network(self) -> nn.Sequential:
        """The same function as a float64 net Linear - activation - Linear with K outputs, whose
        layers have one norm (power 1). Raises DataError for a net without neurons.
        """
        if not len(self.neurons):
            raise DataError("The solution has no neurons (f = 0), so there is no net to build.")
        sizes = np.sqrt(np.linalg.norm(self.outputs, axis=1, keepdims=True))
        inner, outer = sizes * self.neurons, self.outputs / sizes**self.power
        k, D = inner.shape
        first = nn.Linear(D - self.bias, k, bias=self.bias, dtype=torch.float64)
        last = nn.Linear(k, outer.shape[1], bias=False, dtype=torch.float64)
        with torch.no_grad():
            first.weight.copy_(torch.from_numpy(inner[:, : D - self.bias]))
            if self.bias:
                first.bias.copy_(torch.from_numpy(inner[:, -1]))
            last.weight.copy_(torch.from_numpy(outer.T))
        # max(t, 0)^2 is the square of the leaky ReLU only where that is nowhere negative.
        slope = self.slope if self.power == 1 else -abs(self.slope)
        bend = nn.LeakyReLU(slope) if slope else nn.ReLU()
        return nn.Sequential(first, bend, *[ReLUPower(2)] * (self.power - 1), last)


def fit_two_layer_net(
    X,
    y,
    *,
    loss: str = "squared_hinge",
    C: float = 1.0,
    activation="relu",
    sample_weight=None,
    bias: bool = True,
    tol: float = 1e-2,
    time_limit: float | None = None,
    start: TwoLayerFit | None = None,
    seed: int = 0,
    progress: bool = False,
) -> TwoLayerFit:
    """The two-layer net of any width with the least norm and loss: what training aims at.

    It minimizes sum_j |A_j| + C sum_n w_n loss(f(x_n), y_n) over nets f(x) = sum_j A_j phi(w_j .
    x~), |w_j| = 1, of any number of neurons, with as many outputs as there are classes (one for
    two). sum_j |A_j| is half the least ||theta||^2 of a net with this function, so this is training
    with weight decay, solved. All neurons descend together, between searches for better ones.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs of similar scales; up to 100,000 samples take minutes.
    y : array_like of shape (n,) or (n, K)
        Class labels of any kind, at least two classes; real targets for "squared" and "equality".
    loss : str, default "squared_hinge"
        Of classes: "squared_hinge", max(0, 1 - margin)^2 / 2, the fastest; "hinge"; "logistic",
        the cross-entropy; "hard_margin", all margins at least 1, which is the largest normalized
        margin. The margin of a sample over each rival counts, and the losses of all rivals are
        added. Of targets: "squared", |f - y|^2 / 2, and "equality", f = y.
    C : float, default 1.0
        Cost of the losses, > 0; not used by "hard_margin" and "equality".
    activation : str or callable, default "relu"
        phi: "relu", "abs", "linear", "squared_relu", or a function of tensors that is positively
        homogeneous, such as torch.nn.LeakyReLU(0.1), or the square of one.
    sample_weight : array_like of shape (n,), optional
        Factors w_n >= 0 of C; samples of weight 0 are left out. 1 by default.
    bias : bool, default True
        Whether neurons have a bias.
    tol : float, default 1e-2
        Relative gap up to which the status is LOCALLY_OPTIMAL, where the search ends after a
        thorough look for better neurons.
    time_limit : float, optional
        Seconds after which the best net so far is returned, as it is at Ctrl-C.
    start : TwoLayerFit, optional
        Another fit to begin with, for instance of the last C.
    seed : int, default 0
        Seed of the search for neurons.
    progress : bool, default False
        Whether to show gap, neurons and samples in use as they come.

    Returns
    -------
    TwoLayerFit
        The net, its objective, the local bound, a loose proved one, and `to_network()`.

    Raises
    ------
    DataError
        For X or y of a wrong shape, NaN, one class only, or more classes than memory allows.
    ArgumentError
        For any other argument out of its range, and activations that are not homogeneous.

    Examples
    --------
    >>> from netmargin.solvers import fit_two_layer_net
    >>> X, y = [[0, 1], [1, 0], [-1, -1]], ["red", "green", "blue"]
    >>> fit = fit_two_layer_net(X, y, loss="hard_margin")
    >>> fit.predict([[0, 2]]).tolist(), fit.local_gap < 1e-2
    (['red'], True)

    Source: Wei et al. 2018, (3.6) and Theorem 4.1 for several classes; Chizat and Bach 2020, (4).
    """
    started, deadline = time.monotonic(), Deadline(time_limit).at
    kind = check_choice("loss", loss, (*OF_CLASSES, *OF_TARGETS))
    C, tol = check_number("C", C, above=0), check_number("tol", tol, above=0, below=1)
    check_instance("start", start, TwoLayerFit, "a result of fit_two_layer_net", optional=True)
    phi, bias, seed = read_activation(activation), check_flag("bias", bias), check_seed(seed)
    progress, X = check_flag("progress", progress), finite_rows(X)
    weights = check_sample_weight(sample_weight, len(X))
    classes, labels = _read_labels(y, weights, kind)
    Z = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    problem = FitProblem.of(Z, labels, weights, kind, C, phi)
    given: dict[str, Any] = {
        "bias": bias,
        "slope": phi.slope,
        "power": phi.power,
        "loss": kind,
        "classes": classes,
    }
    if impossible := problem.find_contradictions():
        dual, note = impossible
        dual = problem.spread_dual(dual)
        return TwoLayerFit(
            **given,
            neurons=Z[:0],
            outputs=np.zeros((0, problem.loss.labels.outputs)),
            objective=np.inf,
            lower_bound=np.inf,
            local_bound=np.inf,
            margin=None if kind in OF_TARGETS else 0.0,
            looked="samples that contradict each other",
            certified=True,
            status=Status.NOT_ATTAINABLE if kind in OF_TARGETS else Status.NOT_SEPARABLE,
            dual=dual / np.abs(dual).sum(),
            seconds=time.monotonic() - started,
            note=note,
        )
    begin = None if start is None else problem.convert_start(start.neurons, start.outputs)
    net = slide_columns(
        problem.Z,
        problem.loss,
        activation=phi,
        tol=tol,
        deadline=deadline,
        seed=seed,
        start=begin,
        progress=progress,
    )
    unit, F = problem.unit, Samples(problem.Z, problem.loss, phi).outputs(net.W, net.A)
    norm = float(np.linalg.norm(net.A, axis=1).sum())
    margin = None
    if kind in OF_CLASSES:
        least = least_margin(problem.loss.labels, F)
        margin = _per_square(least, norm * unit, phi.power) if norm > 0 else 0.0
    lower = min(unit * problem.bound_proved(net.dual), unit * net.objective)
    bracket = Bracket(lower, unit * net.objective)
    status, certified = net.status, False
    if bracket.upper < np.inf:
        status, certified = judge_bracket(bracket, tol, ended=status)
    return TwoLayerFit(
        **given,
        neurons=net.W,
        outputs=net.A * unit,
        objective=unit * net.objective,
        lower_bound=lower,
        local_bound=unit * net.local_bound,
        margin=margin,
        looked=f"{net.look.starts} starts, {net.look.first_steps} + {net.look.steps} steps",
        certified=certified,
        status=status,
        dual=problem.spread_dual(problem.loss.labels.split(net.dual)),
        seconds=time.monotonic() - started,
        note="" if bracket.upper < np.inf else _NOT_KEPT,
    )


def _per_square(margin: float, norm: float, power: int) -> float:
    """A margin over ||theta||^2, which is twice the norm where both layers share the neurons."""
    return margin / norm / (2 if power == 1 else 1)


def _read_labels(y, weights: np.ndarray, kind: str) -> tuple[np.ndarray | None, np.ndarray]:
    """The classes and their index (n,) of each sample, or None and targets (n, K)."""
    n, used = len(weights), weights > 0
    if kind in OF_TARGETS:
        targets = as_array(y, "y")
        if targets.ndim not in (1, 2) or len(targets) != n or not np.isfinite(targets).all():
            raise DataError(
                f"y must be {n} finite values, or have shape ({n}, K); got {targets.shape}, or NaN"
            )
        return None, targets.reshape(n, -1)
    if hasattr(y, "detach"):
        y = y.detach().cpu()
    y = np.asarray(y)
    if y.shape != (n,):
        raise DataError(f"y must be {n} labels, one per sample; got shape {y.shape}")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError("y holds NaN or infinite labels. Drop these samples.")
    classes, labels = np.unique(y[used], return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"All labels are {classes[0]!r}: pass samples of at least two classes.")
    outputs = 1 if len(classes) == 2 else len(classes)
    require_memory(
        8.0 * _COPIES * n * outputs,
        f"A net of {outputs} outputs on {n:,} samples",
        "Pass fewer samples, or join rare classes.",
    )
    indices = np.zeros(n, int)
    indices[used] = labels.reshape(-1)
    return classes, indices
