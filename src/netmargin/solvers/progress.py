"""The progress of a solver: one live line on a terminal, a line now and then in a log file."""

import sys
import time
from types import TracebackType
from typing import Any

_LOG_EVERY_SECONDS = 10.0
"""Long runs leave a readable log, and short ones none."""


class Progress:
    """Shows the rounds of a solver, its margin or another `quantity`, and the value that no neuron
    found so far exceeds; use it as a context manager.
    """

    def __init__(self, shown: bool, title: str, quantity: str = "margin"):
        self._shown, self._title, self._quantity = shown, title, quantity
        self._live: Any = None
        self._started = self._logged = time.monotonic()

    def __enter__(self) -> "Progress":
        if self._shown and sys.stderr.isatty():
            # Only terminals need rich, which takes a while to load.
            from rich.console import Console

            self._live = Console(stderr=True).status(self._title)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, rounds: int, margin: float, upper: float) -> None:
        """Show one round: on a terminal at once, in a log file every few seconds."""
        if not self._shown:
            return
        now = time.monotonic()
        line = (
            f"{self._title}: round {rounds}  {self._quantity} {margin:.7g}  at most {upper:.7g} "
            f" {now - self._started:.0f} s"
        )
        if self._live is not None:
            self._live.update(line + "  (Ctrl-C returns the best so far)")
        elif now - self._logged > _LOG_EVERY_SECONDS:
            self._logged = now
            print(line, file=sys.stderr, flush=True)
