"""Memory: what is free, asked before it is taken, and what to try where it runs out in a pass."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from ..errors import DataError, OutOfMemoryError

_SYSTEM = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/statm")
"""Where Linux tells what is free, what a container may have, and what this process has taken."""

_SAID_OF_MEMORY = r"can't allocate memory|out of memory|_ALLOC_FAILED"
"""What a RuntimeError says where memory ran out: of the CPU's allocator, of Metal and of CUDA's
libraries, which raise no class of their own for it.
"""


def is_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on whatever device."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(re.search(_SAID_OF_MEMORY, str(error)))


@contextmanager
def advise_on_memory(samples: int) -> Iterator[None]:
    """Raise OutOfMemoryError, with fewer than these `samples` to try, where memory runs out."""
    try:
        yield
    except Exception as error:
        if not is_of_memory(error) or getattr(error, "samples", samples + 1) <= samples:
            raise
        # Chained to what torch itself raised.
        cause = error.__cause__ if isinstance(error, OutOfMemoryError) else error
        raise describe_shortage(cause or error, samples) from cause


def describe_shortage(error: BaseException, samples: int) -> OutOfMemoryError:
    """The error to raise for one of torch, raised while so many samples were at work."""
    what = f"{samples} samples" if samples > 1 else "a single sample"
    advice = (
        # A quarter: whoever has just run out of memory wants the next try to succeed.
        f"Try batch_size={max(samples // 4, 1)} (that of the DataLoader, where batches come from"
        " one); give a function without batch_size fewer samples."
        if samples > 1
        else "No batch is smaller: use more memory, a shorter floating type or a smaller net."
    )
    said = OutOfMemoryError(
        f"The memory does not suffice for {what} at once ({shorten(error)}). {advice}"
    )
    said.samples = samples
    return said


def shorten(error: BaseException) -> str:
    """What an allocator says that it was asked for, without its own advice."""
    text = str(error).partition("\n")[0].strip() or type(error).__name__
    asked = re.search(r"tried to allocate [\d.]+ ?\w+", text, re.IGNORECASE)
    return asked.group().replace("T", "t", 1) if asked else text[:160].rstrip(".")


def read_free_memory() -> int | None:
    """The bytes that machine, container and `ulimit -v` leave; None where Linux is not asked."""
    try:
        import resource  # which Windows lacks

        lines = dict(line.split(":", 1) for line in _SYSTEM.read_text().splitlines())
        free = 1024 * int(lines["MemAvailable"].split()[0])
        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            free = min(free, most - int(_OWN.read_text().split()[0]) * resource.getpagesize())
    except (ImportError, OSError, KeyError, ValueError):
        return None
    try:
        limit = int((_GROUP / "memory.max").read_text())  # a word where there is none
        taken = int((_GROUP / "memory.current").read_text())
        held = dict(line.split() for line in (_GROUP / "memory.stat").read_text().splitlines())
        return min(free, limit - taken + int(held["inactive_file"]))
    except (OSError, KeyError, ValueError):
        return free


def require_memory(needed: float, what: str, remedy: str) -> None:
    """Raise DataError where less than `needed` bytes, which `what` takes, are free."""
    free = read_free_memory()
    if free is not None and needed > free:
        raise DataError(
            f"{what} takes {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free."
            f" {remedy}"
        )
