"""Certificates: the smallest epsilon at which a net is an (epsilon, delta)-KKT point."""

import math
import time

import torch
from torch import nn

from ..core.arguments import check_choice, check_count, check_flag, check_number, check_seed
from ..core.memory import advise_on_memory
from ..core.progress import Progress
from ..losses import Loss, as_loss
from ..nets.data import Choice, Data, takes_data
from ..nets.model import with_gradients
from ..nets.shared import writes_for_all
from ..nets.threads import fitting_threads
from ..result import Status
from .certificate import KKTCertificate
from .constraint_search import ConstraintSearch
from .constraints import BATCH
from .loss_multipliers import measure_loss_multipliers
from .problem import NORMS, Problem
from .subgradients import check_radius, kink_share, within_radius


@takes_data
@with_gradients
def certify(
    model: nn.Module,
    data: Data,
    *,
    norm: str = "global",
    loss: Loss | str | nn.Module | None = None,
    radius: float = 0.0,
    tol: float = 5e-3,
    max_constraints: int = 2000,
    batch_size: int = BATCH,
    seed: int = 0,
    progress: bool = True,
    scores: Choice | None = None,
) -> KKTCertificate:
    """Measure how far a net is from a KKT point of the max-margin problem, and bound it from below.

    Read `relative_epsilon`, epsilon / ||theta~||, between 0 and 1: at 0 the net is a KKT point,
    where to first order no small change of the weights of a smooth net gains margin; at 1 it is
    nothing like one, and more training, or `maximize_margin`, would gain. `epsilon_lower` is what
    no choice of multipliers falls below, and `support` are the samples on which the margin rests.

    `KKTCertificate` states the problem, whose KKT points all limit directions of gradient flow are.
    The smallest epsilon over multipliers lambda >= 0 is a nonnegative least squares problem.
    Constraints near the margin enter first, then those that lower epsilon most, until the rest are
    proved not to matter, but for rounding, as docs/conventions.md says. Ctrl-C returns the best so
    far, with `Status.INTERRUPTED`.

    Parameters
    ----------
    model : torch.nn.Module
        A net that classifies all samples correctly, homogeneous in the sense that `norm` asks for.
        It is not changed; a float64 copy of it is evaluated, in evaluation mode.
    data : pair (X, y), or iterable of (x, y) batches
        Inputs and labels, as for `measure`; batches are read once and held in memory.
    norm : {"global", "layers", "partial"}, default "global"
        "global" is the norm of all parameters. "layers" is the product of layer norms instead, or
        (P) after the layers of a multi-homogeneous net are rescaled to ||W_i||^2 proportional to
        k_i (a KKT point is balanced like that). "partial" is min ||w||^2 / 2 over the parameters w
        with positive exponent only; in the others the gradient of the Lagrangian is to vanish.
    loss : Loss, str, torch.nn.Module or None, default None
        That of the alignment and of the multipliers of Lemma C.8, as for `measure`.
    radius : float, default 0.0
        A share of ||theta~||, below 1; if positive, gradients from points that near theta~ take
        part too: max-margin ReLU nets sit on kinks, where one gradient is not enough.
    tol : float, default 5e-3
        Gap between epsilon and its lower bound, relative to ||theta~||, up to which completeness is
        ALL or PROVED.
    max_constraints : int, default 2000
        The number of constraints that may take part; memory and time grow with its square.
    batch_size : int, default 64
        Samples per pass in float64, twice as many in float32. More are seldom quicker.
    seed : int, default 0
        Seed of the random points within the radius.
    progress : bool, default True
        Whether to show the constraints that take part, epsilon and the time left as they come.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

    Returns
    -------
    KKTCertificate
        Epsilon and its lower bound, delta, the multipliers and their samples; float64.

    Raises
    ------
    NotSeparatedError
        Some margin is not positive, or not told apart from 0 in float64.
    NotHomogeneousError
        The net is not homogeneous in the sense that `norm` asks for; later biases that are all 0
        count as absent.
    DataError
        The data cannot be used, as in `measure`.
    ModelError
        The model cannot be used, as in `measure`, or `measure` would warn of it; or its gradients
        are not those of its outputs.
    ArgumentError
        Another argument cannot be used.

    Examples
    --------
    The weights are the max-margin direction of these two points:

    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[1.0, 1.0]]))
    >>> certificate = nm.certify(net, ([[2.0, 0.0], [0.0, -2.0]], [1, -1]))
    >>> certificate.epsilon < 1e-12, certificate.multipliers.tolist(), certificate.support.tolist()
    (True, [0.25, 0.25], [0, 1])

    Source: Lyu and Li 2019, Theorem 4.4, Definition C.6, Lemma C.8 and Appendix F; for the radius
    Dutta et al. 2013.
    """
    norm, loss = check_choice("norm", norm, NORMS), as_loss(loss)
    radius = check_radius(radius)
    tol = check_number("tol", tol, above=0, below=1)
    max_constraints, seed = check_count("max_constraints", max_constraints), check_seed(seed)
    batch_size, progress = check_count("batch_size", batch_size), check_flag("progress", progress)
    started = time.monotonic()
    with advise_on_memory(batch_size):
        problem = Problem(model, data, norm=norm, loss=loss, batch_size=batch_size)
        with fitting_threads(problem.constraints.scored.work):
            by_loss = measure_loss_multipliers(problem)
            with Progress(progress and writes_for_all(), "certify") as display:
                search = ConstraintSearch(problem, tol, max_constraints, display)
                status = search.run()
                found = search.recompute()
                near, share = (found.epsilon, found.delta), None
                if radius > 0 and status is not Status.INTERRUPTED:
                    chosen, first = search.chosen, search.multipliers
                    wide = within_radius(
                        problem, chosen, first, radius=radius, seed=seed, display=display
                    )
                    near, status = min(near, (wide.epsilon, wide.delta)), wide.status
                    share = kink_share(problem, chosen, found.multipliers, radius)
    order = torch.argsort(found.multipliers, descending=True, stable=True)
    order = order[found.multipliers[order] > 0]
    return KKTCertificate(
        epsilon=found.epsilon,
        epsilon_lower=min(search.lower, found.epsilon),
        delta=found.delta,
        norm=problem.norm,
        order=problem.order,
        q_min=problem.report.q_min,
        q_rounding=problem.q_rounding,
        constraints=torch.stack(
            [search.chosen.samples[order], search.chosen.classes[order]], 1
        ).cpu(),
        multipliers=found.multipliers[order].cpu(),
        alignment=by_loss.alignment,
        loss_epsilon=problem.norm * math.sqrt(max(2 - 2 * by_loss.alignment, 0.0)),
        loss_delta=by_loss.delta,
        lemma_delta=by_loss.bound,
        completeness=found.completeness,
        status=status,
        radius=radius,
        radius_epsilon=near[0],
        radius_delta=near[1],
        kink_share=share,
        seconds=time.monotonic() - started,
        samples=problem.report.n,
        _gram=search.gram,
        _values=search.values,
    )
