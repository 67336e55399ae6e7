"""Signals that end work: Ctrl-C where half of it is none, or in compiled programs, which see none;
SIGTERM where work can be saved.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
_POLL = 0.1
"""Seconds after which Ctrl-C is seen where another thread computes."""


@contextmanager
def whole_or_interrupted() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of work that caught Ctrl-C, as solvers do."""
    # Python delivers signals to the main thread, and lets no other one set a handler.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def record(number: int, frame: object) -> None:
        # Recorded before it is raised: the record stays wherever the exception is caught.
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, record)
    try:
        yield
    except Exception:
        if not received:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt


def run_apart(program: Callable[[], T], stop: Callable[[], Any]) -> T:
    """Run a compiled program in a thread, so that Ctrl-C is raised once `stop` has ended it."""
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        return program()
    with ThreadPoolExecutor(1) as thread:  # at whose end it is waited for
        try:
            ended = thread.submit(program)
            while not wait([ended], _POLL).done:
                pass
        except KeyboardInterrupt:
            stop()
            raise
        return ended.result()


class Termination:
    """SIGTERM as Ctrl-C within `interrupting`, once, for work that is saved when interrupted.

    What comes elsewhere waits, and ends the process at the end of the block. Where it is not
    `active`, not the main thread, or where the caller has a handler, nothing changes.
    """

    def __init__(self, active: bool) -> None:
        self._active, self._armed, self._told, self.received = active, False, False, False

    def __enter__(self) -> "Termination":
        # Python delivers signals to the main thread, and lets no other one set a handler.
        self._active = (
            self._active
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        )
        if self._active:
            signal.signal(signal.SIGTERM, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        if self._active:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if self.received and not self._told:
                signal.raise_signal(signal.SIGTERM)

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Raise KeyboardInterrupt within where SIGTERM comes, or has come before."""
        self._armed = True
        try:
            if self.received:
                self._interrupt()
            yield
        finally:
            self._armed = False

    def _receive(self, number: int, frame: Any) -> None:
        """The handler of the signal."""
        self.received = True
        if self._armed:
            self._interrupt()

    def _interrupt(self) -> None:
        """Raise KeyboardInterrupt, and none after it: the work is being saved then."""
        self._armed, self._told = False, True
        raise KeyboardInterrupt
