"""The radii of one batch: Lipschitz constants, attacks, and the search for proofs."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..core.memory import advise_on_memory
from .attacks import Found
from .boundary import one_each
from .certified import (
    BRANCHES,
    LIPSCHITZ,
    MISCLASSIFIED,
    NOTHING,
    RELAXATION,
    certified_radii,
    score_margins,
)
from .chain_radii import ChainRadii
from .exact.chain import Chain
from .flips import BoundedScores, are_misclassified


def know_nothing(n: int) -> dict[str, Tensor]:
    """The radii of n samples of which nothing is known: anything from 0 on."""
    return {
        "lower": torch.zeros(n, dtype=torch.float64),
        "upper": torch.full((n,), math.inf, dtype=torch.float64),
        "found_by": torch.full((n,), -1),
        "certified_by": torch.full((n,), NOTHING),
        "over": torch.zeros(n, dtype=torch.bool),
    }


def compute_batch(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    waiting: int,
    tell: Callable[[str], None],
    *,
    constants: tuple[list[float], Tensor] | None,
    attack: Callable[[Tensor, Tensor], Found] | None,
    search: ChainRadii | None,
    judge: BoundedScores | None,
    chain: Chain | None,
    tol: float,
) -> dict[str, Tensor]:
    """Compute the radii of one batch.

    waiting : the samples still to come, this batch included. tell : shows a line of progress.
    Beside what `know_nothing` has there are `flips`, the nearest misclassified inputs found, NaN
    where none was.
    """
    rows = know_nothing(len(x))
    margins = score_margins(net, x, y).amin(1)
    correct = (margins > 0).cpu()
    # A sample that rounding may have put on the wrong side has its flip a little further.
    wrong = are_misclassified(judge, chain, x, y, margins).cpu()
    # The nearest misclassified point of a sample that is misclassified is the sample itself.
    rows["upper"][wrong] = 0.0
    rows["certified_by"][wrong] = NOTHING if judge is None else MISCLASSIFIED
    rows["flips"] = x.detach().cpu().masked_fill(one_each(~wrong, x), math.nan)
    if constants is not None:
        rows["lower"] = certified_radii(net, x, y, *constants).cpu().masked_fill(~correct, 0.0)
        rows["certified_by"][rows["lower"] > 0] = LIPSCHITZ
    if attack is not None and not wrong.all():
        found = attack(x[~wrong], y[~wrong])
        rows["upper"][~wrong], rows["found_by"][~wrong] = (
            found.distances.cpu(),
            found.found_by.cpu(),
        )
        rows["flips"][~wrong] = found.points.cpu()
    for n in torch.nonzero(correct).flatten().tolist() if search else ():
        lower, upper = float(rows["lower"][n]), float(rows["upper"][n])
        if lower >= (1 - tol) * upper:
            continue
        tell(f"sample {n + 1} of {len(x)}")
        assert search is not None
        with advise_on_memory(1):
            radius = search.bracket(x[n : n + 1], y[n : n + 1], upper, waiting - n)
        rows["over"][n] = radius.proved.over
        if radius.proved.lower > lower:
            rows["lower"][n] = radius.proved.lower
            rows["certified_by"][n] = BRANCHES if radius.proved.branched else RELAXATION
        if radius.upper < upper:
            rows["upper"][n], rows["found_by"][n] = radius.upper, -2  # TREE, the last but one
            rows["flips"][n] = radius.point
    return rows
