"""What can bound the radii of a net: norms of its layers, proofs about dense layers, a judge."""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..nets.model import scores
from .exact.chain import Chain, read_chain
from .flips import BoundedScores, bound_layer_scores
from .lipschitz import chain_norms, run_layers
from .traced_layers import trace_layers

_MOST_UNITS = 1000
"""Hidden units up to which bounds of whole balls are tried without being asked for. Random nets,
seconds of one thread a sample: 784-256-256-10 took 0.9, 784-1000-10 and 784-512-512-10 five,
convolutions of 784 and 392 units nine, 784-1500-10 fourteen; convolutions of 1568 and 392 units,
784-1000-1000-10 and eight layers of 128 were not done with one rival after 39.
"""


class Methods(NamedTuple):
    """What bounds the radii of a net."""

    layers: list[nn.Module]  # the layers of the net, where all have a known Lipschitz constant
    # norms of the layers and differences of the last one's rows, where the net is their chain
    constants: tuple[list[float], Tensor] | None
    no_lower: str  # why there is no lower radius, or ""
    chain: Chain | None  # the net as dense layers, if it is that and something uses it
    no_chain: str  # why proofs of whole balls are not searched, where they could be asked for
    searched: Chain | None  # the chain, if they are searched
    judge: BoundedScores | None  # what bounds the rounding of the net's scores


def choose_methods(net: nn.Module, x: Tensor, effort: str, attacks: bool) -> Methods:
    """What can bound the radii of a net, of which x (n, ...) is a batch of inputs."""
    layers: list[nn.Module] = []
    constants, no_lower, judge = None, "", None
    # Nets without a known Lipschitz constant can still be attacked.
    try:
        layers = [named.layer for named in trace_layers(net, x)]
        require_same(net, layers, x)
        judge = partial(bound_layer_scores, layers, [])
        constants = chain_norms(layers, x)
        judge = partial(bound_layer_scores, layers, constants[0])
    except ModelError as error:
        no_lower = str(error)
    chain, no_chain = _read_chain(net, x, effort, attacks)
    searched = None if no_chain or effort == "quick" else chain
    if searched and not searched.slopes and constants and attacks:
        # Lipschitz constants of the gaps of linear nets are exact: with an attack nothing is
        # missing.
        searched = None
    return Methods(
        layers, constants, "" if searched else no_lower, chain, no_chain, searched, judge
    )


def require_same(net: nn.Module, layers: list[nn.Module], x: Tensor) -> None:
    """Raise ModelError where the scores of a net on a batch are not those of its layers."""
    with torch.no_grad():
        z, chained = scores(net, x), run_layers(layers, x).reshape(len(x), -1)
    size = float(z.nan_to_num(0.0, 0.0, 0.0).abs().max())  # of what is finite
    if not torch.allclose(z, chained, rtol=1e-9, atol=1e-9 * size):
        raise ModelError(
            "The net is not the chain of its layers, so that its Lipschitz constant is not known."
        )


def _read_chain(net: nn.Module, x: Tensor, effort: str, attacks: bool) -> tuple[Chain | None, str]:
    """Read the net as a chain, if something uses it and it is one; and why none is searched."""
    if effort == "quick" and not attacks:
        return None, ""
    try:
        chain = read_chain(net, x)
    except ModelError as error:
        return None, "" if effort == "quick" else str(error)
    units = sum(chain.widths[1:-1])
    if effort != "standard" or units <= _MOST_UNITS:
        return chain, ""
    return chain, (
        f"The net has {units:,} hidden units, and beyond {_MOST_UNITS:,} a bound of a whole ball"
        ' may take minutes a sample. effort="exact" tries it, best with a time_limit.'
    )
