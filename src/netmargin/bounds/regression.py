"""Bounds of the expected loss of regression from its training losses."""

import math
from typing import Any

import numpy as np

from ..core.arguments import check_flag, check_number
from ..errors import DataError
from .bound import (
    INDEPENDENT_SAMPLES,
    SAMPLE_MOMENT,
    Bound,
    bounded_inputs,
    check_delta,
    finite_array,
)


def regression_bound(
    losses: Any,
    X: Any,
    *,
    norm: float,
    largest_loss: float,
    lipschitz: float,
    kernel: bool = False,
    delta: float = 0.05,
) -> Bound:
    """Bound the expected loss of a two-layer ReLU function by its training losses and its norm.

    For all functions of the class at once: mean training loss + 12 M max(1, |alpha| |X|_F) / n
    + 2 c sqrt((log(1 / delta) + log max(2, 4 |alpha| |X|_F)) / 2n).

    Parameters
    ----------
    losses : array_like, shape (n,)
        Losses of the training samples, in [-c, c], such as those of `truncated_squares`.
    X : array_like, shape (n, d)
        Training inputs, with a column of ones if neurons have a bias.
    norm : float
        |alpha|_1 over unit-norm features, half of ||Theta||^2; for a kernel the norm in its space.
    largest_loss : float
        c, the largest absolute value of the loss.
    lipschitz : float
        M, the Lipschitz constant of the loss as a function of the prediction.
    kernel : bool, default False
        Whether f lies in the arc-cosine space, which has 4 M / sqrt(2 d) in place of 12 M.
    delta : float, default 0.05
        The probability with which the bound may fail.

    Returns
    -------
    Bound
        Three terms: training loss, complexity, confidence; `largest` is c.

    Raises
    ------
    DataError
        Arrays cannot be used, or a loss is beyond c.
    ArgumentError
        Another argument is out of its range.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> X, y = np.eye(2)[np.arange(10_000) % 2], np.zeros(10_000)
    >>> losses = nm.bounds.truncated_squares(y + 0.1, y)
    >>> bound = nm.bounds.regression_bound(losses, X, norm=1.0, largest_loss=1.0, lipschitz=2.0)
    >>> round(bound.terms["complexity"], 3), bound.vacuous
    (0.24, False)

    Source: Wei et al. 2018, Lemmas D.4 and D.5, with the factors 4 and 2 c that the union over
    norms and losses in [-c, c] take (docs/errata.md).
    """
    losses, X = finite_array(losses, "losses"), bounded_inputs(X, math.inf)
    norm = check_number("norm", norm, at_least=0)
    lipschitz = check_number("lipschitz", lipschitz, above=0)
    largest_loss = check_number("largest_loss", largest_loss, above=0)
    kernel, delta = check_flag("kernel", kernel), check_delta(delta)
    if len(losses) != len(X):
        raise DataError(f"There are {len(losses)} losses for {len(X)} samples: give one for each.")
    if np.abs(losses).max() > largest_loss:
        raise DataError(
            f"A loss of {np.abs(losses).max():.4g} is beyond largest_loss = {largest_loss:.4g}. Cut"
            " it, as `truncated_squares` does."
        )
    n, size = len(X), norm * math.sqrt(float((X**2).sum()))
    confidence = math.sqrt((math.log(1 / delta) + math.log(max(2.0, 4 * size))) / (2 * n))
    rate = 4 / math.sqrt(2 * X.shape[1]) if kernel else 12.0
    return Bound(
        {
            "mean training loss": float(losses.mean()),
            "complexity": rate * lipschitz * max(1.0, size) / n,
            "confidence, all norms at once": 2 * largest_loss * confidence,
        },
        1 - delta,
        (INDEPENDENT_SAMPLES, SAMPLE_MOMENT),
        largest=largest_loss,
    )


def truncated_squares(predictions: Any, y: Any, *, largest: float = 1.0) -> np.ndarray:
    """Squared errors cut at a largest value, the bounded losses that `regression_bound` needs.

    min(largest, (f(x) - y)^2) lies in [0, largest] and has Lipschitz constant 2 sqrt(largest).

    Parameters
    ----------
    predictions, y : array_like, shape (n,)
        The values f(x_n), and the targets.
    largest : float, default 1.0
        Where the squares are cut.

    Returns
    -------
    ndarray
        The losses, float64, shape (n,).

    Raises
    ------
    DataError
        Predictions or y are empty, not finite, or of different lengths.
    ArgumentError
        `largest` is not positive.

    Examples
    --------
    >>> import netmargin as nm
    >>> nm.bounds.truncated_squares([0.5, 3.0], [0.0, 0.0])
    array([0.25, 1.  ])

    Source: Wei et al. 2018, Lemma D.5, which asks for bounded Lipschitz losses.
    """
    largest = check_number("largest", largest, above=0)
    f, targets = finite_array(predictions, "predictions"), finite_array(y, "y")
    if f.shape != targets.shape:
        raise DataError(f"There are {len(f)} predictions for {len(targets)} values y.")
    return np.minimum(largest, (f - targets) ** 2)
