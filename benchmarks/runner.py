"""Times two callables in turn, so that whatever else the machine does hits both."""

import statistics
import time
from collections.abc import Callable


def compare(
    name: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    peer_name: str,
    *,
    repeats: int,
    target: float,
) -> None:
    """Print the median times of both, and the median ratio of neighbouring runs.

    The ratio is our time over that of the peer: below 1 is faster.
    """
    # First calls load libraries, start threads and allocate memory.
    for warm_up in (ours, peer, ours, peer):
        warm_up()
    times: list[tuple[float, float]] = []
    for index in range(repeats):
        # Who is first alternates: whatever comes second may find a warmer machine.
        pair = (ours, peer) if index % 2 == 0 else (peer, ours)
        first, second = _seconds(pair[0]), _seconds(pair[1])
        times.append((first, second) if index % 2 == 0 else (second, first))
    our_median, peer_median = (statistics.median(column) for column in zip(*times, strict=True))
    ratios = sorted(a / b for a, b in times)
    ratio, low, high = (
        statistics.median(ratios),
        ratios[len(ratios) // 4],
        ratios[-1 - len(ratios) // 4],
    )
    print(
        f"{name}: {1e3 * our_median:.2f} ms against {1e3 * peer_median:.2f} ms for {peer_name}: "
        f"ratio {ratio:.3f} (quartiles {low:.3f} to {high:.3f}, target at most {target})",
        flush=True,
    )


def _seconds(work: Callable[[], object]) -> float:
    """Time one call in seconds."""
    time.sleep(0.05)  # threads of the other may still spin
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
