"""The processes of a distributed run, where torch.distributed has some; one process otherwise."""

from typing import TypeVar

import torch.distributed as dist

Shared = TypeVar("Shared")


def is_first_process() -> bool:
    """Whether this process is the one that writes files: the only one, or that of rank 0."""
    return not _is_distributed() or dist.get_rank() == 0


def gather_from_processes(value: Shared) -> list[Shared]:
    """The values that all processes gave, in the order of their ranks; every process has to ask.

    Examples
    --------
    >>> gather_from_processes(3.5)
    [3.5]
    """
    if not _is_distributed():
        return [value]
    found: list = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


def _is_distributed() -> bool:
    """Whether this process is one of several that talk to each other."""
    return dist.is_available() and dist.is_initialized()
