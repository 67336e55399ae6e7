"""The options that all searches over neurons share."""

from dataclasses import dataclass

from ...core.arguments import (
    check_choice,
    check_count,
    check_number,
    check_seed,
    check_time_limit,
)


@dataclass(frozen=True)
class Options:
    """The options of a search over neurons, checked on construction (ArgumentError).

    Attributes
    ----------
    tol : float
        Relative gap at which to stop, between 0 and 1.
    time_limit : float or None
        Seconds, None for no limit.
    pricing : str
        How bounds are proved: "auto", "complete" or "local".
    seed : int
        Seed of the starts of local search.
    """

    tol: float
    time_limit: float | None
    pricing: str
    seed: int

    def __post_init__(self) -> None:
        check_number("tol", self.tol, above=0, below=1)
        check_time_limit(self.time_limit)
        check_choice("pricing", self.pricing, ("auto", "complete", "local"))
        check_seed(self.seed)


def read_options(tol, time_limit, pricing, seed) -> Options:
    """Check the options that all searches over neurons share, and return them as plain numbers."""
    tol, pricing = (
        check_number("tol", tol, above=0, below=1),
        check_choice("pricing", pricing, ("auto", "complete", "local")),
    )
    return Options(tol, check_time_limit(time_limit), pricing, check_seed(seed))


def check_power(power) -> int:
    """Check that the power is 1 (ReLU) or 2 (squared ReLU), and return it as an int."""
    return check_count("power", power, at_most=2)
