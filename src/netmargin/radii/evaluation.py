"""The door to L2 robustness: certified and attacked radii of a net on samples, batch by batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from ..core.arguments import (
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_words,
)
from ..errors import DataError, ModelError
from ..margins import measure
from ..nets.arrays import Arrays
from ..nets.data import Data, read_model_and_data, takes_data
from ..nets.model import require_repeatable, scores, with_gradients
from ..nets.named_inputs import as_one_tensor
from ..nets.net_on_samples import NetOnSamples
from ..nets.threads import fitting_threads, one_thread_of_blas, work_of
from ..result import Status
from .attacks import ATTACKS, OWN, SEARCH, nearest_misclassified
from .batch_radii import compute_batch, know_nothing
from .batch_runs import run_batches
from .certified import CERTIFICATES
from .chain_radii import EFFORTS, TREE, ChainRadii, explain_size
from .exact.chain import Chain, read_chain
from .flips import BoundedScores, choose_judge
from .input_box import check_box
from .lipschitz import chain_norms, layers_of
from .report import RobustnessReport


@takes_data
@with_gradients
def robustness(
    model: nn.Module,
    data: Data,
    *,
    box: tuple[float, float] | None = None,
    attacks: Sequence[str] = (OWN,),
    carlini_wagner_steps: int = 300,
    effort: str = "standard",
    tol: float = 1e-3,
    time_limit: float | None = None,
    batch_size: int = 100,
    progress: bool = True,
) -> RobustnessReport:
    """Bound the distance of every sample to the nearest misclassified input, from both sides.

    The radius is R(x, y) = inf {||x' - x||_2 : x' in the box is misclassified}, 0 for misclassified
    samples, of the net in exact arithmetic. Everything is computed in float64, and both bounds
    allow for its rounding.

    The lower radius is certified, and per sample the largest of its certificates. One is the score
    gaps over their Lipschitz constants, which are the product of the spectral norms of the layers
    (exact, bounds for large convolutions) with the differences of the last one's rows; for small
    piecewise linear nets also with the slopes of the sample's own linear region. The others are for
    chains of dense layers with ReLUs, LeakyReLUs or absolute values between them (convolutions and
    average pools are written out, BatchNorm is folded, an own forward is traced): multipliers prove
    that no rival wins in the whole ball (standard), or in regions that cover it (exact), and lower
    meets upper to `tol` if there is time. Our own judge checks every such proof in float64, with
    all rounding accounted for.

    The upper radius is the distance of the nearest point that our own attack (walks towards the
    nearest rivals, then descents through linear regions, see docs/attacked-radii.md), others that
    are asked for, a random search and the search for proofs find. Each point is judged: it is in
    the box, its distance is recomputed, and it is misclassified by more than rounding, or only in
    float64 where nothing bounds that (`upper_proved` says which). Attacks see the scores divided by
    the median margin, so that the size of the parameters does not matter.

    Ctrl-C returns the batches that are done, with `Status.INTERRUPTED`. To keep hours of work on
    disk, call this for slices of the samples, 100 at a time say, and `save` each report: the
    radius of a sample does not depend on the others.

    Parameters
    ----------
    model : torch.nn.Module
        A net with outputs (n,), (n, 1) or (n, C). A float64 copy of it is evaluated, in evaluation
        mode, on its device.
    data : pair (X, y), or iterable of (x, y) batches
        Inputs of shape (n, ...), in the units in which radii are given, and n labels, as for
        `measure`. Inputs by name, such as a dict with `labels`, are read as well: see
        docs/inputs.md.
    box : (float, float) or None, default None
        Smallest and largest value of an input, such as (0, 1) for images; None is all of R^d. Lower
        radii ignore it.
    attacks : sequence of str, default ("walk",)
        The attacks to run: "walk" is our own; "deepfool", "ddn" and "carlini-wagner" are those of
        the library foolbox, for comparison; () gives certified radii only.
    carlini_wagner_steps : int, default 300
        Steps of Carlini-Wagner in each of its 6 binary search steps, where it runs.
    effort : "quick", "standard" or "exact", default "standard"
        Which certificates are tried: Lipschitz constants alone; bounds of whole balls as well,
        in fractions of a second a sample for some hundred units, and seconds for a thousand, beyond
        which there are none; or both for nets of any size, and trees, which take longer where
        samples are far from the boundary.
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

    Returns
    -------
    RobustnessReport
        Lower and upper radii, margins, the certificate that was largest and the attack that was
        nearest, each of shape (n,); float64.

    Raises
    ------
    DataError
        The box is not a pair of finite numbers in ascending order, inputs lie outside it, or the
        data cannot be used, as in `measure`.
    ModelError
        The model cannot be used, as in `measure`, or draws random numbers in evaluation mode.
    ArgumentError
        Another argument cannot be used.
    MissingLibraryError
        Attacks of foolbox are asked for, and it is not installed.

    Examples
    --------
    A linear net has the radius |w . x| / ||w||, and the third sample is misclassified:

    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> data = ([[1.0, 0.0], [0.0, -2.0], [0.0, 1.0]], [1, -1, -1])
    >>> report = nm.robustness(net, data, attacks=(), progress=False)
    >>> report.lower.round(9).tolist()
    [0.6, 1.6, 0.0]

    Source: Lyu and Li 2019, Appendix J.2 (who ran Carlini-Wagner); certificates as in Tsuzuku, Sato
    and Sugiyama 2018.
    """
    attacks, progress = check_words("attacks", attacks, ATTACKS), check_flag("progress", progress)
    carlini_wagner_steps = check_count("carlini_wagner_steps", carlini_wagner_steps)
    batch_size = check_count("batch_size", batch_size)
    effort = check_choice("effort", effort, EFFORTS)
    tol = check_number("tol", tol, above=0, below=1)
    time_limit = check_number("time_limit", time_limit, at_least=0, optional=True)
    model, samples = read_model_and_data(model, data)
    model, X = as_one_tensor(model, samples.X)
    samples = Arrays(X, samples.y)
    scored = NetOnSamples(model, _prepare_inputs(samples))
    net, samples = scored.twin, scored.samples
    _freeze(net)
    first = scored.first_inputs(batch_size)
    require_repeatable(net, first)
    measured = measure(net, samples, batch_size=batch_size)
    box = check_box(box, samples)
    correct = measured.q[measured.q > 0]
    scale = float(correct.median()) if len(correct) else 1.0
    methods = _choose_methods(net, first, effort, attacks)
    attack = partial(
        nearest_misclassified,
        net,
        attacks=attacks,
        box=box,
        scale=scale,
        steps=carlini_wagner_steps,
        chain=methods.chain,
        judge=methods.judge,
    )
    search = None
    if methods.chain is not None and methods.searches:
        search = ChainRadii(
            net,
            methods.chain,
            scale=scale,
            box=box,
            effort=effort,
            tol=tol,
            time_limit=time_limit,
            judge=methods.judge,
        )
    compute_radii = partial(
        compute_batch,
        net,
        constants=methods.constants,
        attack=attack if attacks else None,
        search=search,
        judge=methods.judge,
        chain=methods.chain,
        tol=tol,
    )
    # What is no number proves nothing, and is no news.
    quiet = np.errstate(all="ignore")
    with fitting_threads(work_of(net, first)), one_thread_of_blas(), quiet:
        found, status = run_batches(scored, batch_size, compute_radii, progress)
    examined = sum(len(part["lower"]) for part in found)
    if status is Status.FINISHED and any(part["over"].any() for part in found):
        status = Status.TIME_LIMIT
    flips = _join_flips(found) if attacks or search else None
    found.append(know_nothing(len(measured.q) - examined))
    rows = {name: torch.cat([part[name] for part in found]).numpy() for name in found[-1]}
    names = np.array([*attacks, SEARCH, TREE, ""])  # index -1, for none, is the last
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
        flips=flips,
        warning=measured.warning,
        upper_proved=methods.judge is not None,
    )


@dataclass(frozen=True)
class _Methods:
    """What bounds the radii of a net."""

    # norms of the layers and differences of the last one's rows, where the net is their chain
    constants: tuple[list[float], Tensor] | None
    no_lower: str  # why there is no lower radius, or ""
    chain: Chain | None  # the net as dense layers, if it is that and something uses it
    no_chain: str  # why proofs of whole balls are not searched, where they could be asked for
    searches: bool  # whether they are searched
    judge: BoundedScores | None  # what bounds the rounding of the net's scores


def _choose_methods(net: nn.Module, x: Tensor, effort: str, attacks: Sequence[str]) -> _Methods:
    """What can bound the radii of a net, of which x (n, ...) is a batch of inputs."""
    # Nets without a known Lipschitz constant can still be attacked.
    try:
        constants, no_lower = _bound_chain(net, x), ""
    except ModelError as error:
        constants, no_lower = None, str(error)
    chain, no_chain = _read_chain(net, x, effort, attacks)
    searches = chain is not None and not no_chain and effort != "quick"
    if chain is not None and not chain.slopes and constants is not None and attacks:
        # Lipschitz constants of the gaps of linear nets are exact: with an attack nothing is
        # missing.
        searches = False
    judge = choose_judge(net, constants and constants[0], chain)
    return _Methods(constants, "" if searches else no_lower, chain, no_chain, searches, judge)


def _join_flips(found: list[dict]) -> np.ndarray | None:
    """The inputs that were found in all batches that are done; None where none is."""
    return torch.cat([part["flips"] for part in found]).numpy() if found else None


def _freeze(net: nn.Module) -> None:
    """Take gradients of parameters and in-place layers from a net."""
    # The inputs of ReLUs are looked at after these ran, so that none may work in place.
    for module in net.modules():
        if hasattr(module, "inplace"):
            setattr(module, "inplace", False)  # noqa: B010
    for parameter in net.parameters():
        parameter.requires_grad_(False)


def _prepare_inputs(samples: Arrays) -> Arrays:
    """Convert integer inputs to floats, and refuse inputs that are single numbers."""
    X = samples.X
    if X.ndim == 1:
        raise DataError(
            "Inputs are single numbers, of shape (N,). Give them a dimension, X.reshape(-1, 1), and"
            " a model that takes it."
        )
    return samples if X.is_floating_point() else Arrays(X.double(), samples.y)


def _bound_chain(net: nn.Module, x: Tensor) -> tuple[list[float], Tensor]:
    """Bound the norms of a chain of layers, after checking on a batch that the chain is the net."""
    with torch.no_grad():
        z, chained = scores(net, x), x
        for layer in layers_of(net):
            chained = layer(chained)
    if not torch.allclose(z, chained.reshape(len(x), -1), rtol=1e-9, atol=0):
        raise ModelError(
            "The net is not the chain of its layers, so that its Lipschitz constant is not known."
        )
    return chain_norms(net, x)


def _read_chain(
    net: nn.Module, x: Tensor, effort: str, attacks: Sequence[str]
) -> tuple[Chain | None, str]:
    """Read the net as a chain, if something uses it and it is one; and why none is searched."""
    if effort == "quick" and OWN not in attacks:
        return None, ""
    try:
        chain = read_chain(net, x)
    except ModelError as error:
        return None, "" if effort == "quick" else str(error)
    return chain, explain_size(chain) if effort == "standard" else ""
