"""The options that all searches over neurons share."""

from dataclasses import dataclass
from typing import Any

from ...core.arguments import check_choice, check_count, check_number, check_seed
from ...core.deadline import Deadline
from ...core.parallel import count_threads
from ...errors import ArgumentError
from ..neurons.activations import RELU, Activation, read_activation, squared


@dataclass(frozen=True)
class Options:
    """The options of a search over neurons, as `read_options` checks them."""

    tol: float  # relative gap at which to stop, between 0 and 1
    deadline: float  # time (time.monotonic) at which to stop; infinity for no limit
    pricing: str  # "auto", "complete" or "local"
    seed: int  # of the starts of local search
    threads: int = 1  # that prove targets
    activation: Activation = RELU  # of the neurons


def read_options(
    tol: Any,
    time_limit: Any,
    pricing: Any,
    seed: Any,
    n_jobs: Any = None,
    activation: Any = "relu",
    power: Any = 1,
) -> Options:
    """Check the options, of which the time limit begins here, and the activation, of degree 1, or
    squared ReLU for power 2. Raises ArgumentError.
    """
    phi = read_activation(activation, squares=False)
    if check_count("power", power, at_most=2) == 2:
        if phi != RELU:
            raise ArgumentError("power=2 is for ReLU alone. Leave out power, or activation.")
        phi = squared(phi)
    return Options(
        check_number("tol", tol, above=0, below=1),
        Deadline(time_limit).at,
        check_choice("pricing", pricing, ("auto", "complete", "local")),
        check_seed(seed),
        count_threads(n_jobs),
        phi,
    )
