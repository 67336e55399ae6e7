"""Whether all processes of a distributed run hold the same model and the same data, by digests."""

import hashlib

import torch
from torch import Tensor, nn

from ..errors import DataError, ModelError
from .processes import processes_sharing


class Sameness:
    """Digests of a model and of the batches that a process read, to compare with other processes.

    Parameters
    ----------
    model : nn.Module
        The net; its parameters and buffers count as they are when `describe` is called.
    """

    def __init__(self, model: nn.Module):
        self._model = model
        self._active = processes_sharing() > 1
        self._data = hashlib.blake2b(digest_size=16)

    def add(self, x: Tensor, y: Tensor) -> None:
        """Count a batch in; its size counts as well."""
        if self._active:
            for tensor in (x, y):
                self._data.update(digest_of(tensor))

    def describe(self) -> dict[str, bytes]:
        """The digests by what they are of."""
        if not self._active:
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
                    " order. Give all processes the whole data in the same order (a DataLoader"
                    " without DistributedSampler, seeded alike): the samples are split here."
                )
            raise ModelError(
                f"The model of process {rank} is not that of process 0: {name} differs. Seed all"
                " processes alike, or load the same weights in all of them."
            )


def digest_of(tensor: Tensor) -> bytes:
    """A digest of the values, the shape and the type of a tensor."""
    own = tensor.detach().cpu().contiguous()
    digest = hashlib.blake2b(f"{tuple(own.shape)}{own.dtype}".encode(), digest_size=16)
    if own.numel():
        # Bytes, as numpy has no bfloat16; a tensor without dimensions has no bytes to view.
        digest.update(own.reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()
