"""The time limit of a whole call, handed down to everything that works for it."""

import math
import time

from .arguments import check_number, check_optional


class Deadline:
    """The moment at which a call must end, so many seconds from now; None for no limit."""

    def __init__(self, seconds: float | None) -> None:
        seconds = check_optional(check_number, "time_limit", seconds, at_least=0, infinite=True)
        # The monotonic clock: setting the time of day must not end a call.
        self.at = math.inf if seconds is None else time.monotonic() + seconds
        """The moment in seconds of `time.monotonic`; infinity for no limit."""

    @property
    def left(self) -> float:
        """The seconds until the deadline, at least 0."""
        return max(self.at - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the deadline is over."""
        return time.monotonic() >= self.at

    def share(self, parts: int) -> float | None:
        """Return the `time_limit` for the first of so many equal parts of the work that is left."""
        return None if self.at == math.inf else self.left / parts
