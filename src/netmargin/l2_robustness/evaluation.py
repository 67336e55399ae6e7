"""Certified and attacked L2 radii of a net on samples, batch by batch."""

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ..core.accepted_models import require_repeatable
from ..core.arguments import check_count, check_flag, check_path, check_words
from ..core.batches import Arrays, Data, Labels, as_arrays, batches
from ..core.nets import float64_copy, scores
from ..core.progress import Progress
from ..errors import CheckpointError, DataError, Interrupted, ModelError
from ..margins import measure
from ..training import checkpoint
from .attacks import ATTACKS, SEARCH, nearest_misclassified
from .certified import certified_radii, score_margins
from .lipschitz import chain_norms, layers_of
from .report import RobustnessReport

_ROOM = 4.0
_BOX_ROUNDING = 1e-6


def robustness(
    model: nn.Module,
    data: Data,
    *,
    box: tuple[float, float] | None = None,
    attacks: Sequence[str] = ATTACKS,
    carlini_wagner_steps: int = 300,
    batch_size: int = 100,
    folder: str | Path | None = None,
    progress: bool = True,
) -> RobustnessReport:
    """R(x, y) = inf {||x' - x||_2 : x' in the box is misclassified}, for every sample: a certified
    lower and an attacked upper radius.

    lower : the score gaps over their Lipschitz constants, the product of the spectral norms of the
        layers (exact, bounds for large convolutions) with the differences of the last one's rows;
        for small piecewise linear nets also with the slopes of the sample's own linear region.
        upper : the nearest of what DeepFool, DDN and Carlini-Wagner find (foolbox), each point
        judged again in float64 (misclassified, in the box, its distance) and moved along the
        boundary to where that is nearest. Attacks see the scores divided by the median margin, so
        that the size of the parameters does not matter. Misclassified samples, q <= 0, have radius
        0.

    Parameters
    ----------
    model : with outputs (N,), (N, 1) or (N, C); evaluated in evaluation mode and float64, on its
        device.
    data : (X, y), or batches, as for `measure`.
    box : smallest and largest value of an input, such as (0, 1) for images; None for all of R^d.
        Lower radii ignore it.
    attacks : some of "deepfool", "ddn", "carlini-wagner"; () for certified radii alone.
    carlini_wagner_steps : in each of its 6 binary search steps.
    batch_size : samples attacked at once.
    folder : keeps every batch as soon as it is done; the same call goes on from there.
    progress : show batches and time left.

    Raises
    ------
    DataError : a box that is none, inputs outside it; as `measure`.
    ModelError : as `measure`, and a model with noise in evaluation mode.
    ArgumentError : another argument that cannot be used.
    MissingLibraryError : attacks without foolbox.
    CheckpointError : a folder that cannot be written, or holds results of something else.
        Interrupted :

    Ctrl-C; the folder keeps the batches that are done.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> report = nm.robustness(net, ([[1.0, 0.0], [0.0, -2.0], [0.0, 1.0]], [1, -1, -1]), attacks=(), progress=False)
    >>> report.lower.round(9).tolist()          # |w . x| / ||w||, and 0 where it is misclassified
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
    samples = _inputs(as_arrays(data))
    net = float64_copy(model)
    for module in net.modules():
        if hasattr(module, "inplace"):
            setattr(module, "inplace", False)  # noqa: B010  # what enters a ReLU is looked at afterwards
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    first, _ = next(batches(samples, batch_size, net))
    require_repeatable(net, first)
    measured = measure(net, samples)
    box = _checked_box(box, samples)
    bounds = _room(samples) if box is None else box
    correct = measured.q[measured.q > 0]
    scale = float(correct.median()) if len(correct) else 1.0
    try:
        constants, no_lower = _checked_lipschitz(net, first), ""
    except ModelError as error:
        constants, no_lower = None, str(error)

    store = _Batches(folder, net, samples, box, attacks, carlini_wagner_steps, batch_size)
    labels = Labels(1)
    found: list[dict[str, Tensor]] = []
    total = math.ceil(len(samples) / batch_size)
    with Progress(progress, "robustness") as display:
        try:
            for index, (x, y) in enumerate(batches(samples, batch_size, net)):
                display.draw(index, total - index, f"batch {index + 1} of {total}")
                if (kept := store.read(index)) is None:
                    with torch.no_grad():
                        labels.outputs = scores(net, x).shape[1]
                    encoded = labels.encode(y).to(x.device)
                    kept = _radii(
                        net,
                        x,
                        encoded,
                        constants,
                        bounds,
                        box,
                        attacks,
                        carlini_wagner_steps,
                        scale,
                    )
                    store.write(index, kept)
                found.append(kept)
        except KeyboardInterrupt:
            where = (
                "nothing is on disk: no folder was given"
                if folder is None
                else f"kept in {folder}; the same call goes on"
            )
            raise Interrupted(
                f"interrupted: {len(found)} of {total} batches are done; {where}"
            ) from None
    lower, upper, by = (
        torch.cat([part[name] for part in found]).numpy() for name in ("lower", "upper", "found_by")
    )
    names = np.array([*attacks, SEARCH, ""])  # -1 is the last
    return RobustnessReport(
        lower,
        upper,
        measured.q.double().numpy(),
        names[by],
        attacks,
        scale,
        box,
        no_lower,
    )


def _radii(
    net,
    x: Tensor,
    y: Tensor,
    constants: tuple[list[float], Tensor] | None,
    bounds,
    box,
    attacks,
    steps: int,
    scale: float,
) -> dict[str, Tensor]:
    n = len(x)
    lower = x.new_zeros(n) if constants is None else certified_radii(net, x, y, *constants)
    with torch.no_grad():
        correct = score_margins(net, x, y).amin(1) > 0
    upper, by = x.new_zeros(n).masked_fill(correct, math.inf), torch.full((n,), -1, device=x.device)
    if attacks and correct.any():
        upper[correct], by[correct] = nearest_misclassified(
            net,
            x[correct],
            y[correct],
            attacks=attacks,
            bounds=bounds,
            clipped=box is not None,
            scale=scale,
            steps=steps,
        )
    return {"lower": lower.cpu(), "upper": upper.cpu(), "found_by": by.cpu()}


def _inputs(samples: Arrays) -> Arrays:
    """As floats, at least one per sample."""
    X = samples.X
    if X.ndim == 1:
        raise DataError(
            "Inputs are single numbers, of shape (N,). Give them a dimension, X.reshape(-1, 1), and"
            " a model that takes it."
        )
    return samples if X.is_floating_point() else Arrays(X.double(), samples.y)


def _checked_lipschitz(net: nn.Module, x: Tensor) -> tuple[list[float], Tensor]:
    """Constants of the chain of layers, after it was seen to be the net."""
    with torch.no_grad():
        z, chained = net(x), x
        for layer in layers_of(net):
            chained = layer(chained)
    if not torch.allclose(z.reshape(len(x), -1), chained.reshape(len(x), -1), rtol=1e-9, atol=0):
        raise ModelError(
            "The net is not the chain of its layers, so that its Lipschitz constant is not known."
        )
    return chain_norms(net, x)


def _checked_box(box, samples: Arrays) -> tuple[float, float] | None:
    """The box, wider by what rounding put outside it. Raises DataError."""
    if box is None:
        return None
    try:
        low, high = (float(value) for value in box)
    except (TypeError, ValueError):
        raise DataError(
            "box must be a pair, the smallest and the largest value of an input, such as (0, 1);"
            f" got {box!r}"
        ) from None
    if not -math.inf < low < high < math.inf:
        raise DataError(
            f"box must be a pair of finite numbers, the smaller first, such as (0, 1); got {box!r}."
            " Use None for all of R^d."
        )
    rounding = _BOX_ROUNDING * (high - low)
    outside = int(
        ((low - rounding > samples.X) | (high + rounding < samples.X)).flatten(1).any(1).sum()
    )
    least, most = float(samples.X.min()), float(samples.X.max())
    if outside:
        raise DataError(
            f"{outside} of {len(samples)} inputs lie outside the box [{low:g}, {high:g}]: their"
            f" values go from {least:g} to {most:g}. Scale them, or give their box."
        )
    return min(low, least), max(high, most)


def _room(samples: Arrays) -> tuple[float, float]:
    """Bounds that attacks, which need some, will hardly feel."""
    least, most = float(samples.X.min()), float(samples.X.max())
    room = _ROOM * max(most - least, abs(most), abs(least), 1e-6)
    return least - room, most + room


class _Batches:
    """Results in files, one per batch, and which call they are of."""

    def __init__(self, folder: str | Path | None, net: nn.Module, samples: Arrays, *settings):
        self._folder = None if folder is None else Path(folder)
        if self._folder is None:
            return
        digest = hashlib.sha256(repr((settings, net)).encode())
        tensors = [
            *net.named_parameters(),
            *net.named_buffers(),
            ("X", samples.X),
            ("y", samples.y),
        ]
        for name, tensor in tensors:
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(
                tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            )
        self._key = digest.hexdigest()

    def _file(self, index: int) -> Path:
        assert self._folder is not None
        return self._folder / f"batch-{index:05d}.pt"

    def read(self, index: int) -> dict[str, Tensor] | None:
        if self._folder is None or not self._file(index).exists():
            return None
        kept = checkpoint.load(self._file(index))
        if kept.get("key") != self._key:
            raise CheckpointError(
                f"{self._folder} holds results of another net, other data or settings. Choose"
                " another folder."
            )
        return kept

    def write(self, index: int, result: dict[str, Tensor]) -> None:
        if self._folder is not None:
            checkpoint.save(self._file(index), {"key": self._key, **result})
