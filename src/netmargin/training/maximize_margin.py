"""Ascending the smoothed normalized margin itself, with falling temperature: far quicker than a flow that does so at log speed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from ..batches import Arrays, Data
from ..errors import ModelError, NotHomogeneousError, NotSeparatedError
from ..gradients import double_twin
from ..homogeneity import Kind
from ..kkt import KKTCertificate, certify
from ..kkt.problem import in_memory
from ..losses import CrossEntropy
from ..margins import MarginReport, measure
from .history import History
from .lbfgs import minimize
from .loop import flushed_denormals, train
from .progress import Progress
from .smoothed_margin import SmoothedMargin
from .stopping import Epochs, Separated

_SEPARATING_EPOCHS = 200
_LOOKS = 4
_PENALTY, _STIFFER = 0.3, 1.1
"""Penalty relative to the largest multiplier at first, and its growth per step: weak, so that each subproblem is well conditioned."""


@dataclass
class MarginAscent(History):
    """Rows of a margin ascent, one per temperature or multiplier step; the keys are temperature (None before and after), gradient_samples and those of `MarginReport.to_dict()`.

    report : margins at the end. certificate : how far from a KKT point that is; None, with a reason in `status`, where `certify` refuses the net.
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
    """Ascend the normalized margin of a homogeneous net from where it is; the model is changed in place, its layers balanced.

    Maximizes -T log sum exp(-s_nj / T), s_nj the gaps Phi_{y_n} - Phi_j divided by the product of layer norms (multi-homogeneous nets) or by
    ||theta||^L, by L-BFGS, for falling temperatures T. A net that does not separate the data yet is first
    trained until it does (`train` with its defaults). Where gradient flow increases the margin like a power of log t, this ascends it directly; both
    end at KKT points, not always the same.

    Parameters
    ----------
    temperatures : relative to the median margin at the beginning of each stage, falling. iterations : of L-BFGS in each stage, about as many
        gradient evaluations. multiplier_steps : finish by this many steps of the method of multipliers for min ||theta||^2 / 2 subject to s_nj >= 1, each with
        as many iterations again; smooth nets then come close to a KKT point. radius : of the final certificate (`certify`).
    progress : show temperature and margin as they come.

    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> data = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    >>> ascent = nm.maximize_margin(net, data, progress=False)
    >>> abs(ascent.report.normalized_margin - 3 / 2**0.5) < 1e-4, ascent.certificate.relative_epsilon < 0.01
    (True, True)

    Raises
    ------
    NotHomogeneousError : the net has no homogeneity order. NotSeparatedError : the data cannot be separated by it from where it is. DataError, ModelError : as `measure`. Ctrl-C keeps the best net so far and raises.

    Beyond the papers; the smoothed margin is that of Lyu and Li 2019, Definitions A.3 and G.1, with the temperature as inverse scale.
    """
    if not (len(temperatures) and min(temperatures) > 0 and iterations >= 1 and multiplier_steps >= 0):
        raise ValueError(
            f"need positive temperatures, iterations >= 1 and multiplier_steps >= 0; got {temperatures}, {iterations}, {multiplier_steps}"
        )
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if frozen:
        raise ModelError(
            f"{frozen[0]} is frozen, but an ascent rescales every layer. Unfreeze it, or train the rest with nm.train."
        )
    samples = in_memory(data)
    homogeneity = measure(model, samples).homogeneity
    if homogeneity.kind not in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS) or homogeneity.ignored:
        raise NotHomogeneousError(
            "The net has no homogeneity order, so its margin has no normalization to ascend in:\n  "
            + "\n  ".join(map(str, homogeneity.blockers or homogeneity.ignored))
        )
    layers = homogeneity.kind is Kind.MULTI_HOMOGENEOUS
    separating = _separate(model, samples, progress)
    twin = double_twin(model)
    smoothed = SmoothedMargin(twin, samples, homogeneity, layers)
    smoothed.gradient_samples = separating
    ascent = MarginAscent()
    with flushed_denormals(), Progress(progress, "maximize margin") as display:
        smoothed.normalize()
        best, state = -math.inf, {}

        def keep(temperature: float | None) -> None:
            nonlocal best, state
            report = measure(twin, samples, homogeneity=homogeneity)
            margin = report.layer_normalized_margin if layers else report.normalized_margin
            assert margin is not None
            head = {"epoch": len(ascent.rows), "temperature": temperature, "gradient_samples": smoothed.gradient_samples}
            ascent.rows.append(head | report.to_dict())
            display.show(ascent.rows[-1], len(temperatures) + 1 - len(ascent.rows))
            if margin > best:
                best, state = margin, {n: p.detach().clone() for n, p in twin.state_dict().items()}

        try:
            keep(None)
            for share in temperatures:
                temperature = share * smoothed.margins().clamp(min=0).median().item()
                smoothed.active = smoothed.near(temperature)
                for _ in range(_LOOKS):
                    minimize(smoothed.parameters, partial(smoothed.loss, temperature), iterations)
                    near = smoothed.near(temperature)
                    if torch.isin(near, smoothed.active).all():
                        break
                    smoothed.active = torch.unique(torch.cat([smoothed.active, near]))
                keep(temperature)
            if multiplier_steps:
                twin.load_state_dict(state)
                smoothed.feasible()
                multipliers = smoothed.softmax_multipliers(temperatures[-1])
                penalty = _PENALTY * multipliers.max().item()
                for _ in range(multiplier_steps):
                    minimize(smoothed.parameters, partial(smoothed.augmented_lagrangian, multipliers, penalty), iterations)
                    with torch.no_grad():
                        multipliers = smoothed.forces(multipliers, penalty)
                    penalty *= _STIFFER
                    keep(None)
        finally:
            if state:
                twin.load_state_dict(state)
                smoothed.normalize()
                model.load_state_dict(twin.state_dict())
    ascent.report = measure(twin, samples, loss=CrossEntropy(), homogeneity=homogeneity)
    ascent.status = f"margin {best:.6g} after {smoothed.gradient_samples:,} sample gradients"
    try:
        ascent.certificate = certify(twin, samples, radius=radius)
    except ModelError as error:
        ascent.status += f"; no certificate: {error}"
    return ascent


def _separate(model: nn.Module, samples: Arrays, progress: bool) -> int:
    """Train by SGD until all margins are positive, if they are not; the sample gradients that it took."""
    if measure(model, samples).q_min > 0:
        return 0
    history = train(model, samples, until=[Separated(), Epochs(_SEPARATING_EPOCHS)], progress=progress)
    if measure(model, samples).q_min > 0:
        return history.rows[-1]["gradient_samples"]
    raise NotSeparatedError(
        f"The net still misclassifies samples after {len(history.rows) - 1} epochs of nm.train ({history.status}). "
        "Train it first with other settings, or check the data for equal inputs with different labels."
    )
