"""Work of which half is none, although what it calls answers Ctrl-C with the best so far."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def whole_or_interrupted() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the work where Ctrl-C came and was caught within it.

    Solvers take Ctrl-C as a wish to return what they have, and the caller would not know that it
    was asked to stop. An error that followed from what they had gives way to the KeyboardInterrupt.

    Examples
    --------
    >>> import contextlib, signal
    >>> with contextlib.suppress(KeyboardInterrupt), whole_or_interrupted():
    ...     with contextlib.suppress(KeyboardInterrupt):
    ...         signal.raise_signal(signal.SIGINT)
    ...     raise ValueError("half of the work")
    """
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
