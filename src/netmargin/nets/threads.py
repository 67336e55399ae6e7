"""The number of threads: one where a step is too short to be shared."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from .named_inputs import tensors_of

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


def work_of(model: nn.Module, x: Any) -> float:
    """A rough number of multiplications of a forward pass on the batch x.

    Each parameter counts once for each sample, those of convolutions at each place of the inputs.
    """
    places = max(math.prod(tensors_of(x)[0].shape[2:]), 1)
    per_sample = sum(p.numel() * (places if p.ndim > 2 else 1) for p in model.parameters())
    return float(per_sample * len(x))
