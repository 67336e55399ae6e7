"""Exact steps of one sample after the other: compiled where numba is installed (the extra `fast`),
the same text by numpy where not.

Source: Crammer and Singer 2001, Section 4, for the problem of one sample; Keerthi et al. 2008, A
sequential dual method for large scale multi-class linear SVMs, for the order.
"""

import importlib.util
from collections.abc import Callable

import numpy as np


def compiled(function: Callable) -> Callable:
    """The function, compiled where numba is installed."""
    if importlib.util.find_spec("numba") is None:
        return function
    from numba import njit

    return njit(cache=True, nogil=True)(function)


@compiled
def solve_sample(outputs, weights, label, curvature, cap):
    """The best weights (k,) of one sample while all others stay.

    They sum to 0, those of other classes than `label` are at most 0, and its own at most `cap`.
    `outputs` (k,) are those of the sample before the step, with its weights (k,), and `curvature`
    is the kernel of the sample with itself, above 0.
    """
    # The amounts w_k >= 0 that go from class k to its own are max(0, b_k - level) / curvature,
    # where the level is curvature * sum(w), or above it where the sum is the cap.
    own = outputs[label] - curvature * weights[label]
    b = 1.0 + (outputs - curvature * weights) - own
    b[label] = -np.inf
    order = np.sort(b)[::-1]
    total, level = 0.0, 0.0
    for r in range(len(b) - 1):
        # One more class takes part if it is above the level of those before.
        if order[r] <= level:
            break
        total += order[r]
        level = total / (r + 2)
    if level > curvature * cap:
        total = 0.0
        for r in range(len(b) - 1):
            total += order[r]
            level = (total - curvature * cap) / (r + 1)
            if r + 2 == len(b) or order[r + 1] <= level:
                break
    found = -np.maximum(b - level, 0.0) / curvature
    found[label] = 0.0
    found[label] = min(-found.sum(), cap)
    return found


@compiled
def take_pass(K, labels, A, F, caps, diagonal, order):
    """A step of each sample of `order`, the weights A (k, n) and outputs F (k, n) changed in place.

    K (n, n) is the kernel, `labels` (n,) the classes by number, `caps` (n,) the largest weights and
    `diagonal` (n,) the diagonal of K, above 0 for the samples of `order` (m,).
    """
    for i in order:
        before = A[:, i].copy()
        after = solve_sample(F[:, i].copy(), before, labels[i], diagonal[i], caps[i])
        A[:, i] = after
        for k in range(len(after)):
            change = after[k] - before[k]
            if change != 0.0:
                F[k] += change * K[i]


@compiled
def project(labels, A, caps, order):
    """Move the weights (k,) of each sample of `order` to the nearest that are allowed, in place."""
    for i in order:
        outputs = -A[:, i].copy()
        outputs[labels[i]] += 1.0
        A[:, i] = solve_sample(outputs, np.zeros(len(outputs)), labels[i], 1.0, caps[i])
