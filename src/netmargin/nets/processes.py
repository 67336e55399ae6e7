"""The processes of a distributed run, where torch.distributed has some; one process otherwise."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch.distributed as dist
from torch import Tensor

from ..errors import ArgumentError, NetmarginError

Shared = TypeVar("Shared")

_splitting: ContextVar[bool] = ContextVar("splitting", default=False)


class LostProcessError(NetmarginError):
    """Another process of a distributed run has gone, and its share of the samples with it."""


@contextmanager
def split_samples() -> Iterator[None]:
    """Let the processes that torchrun started share the samples of every call within.

    Every process makes the same calls, with the same model and the same data. `measure`, `train`,
    `input_margins`, `robustness` and `certify` give each of them a part of the batches to compute,
    and every process gets the whole result, as of one process. Other functions do all of their work
    in every process. Progress is shown, and history and checkpoints are written, by rank 0 only.

    Without this, every call is that of one process: nothing waits for the others, so that rank 0
    may measure by itself. With a single process nothing changes.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    ArgumentError
        torchrun started several processes, and torch.distributed is not initialized.

    Notes
    -----
    In the calls within, processes whose model or data differ raise `ModelError` or `DataError`; an
    error of one process is raised in all; and where a process has ended the others raise
    `NetmarginError`.

    Examples
    --------
    Started by `torchrun --nproc-per-node 2 script.py`, after `dist.init_process_group("gloo")`:

    >>> import torch, netmargin as nm
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> with nm.split_samples():
    ...     report = nm.measure(net, ([[1.0, 0.0], [0.0, -2.0]], [1, -1]))
    >>> round(report.normalized_margin, 6)
    0.6

    Beyond the papers.
    """
    if not _is_distributed() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ArgumentError(
            f"torchrun started {os.environ['WORLD_SIZE']} processes, which do not know each other"
            ' yet. Call torch.distributed.init_process_group("gloo") first; on GPUs "nccl", where'
            " torch.distributed.is_nccl_available()."
        )
    before = _splitting.set(True)
    try:
        yield
    finally:
        _splitting.reset(before)


@contextmanager
def alone() -> Iterator[None]:
    """Let this process compute by itself within, whatever the others do."""
    before = _splitting.set(False)
    try:
        yield
    finally:
        _splitting.reset(before)


def processes_sharing() -> int:
    """The number of processes that share the samples of a call; 1 outside of `split_samples`."""
    return dist.get_world_size() if _splitting.get() and _is_distributed() else 1


def is_own_batch(index: int) -> bool:
    """Whether this process computes the batch of this index; of one process it is every batch."""
    return processes_sharing() == 1 or index % dist.get_world_size() == dist.get_rank()


def share_of(count: int) -> slice:
    """The part of `count` things in a row that is this process's; it may be empty.

    Examples
    --------
    >>> share_of(5)
    slice(0, 5, None)
    """
    world = processes_sharing()
    if world == 1:
        return slice(0, count)
    return slice(count * dist.get_rank() // world, count * (dist.get_rank() + 1) // world)


def join_shares(work: Callable[[], Shared]) -> list[Shared]:
    """Do this process's share of some work, and return the results of all in order of their ranks.

    An error in one process is raised in all of them: its own where it has one, the first one
    otherwise. Where nothing is shared, the result is the only one.

    Raises LostProcessError where a process has ended.

    Examples
    --------
    >>> join_shares(lambda: 3.5)
    [3.5]
    """
    if processes_sharing() == 1:
        return [work()]
    try:
        mine = work()
    except LostProcessError:
        raise
    except Exception as error:  # whatever it is: the others would wait for this process forever
        gather_from_processes((None, _as_told(error)))
        raise
    found = gather_from_processes((mine, None))
    for _, failed in found:
        if failed is not None:
            raise failed
    return [result for result, _ in found]


def take_from_first(work: Callable[[], Shared]) -> Shared:
    """What rank 0 finds by some work, in all processes that share; its error is raised in all."""
    if processes_sharing() == 1:
        return work()
    found = join_shares(lambda: work() if is_first_process() else None)
    return found[0]  # type: ignore[return-value]


def sum_over_processes(numbers: Tensor) -> None:
    """Put the sum over all processes in place of numbers. Raises LostProcessError."""
    with _explain_lost_process():
        dist.all_reduce(numbers)


def is_first_process() -> bool:
    """Whether this process is the one that writes files: the only one, or that of rank 0."""
    return not _is_distributed() or dist.get_rank() == 0


def writes_for_all() -> bool:
    """Whether this process writes files and shows progress, for all that share the samples."""
    return processes_sharing() == 1 or is_first_process()


def gather_from_processes(value: Shared) -> list[Shared]:
    """The values that all processes gave, in the order of their ranks; every process has to ask.

    Raises LostProcessError where a process has ended.

    Examples
    --------
    >>> gather_from_processes(3.5)
    [3.5]
    """
    if not _is_distributed():
        return [value]
    found: list = [None] * dist.get_world_size()
    with _explain_lost_process():
        dist.all_gather_object(found, value)
    return found


@contextmanager
def _explain_lost_process() -> Iterator[None]:
    """Turn the RuntimeError of a collective into a LostProcessError, or what else it says."""
    try:
        yield
    except RuntimeError as error:
        said = str(error).partition("\n")[0]
        if "No backend type" in said:
            raise ArgumentError(
                f"The processes cannot exchange what is on this device ({said}): the backend is"
                f' {dist.get_backend()!r}. Call init_process_group("gloo") for models on CPUs,'
                ' "cpu:gloo,cuda:nccl" for GPUs.'
            ) from error
        raise LostProcessError(
            f"Another process of this run has ended or does not answer ({said[:200]}). Look for"
            " its own error above; the same command, with any number of processes, starts anew or"
            " goes on from the last checkpoint."
        ) from error


def _as_told(error: Exception) -> NetmarginError:
    """An error as other processes raise it: of types that every process can read."""
    if type(error).__module__ == NetmarginError.__module__:
        return type(error)(*error.args)  # type: ignore[return-value]
    return NetmarginError(f"Process {dist.get_rank()} failed: {type(error).__name__}: {error}")


def _is_distributed() -> bool:
    """Whether this process is one of several that talk to each other."""
    return dist.is_available() and dist.is_initialized()
