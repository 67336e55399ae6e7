"""Normal inputs labelled by a random net, of which a margin is known."""

import numpy as np
import torch
from torch import Tensor

from ..core.arguments import check_number, check_seed
from ..errors import DataError
from .selection import as_pair, check_sizes

_MOST_TRIES = 10_000
"""Draws of n samples before the margin is called too large: it bounds the time that is spent on a
margin that fewer than one sample in 10,000 has.
"""
_LEAST_SCORE = 1e-12
"""Samples of smaller scores are drawn again, even for margin 0: rounding could decide labels."""


def teacher(
    n: int, d: int = 20, *, units: int = 10, margin: float = 0.01, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Normal inputs labelled by a random two-layer ReLU net, all with at least a given margin.

    Samples nearer than `margin` to the boundary, |f(x)| < margin, are drawn again. So some net has
    q_min >= margin with ||theta||^2 = that of the teacher, `teacher_net(d, units, seed)` (the
    margin is not normalized, as in the papers). Classes are as unbalanced as the random net makes
    them; few units in few dimensions may leave only one class.

    Parameters
    ----------
    n, d : int, the latter by default 20
        Numbers of samples and of coordinates, which are N(0, 1).
    units : int, default 10
        Width of the teacher, whose weights are N(0, 1).
    margin : float, default 0.01
        Least |f(x)| of a sample; at least 0.
    seed : int, default 0
        Seed of the teacher and of the samples.

    Returns
    -------
    tuple of two Tensors
        X of shape (n, d), float64, and y of shape (n,), int64 in {-1, +1}.

    Raises
    ------
    DataError
        If hardly any sample has that margin.
    ArgumentError
        If another argument is out of range.

    Examples
    --------
    >>> from netmargin.datasets import teacher, teacher_net
    >>> X, y = teacher(50, 5, units=3, margin=0.1, seed=1)
    >>> net = teacher_net(5, units=3, seed=1)
    >>> bool((y * net(X)[:, 0] >= 0.1).all())
    True

    Source: Wei et al. 2018, Section 5; Wei et al. 2019, Section 5.
    """
    n, d, units = check_sizes(n=(n, 1), d=(d, 1), units=(units, 1))
    margin, seed = check_number("margin", margin, at_least=0), check_seed(seed)
    # Separate streams: the samples do not depend on how many numbers the teacher's weights took.
    net, random = teacher_net(d, units=units, seed=seed), np.random.default_rng([seed, 1])
    kept: list[np.ndarray] = []
    for _ in range(_MOST_TRIES):
        X = random.normal(size=(n, d))
        with torch.no_grad():
            f = net(torch.from_numpy(X))[:, 0].numpy()
        kept.append(np.column_stack([X, np.sign(f)])[np.abs(f) >= max(margin, _LEAST_SCORE)])
        if sum(map(len, kept)) >= n:
            samples = np.concatenate(kept)[:n]
            return as_pair(samples[:, :-1], samples[:, -1])
    raise DataError(
        f"Of {_MOST_TRIES * n:,} samples only {sum(map(len, kept))} have a margin of {margin} from"
        " the teacher. Ask for less."
    )


def teacher_net(d: int = 20, *, units: int = 10, seed: int = 0) -> torch.nn.Sequential:
    """The net that labels `teacher` of the same seed: Linear - ReLU - Linear without biases.

    Parameters
    ----------
    d, units : int, default 20 and 10
        Numbers of inputs and of hidden units.
    seed : int, default 0
        Seed of its weights, which are N(0, 1).

    Returns
    -------
    torch.nn.Sequential
        The net in float64, of one output.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> from netmargin.datasets import teacher_net
    >>> [tuple(p.shape) for p in teacher_net(5, units=3).parameters()]
    [(3, 5), (1, 3)]

    Source: Wei et al. 2018, Section 5; Wei et al. 2019, Section 5.
    """
    d, units = check_sizes(d=(d, 1), units=(units, 1))
    random = np.random.default_rng([check_seed(seed), 0])
    with torch.random.fork_rng(devices=[]):  # layers draw weights, which are not wanted
        net = torch.nn.Sequential(
            torch.nn.Linear(d, units, bias=False, dtype=torch.float64),
            torch.nn.ReLU(),
            torch.nn.Linear(units, 1, bias=False, dtype=torch.float64),
        )
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.from_numpy(random.normal(size=tuple(parameter.shape))))
    return net
