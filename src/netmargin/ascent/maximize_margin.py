"""Ascent of the smoothed normalized margin itself, with falling temperature.

Gradient flow of the loss increases the margin like a power of log t; this is far quicker.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ..core.accepted_models import check_model
from ..core.arguments import check_count, check_flag, check_number, check_numbers
from ..core.batches import Arrays, Data, as_arrays, batches
from ..core.denormals import flush_denormals
from ..core.lbfgs import minimize
from ..core.nets import float64_copy
from ..core.progress import Progress
from ..core.threads import fitting_threads, work_of
from ..errors import ModelError, NotSeparatedError
from ..homogeneity import Homogeneity, Kind
from ..kkt import KKTCertificate, certify
from ..margins import MarginReport, measure
from ..training.history import History
from ..training.loop import train
from ..training.stopping import Epochs, Separated
from .smoothed_margin import SmoothedMargin

_SEPARATING_EPOCHS = 200
"""Epochs of `train` for a net that does not separate the data yet: a bound, so that data that
cannot be separated end in an error; `train` itself stops at the first epoch that separates.
"""
_ACTIVE_SET_ROUNDS = 4
"""Times that one temperature is ascended anew because samples outside the active set came near. The
set only grows, and what a round misses the next temperature takes in; the bound keeps the cost of
one stage at so many times `iterations`.
"""
_INITIAL_PENALTY, _PENALTY_GROWTH = 0.3, 1.1
"""Penalty relative to the largest multiplier at first, and its growth per step: weak, so that each
subproblem is well conditioned.
"""
_LOSS_RESERVE = 2.0
"""A net that was separated here ends with at most 1 / this of the loss below which training keeps
it separated: any factor above 1 absorbs rounding, and 2 costs a factor of the norm close to 1.
"""


@dataclass
class MarginAscent(History):
    """A margin ascent: one row per temperature or multiplier step, and the net that was reached.

    Attributes
    ----------
    rows : list of dict
        Keys: epoch (index of the row), temperature (None before the first stage and for multiplier
        steps), gradient_samples (samples that went through a backward pass so far) and those of
        `MarginReport.to_dict()`.
    status : str
        The margin, what it took, and the norm at which the net was handed back.
    report : MarginReport
        Margins of the model as it was handed back, in the model's own dtype.
    certificate : KKTCertificate or None
        How far the net that was handed back is from a KKT point; None, with a reason in `status`,
        where `certify` refuses the net.
    """

    report: MarginReport | None = None
    certificate: KKTCertificate | None = None

    __repr__ = History.__repr__


def maximize_margin(
    model: nn.Module,
    data: Data,
    *,
    temperatures: Sequence[float] = (0.1, 0.03, 0.01, 0.003),
    iterations: int = 100,
    multiplier_steps: int = 0,
    radius: float = 0.0,
    progress: bool = True,
) -> MarginAscent:
    """Ascend the normalized margin of a homogeneous net from where it is, in place.

    Maximizes -T log sum_nj exp(-s_nj / T) by L-BFGS in float64, for falling temperatures T; s_nj
    are the score gaps Phi_{y_n} - Phi_j divided by the product of layer norms (multi-homogeneous
    nets) or by ||theta||^L. The layers of the model are balanced on the way. A net that does not
    separate the data yet is first trained until it does (`train` with its defaults). Where gradient
    flow increases the margin like a power of log t, this ascends it directly; both end at KKT
    points, not always the same.

    The scale of a homogeneous net is free, and the net keeps the norm that it had, so its scores
    stay as large as they were. One that had to be separated first has no scale of its own: it gets
    at least the norm at which the summed loss is so small that `train` keeps it separated. Where
    the norm that is kept is smaller than that, `status` says by how much.

    Ctrl-C puts the best net so far into the model, and raises KeyboardInterrupt.

    Parameters
    ----------
    model : torch.nn.Module
        A homogeneous net, all of whose parameters require gradients; changed in place, it keeps its
        device and dtype.
    data : pair or iterable
        Inputs and labels (X, y), or batches of them, as for `measure`; read into memory once.
    temperatures : sequence of float, default (0.1, 0.03, 0.01, 0.003)
        Temperatures > 0, each relative to the median margin at the beginning of its stage; falling.
    iterations : int, default 100
        Iterations of L-BFGS in each stage, about as many gradient evaluations.
    multiplier_steps : int, default 0
        Steps of the method of multipliers for min ||theta||^2 / 2 subject to Phi_{y_n} - Phi_j >= 1
        that finish the ascent, each with `iterations` iterations again; smooth nets then come close
        to a KKT point.
    radius : float, default 0.0
        Radius of the final certificate, a share of ||theta|| (see `certify`).
    progress : bool, default True
        Show temperature and margin as they come.

    Returns
    -------
    MarginAscent
        The rows of the ascent, and margins (`report`) and KKT residual (`certificate`) of the model
        as it is handed back.

    Raises
    ------
    NotHomogeneousError
        The net has no homogeneity order, as biases in later layers that are not 0 leave it.
    NotSeparatedError
        The net cannot separate the data from where it is.
    DataError, ModelError
        The data or the model cannot be used, as for `measure`; a parameter is frozen.
    ArgumentError
        A number is out of its range.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> data = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    >>> ascent = nm.maximize_margin(net, data, progress=False)
    >>> abs(ascent.report.normalized_margin - 3 / 2**0.5) < 1e-4  # the largest margin
    True
    >>> ascent.certificate.relative_epsilon < 0.01
    True

    Source: Lyu and Li 2019, Definitions A.3 and G.1, for the smoothed margin, whose inverse scale
    is the temperature. The ascent is beyond the papers.
    """
    temperatures = check_numbers("temperatures", temperatures, above=0)
    iterations = check_count("iterations", iterations)
    multiplier_steps = check_count("multiplier_steps", multiplier_steps, at_least=0)
    radius, progress = check_number("radius", radius, at_least=0), check_flag("progress", progress)
    model = check_model(model)
    _require_trainable(model)
    samples = as_arrays(data)
    work = work_of(model, next(batches(samples, len(samples), model))[0])
    with fitting_threads(work), flush_denormals():
        return _ascend(model, samples, temperatures, iterations, multiplier_steps, radius, progress)


def _ascend(
    model: nn.Module,
    samples: Arrays,
    temperatures: list[float],
    iterations: int,
    multiplier_steps: int,
    radius: float,
    progress: bool,
) -> MarginAscent:
    """Separate the data if necessary, ascend, and certify what is handed back."""
    homogeneity = measure(model, samples).homogeneity
    homogeneity.require_order(model)
    separating = _separate(model, samples, progress)
    homogeneity.require_order(model)  # training moves biases that were 0
    with Progress(progress, "maximize margin") as display:
        ascent = _Ascent(model, samples, homogeneity, display, fresh=separating > 0)
        ascent.smoothed.gradient_samples = separating
        # `finally`: also after Ctrl-C or an error the caller gets the best net so far.
        try:
            ascent.keep(None)
            ascent.cool(temperatures, iterations)
            if multiplier_steps:
                ascent.step_multipliers(temperatures[-1], multiplier_steps, iterations)
        finally:
            scale = ascent.hand_back()
    # Measured in the model's own dtype, in which the caller goes on, not in that of the ascent.
    report = measure(model, samples, homogeneity=homogeneity)
    found = MarginAscent(ascent.rows, report=report)
    spent = f"{ascent.smoothed.gradient_samples:,} sample gradients"
    found.status = f"margin {ascent.margin_of(report):.6g} after {spent}; {scale}"
    # The ascent is worth having without a certificate, which some nets cannot have.
    try:
        found.certificate = certify(model, samples, radius=radius)
    except ModelError as error:
        found.status += f"; no certificate: {error}"
    return found


class _Ascent:
    """The state of an ascent: a float64 copy of the net, and the best parameters that it had.

    fresh : whether the net was trained here to separate the data, and so has no scale of its own.
    """

    def __init__(
        self,
        model: nn.Module,
        samples: Arrays,
        homogeneity: Homogeneity,
        display: Progress,
        *,
        fresh: bool,
    ):
        self._model, self._samples, self._homogeneity, self._display = (
            model,
            samples,
            homogeneity,
            display,
        )
        self._layers, self._fresh = homogeneity.kind is Kind.MULTI_HOMOGENEOUS, fresh
        self._twin = float64_copy(model)
        self.smoothed = SmoothedMargin(self._twin, samples, homogeneity, self._layers)
        self._size = self.smoothed.size()
        # Normalized margins do not depend on the norm, so L-BFGS may have the best conditioned one.
        self.smoothed.normalize()
        self.rows: list[dict] = []
        self._best, self._state, self._left = -math.inf, dict[str, Tensor](), 0

    def margin_of(self, report: MarginReport) -> float:
        """The normalization of the margin that is ascended: by layers, or by the whole norm."""
        margin = report.layer_normalized_margin if self._layers else report.normalized_margin
        assert margin is not None
        return margin

    def keep(self, temperature: float | None) -> None:
        """Append a row for the present point, and keep its parameters if they are the best so
        far.
        """
        report = measure(self._twin, self._samples, homogeneity=self._homogeneity)
        head = {
            "epoch": len(self.rows),
            "temperature": temperature,
            "gradient_samples": self.smoothed.gradient_samples,
        }
        self.rows.append(head | report.to_dict())
        self._display.show(self.rows[-1], self._left)
        if self.margin_of(report) > self._best:
            self._best = self.margin_of(report)
            self._state = {n: p.detach().clone() for n, p in self._twin.state_dict().items()}

    def cool(self, temperatures: Sequence[float], iterations: int) -> None:
        """Ascend the smoothed margin at one temperature after the other."""
        smoothed = self.smoothed
        for stage, share in enumerate(temperatures):
            # The median, not the smallest margin: that may still be 0 or nearly so.
            temperature = share * smoothed.margins().clamp(min=0).median().item()
            smoothed.active = smoothed.near(temperature)
            for _ in range(_ACTIVE_SET_ROUNDS):
                minimize(smoothed.parameters, partial(smoothed.loss, temperature), iterations)
                near = smoothed.near(temperature)
                if torch.isin(near, smoothed.active).all():
                    break
                smoothed.active = torch.unique(torch.cat([smoothed.active, near]))
            self._left = len(temperatures) - 1 - stage
            self.keep(temperature)

    def step_multipliers(self, temperature: float, steps: int, iterations: int) -> None:
        """Take steps of the method of multipliers from the best point so far."""
        smoothed = self.smoothed
        # The last temperature may have ended below the best: the method converges locally only.
        self._twin.load_state_dict(self._state)
        smoothed.feasible()
        multipliers = smoothed.softmax_multipliers(temperature)
        penalty = _INITIAL_PENALTY * multipliers.max().item()
        for step in range(steps):
            minimize(
                smoothed.parameters,
                partial(smoothed.augmented_lagrangian, multipliers, penalty),
                iterations,
            )
            with torch.no_grad():
                multipliers = smoothed.forces(multipliers, penalty)
            penalty *= _PENALTY_GROWTH
            self._left = steps - 1 - step
            self.keep(None)

    def hand_back(self) -> str:
        """Put the best point into the model, at the norm that the model had; return a sentence that
        says so.
        """
        if not self._state:
            return ""
        self._twin.load_state_dict(self._state)
        smoothed = self.smoothed
        smoothed.normalize(self._size)
        report = measure(self._twin, self._samples, homogeneity=self._homogeneity)
        threshold = report.loss.log_threshold
        # At margin q all constraints together weigh at most n (C - 1) e^{-q}.
        enough = math.log(_LOSS_RESERVE * smoothed.constraints) - threshold
        enough_size = (
            self._size * (enough / report.q_min) ** (1 / smoothed.order)
            if report.q_min > 0
            else 0.0
        )
        size = max(self._size, enough_size) if self._fresh else self._size
        said = f"the norm is {size:.4g}" + ("" if self._fresh else ", as it was")
        if not self._fresh and report.log_loss > threshold and report.q_min > 0:
            said += (
                f", and the summed loss {math.exp(report.log_loss):.3g}: training from here may"
                f" lower the margin again. Below a summed loss of {math.exp(threshold):.2g} it"
                f" keeps all samples correct: multiply the parameters by {enough_size / size:.3g}"
                " first, which changes no normalized margin"
            )
        smoothed.normalize(size)
        self._model.load_state_dict(self._twin.state_dict())
        return said


def _require_trainable(model: nn.Module) -> None:
    """Raise ModelError if a parameter is frozen."""
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if frozen:
        raise ModelError(
            f"{frozen[0]} is frozen, but an ascent rescales every layer. Unfreeze it, or train the"
            " rest with nm.train."
        )


def _separate(model: nn.Module, samples: Arrays, progress: bool) -> int:
    """Train by SGD until all margins are positive, if they are not.

    Returns the number of sample gradients that this took. Raises NotSeparatedError.
    """
    if measure(model, samples).q_min > 0:
        return 0
    history = train(
        model, samples, until=[Separated(), Epochs(_SEPARATING_EPOCHS)], progress=progress
    )
    if measure(model, samples).q_min > 0:
        return history.rows[-1]["gradient_samples"]
    raise NotSeparatedError(
        f"The net still misclassifies samples after {len(history.rows) - 1} epochs of nm.train"
        f" ({history.status}). Train it first with other settings, or check the data for equal"
        " inputs with different labels."
    )
