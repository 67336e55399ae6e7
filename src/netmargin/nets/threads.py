"""The number of threads: one where a step is too short to be shared."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from .named_inputs import tensors_of

WORTH_SHARING = 1e8
"""Multiplications in a forward pass from which threads are worth their coordination, some 5 ms: on
two busy cores a step of a net 784-300-10 (2e7) took 2 ms with one thread, 450 ms with two.
"""


@contextmanager
def fitting_threads(work: float) -> Iterator[None]:
    """Use one thread within, if a step needs fewer than `WORTH_SHARING` multiplications.

    By sizes alone, as the number of threads can change the last bits of a sum: the same call gives
    the same result. Whoever has set fewer threads keeps them.
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


def work_of(model: nn.Module, x: Any) -> float:
    """A rough number of multiplications of a forward pass on the batch x."""
    places = max(math.prod(tensors_of(x)[0].shape[2:]), 1)
    per_sample = sum(p.numel() * (places if p.ndim > 2 else 1) for p in model.parameters())
    return float(per_sample * len(x))


one_thread_of_blas = partial(threadpool_limits, 1, user_api="blas")
"""A context of one thread of numpy and scipy, for small factorizations on busy cores."""
