"""Certified and attacked radii of a net on samples, batch by batch."""

from functools import partial

import numpy as np
import torch
from torch import nn

from ..core.arguments import check_choice, check_count, check_flag, check_number, check_optional
from ..core.caller import warn_caller
from ..errors import DataError, NetmarginError
from ..margins import measure
from ..nets.arrays import Arrays
from ..nets.data import Choice, Data, batches, read_model_and_data, takes_data
from ..nets.forward_faults import SAMPLES, require_no_faults
from ..nets.input_slopes import doubt_slopes
from ..nets.model import count_outputs, in_mode, with_gradients
from ..nets.named_inputs import UNMOVED, as_one_tensor
from ..nets.net_on_samples import NetOnSamples
from ..nets.threads import fitting_threads, one_thread_of_blas, work_of
from ..result import Status
from .attacks import ATTACKS, ScaledScores, nearest_misclassified
from .batch_radii import compute_batch, know_nothing, run_batches
from .certified import CERTIFICATES
from .chain_radii import EFFORTS, TREE, ChainRadii
from .input_box import InputBox, check_box
from .methods import choose_methods
from .report import RobustnessReport


@takes_data
@with_gradients
def robustness(
    model: nn.Module,
    data: Data,
    *,
    box: InputBox = None,
    attacks: bool = True,
    effort: str = "standard",
    tol: float = 1e-3,
    time_limit: float | None = None,
    batch_size: int = 100,
    progress: bool = True,
    scores: Choice | None = None,
) -> RobustnessReport:
    """Find how far each sample is from the nearest misclassified input, bounded from both sides.

    What lies nearer than `report.lower` is classified as the sample is: that much noise, damage or
    malice changes no answer. At `report.upper` an input that is misclassified was found; it stands
    in `report.flips`. `report.curve(epsilons)` says how many samples hold at each distance.

    The radius is inf {||x' - x||_2 : x' in the box is misclassified}, 0 for misclassified samples,
    of the net in exact arithmetic: both bounds allow for the rounding of float64.

    The lower radius is the largest of several certificates (docs/certified-radii.md), the upper one
    the distance of the nearest point that attacks (docs/attacked-radii.md), a random search and the
    search for proofs find: in the box, and misclassified by more than rounding, or only in float64
    where nothing bounds that (`upper_proved` says which).

    Ctrl-C returns the batches that are done, with `Status.INTERRUPTED`. To keep hours of work on
    disk, call this for slices of the samples and `save` each report: its radii are true by
    themselves, though attacks on other samples beside them may come nearer or less near.

    Parameters
    ----------
    model : torch.nn.Module
        A net with outputs (n,), (n, 1) or (n, C). A float64 copy of it is evaluated, in evaluation
        mode, on its device.
    data : pair (X, y), or iterable of (x, y) batches
        Inputs of shape (n, ...), in the units in which radii are given, and n labels, as for
        `measure` (docs/inputs.md).
    box : (float, float) or None, default None
        Smallest and largest value of an input, such as (0, 1) for images; None is all of R^d. Lower
        radii ignore it.
    attacks : bool, default True
        Whether misclassified inputs are looked for; False gives certified radii only.
    effort : "quick", "standard" or "exact", default "standard"
        Which certificates are tried: Lipschitz constants alone; bounds of whole balls as well, for
        up to 1,000 hidden units, a second or so for dense ones, a minute or more for several
        convolutions; or both for nets of any size, and trees, which take longer where samples are
        far from the boundary.
    tol : float, default 1e-3
        Relative gap (upper - lower) / upper up to which a radius counts as closed: nothing better
        is searched then.
    time_limit : float, optional
        Seconds after which the search of certificates ends; samples that are left share them
        evenly. Attacks and Lipschitz constants are not cut short.
    batch_size : int, default 100
        Samples that go through the net, or are attacked, at once.
    progress : bool, default True
        Whether to show batches and time left as they come.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

    Returns
    -------
    RobustnessReport
        Lower and upper radii, margins, the certificate that was largest and what found the nearest
        input, each of shape (n,); float64.

    Raises
    ------
    DataError
        The box is not a pair of finite numbers in ascending order, inputs lie outside it, or the
        data cannot be used, as in `measure`.
    ModelError
        The model cannot be used, as in `measure`, draws random numbers in evaluation mode, or has
        no gradient in its inputs; its samples see each other.
    ArgumentError
        Another argument cannot be used.

    Examples
    --------
    A linear net has the radius |w . x| / ||w||, and the third sample is misclassified:

    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> data = ([[1.0, 0.0], [0.0, -2.0], [0.0, 1.0]], [1, -1, -1])
    >>> report = nm.robustness(net, data, attacks=False, progress=False)
    >>> report.lower.round(9).tolist()
    [0.6, 1.6, 0.0]

    Source: Lyu and Li 2019, Appendix J.2 (who ran Carlini-Wagner); certificates as in Tsuzuku, Sato
    and Sugiyama 2018.
    """
    attacks, progress = check_flag("attacks", attacks), check_flag("progress", progress)
    batch_size = check_count("batch_size", batch_size)
    effort = check_choice("effort", effort, EFFORTS)
    tol = check_number("tol", tol, above=0, below=1)
    time_limit = check_optional(check_number, "time_limit", time_limit, at_least=0)
    model, samples = read_model_and_data(model, data)
    model, X = as_one_tensor(model, samples.X)
    scored = NetOnSamples(model, _prepare_inputs(model, Arrays(X, samples.y)))
    net, samples, first = scored.twin, scored.samples, scored.first_inputs(batch_size)
    net.requires_grad_(False)
    require_no_faults(net, scored.first_inputs(SAMPLES), weights=False)
    measured = measure(net, samples, batch_size=batch_size)
    with fitting_threads(work_of(net, first)):
        masked = doubt_slopes(net, scored.first_inputs(SAMPLES)) if attacks else ""
    if masked:
        warn_caller(masked)
    box = check_box(box, samples)
    correct = measured.q[measured.q > 0]
    scale = float(correct.median()) if len(correct) else 1.0
    methods = choose_methods(net, first, effort, attacks)
    attack = search = None
    if attacks:
        attack = partial(
            nearest_misclassified,
            net,
            box=box,
            scale=scale,
            chain=methods.chain,
            judge=methods.judge,
        )
    if methods.searched:
        scaled = ScaledScores(net, scale, methods.judge).eval()
        search = ChainRadii(scaled, methods.searched, box, effort, tol, time_limit)
    compute_radii = partial(
        compute_batch, net, methods=methods, attack=attack, search=search, tol=tol
    )
    # What is no number proves nothing, and is no news.
    quiet = np.errstate(all="ignore")
    with fitting_threads(work_of(net, first)), one_thread_of_blas(), quiet:
        found, status = run_batches(scored, batch_size, compute_radii, progress)
    flips = torch.cat([part["flips"] for part in found]).numpy() if found else None
    examined = sum(len(part["lower"]) for part in found)
    found.append(know_nothing(len(measured.q) - examined))
    rows = {name: torch.cat([part[name] for part in found]).numpy() for name in found[-1]}
    if status is Status.FINISHED and rows["over"].any():
        status = Status.TIME_LIMIT
    names = np.array([*ATTACKS, TREE, ""])  # index -1, for none, is the last
    return RobustnessReport(
        lower=rows["lower"],
        upper=rows["upper"],
        q=measured.q.double().numpy(),
        certified_by=np.array(CERTIFICATES)[rows["certified_by"]],
        found_by=names[rows["found_by"]],
        attacks=attacks,
        scale=scale,
        box=box,
        effort=effort,
        tol=tol,
        no_lower=methods.no_lower,
        no_chain=methods.no_chain,
        status=status,
        examined=examined,
        flips=flips if attacks or search else None,
        warning=" ".join(filter(None, (measured.warning, masked))),
        upper_proved=methods.judge is not None,
    )


def _prepare_inputs(model: nn.Module, samples: Arrays) -> Arrays:
    """Inputs as floats; single numbers and tokens are refused, and bytes where the net does so."""
    X = samples.X
    if X.ndim == 1:
        raise DataError(
            "Inputs are single numbers, of shape (N,). Give them a dimension, X.reshape(-1, 1), and"
            " a model that takes it."
        )
    if X.is_floating_point():
        return samples
    if X.dtype is torch.uint8:  # images: radii would be in another unit than the net's own
        _score_some(model, samples)
    floats = Arrays(X.double(), samples.y)
    try:
        _score_some(model, floats)
    except NetmarginError:
        try:
            _score_some(model, samples)
        except NetmarginError:
            pass
        else:
            raise DataError(
                f"The net takes whole numbers, such as tokens{UNMOVED} here give a net that takes"
                " that output, and the output as X."
            ) from None
        raise
    return floats


def _score_some(model: nn.Module, samples: Arrays) -> None:
    """Score a few samples. Raises what a net raises that does not take their kind of numbers."""
    with in_mode(model, training=False), torch.no_grad():
        count_outputs(model, next(batches(samples, SAMPLES, model))[0])
