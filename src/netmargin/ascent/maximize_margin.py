"""Ascending the smoothed normalized margin itself, with falling temperature: far quicker than a
flow that does so at log speed.
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
_LOOKS = 4
_PENALTY, _STIFFER = 0.3, 1.1
"""Penalty relative to the largest multiplier at first, and its growth per step: weak, so that each
subproblem is well conditioned.
"""
_RESERVE = 2.0
"""A net that was separated here ends with at most this part of the loss below which training keeps
it separated.
"""


@dataclass
class MarginAscent(History):
    """Rows of a margin ascent, and what was reached.

    The rows are one per temperature or multiplier step; the keys are temperature (None before and
    after), gradient_samples and those of `MarginReport.to_dict()`.

    report : margins of the model as it was handed back, in its own dtype.
    certificate : how far from a KKT point that is; None, with a reason in `status`, where `certify`
        refuses the net. status : the margin, what it took, and the norm at which the net was handed
        back.
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
    """Ascend the normalized margin of a homogeneous net from where it is; the model is changed in
    place, its layers balanced.

    Maximizes -T log sum exp(-s_nj / T), s_nj the gaps Phi_{y_n} - Phi_j divided by the product of
    layer norms (multi-homogeneous nets) or by ||theta||^L, by L-BFGS, for falling temperatures T. A
    net that does not separate the data yet is first trained until it does (`train` with its
    defaults). Where gradient flow increases the margin like a power of log t, this ascends it
    directly; both end at KKT points, not always the same.

    The scale of a homogeneous net is free, and the net keeps the norm that it had, so its scores
    stay as large as they were. One that had to be separated first has no scale of its own: it gets
    at least the norm at which the summed loss is so small that `train` keeps it separated. Where
    the norm that is kept is smaller than that, `status` says by how much.

    Parameters
    ----------
    temperatures : relative to the median margin at the beginning of each stage, falling.
    iterations : of L-BFGS in each stage, about as many gradient evaluations.
    multiplier_steps : finish by this many steps of the method of multipliers for min ||theta||^2 /
        2 subject to s_nj >= 1, each with as many iterations again; smooth nets then come close to a
        KKT point.
    radius : of the final certificate (`certify`).
    progress : show temperature and margin as they come.

    Returns
    -------
    A `MarginAscent`; its report is of the model as it is handed back.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> data = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    >>> ascent = nm.maximize_margin(net, data, progress=False)
    >>> abs(ascent.report.normalized_margin - 3 / 2**0.5) < 1e-4, ascent.certificate.relative_epsilon < 0.01
    (True, True)

    Raises
    ------
    NotHomogeneousError : the net has no homogeneity order, as biases in later layers that are not 0
        leave it.
    NotSeparatedError : the data cannot be separated by it from where it is.
    DataError, ModelError : as `measure`.
    ArgumentError : a number out of its range.

    Ctrl-C keeps the best net so far and raises.

    Beyond the papers; the smoothed margin is that of Lyu and Li 2019, Definitions A.3 and G.1, with
    the temperature as inverse scale.
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
    homogeneity = measure(model, samples).homogeneity
    homogeneity.require_order(model)
    separating = _separate(model, samples, progress)
    homogeneity.require_order(model)  # training moves biases that were 0
    with Progress(progress, "maximize margin") as display:
        ascent = _Ascent(model, samples, homogeneity, display, fresh=separating > 0)
        ascent.smoothed.gradient_samples = separating
        try:
            ascent.keep(None)
            ascent.cool(temperatures, iterations)
            if multiplier_steps:
                ascent.step_multipliers(temperatures[-1], multiplier_steps, iterations)
        finally:
            scale = ascent.hand_back()
    report = measure(model, samples, homogeneity=homogeneity)
    found = MarginAscent(ascent.rows, report=report)
    spent = f"{ascent.smoothed.gradient_samples:,} sample gradients"
    found.status = f"margin {ascent.margin_of(report):.6g} after {spent}; {scale}"
    try:
        found.certificate = certify(model, samples, radius=radius)
    except ModelError as error:
        found.status += f"; no certificate: {error}"
    return found


class _Ascent:
    """A float64 twin on its way up, and the best that it has been."""

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
        self.smoothed.normalize()
        self.rows: list[dict] = []
        self._best, self._state, self._left = -math.inf, dict[str, Tensor](), 0

    def margin_of(self, report: MarginReport) -> float:
        """What is ascended."""
        margin = report.layer_normalized_margin if self._layers else report.normalized_margin
        assert margin is not None
        return margin

    def keep(self, temperature: float | None) -> None:
        """A row, and the parameters if they are the best so far."""
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
            temperature = share * smoothed.margins().clamp(min=0).median().item()
            smoothed.active = smoothed.near(temperature)
            for _ in range(_LOOKS):
                minimize(smoothed.parameters, partial(smoothed.loss, temperature), iterations)
                near = smoothed.near(temperature)
                if torch.isin(near, smoothed.active).all():
                    break
                smoothed.active = torch.unique(torch.cat([smoothed.active, near]))
            self._left = len(temperatures) - 1 - stage
            self.keep(temperature)

    def step_multipliers(self, temperature: float, steps: int, iterations: int) -> None:
        """The method of multipliers from the best point so far."""
        smoothed = self.smoothed
        self._twin.load_state_dict(self._state)
        smoothed.feasible()
        multipliers = smoothed.softmax_multipliers(temperature)
        penalty = _PENALTY * multipliers.max().item()
        for step in range(steps):
            minimize(
                smoothed.parameters,
                partial(smoothed.augmented_lagrangian, multipliers, penalty),
                iterations,
            )
            with torch.no_grad():
                multipliers = smoothed.forces(multipliers, penalty)
            penalty *= _STIFFER
            self._left = steps - 1 - step
            self.keep(None)

    def hand_back(self) -> str:
        """The best point into the model, at the norm that the model had; a sentence that says
        so.
        """
        if not self._state:
            return ""
        self._twin.load_state_dict(self._state)
        smoothed = self.smoothed
        smoothed.normalize(self._size)
        report = measure(self._twin, self._samples, homogeneity=self._homogeneity)
        threshold = report.loss.log_threshold
        # At margin q all constraints together weigh at most n (C - 1) e^{-q}.
        enough = math.log(_RESERVE * smoothed.constraints) - threshold
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
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if frozen:
        raise ModelError(
            f"{frozen[0]} is frozen, but an ascent rescales every layer. Unfreeze it, or train the"
            " rest with nm.train."
        )


def _separate(model: nn.Module, samples: Arrays, progress: bool) -> int:
    """Train by SGD until all margins are positive, if they are not; the sample gradients that it
    took.
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
