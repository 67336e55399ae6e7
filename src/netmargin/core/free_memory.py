"""How much memory a process may still take, asked before it is taken."""

from pathlib import Path

from ..errors import DataError

_SYSTEM = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
"""Where Linux tells what is free, and what a container may have."""


def read_free_memory() -> int | None:
    """The bytes that this process may still take; None where the system does not say (it is read
    from the files of Linux).

    In a container the least of what the machine and the container have left; what the container
    holds as a cache of files counts as free.
    """
    try:
        lines = dict(line.split(":", 1) for line in _SYSTEM.read_text().splitlines())
        free = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
    try:
        limit = int((_GROUP / "memory.max").read_text())  # a word where there is none
        taken = int((_GROUP / "memory.current").read_text())
        held = dict(line.split() for line in (_GROUP / "memory.stat").read_text().splitlines())
        return min(free, limit - taken + int(held["inactive_file"]))
    except (OSError, KeyError, ValueError):
        return free


def require_memory(needed: float, what: str, remedy: str) -> None:
    """Raise DataError where less than `needed` bytes are free: better than a process that the
    system kills after minutes. The message says `what` needs them and a `remedy`.
    """
    free = read_free_memory()
    if free is not None and needed > free:
        raise DataError(
            f"{what} takes {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free."
            f" {remedy}"
        )
