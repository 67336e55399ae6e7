"""Which classes a net gets wrong most, and what it takes them for."""

import torch
from torch import Tensor


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
