"""What margins on labelled data that a net was not trained on say about it."""

import torch
from torch import Tensor

CONFIDENCE = 0.95
"""Share of data sets whose interval covers the true error, or the true difference."""
_SHOWN_CLASSES = 3
"""Classes that a line about the largest errors names."""


def error_interval(wrong: int, n: int) -> tuple[float, float]:
    """Bounds of the error rate after `wrong` errors in n samples (Clopper and Pearson)."""
    from scipy.stats import binomtest  # late: scipy.stats takes half a second to load

    found = binomtest(wrong, n).proportion_ci(CONFIDENCE, method="exact")
    return float(found.low), float(found.high)


def z_score(q: Tensor) -> float | None:
    """The mean of the margins over their standard deviation; None where all are equal."""
    # The largest margin may be beyond what float64 can square.
    q = q / (q.abs().max() or 1.0)
    spread = q.std(correction=0).item()
    return q.mean().item() / spread if spread else None


def margin_weighted_error(q: Tensor) -> float | None:
    """The wrong share of all margins, sum |q| [q <= 0] / sum |q|; None if all are 0."""
    sizes = q.abs() / (q.abs().max() or 1.0)
    total = sizes.sum().item()
    return sizes[q <= 0].sum().item() / total if total else None


def worst_classes(q: Tensor, labels: Tensor | None) -> list[tuple[int, int, int]]:
    """The classes with the largest shares of errors, at most three: label, errors and samples.

    Empty where all samples are right, or the labels are not known.
    """
    if labels is None:
        return []
    counts = torch.bincount(labels)
    wrong = torch.bincount(labels[q <= 0], minlength=len(counts))
    order = torch.argsort(wrong / counts.clamp(min=1), descending=True, stable=True)
    worst = [label for label in order[:_SHOWN_CLASSES].tolist() if wrong[label]]
    return [(label, int(wrong[label]), int(counts[label])) for label in worst]
