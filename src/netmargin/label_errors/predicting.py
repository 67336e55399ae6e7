"""What all samples but those of its group say about each, in the representation that says most."""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from ..core.memory import require_memory
from ..nets.arrays import Arrays
from .groups import Groups, fill_a_grid, labels_differ, make_groups, read_groups
from .images import shrink_images, take
from .leave_one_out import (
    CENTRES,
    EXACT_UP_TO,
    RIDGES,
    encode_labels,
    laplace_kernel,
    median_distance,
    predict_approximately,
    predict_exactly,
    squared_errors,
)
from .near_copies import join_near_copies
from .representations import Representation, list_representations

_COMPARED_ON = 500
"""Samples on which representations and ridges are compared. 1,000 choose the same ones on
the sets of docs/label-errors.md, in eight times the time for each decomposition.
"""


def predict_left_out(
    samples: Arrays,
    classes: np.ndarray,
    model: nn.Module | None,
    seed: int,
    equal: np.ndarray,
    groups: Any,
    show: Callable[[str], None],
) -> tuple[str, np.ndarray, Groups]:
    """What predictions rest on; how much each class is predicted, (n, C); the groups left out.

    `show` is told what comes next.
    """
    if (n := len(classes)) > EXACT_UP_TO:
        what = f"The search among {n:,} samples"
        require_memory(8 * n * CENTRES, what, "Take a random part of them.")
    show(f"looking for copies among {n:,} samples")
    small = shrink_images(samples.X)
    representations = list_representations(samples.X, small, model, seed)
    alone = near = sure = np.arange(n)
    given = groups is not None and groups is not False
    if given:
        near = read_groups(groups, n)
    elif groups is None and not fill_a_grid(small, equal):
        near, sure = join_near_copies(small, equal)
    whole = make_groups(near, equal, classes, given)
    basis, predictions = _predict(representations, classes, seed, whole, show)
    if given or near is alone:
        return basis, predictions, whole
    # Right labels that are not predicted count here, too: more than _MOST_WRONG is not believed.
    share = float((predictions.argmax(axis=1) != classes)[whole.units].mean())
    for finer, of in ((alone, equal), (equal, sure)):
        if labels_differ(of, finer, classes, share):
            # Then other labels of a group are evidence, and whether it helps can be seen.
            apart = make_groups(finer, equal, classes)
            other = _predict(representations, classes, seed, apart, show)
            Y = encode_labels(classes, predictions.shape[1])
            if np.square(other[1] - Y).sum() < np.square(predictions - Y).sum():
                return *other, apart
            break
    return basis, predictions, whole


def _predict(
    representations: dict[str, Representation],
    classes: np.ndarray,
    seed: int,
    groups: Groups,
    show: Callable[[str], None],
) -> tuple[str, np.ndarray]:
    """What `predict_left_out` returns, for these groups."""
    rng = np.random.default_rng(seed)
    weights, Y = groups.merge(encode_labels(classes, int(classes.max()) + 1))
    few = np.sort(rng.permutation(len(Y))[:_COMPARED_ON])
    choices = []
    for name, (compute, values) in representations.items():
        show(f"trying {name}")
        features = compute(take(values, groups.rows[few]))
        scale = median_distance(features)
        K = laplace_kernel(features, features, scale)
        errors = squared_errors(K, Y[few], weights[few], groups.together(few))
        choices.append((errors.min(), RIDGES[errors.argmin()], scale, name, features))
    _, ridge, scale, name, features = min(choices, key=lambda choice: choice[0])
    show(f"predicting {len(classes):,} samples from {name}")
    if len(few) < len(Y):
        compute, values = representations[name]
        features = compute(take(values, groups.rows))
    basis = f"{name} (ridge {ridge:g}, of {len(choices)} representations)"
    rest = ridge, weights, groups.together()
    if len(Y) <= EXACT_UP_TO:
        found = predict_exactly(laplace_kernel(features, features, scale), Y, *rest)
    else:
        centres = np.sort(rng.choice(len(Y), CENTRES, replace=False))
        found = predict_approximately(features, Y, scale, centres, *rest)
    return basis, found[groups.row_of]
