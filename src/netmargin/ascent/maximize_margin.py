"""Ascent of the smoothed normalized margin itself, with falling temperature.

Gradient flow of the loss increases the margin like a power of log t; this is far quicker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from ..core.arguments import check_count, check_flag, check_numbers
from ..core.progress import Progress
from ..errors import DataError, ModelError, NotSeparatedError
from ..kkt import KKTCertificate, certify
from ..kkt.subgradients import check_radius
from ..margins import MarginReport, measure
from ..nets.arrays import Arrays
from ..nets.data import Choice, Data, batches, read_model_and_data, takes_data
from ..nets.equal_samples import describe_contradictions
from ..nets.model import require_differentiable, with_gradients
from ..nets.threads import fitting_threads, work_of
from ..result import Status
from ..training.history import History
from ..training.loop import train
from ..training.stopping import Epochs, Separated
from .stages import Ascent

_SEPARATING_EPOCHS = 200
"""Epochs of `train` for a net that does not separate the data yet: a bound, so that data that
cannot be separated end in an error; `train` itself stops at the first epoch that separates.
"""


@dataclass(repr=False)
class MarginAscent(History):
    """A margin ascent: one row per temperature or multiplier step, and the net that was reached.

    Keys of `rows`: epoch (index of the row), temperature (None before the first stage and for
    multiplier steps), gradient_samples (samples that went through a backward pass so far) and those
    of `MarginReport.to_dict()`. They are about nets of norm sqrt(L), at which the ascent works:
    their normalized margins are those of the net at any norm, their loss and q_min are not.
    `status` is FINISHED, or INTERRUPTED: the net that was handed back is the best so far; `message`
    says its margin, what it took, and the norm at which it was handed back.
    """

    #: Margins of the model as it was handed back, in the model's own dtype
    report: MarginReport | None = None
    #: How far the net that was handed back is from a KKT point; None, with a reason in `message`,
    #: where `certify` refuses the net, or Ctrl-C came before it
    certificate: KKTCertificate | None = None

    def _describe_end(self) -> dict[str, Any]:
        """Numbers of the net that was handed back."""
        return super()._describe_end() if self.report is None else self.report.to_dict()


@takes_data
@with_gradients
def maximize_margin(
    model: nn.Module,
    data: Data,
    *,
    temperatures: Sequence[float] = (0.1, 0.03, 0.01, 0.003),
    iterations: int = 100,
    multiplier_steps: int = 0,
    radius: float = 0.0,
    progress: bool = True,
    scores: Choice | None = None,
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
    the norm that is kept is smaller than that, `message` says by how much.

    Ctrl-C ends with the best net so far and `Status.INTERRUPTED`, mostly without a certificate.

    Parameters
    ----------
    model : torch.nn.Module
        A homogeneous net, all of whose parameters require gradients. It is changed in place to the
        best net found, and keeps device and dtype; pass `copy.deepcopy(model)` to keep it.
    data : pair or iterable
        Inputs and labels as for `measure`, also by name (docs/inputs.md); read into memory once.
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
        Whether to show temperature and margin as they come.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

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
    ArgumentError, DataError, ModelError
        An argument cannot be used, as for `measure`; a parameter is frozen.

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
    radius, progress = check_radius(radius), check_flag("progress", progress)
    model, samples = read_model_and_data(model, data)
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if frozen:
        raise ModelError(
            f"{frozen[0]} is frozen, but an ascent rescales every layer. Unfreeze it, or train the"
            " rest with nm.train."
        )
    x, _ = next(batches(samples, len(samples), model))
    require_differentiable(model, x)
    with fitting_threads(work_of(model, x)):
        homogeneity = measure(model, samples, statistics="fixed").homogeneity
        homogeneity.require_order(model)
        separating, status = _separate(model, samples, progress)
        if status is Status.INTERRUPTED:
            report = measure(model, samples)
            return MarginAscent(
                [], status, "interrupted while the net was trained to separate the data", report
            )
        homogeneity.require_order(model)  # training moves biases that were 0
        with Progress(progress, "maximize margin") as display:
            ascent = Ascent(model, samples, homogeneity, display, fresh=separating > 0)
            ascent.smoothed.gradient_samples = separating
            # `finally`: also after an error the caller gets the best net so far.
            try:
                ascent.keep(None)
                ascent.cool(temperatures, iterations)
                if multiplier_steps:
                    ascent.step_multipliers(temperatures[-1], multiplier_steps, iterations)
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
            finally:
                scale = ascent.hand_back()
        # Measured in the model's own dtype, in which the caller goes on, not in that of the ascent.
        report = measure(model, samples, homogeneity=homogeneity)
        spent = f"{ascent.smoothed.gradient_samples:,} sample gradients"
        message = f"margin {ascent.margin_of(report):.6g} after {spent}; {scale}"
        found = MarginAscent(ascent.rows, status, message, report)
        if status is Status.INTERRUPTED:
            found.message = f"interrupted: {message}; no certificate"
            return found
        # The ascent is worth having without a certificate, which some nets cannot have.
        try:
            found.certificate = certify(model, samples, radius=radius, progress=progress)
            found.status = found.certificate.status
        except (ModelError, DataError) as error:
            found.message += f"; no certificate: {error}"
        except KeyboardInterrupt:
            found.status = Status.INTERRUPTED
        if found.status is Status.INTERRUPTED:
            found.message += "; interrupted before the certificate was complete"
        return found


def _separate(model: nn.Module, samples: Arrays, progress: bool) -> tuple[int, Status]:
    """Train until all margins are positive; the sample gradients that it took, and how it ended."""
    if measure(model, samples).q_min > 0:
        return 0, Status.FINISHED
    if said := describe_contradictions(model, samples):
        raise NotSeparatedError(said)
    history = train(
        model, samples, until=[Separated(), Epochs(_SEPARATING_EPOCHS)], progress=progress
    )
    if history.status is Status.INTERRUPTED:
        return 0, history.status
    if measure(model, samples).q_min > 0:
        return history.rows[-1]["gradient_samples"], Status.FINISHED
    raise NotSeparatedError(
        f"The net still misclassifies samples after {len(history.rows) - 1} epochs of nm.train"
        f" ({history.message}). Train it first with other settings, or take more units."
    )
