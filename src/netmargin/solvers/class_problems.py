"""The problems of several classes in turn, or side by side, within one time limit."""

import time
from collections.abc import Callable

from joblib import Parallel, delayed

from ..core.deadline import Deadline
from ..result import Status


def search_all(
    search: Callable[[int, Deadline], None], count: int, deadline: Deadline, n_jobs: int | None
) -> list[tuple[Status, float]]:
    """Call `search` for the numbers below `count`, each with its part of the time that is left, in
    as many threads as `n_jobs` says; the compiled steps let them run side by side.

    Returns how each ended, and the seconds that it took: Ctrl-C ends all that are not done.
    """
    ended = [(Status.INTERRUPTED, 0.0)] * count

    def run(k: int) -> None:
        """Search for one, and note how it ended."""
        began = time.monotonic()
        # What one does not need of its part is there for the next ones.
        limit = Deadline(deadline.share(count - k if n_jobs in (None, 1) else 1))
        search(k, limit)
        status = Status.TIME_LIMIT if limit.passed else Status.STALLED
        ended[k] = (status, time.monotonic() - began)

    try:
        if n_jobs in (None, 1) or count == 1:
            for k in range(count):
                run(k)
        else:
            Parallel(n_jobs=n_jobs, backend="threading")(delayed(run)(k) for k in range(count))
    except KeyboardInterrupt:
        pass
    return ended
