"""The door to L2 robustness: certified and attacked radii of a net on samples, batch by batch."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ..core.accepted_models import require_repeatable
from ..core.arguments import check_count, check_flag, check_path, check_words
from ..core.batches import Arrays, Data
from ..core.doors import open_door_whole
from ..core.nets import scores
from ..core.progress import Progress
from ..core.scored_samples import ScoredSamples
from ..errors import DataError, Interrupted, ModelError
from ..margins import measure
from ..result import Status
from .attacks import ATTACKS, OWN, SEARCH, Found, nearest_misclassified
from .batch_files import BatchFiles
from .certified import certified_radii, score_margins
from .exact.chain import Chain, read_chain
from .input_box import check_box
from .lipschitz import chain_norms, layers_of
from .report import RobustnessReport


def robustness(
    model: nn.Module,
    data: Data,
    *,
    box: tuple[float, float] | None = None,
    attacks: Sequence[str] = (OWN,),
    carlini_wagner_steps: int = 300,
    batch_size: int = 100,
    folder: str | Path | None = None,
    progress: bool = True,
) -> RobustnessReport:
    """Bound the distance of every sample to the nearest misclassified input, from both sides.

    The radius is R(x, y) = inf {||x' - x||_2 : x' in the box is misclassified}; misclassified
    samples, q <= 0, have radius 0. Everything is computed in float64.

    The lower radius is certified: the score gaps over their Lipschitz constants, which are the
    product of the spectral norms of the layers (exact, bounds for large convolutions) with the
    differences of the last one's rows; for small piecewise linear nets also with the slopes of the
    sample's own linear region. The upper radius is the nearest of the points that DeepFool, DDN and
    Carlini-Wagner (foolbox) and a random search find. Each point is validated in float64 (it is
    misclassified and in the box; its distance is recomputed) and moved along the boundary to where
    that is nearest. Attacks see the scores divided by the median margin, so that the size of the
    parameters does not matter.

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
    attacks : sequence of str, default ("deepfool", "ddn", "carlini-wagner")
        The attacks to run, some of these; () gives certified radii only.
    carlini_wagner_steps : int, default 300
        Steps of Carlini-Wagner in each of its 6 binary search steps.
    batch_size : int, default 100
        Samples attacked at once.
    folder : str, Path or None, default None
        Folder for the radii of every batch as soon as it is done, made where it is not there; the
        same call goes on from it. Without one nothing is kept on disk.
    progress : bool, default True
        Whether to show batches and time left as they come.

    Returns
    -------
    RobustnessReport
        Lower and upper radii, margins and the attack that was nearest, each of shape (n,); float64.

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
        Attacks are asked for, and foolbox is not installed.
    CheckpointError
        The folder cannot be written, or holds results of another net, data or settings.
    Interrupted
        Ctrl-C was pressed, and there is a folder, which keeps the batches that are done. Without
        one they are returned, with `Status.INTERRUPTED`.

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
    batch_size, folder = (
        check_count("batch_size", batch_size),
        check_path("folder", folder, optional=True),
    )
    model, samples = open_door_whole(model, data)
    scored = ScoredSamples(model, _prepare_inputs(samples))
    net, samples = scored.twin, scored.samples
    _freeze(net)
    first = scored.first_inputs(batch_size)
    require_repeatable(net, first)
    measured = measure(net, samples)
    box = check_box(box, samples)
    correct = measured.q[measured.q > 0]
    scale = float(correct.median()) if len(correct) else 1.0
    # Nets without a known Lipschitz constant can still be attacked.
    try:
        constants, no_lower = _bound_chain(net, first), ""
    except ModelError as error:
        constants, no_lower = None, str(error)

    attack = partial(
        nearest_misclassified,
        net,
        attacks=attacks,
        box=box,
        scale=scale,
        steps=carlini_wagner_steps,
        chain=_read_chain_or_none(net, first),
    )
    compute_radii = partial(
        _compute_radii, net, constants=constants, attack=attack if attacks else None
    )
    files = BatchFiles(folder, net, samples, box, attacks, carlini_wagner_steps, batch_size)
    found, status = _run_batches(scored, batch_size, compute_radii, files, progress)
    examined = sum(len(part["lower"]) for part in found)
    found.append(_bracket_rest(measured.q[examined:]))
    lower, upper, by = (
        torch.cat([part[name] for part in found]).numpy() for name in ("lower", "upper", "found_by")
    )
    names = np.array([*attacks, SEARCH, ""])  # index -1, for none, is the last
    return RobustnessReport(
        lower,
        upper,
        measured.q.double().numpy(),
        names[by],
        attacks,
        scale,
        box,
        no_lower,
        status,
        examined,
    )


def _read_chain_or_none(net: nn.Module, x: Tensor) -> Chain | None:
    """Read a net as dense layers and kinks, if it is such a chain."""
    try:
        return read_chain(net, x)
    except ModelError:
        return None


def _bracket_rest(q: Tensor) -> dict[str, Tensor]:
    """What margins q alone say of radii: 0 for misclassified samples, else anything from 0 on."""
    lower = torch.zeros_like(q)
    upper, by = lower.masked_fill(q > 0, math.inf), torch.full((len(q),), -1)
    return {"lower": lower, "upper": upper, "found_by": by}


def _freeze(net: nn.Module) -> None:
    """Take gradients of parameters and in-place layers from a net."""
    # The inputs of ReLUs are looked at after these ran, so that none may work in place.
    for module in net.modules():
        if hasattr(module, "inplace"):
            setattr(module, "inplace", False)  # noqa: B010
    for parameter in net.parameters():
        parameter.requires_grad_(False)


def _run_batches(
    scored: ScoredSamples,
    batch_size: int,
    compute_radii: Callable[[Tensor, Tensor], dict[str, Tensor]],
    files: BatchFiles,
    progress: bool,
) -> tuple[list[dict[str, Tensor]], Status]:
    """Compute the radii of all batches that are not kept in files, or up to Ctrl-C.

    Raises Interrupted there, if a folder keeps what is done.
    """
    found: list[dict[str, Tensor]] = []
    total = math.ceil(len(scored) / batch_size)
    with Progress(progress, "robustness") as display:
        try:
            for index, (x, y) in enumerate(scored.batches(batch_size)):
                display.draw(index, total - index, f"batch {index + 1} of {total}")
                if (kept := files.read(index)) is None:
                    kept = compute_radii(x, y)
                    files.write(index, kept)
                found.append(kept)
        except KeyboardInterrupt:
            said = f"interrupted: {len(found)} of {total} batches are done"
            if files.folder is not None:
                raise Interrupted(
                    f"{said}; kept in {files.folder}; the same call goes on"
                ) from None
            display.say(said)
            return found, Status.INTERRUPTED
    return found, Status.FINISHED


def _compute_radii(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    constants: tuple[list[float], Tensor] | None,
    attack: Callable[[Tensor, Tensor], Found] | None,
) -> dict[str, Tensor]:
    """Compute the radii of one batch, and the index of the attack that was nearest, or -1."""
    n = len(x)
    lower = x.new_zeros(n) if constants is None else certified_radii(net, x, y, *constants)
    with torch.no_grad():
        correct = score_margins(net, x, y).amin(1) > 0
    upper, by = x.new_zeros(n).masked_fill(correct, math.inf), torch.full((n,), -1, device=x.device)
    # The nearest misclassified point of a sample that is misclassified is the sample itself.
    if attack is not None and correct.any():
        found = attack(x[correct], y[correct])
        upper[correct], by[correct] = found.distances, found.found_by
    return {"lower": lower.cpu(), "upper": upper.cpu(), "found_by": by.cpu()}


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
