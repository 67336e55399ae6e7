"""Samples shared by the processes of torch.distributed; one process where it runs none."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..errors import ArgumentError, DataError, ModelError, NetmarginError
from .named_inputs import tensors_of

Shared = TypeVar("Shared")

_splitting: ContextVar[bool] = ContextVar("splitting", default=False)


class LostProcessError(NetmarginError):
    """Another process of a distributed run has gone, and its share of the samples with it."""


@contextmanager
def split_samples() -> Iterator[None]:
    """Let the processes that torchrun started share the samples of every call within.

    Every process makes the same calls, with the same model and the same data. `measure`,
    `input_margins`, `robustness` and `certify` give each of them a part of the batches to compute,
    and every process gets the whole result, as of one process. `train` is refused; other functions
    do all of their work in every process. Progress is shown by rank 0 only.

    Without this, and with a single process, every call is that of one process.

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
            f"torchrun started {os.environ['WORLD_SIZE']} processes, which do not know each other."
            ' Call torch.distributed.init_process_group("gloo"), on GPUs "nccl", first.'
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


def join_shares(work: Callable[[], Shared]) -> list[Shared]:
    """Do this process's share of some work; return all results, or raise what one raised."""
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


def is_first_process() -> bool:
    """Whether this process is the one that writes files: the only one, or that of rank 0."""
    return not _is_distributed() or dist.get_rank() == 0


def writes_for_all() -> bool:
    """Whether this process shows progress, for all that share the samples."""
    return processes_sharing() == 1 or is_first_process()


def gather_from_processes(value: Shared) -> list[Shared]:
    """The values of all processes, in the order of their ranks; every process has to ask."""
    if not _is_distributed():
        return [value]
    found: list[Any] = [None] * dist.get_world_size()
    try:
        dist.all_gather_object(found, value)
    except RuntimeError as error:
        said = str(error).partition("\n")[0][:200]
        raise LostProcessError(
            f"Another process of this run has ended or does not answer ({said}). Look for its own"
            " error above, then start the same command again."
        ) from error
    return found


class Sameness:
    """Digests of a model and of the batches that a process read, to compare with others."""

    def __init__(self, model: nn.Module) -> None:
        self._model, self._data = model, hashlib.blake2b(digest_size=16)

    def add(self, x: Any, y: Tensor) -> None:
        """Count a batch in; its size counts as well."""
        if processes_sharing() > 1:
            self._data.update(digest_of(x, y))

    def describe(self) -> dict[str, bytes]:
        """The digests by what they are of, parameters and buffers as they are now."""
        if processes_sharing() == 1:
            return {}
        tensors = dict(self._model.named_parameters()) | dict(self._model.named_buffers())
        found = {f"parameter {name!r}": digest_of(t) for name, t in tensors.items()}
        return found | {"data": self._data.digest()}


def require_same(found: list[dict[str, bytes]]) -> None:
    """Raise ModelError or DataError for the first process that differs from rank 0."""
    for rank, other in enumerate(found):
        for name in [*found[0], *other]:
            if other.get(name) == found[0].get(name):
                continue
            if name == "data":
                raise DataError(
                    f"Process {rank} has other data than process 0, or batches of another size or"
                    " order. Give all the whole data in one order, without DistributedSampler."
                )
            raise ModelError(
                f"The model of process {rank} is not that of process 0: {name} differs. Seed all"
                " processes alike, or load the same weights in all of them."
            )


def digest_of(*inputs: Any, size: int = 16) -> bytes:
    """A digest of values, shapes and types of tensors or inputs of any kind, of `size` bytes."""
    digest = hashlib.blake2b(digest_size=size)
    for tensor in tensors_of(inputs):
        own = tensor.detach().cpu().contiguous()
        digest.update(f"{tuple(own.shape)}{own.dtype}".encode())
        if own.numel():
            # Bytes, as numpy has no bfloat16; a tensor without dimensions has no bytes to view.
            digest.update(own.reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()


def _as_told(error: Exception) -> NetmarginError:
    """An error as other processes raise it: of types that every process can read."""
    if type(error).__module__ == NetmarginError.__module__:
        return type(error)(*error.args)  # type: ignore[return-value]
    return NetmarginError(f"Process {dist.get_rank()} failed: {type(error).__name__}: {error}")


def _is_distributed() -> bool:
    """Whether this process is one of several that talk to each other."""
    return dist.is_available() and bool(dist.is_initialized())
