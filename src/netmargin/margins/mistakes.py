"""Which classes a net gets wrong most, what it takes them for, and labels in another order."""

from collections.abc import Callable

import torch
from torch import Tensor

from ..core.records import plural

_LEAST_GAIN = 20
"""Samples that another numbering must make right: with two classes an untrained net is wrong on so
many more than a third of as many, of 27 samples, once in a thousand times.
"""

_CHANCE = 1e-3
"""How seldom held-out samples are wrong so much less often than training ones by chance alone."""


def rank_classes(labels: Tensor, missed: Tensor) -> list[tuple[int, int, int]]:
    """Classes with wrong samples as (class, wrong ones, samples), the largest shares first."""
    counts = torch.bincount(labels)
    wrong = torch.bincount(labels[missed], minlength=len(counts))
    order = torch.argsort(wrong / counts.clamp(min=1), descending=True, stable=True)
    return [(c, int(wrong[c]), int(counts[c])) for c in order.tolist() if wrong[c]]


def find_mistake(labels: Tensor, answers: Tensor) -> tuple[int, int, int, str] | None:
    """The most frequent mistake as (class, answer, how often, words on others that are as frequent,
    or ""); None where all samples are right.
    """
    missed = labels != answers
    pairs = torch.stack([labels[missed], answers[missed]], dim=1)
    if not len(pairs):
        return None
    kinds, often = torch.unique(pairs, dim=0, return_counts=True)
    label, answer = kinds[often.argmax()].tolist()
    ties = int((often == often.max()).sum()) - 1
    same = f", as often as {plural(ties, 'other')}" * bool(ties)
    return label, answer, int(often.max()), same


def find_renumbering(labels: Tensor, answers: Tensor, name: Callable[[int], str]) -> str:
    """A sentence on other numbers of classes with which most wrong samples are right, or ""."""
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


def is_at_chance(labels: Tensor, wrong: Tensor) -> bool:
    """Whether one answer for all samples would be right as often."""
    counts = labels.unique(return_counts=True)[1]
    chance = int(counts.max()) if len(counts) > 1 else len(labels) // 2
    return len(labels) - int(wrong.sum()) <= chance


def doubt_data(labels: Tensor, answers: Tensor, name: Callable[[int], str]) -> str:
    """What may be wrong with data, rather than with the net that gives these answers, or ""."""
    if (renumbered := find_renumbering(labels, answers, name)) or not is_at_chance(
        labels, labels != answers
    ):
        return renumbered
    return (
        "one answer for all would be right as often: make sure that inputs are scaled as in"
        " training, such as pixels, 0 to 1 or 0 to 255, and that labels and outputs number the"
        " classes alike"
    )


def doubt_split(training: Tensor, heldout: Tensor) -> str:
    """A sentence where held-out samples are wrong less often than by chance; "" elsewhere."""
    from scipy.stats import hypergeom  # late: scipy.stats takes half a second to load

    (seen, n), (new, m) = ((int(wrong.sum()), len(wrong)) for wrong in (training, heldout))
    # Fisher's exact test, on one side.
    if hypergeom.cdf(new, n + m, seen + new, m) >= _CHANCE:
        return ""
    return (
        f"{new:,} of {m:,} held-out samples are wrong, and {seen:,} of {n:,} training samples: are"
        " the two swapped, or labels of the training samples wrong?"
    )
