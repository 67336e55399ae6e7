"""The number of threads: one where a step is too short to be shared."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from .model import in_mode, scores

WORTH_SHARING = 1e8
"""Multiplications in a forward pass on one batch from which threads are worth their coordination:
about 5 ms of one core.

On a machine whose cores are busy every operation that is shared waits for the slowest thread to get
its turn: on two cores with a load of 11, a step of a net 784-300-10 (2e7 multiplications) took 2 ms
with one thread and 450 ms with two.
"""


@contextmanager
def fitting_threads(work: float) -> Iterator[None]:
    """Use one thread within, if a step needs fewer than `WORTH_SHARING` multiplications.

    Afterwards the number is what it was. Whoever has set fewer threads keeps them. The choice
    depends on sizes only: how many threads share a sum can change its last bits, and the same call
    gives the same result bit for bit.
    """
    before = torch.get_num_threads()
    if work >= WORTH_SHARING or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread_of_blas() -> Iterator[None]:
    """Let numpy and scipy use one thread within: for many factorizations of small matrices.

    Theirs is another pool of threads than that of torch. On two cores with a load of 11, a page
    with six radii of a net of 256 units took 54 s with one thread of each pool, and with two
    threads of BLAS it was not done after 100 s.
    """
    with threadpool_limits(1, user_api="blas"):
        yield


def work_of(model: nn.Module, x: Tensor) -> float:
    """Return a lower estimate of the multiplications of a forward pass on the batch x.

    Modules with a weight are counted, on two samples, since statistics of a batch of one do not
    exist; every parameter counts once per sample at least, for modules of one's own that use theirs
    in another way. Raises what the model raises.
    """
    total, few = 0, x[:2]

    def count(module: nn.Module, inputs: tuple, output: object) -> None:
        nonlocal total
        weight = getattr(module, "weight", None)
        if isinstance(weight, Tensor) and isinstance(output, Tensor) and weight.ndim > 1:
            total += output.numel() * weight[0].numel()

    # Counted on a run rather than from shapes: convolutions repeat their weight at each position.
    hooks = [module.register_forward_hook(count) for module in model.modules()]
    try:
        with in_mode(model, training=False), torch.no_grad():
            scores(model, few)
    finally:
        for hook in hooks:
            hook.remove()
    return float(max(total / len(few), sum(p.numel() for p in model.parameters())) * len(x))
