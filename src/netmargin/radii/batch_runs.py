"""The radii of all samples, batch by batch, shared between processes."""

import math
from collections.abc import Callable
from functools import partial

from torch import Tensor

from ..core.memory import advise_on_memory
from ..core.progress import Progress
from ..nets.net_on_samples import NetOnSamples
from ..nets.shared import is_own_batch, join_shares, processes_sharing, writes_for_all
from ..result import Status

_KEPT_NUMBERS = 2_000_000
"""Numbers of misclassified inputs that are kept: 16 MB, those of 2,500 images of 28x28."""

Radii = dict[str, Tensor]
"""What `compute_batch` says of one batch."""


def run_batches(
    scored: NetOnSamples,
    batch_size: int,
    compute_radii: Callable[..., Radii],
    progress: bool,
) -> tuple[list[Radii], Status]:
    """Compute the radii of all batches, or of the first ones up to Ctrl-C.

    Processes that share the samples compute some of the batches each, and all of them have all
    radii; Ctrl-C leaves them without a result.
    """
    found: list[tuple[int, Radii]] = []
    total = math.ceil(len(scored) / batch_size)
    own = [number for number in range(total) if is_own_batch(number)]

    def compute_share() -> list[tuple[int, Radii]]:
        with Progress(progress and writes_for_all(), "robustness") as display:
            for number, (x, y) in enumerate(scored.batches(batch_size)):
                if number not in own:
                    continue
                line = f"batch {number + 1} of {total}"
                display.draw(number, total - number, line)
                # The samples that are left to this process share what is left of its time.
                waiting = sum(
                    min(batch_size, len(scored) - later * batch_size)
                    for later in own
                    if later >= number
                )
                tell = partial(_tell, display, number, total, line)
                with advise_on_memory(len(x)):
                    radii = compute_radii(x, y, waiting, tell)
                room = max(0, _KEPT_NUMBERS // x[0].numel() - number * batch_size)
                radii["flips"] = radii["flips"][:room].clone()
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


def _tell(display: Progress, number: int, total: int, line: str, more: str) -> None:
    """Show what is done within a batch."""
    display.draw(number, total - number, f"{line}, {more}")
