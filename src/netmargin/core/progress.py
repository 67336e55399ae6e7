"""The display of a run that goes on: a live line on a terminal, a line now and then in a log."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

_LOG_EVERY_SECONDS = 10.0
"""Time between lines where there is no terminal: 360 lines an hour can still be read."""

_part: ContextVar[Callable[[float, str], None] | None] = ContextVar("part", default=None)
"""What draws the share that is done of a part of larger work, and a line, on the line of the whole;
None where nothing larger is shown.
"""


class Progress:
    """A display of a run's state and of the time left, as a context manager; without arguments that
    of a part, which draws on the line of the whole where there is one.
    """

    def __init__(self, shown: bool = False, title: str = "") -> None:
        self._title, self._part = title, _part.get()
        self._shown = shown or self._part is not None
        self._bar: Any = None  # rich is imported only when there is a terminal to draw on
        self._task: Any = None
        self._started = self._logged = time.monotonic()
        self._first: float | None = None  # where the run stood at the first line: it may be resumed

    def __enter__(self) -> "Progress":
        # On stderr, since stdout may be piped into a file or another program.
        alone = self._shown and self._part is None
        if alone and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(20),
                TextColumn("{task.fields[line]}"),
                TimeElapsedColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=False)
            self._task = self._bar.add_task(self._title, total=None, line="starting")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def draw(self, done: float, left: float | None, line: str, aside: str = "") -> None:
        """Show a line, and the time left by amounts of work done and left, where known."""
        if not self._shown:
            return
        if self._part is not None:
            self._part(0.0 if left is None else done / (done + left or 1), line)
            return
        now = time.monotonic()
        if self._first is None:
            self._first = done
        if left is not None and done > self._first:
            pace = (now - self._started) / (done - self._first)
            line += f"  {timedelta(seconds=int(pace * max(left, 0)))} left"
        if self._bar is not None:
            total = None if left is None else done + max(left, 0)
            self._bar.update(self._task, completed=done, total=total, line=line + aside)
        elif now - self._logged > _LOG_EVERY_SECONDS:
            self._logged = now
            say(f"{self._title}: {line}")

    @contextmanager
    def part(self, name: str, done: float, size: float, total: float) -> Iterator[None]:
        """Within it other displays draw on this line, as a part of the work after what is done."""

        def draw(share: float, line: str) -> None:
            here = done + share * size
            self.draw(here, total - here, f"{name}, {line}")

        token = _part.set(draw)
        try:
            draw(0.0, "starting")
            yield
        finally:
            _part.reset(token)

    def say(self, text: str) -> None:
        """Print a sentence that stays on the screen."""
        if self._shown:
            say(text)


def say(text: str) -> None:
    """Print to the standard error; where it is closed or full, work goes on without it."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        drop_output(sys.stderr)


def drop_output(stream: Any) -> None:
    """Drop what is still to be written, or the interpreter would try once more, and fail."""
    with suppress(OSError, ValueError, AttributeError):  # not all streams have a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
