"""The search for wrong labels: what all other samples say about each."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core.arguments import check_flag, check_seed
from ..core.progress import Progress
from ..errors import DataError
from ..nets.accepted_models import check_model
from ..nets.arrays import Arrays
from ..nets.data import Choice, Data, as_arrays, takes_data
from ..nets.forward_faults import SAMPLES, require_no_faults
from ..nets.labels import ClassNames, Labels
from ..nets.model import count_outputs, device_and_dtype, in_mode
from ..nets.named_inputs import NamedInputs
from ..nets.row_order import name_rows
from .calibration import bound_share_wrong, draw_flips, score_labels
from .evidence import find_wrong
from .groups import find_repeated, number_equal_rows
from .predicting import predict_left_out
from .report import LabelErrors


@takes_data
def label_errors(
    data: Data,
    *,
    model: nn.Module | None = None,
    class_names: Sequence[str] | None = None,
    groups: Any = None,
    seed: int = 0,
    progress: bool = True,
    scores: Choice | None = None,
) -> LabelErrors:
    """Find the labels to look at again: those that all other samples speak against.

    Go through `found.frame(20)` from the top: the first rows are the most suspicious, and whoever
    knows the data decides. `found.summary()` bounds how many labels are wrong.

    No net is trained. Kernel ridge regression on the labels predicts each sample from all others in
    closed form; the score of a sample is the prediction of its own label less that of the best
    other one. Where classes overlap, right labels score as low as wrong ones: only what overlap
    does not explain is counted; the order holds all the same. docs/label-errors.md says how it
    works, with copies too, and how near the estimates come.

    Parameters
    ----------
    data : tuple (X, y), or iterable of (x, y)
        Samples X of shape (n, ...), floating, and labels y of shape (n,): class numbers, text or
        categories. Row i of the answer is sample i, also where a DataLoader shuffles. Images have
        shape (n, channels, height, width) or are vectors of square length; rows of other numbers
        may be embeddings of a pretrained net.
    model : nn.Module or None, default None
        A net with convolutions before a dense layer, trained or not; its features count as one more
        representation. The labels must then be those of the net.
    class_names : sequence of str or None, default None
        Names of the classes in the order of the labels, for tables.
    groups : sequence of n int or str, False or None, default None
        What samples belong to, where some tell of each other, such as patients. Those of one group
        are left out together. None finds copies itself; False takes each sample alone.
    seed : int, default 0
        Seed of the choice of patches, of compared samples and of centres.
    progress : bool, default True
        Whether to show steps as they come.
    scores : str, int, tuple, function or None, default None
        Which output of a net is its scores, as for `measure`.

    Returns
    -------
    LabelErrors
        Score, suggested label and probability of each sample, worst first in its tables, where
        `wrong_if_apart` is the estimated share of wrong labels down to a row, as far as classes
        that overlap do not explain them.

    Raises
    ------
    DataError
        The data cannot be used: whole numbers, one class only, labels that are not those of the
        net, samples in another order at each pass.
    ModelError
        The model has no dense layer behind a convolution, or cannot be used, as in `measure`.
    ArgumentError
        Another argument cannot be used, such as groups of another number of samples.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.digits(limit=300)
    >>> y[7] = (y[7] + 1) % 10
    >>> found = nm.label_errors((X, y))
    >>> found.order[0].item(), y[7].item(), found.suggested[7].item()
    (7, 9, 8)

    Source: beyond the papers; leave-one-out formula of Rasmussen and Williams 2006, Section 5.4.2;
    patches of Coates and Ng 2011.
    """
    seed, progress = check_seed(seed), check_flag("progress", progress)
    samples = as_arrays(data)
    if isinstance(samples.X, NamedInputs) and len(samples.X.parts) == 1:
        samples = Arrays(next(iter(samples.X.parts.values())), samples.y)
    if isinstance(samples.X, NamedInputs):
        raise DataError(
            "The inputs come by name, and samples are compared by one tensor. Give a pair (X, y)."
        )
    if not samples.X.is_floating_point():
        raise DataError(
            f"The samples are whole numbers ({samples.X.dtype}), as tokens are. For images and"
            " counts give X.float(); for tokens the embeddings of a pretrained net."
        )
    if samples.X.ndim < 2:
        raise DataError(
            f"X has shape {tuple(samples.X.shape)}, one number for each sample. Give rows, of one"
            " feature X.reshape(-1, 1)."
        )
    names = ClassNames(class_names)
    values, classes = _read_classes(samples, model)
    # A class without samples has a name all the same.
    names.require_number(max(len(names.names or ()), int(values.max()) + 1))
    equal = number_equal_rows(samples.X)
    with Progress(progress, "label errors") as display:
        basis, predictions, together = predict_left_out(
            samples, classes, model, seed, equal, groups, partial(display.draw, 0.0, None)
        )
    table = score_labels(predictions)
    rows = np.arange(len(classes))
    given = table[rows, classes]
    conflicts = (some for some in find_repeated(equal) if np.ptp(classes[some]))
    units = together.units
    rng = np.random.default_rng(seed)
    flipped = draw_flips(table[units], classes[units], rng)
    wrong, untold = find_wrong(predictions, classes, units, rng)
    share, among_units = float(wrong.mean()), wrong[units].mean()
    # A wrong label that occurs twice is two wrong labels.
    at_most = bound_share_wrong(given[units], flipped, len(values))
    at_most *= share / among_units if among_units else 1.0
    predictions[rows, classes] = -np.inf
    return LabelErrors(
        given=torch.from_numpy(values[classes]),
        suggested=torch.from_numpy(values[predictions.argmax(axis=1)]),
        scores=torch.from_numpy(given),
        wrong=torch.from_numpy(wrong),
        share=share,
        at_most=min(1.0, max(share, at_most)),
        basis=basis,
        conflicts=tuple(tuple(some.tolist()) for some in conflicts),
        class_names=names.names,
        groups=torch.from_numpy(together.of),
        copies=together.describe(),
        untold=tuple(values[untold].tolist()),
        index=name_rows(data),
    )


def _read_classes(samples: Arrays, model: nn.Module | None) -> tuple[np.ndarray, np.ndarray]:
    """The labels in use, ascending, and the index of each sample's label among them."""
    if model is not None:
        model = check_model(model)
        device, dtype = device_and_dtype(model)
        with in_mode(model, training=False), torch.no_grad():
            require_no_faults(model, samples.X[:SAMPLES].to(device, dtype), weights=False)
            outputs = count_outputs(model, samples.X[:2].to(device, dtype))
        Labels(outputs).encode(samples.y)
    y = samples.y.detach().cpu().to(torch.int64).numpy()
    values, classes = np.unique(y, return_inverse=True)
    if len(values) == 1:
        raise DataError(
            f"All {len(y)} labels are {values[0]}. Pass samples of at least two classes."
        )
    return values, classes
