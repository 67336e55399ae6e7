"""Steps of training whose batches are split over the processes of a distributed run."""

import zlib
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from ..core.devices import where_float64_is
from ..errors import DataError, ModelError
from ..nets.model import in_mode, scores
from ..nets.processes import processes_sharing, share_of, sum_over_processes


def differentiate_share(
    model: nn.Module, x: Tensor, y: Tensor, slopes_of: Callable[[Tensor, Tensor], Tensor]
) -> None:
    """Leave the gradients of a whole batch in the parameters, of which each process takes a part.

    Parts are summed in float64, and every process holds the same sums afterwards.

    Parameters
    ----------
    model : nn.Module
        The net, whose gradients are None.
    x, y : Tensor, shapes (N, ...) and (N,)
        The whole batch, with labels as the net's loss takes them. A process may have none of it.
    slopes_of : callable
        Maps scores (n, C) and labels (n,) to the gradient of their mean loss in the scores.

    Raises
    ------
    DataError
        The batches of two processes differ.
    LostProcessError
        A process has ended.
    """
    own = share_of(len(x))
    if own.start < own.stop:
        outputs = scores(model, x[own])
        slopes = slopes_of(outputs, y[own].to(outputs.device))
        # The mean over the part, as a share of that over the batch.
        outputs.backward(slopes * ((own.stop - own.start) / len(x)))
    trained = [p for p in model.parameters() if p.requires_grad]
    device = where_float64_is(trained[0].detach()).device
    check = float(_checksum(x, y))
    # One sum for all: gradients, who has one (a parameter that is not used has none), the check.
    parts = [
        torch.zeros(p.numel()) if p.grad is None else p.grad.detach().reshape(-1) for p in trained
    ]
    flags = torch.tensor(
        [float(p.grad is not None) for p in trained] + [check], dtype=torch.float64
    )
    total = torch.cat([part.to(device, torch.float64) for part in [*parts, flags]])
    sum_over_processes(total)
    if total[-1].item() != check * processes_sharing():
        raise DataError(
            "The batches of two processes differ in training. Give all processes the whole data,"
            " in the same order or shuffled by torch's global generator, which training seeds alike"
            " in all of them: the samples are split here."
        )
    sums = total[: -len(flags)].split([p.numel() for p in trained])
    for parameter, summed, used in zip(trained, sums, total[-len(flags) : -1], strict=True):
        if used:
            parameter.grad = summed.to(parameter).reshape(parameter.shape)


def require_splittable(model: nn.Module, x: Tensor) -> None:
    """Raise ModelError for a net of which a part of a batch is not trained as within the batch.

    That is one with batch statistics, with noise, or with buffers that training changes. Where
    nothing is split every net will do. The model is left as it was.
    """
    if processes_sharing() == 1:
        return
    with nullcontext() if model.training else in_mode(model, training=True):
        statistics = [
            name
            for name, module in model.named_modules()
            if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training
        ]
        if statistics:
            raise ModelError(
                f"{statistics[0]!r} is a {type(model.get_submodule(statistics[0])).__name__} in"
                " training mode, whose statistics are those of a batch, of which a process has a"
                " part only. Set it to evaluation mode, use a normalization of single samples"
                " (GroupNorm), or train in one process; SyncBatchNorm is no way out here."
            )
        kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
        devices = [x.device] if x.is_cuda else []
        before = _generator_states(x)
        with torch.no_grad(), torch.random.fork_rng(devices):
            scores(model, x)
            after = _generator_states(x)
        noisy = not all(map(torch.equal, before, after))
        changed = [n for n, b in model.named_buffers() if not torch.equal(b, kept[n])]
        for name, buffer in model.named_buffers():
            buffer.copy_(kept[name])
    if noisy:
        raise ModelError(
            "The model draws random numbers in training (dropout, for example), and every process"
            " would draw its own. Set its probability to 0, or train in one process."
        )
    if changed:
        raise ModelError(
            f"Training changes the buffer {changed[0]!r}, by the part of a batch that a process"
            " has. Set its module to evaluation mode, or train in one process."
        )


def _generator_states(x: Tensor) -> list[Tensor]:
    """The states of the generators that a net on the device of x draws from."""
    return [torch.get_rng_state(), *([torch.cuda.get_rng_state(x.device)] if x.is_cuda else [])]


def _checksum(x: Tensor, y: Tensor) -> int:
    """A checksum of a batch, of 32 bits: sums of those of all processes are exact in float64."""
    value = 0
    for tensor in (x, y):
        values = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        value = zlib.crc32(values.data, value)
    return value
