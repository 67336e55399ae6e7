"""A record of Ctrl-C that survives libraries which catch it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def record_interrupts() -> Iterator[list[int]]:
    """Yield a list that is empty until Ctrl-C, even where a library catches the KeyboardInterrupt.

    Solvers of other libraries take Ctrl-C as a wish to return what they have, and the caller would
    not know that it was asked to stop.
    """
    received: list[int] = []
    # Python delivers signals to the main thread, and lets no other one set a handler.
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def record(number: int, frame: object) -> None:
        # Recorded before it is raised: the record stays wherever the exception is caught.
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, record)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, before)
