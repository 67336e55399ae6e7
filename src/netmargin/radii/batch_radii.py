"""The radii of all samples, batch by batch: Lipschitz constants, attacks, the search for proofs."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..core.memory import advise_on_memory
from ..core.progress import Progress
from ..nets.net_on_samples import NetOnSamples
from ..nets.shared import is_own_batch, join_shares, processes_sharing, writes_for_all
from ..result import Status
from .attacks import Found
from .boundary import compute_margin, one_each
from .certified import BRANCHES, LIPSCHITZ, MISCLASSIFIED, NOTHING, RELAXATION, certified_radii
from .chain_radii import ChainRadii
from .flips import are_misclassified
from .methods import Methods, require_same

_KEPT_NUMBERS = 2_000_000
"""Numbers of misclassified inputs that are kept: 16 MB, those of 2,500 images of 28x28."""

Radii = dict[str, Tensor]
"""What `compute_batch` says of one batch."""


def know_nothing(n: int) -> Radii:
    """The radii of n samples of which nothing is known: anything from 0 on."""
    return {
        "lower": torch.zeros(n, dtype=torch.float64, device="cpu"),
        "upper": torch.full((n,), math.inf, dtype=torch.float64, device="cpu"),
        "found_by": torch.full((n,), -1, device="cpu"),
        "certified_by": torch.full((n,), NOTHING, device="cpu"),
        "over": torch.zeros(n, dtype=torch.bool, device="cpu"),
    }


def compute_batch(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    waiting: int,
    *,
    methods: Methods,
    attack: Callable[[Tensor, Tensor], Found] | None,
    search: ChainRadii | None,
    tol: float,
) -> Radii:
    """Compute the radii of one batch.

    waiting : the samples still to come. Beside what `know_nothing` has there are `flips`, the
    nearest misclassified inputs found, NaN for none.
    """
    display, rows = Progress(), know_nothing(len(x))
    margins = compute_margin(net, x, y)
    correct = (margins > 0).cpu()
    # A sample that rounding may have put on the wrong side has its flip a little further.
    wrong = are_misclassified(methods.judge, methods.chain, x, y, margins).cpu()
    # The nearest misclassified point of a sample that is misclassified is the sample itself.
    rows["upper"][wrong] = 0.0
    rows["certified_by"][wrong] = NOTHING if methods.judge is None else MISCLASSIFIED
    rows["flips"] = x.detach().cpu().masked_fill(one_each(~wrong, x), math.nan)
    if methods.constants is not None:
        require_same(net, methods.layers, x)
        certified = certified_radii(methods.layers, x, y, *methods.constants)
        rows["lower"] = certified.cpu().masked_fill(~correct, 0.0)
        rows["certified_by"][rows["lower"] > 0] = LIPSCHITZ
    if attack is not None and not wrong.all():
        # Before a search it is no sample's end.
        with display.part("attack", 0, 0 if search else len(x), len(x)):
            attacked = attack(x[~wrong], y[~wrong])
        for name, found in zip(("upper", "flips", "found_by"), attacked, strict=True):
            rows[name][~wrong] = found.cpu()
    for n in torch.nonzero(correct).flatten().tolist() if search else ():
        lower, upper = float(rows["lower"][n]), float(rows["upper"][n])
        if lower >= (1 - tol) * upper:
            continue
        display.draw(n, len(x) - n, f"{n} done")
        assert search is not None
        with advise_on_memory(1):
            proved, nearer, flip = search.bracket(x[n : n + 1], y[n : n + 1], upper, waiting - n)
        rows["over"][n] = proved.over
        if proved.lower > lower:
            rows["lower"][n] = proved.lower
            rows["certified_by"][n] = BRANCHES if proved.branched else RELAXATION
        if nearer < upper:  # by TREE, the last but one
            rows["upper"][n], rows["found_by"][n], rows["flips"][n] = nearer, -2, flip
    return rows


def run_batches(
    scored: NetOnSamples, batch_size: int, compute_radii: Callable[..., Radii], progress: bool
) -> tuple[list[Radii], Status]:
    """Compute the radii of all batches, or of the first ones up to Ctrl-C.

    Processes that share the samples have all radii, and after Ctrl-C none.
    """
    found: list[tuple[int, Radii]] = []
    total = math.ceil(len(scored) / batch_size)
    own = [number for number in range(total) if is_own_batch(number)]

    def compute_share() -> list[tuple[int, Radii]]:
        with Progress(progress and writes_for_all(), "robustness") as display:
            for number, (x, y) in enumerate(scored.batches(batch_size)):
                if number not in own:
                    continue
                # The samples that are left to this process share what is left of its time.
                starts = [later * batch_size for later in own if later >= number]
                waiting = sum(min(batch_size, len(scored) - start) for start in starts)
                done, n = starts[0], len(scored)
                shown = f"samples {done + 1} to {done + len(x)} of {n}"
                with advise_on_memory(len(x)), display.part(shown, done, len(x), n):
                    radii = compute_radii(x, y, waiting)
                kept = max(0, _KEPT_NUMBERS // x[0].numel() - number * batch_size)
                radii["flips"] = radii["flips"][:kept].clone()
                found.append((number, radii))
        return found

    try:
        shares = join_shares(compute_share)
    except KeyboardInterrupt:
        # What other processes have found is not known here.
        if processes_sharing() > 1:
            raise
        said = f"interrupted: {len(found)} of {total} batches are done"
        Progress(progress, "robustness").say(said)
        return [radii for _, radii in found], Status.INTERRUPTED
    rows = sorted((pair for share in shares for pair in share), key=lambda pair: pair[0])
    return [radii for _, radii in rows], Status.FINISHED
