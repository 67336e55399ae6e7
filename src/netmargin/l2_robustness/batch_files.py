"""Results of batches in a folder, so that an interrupted call goes on from there."""

import hashlib
from pathlib import Path

import torch
from torch import Tensor, nn

from ..core.batches import Arrays
from ..errors import CheckpointError
from ..training import checkpoint


class BatchFiles:
    """Results in files, one per batch, each with a key of the call that it belongs to.

    Parameters
    ----------
    folder : str, Path or None
        Where the files are; None keeps nothing.
    net : torch.nn.Module
        The net, of which structure, parameters and buffers enter the key.
    samples : Arrays
        The data, which enter the key.
    *settings : objects
        Arguments whose `repr` enters the key.
    """

    def __init__(self, folder: str | Path | None, net: nn.Module, samples: Arrays, *settings):
        self.folder = None if folder is None else Path(folder)
        if self.folder is None:
            return
        digest = hashlib.sha256(repr((settings, net)).encode())
        tensors = [
            *net.named_parameters(),
            *net.named_buffers(),
            ("X", samples.X),
            ("y", samples.y),
        ]
        for name, tensor in tensors:
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(
                tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            )
        self._key = digest.hexdigest()

    def _name_file(self, index: int) -> Path:
        assert self.folder is not None
        return self.folder / f"batch-{index:05d}.pt"

    def read(self, index: int) -> dict[str, Tensor] | None:
        """Read the result of a batch; None if it was not kept.

        Raises CheckpointError where it belongs to another call.
        """
        if self.folder is None or not self._name_file(index).exists():
            return None
        kept = checkpoint.load(self._name_file(index))
        if kept.get("key") != self._key:
            raise CheckpointError(
                f"{self.folder} holds results of another net, other data or settings. Choose"
                " another folder."
            )
        return kept

    def write(self, index: int, result: dict[str, Tensor]) -> None:
        """Keep the result of a batch, if there is a folder."""
        if self.folder is not None:
            checkpoint.save(self._name_file(index), {"key": self._key, **result})
