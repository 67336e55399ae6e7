"""The best two-layer net of any width and several outputs for a loss, by sliding columns."""

import time
from typing import Any

import numpy as np

from ..core.arguments import (
    check_choice,
    check_flag,
    check_instance,
    check_number,
    check_optional,
    check_seed,
)
from ..core.deadline import Deadline
from ..core.matrices import as_array, check_sample_weight, finite_rows
from ..core.memory import require_memory
from ..errors import DataError
from ..result import Bracket, Status, judge_bracket
from .neurons.activations import read_activation
from .neurons.labels import least_margin
from .neurons.problem import OF_CLASSES, OF_TARGETS, FitProblem
from .neurons.samples import Samples
from .neurons.sliding import slide_columns
from .two_layer_net import TwoLayerFit, per_square

_NOT_KEPT = (
    "No net was found that keeps the constraints. Give it more time, or take loss='squared_hinge',"
    " or 'squared' for targets."
)
_COPIES = 16
"""Arrays (n, K) of float64 that a fit holds at once: outputs, margins, weights and their bounds."""


def fit_two_layer_net(
    X: Any,
    y: Any,
    *,
    loss: str = "squared_hinge",
    C: float = 1.0,
    activation: Any = "relu",
    sample_weight: Any = None,
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

    Source: Wei et al. 2018, (3.6), Theorem 2.1 for several classes; Chizat and Bach 2020, (4).
    """
    started, deadline = time.monotonic(), Deadline(time_limit).at
    kind = check_choice("loss", loss, (*OF_CLASSES, *OF_TARGETS))
    C, tol = check_number("C", C, above=0), check_number("tol", tol, above=0, below=1)
    check_optional(check_instance, "start", start, TwoLayerFit, "a result of fit_two_layer_net")
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
        margin = per_square(least, norm * unit, phi.power) if norm > 0 else 0.0
    lower = min(unit * problem.bound_proved(net.dual), unit * net.objective)
    bracket = Bracket(lower, unit * net.objective)
    status, certified = net.status, False
    if bracket.upper < np.inf:
        status, certified = judge_bracket(bracket, tol, ended=status)
    look = net.look
    return TwoLayerFit(
        **given,
        neurons=net.W,
        outputs=net.A * unit,
        objective=unit * net.objective,
        lower_bound=lower,
        local_bound=unit * net.local_bound,
        margin=margin,
        looked=f"{look.starts + look.near} starts, {look.first_steps} + {look.steps} steps",
        certified=certified,
        status=status,
        dual=problem.spread_dual(problem.loss.labels.split(net.dual)),
        seconds=time.monotonic() - started,
        note="" if bracket.upper < np.inf else _NOT_KEPT,
    )


def _read_labels(y: Any, weights: np.ndarray, kind: str) -> tuple[np.ndarray | None, np.ndarray]:
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
