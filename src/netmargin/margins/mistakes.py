"""Which classes a net gets wrong most, what it takes them for, and labels in another order."""

from collections.abc import Callable

import torch
from torch import Tensor

_LEAST_GAIN = 20
"""Samples that another numbering must make right: with two classes an untrained net is wrong on so
many more than a third of as many, of 27 samples, once in a thousand times.
"""


def rank_classes(labels: Tensor, missed: Tensor) -> list[tuple[int, int, int]]:
    """Classes with wrong samples as (class, wrong ones, samples), the largest shares first.

    labels, missed : the class of each sample, and whether it is wrong, (N,).
    """
    counts = torch.bincount(labels)
    wrong = torch.bincount(labels[missed], minlength=len(counts))
    order = torch.argsort(wrong / counts.clamp(min=1), descending=True, stable=True)
    return [(c, int(wrong[c]), int(counts[c])) for c in order.tolist() if wrong[c]]


def find_mistake(labels: Tensor, answers: Tensor) -> tuple[int, int, int] | None:
    """The most frequent mistake as (class, answer, how often); None where all samples are right."""
    missed = labels != answers
    pairs = torch.stack([labels[missed], answers[missed]], dim=1)
    if not len(pairs):
        return None
    kinds, often = torch.unique(pairs, dim=0, return_counts=True)
    label, answer = kinds[often.argmax()].tolist()
    return label, answer, int(often.max())


def find_renumbering(labels: Tensor, answers: Tensor, name: Callable[[int], str]) -> str:
    """A sentence on other numbers of the classes with which most wrong samples are right, or "".

    The best of all numberings must leave a quarter of the wrong samples at most.
    """
    wrong = int((labels != answers).sum())
    if wrong < _LEAST_GAIN:
        return ""
    from scipy.optimize import linear_sum_assignment  # late: it takes a while to load

    size = int(max(labels.max(), answers.max())) + 1
    counts = torch.bincount(labels * size + answers, minlength=size * size).reshape(size, size)
    _, best = linear_sum_assignment(counts.numpy(), maximize=True)
    left = int((torch.from_numpy(best)[labels] != answers).sum())
    if 4 * left > wrong or wrong - left < _LEAST_GAIN:
        return ""
    moved = {c: int(best[c]) for c in labels.unique().tolist() if best[c] != c}
    steps = {new - old for old, new in moved.items()}
    pairs = [f"{name(old)} as {new}" for old, new in moved.items()]
    how = ", ".join(pairs[:4]) + ", ..." * (len(pairs) > 4)
    if len(steps) == 1 and len(moved) > 1:
        step = steps.pop()
        how = f"label {'+' if step > 0 else '-'} {abs(step)}"
    return (
        f"the labels may be numbered otherwise than the outputs: with {how}, {left:,} of"
        f" {len(labels):,} are wrong"
    )
