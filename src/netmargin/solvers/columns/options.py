"""The options that all searches over neurons share."""

from dataclasses import dataclass

from ...core.arguments import check_choice, check_count, check_number, check_seed
from ...core.deadline import Deadline


@dataclass(frozen=True)
class Options:
    """The options of a search over neurons, as `read_options` checks them.

    Attributes
    ----------
    tol : float
        Relative gap at which to stop, between 0 and 1.
    deadline : float
        Time (time.monotonic) at which to stop; infinity for no limit.
    pricing : str
        How bounds are proved: "auto", "complete" or "local".
    seed : int
        Seed of the starts of local search.
    """

    tol: float
    deadline: float
    pricing: str
    seed: int


def read_options(tol, time_limit, pricing, seed) -> Options:
    """Check the options that all searches over neurons share; the time limit begins here.

    Raises ArgumentError for what is out of range.
    """
    return Options(
        check_number("tol", tol, above=0, below=1),
        Deadline(time_limit).at,
        check_choice("pricing", pricing, ("auto", "complete", "local")),
        check_seed(seed),
    )


def check_power(power) -> int:
    """Check that the power is 1 (ReLU) or 2 (squared ReLU), and return it as an int."""
    return check_count("power", power, at_most=2)
