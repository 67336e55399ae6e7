"""The norms that margins are divided by, from the homogeneity of the net."""

import math

import torch
from torch import nn

from ..core.devices import where_float64_is
from ..errors import ModelError, NotHomogeneousError
from ..homogeneity import Homogeneity, Kind


def normalizing_homogeneity(homogeneity: Homogeneity) -> Homogeneity:
    """The homogeneity that margins are normalized by: later biases are ignored if only they block.

    Any other net keeps its own analysis, blockers included.
    """
    try:
        return homogeneity.ignoring_biases()
    except NotHomogeneousError:
        return homogeneity


def norms(model: nn.Module, homogeneity: Homogeneity) -> tuple[float, dict[str, float | None]]:
    """The norm ||theta|| over the parameters that count, and the `log_norms` of a `MarginReport`.

    Parameters
    ----------
    model : nn.Module
        The net, of which `homogeneity` was derived.
    homogeneity : Homogeneity
        Degrees of its parameters, and which parameters are ignored.

    Returns
    -------
    tuple of float and dict
        ||theta||, and natural logs by normalization, None where the net has none of that kind.

    Raises
    ------
    ModelError
        If all parameters are zero, or some are NaN or infinite.
    """
    counted = {n: p.detach() for n, p in model.named_parameters() if n not in homogeneity.ignored}
    squares = {
        n: torch.linalg.vector_norm(where_float64_is(p), dtype=torch.float64).item() ** 2
        for n, p in counted.items()
    }
    # Exact summation: the norm does not depend on the order of the parameters.
    total = math.fsum(squares.values())
    if total == 0:
        raise ModelError(
            "All parameters are zero, so the margin cannot be normalized. Initialize the model"
            " first."
        )
    if not math.isfinite(total):
        bad = [n for n, s in squares.items() if not math.isfinite(s)]
        raise ModelError(
            f"Parameter {bad[0]!r} holds NaN or infinite values. Load an earlier checkpoint, or"
            " lower the rate."
        )

    # Logs of norms, never norms to a power: ||theta||^L of a deep net overflows float64.
    def log_norm(names) -> float:
        square = math.fsum(squares[n] for n in names)
        return 0.5 * math.log(square) if square > 0 else -math.inf

    groups, members, order = homogeneity.groups, homogeneity.members, homogeneity.order
    log_norms: dict[str, float | None] = {"global": None, "layers": None, "partial": None}
    if order is not None:
        scaled = [n for name, k in groups.items() if k > 0 for n in members[name]]
        log_norms["partial"] = float(sum(k for k in groups.values() if k > 0)) * log_norm(scaled)
        # A partially homogeneous net has an order in its scaled part only.
        if homogeneity.kind in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS):
            log_norms["global"] = float(order) * log_norm(squares)
            log_norms["layers"] = math.fsum(
                float(k) * log_norm(members[name]) for name, k in groups.items() if k
            )
    return math.sqrt(total), log_norms
