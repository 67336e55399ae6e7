"""The clock of time limits, for machines that do other work too."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def clock_of_process() -> Iterator[None]:
    """Time limits count the CPU seconds of this process within."""
    with patch.object(time, "monotonic", time.process_time):
        yield
