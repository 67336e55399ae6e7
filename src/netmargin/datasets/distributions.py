"""The papers' distributions: pairs (X, y), X float64 of shape (n, d), y int64 in {-1, +1}; the same
seed gives the same samples. Arguments out of range raise ArgumentError.

Margins that are known are those of `solvers.f1_max_margin(X, y, bias=False)`, q_min / ||theta||^2
of the best two-layer ReLU net of any width, unless said otherwise.
"""

import itertools
import math

import numpy as np
import torch
from torch import Tensor

from ..core.arguments import check_count, check_flag, check_number, check_seed
from ..errors import ArgumentError, DataError

_MOST_TRIES = 10_000


def clusters(n: int = 256, d: int = 15, *, k: int = 3, seed: int = 0) -> tuple[Tensor, Tensor]:
    """k x k disks with random labels in the first two of d coordinates, uniform noise in [-1/2,
    1/2] in the others.

    Disks have radius 1 / (3k - 1) and stand at steps of 3 / (3k - 1) in [-1/2, 1/2]^2; samples are
    uniform on them (the reference script draws the radius uniformly, which crowds the centres, and
    counts a constant coordinate in d). Projected to the first two coordinates, classes stay 1 / (3k
    - 1) apart.

    Examples
    --------
    >>> from netmargin.datasets import clusters
    >>> X, y = clusters(100, 5)
    >>> X.shape, bool(X.abs().max() <= 0.5)
    (torch.Size([100, 5]), True)

    Source: Chizat and Bach 2020, Section 7.
    """
    n, d, k = _sizes(n=(n, 1), d=(d, 2), k=(k, 1))
    random = np.random.default_rng(check_seed(seed))
    labels = random.choice([-1.0, 1.0], (k, k))
    disk = random.integers(k, size=(n, 2))
    angle, radius = random.uniform(0, 2 * np.pi, n), np.sqrt(random.uniform(0, 1, n)) / (3 * k - 1)
    centre = -0.5 + 1 / (3 * k - 1) + 3 * disk / (3 * k - 1)
    plane = centre + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return _pair(
        np.hstack([plane, random.uniform(-0.5, 0.5, (n, d - 2))]), labels[disk[:, 0], disk[:, 1]]
    )


def gaussian_xor(n: int, d: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """(x_1, x_2) uniform on the corners (+-1, +-1), y = x_1 x_2; the other d - 2 coordinates
    normal.

    Four neurons reach a margin of 1 / (4 sqrt 2), |x_1 + x_2| - |x_1 - x_2| = 2 y; for d = 2 and
    all four corners that is the best. The kernel margin F_2 falls with d.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.gaussian_xor(40, 2)
    >>> abs(nm.solvers.f1_max_margin(X, y, bias=False).margin - 1 / (4 * 2**0.5)) < 1e-6
    True

    Source: Wei et al. 2018, Section 3.4 and Figure 1.
    """
    n, d = _sizes(n=(n, 1), d=(d, 2))
    random = np.random.default_rng(check_seed(seed))
    corner = random.choice([-1.0, 1.0], (n, 2))
    return _pair(np.hstack([corner, random.normal(size=(n, d - 2))]), corner.prod(1))


def hypercube(n: int, d: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """(x_1, x_2, y) is (+-1, 0, +1) or (0, +-1, -1), each with probability 1/4; the other d - 2
    coordinates uniform on {-1, +1}.

    Four neurons reach a margin of 1/8, |x_1| - |x_2| = y; for d = 2 and all four points that is the
    best. Tangent kernels need about d^2 samples.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.hypercube(40, 2)
    >>> abs(nm.solvers.f1_max_margin(X, y, bias=False).margin - 1 / 8) < 1e-6
    True

    Source: Wei et al. 2019, (2.5).
    """
    n, d = _sizes(n=(n, 1), d=(d, 2))
    random = np.random.default_rng(check_seed(seed))
    axis, sign = random.integers(2, size=n), random.choice([-1.0, 1.0], n)
    X = np.hstack([np.zeros((n, 2)), random.choice([-1.0, 1.0], (n, d - 2))])
    X[np.arange(n), axis] = sign
    return _pair(X, 1.0 - 2.0 * axis)


def teacher(
    n: int, d: int = 20, *, units: int = 10, margin: float = 0.01, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Normal inputs labelled by a random net of `units` neurons with normal weights; samples nearer
    than `margin` to its boundary, |f(x)| < margin, are drawn again.

    So some net has q_min >= margin with ||theta||^2 = that of the teacher, `teacher_net(d, units,
    seed)`, (margin not normalized, as in the papers). Classes are as unbalanced as the random net
    makes them; few units in few dimensions may leave one alone.

    Examples
    --------
    >>> from netmargin.datasets import teacher, teacher_net
    >>> X, y = teacher(50, 5, units=3, margin=0.1, seed=1)
    >>> net = teacher_net(5, units=3, seed=1)
    >>> bool((y * net(X)[:, 0] >= 0.1).all())
    True

    Raises DataError where hardly any sample has that margin. Source: Wei et al. 2018, Section 5;
    Wei et al. 2019, Section 5.
    """
    n, d, units = _sizes(n=(n, 1), d=(d, 1), units=(units, 1))
    margin = check_number("margin", margin, at_least=0)
    net, random = teacher_net(d, units=units, seed=seed), np.random.default_rng([seed, 1])
    kept: list[np.ndarray] = []
    for _ in range(_MOST_TRIES):
        X = random.normal(size=(n, d))
        with torch.no_grad():
            f = net(torch.from_numpy(X))[:, 0].numpy()
        kept.append(np.column_stack([X, np.sign(f)])[np.abs(f) >= max(margin, 1e-12)])
        if sum(map(len, kept)) >= n:
            samples = np.concatenate(kept)[:n]
            return _pair(samples[:, :-1], samples[:, -1])
    raise DataError(
        f"Of {_MOST_TRIES * n:,} samples only {sum(map(len, kept))} have a margin of {margin} from"
        " the teacher. Ask for less."
    )


def teacher_net(d: int = 20, *, units: int = 10, seed: int = 0) -> torch.nn.Sequential:
    """The net that labels `teacher` of the same seed: Linear - ReLU - Linear without biases,
    float64, weights N(0, 1).
    """
    d, units = _sizes(d=(d, 1), units=(units, 1))
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


def parity(d: int, k: int, n: int | None = None, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """y = product of the signs of the first k coordinates, x on the corners {-1, +1}^d / sqrt(d):
    all 2^d of them, or n drawn from them.

    "Support-only": any distribution on the corners. The best margin over all corners is
    `parity_margin(d, k)`.

    Examples
    --------
    >>> import netmargin as nm
    >>> X, y = nm.datasets.parity(3, 2)
    >>> abs(nm.solvers.f1_max_margin(X, y, bias=False).margin - nm.datasets.parity_margin(3, 2)) < 1e-6
    True

    Source: "The ubiquity of 2-homogeneity" 2024, Example 4.1.
    """
    d, k = _sizes(d=(d, 1), k=(k, 1))
    seed = check_seed(seed)
    if k > d or (n is None and d > 16):
        raise ArgumentError(
            f"parity needs k <= d, and n for d > 16, which has 2^d corners; got d = {d}, k = {k}, n"
            f" = {n}"
        )
    if n is None:
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    else:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (*_sizes(n=(n, 1)), d))
    return _pair(signs / math.sqrt(d), signs[:, :k].prod(1))


def parity_margin(d: int, k: int, *, bias: bool = False) -> float:
    """The largest q_min / ||theta||^2 of two-layer ReLU nets on all corners of `parity(d, k)`; with
    a bias for odd k >= 3, which else have 0.

    Even k: C(k - 2, k / 2 - 1) / (2^k sqrt(k d)). Odd k >= 3 with bias: C(k - 1, (k - 1) / 2) /
    (2^{k + 1} sqrt(k d + 1)). k = 1: 1 / (4 sqrt d), with bias 1 / (2 sqrt(d + 1)). All behave like
    0.2 / (k sqrt d): the 1 / (k sqrt d) of the paper, of the l1 norm over unit-norm features, is
    too large by 1.1 to 2.5.

    Attained by one neuron and its sign flips. That nothing is better is proved for k <= 2, and
    certified by the solver for small d.
    """
    d, k = _sizes(d=(d, 1), k=(k, 1))
    bias = check_flag("bias", bias)
    if k > d:
        raise ArgumentError(f"parity needs k <= d; got d = {d}, k = {k}")
    if k == 1:
        return 1 / (2 * math.sqrt(d + 1)) if bias else 1 / (4 * math.sqrt(d))
    if k % 2 == 0:
        return math.comb(k - 2, k // 2 - 1) / (2**k * math.sqrt(k * d))
    return math.comb(k - 1, (k - 1) // 2) / (2 ** (k + 1) * math.sqrt(k * d + 1)) if bias else 0.0


def alternating(n: int) -> tuple[Tensor, Tensor]:
    """n points on a line at equal steps in [-1, 1] with alternating labels: every sample rests on
    the margin, and f has n - 2 kinks inside.

    Examples
    --------
    >>> from netmargin.datasets import alternating
    >>> X, y = alternating(3)
    >>> X[:, 0].tolist(), y.tolist()
    ([-1.0, 0.0, 1.0], [1, -1, 1])
    """
    (n,) = _sizes(n=(n, 1))
    return _pair(
        np.linspace(-1, 1, n)[:, None] if n > 1 else np.ones((1, 1)), 1.0 - 2.0 * (np.arange(n) % 2)
    )


def _sizes(**given: tuple[int, int]) -> tuple[int, ...]:
    """The numbers, each at least as large as must be. Raises ArgumentError."""
    return tuple(check_count(name, value, at_least=least) for name, (value, least) in given.items())


def _pair(X: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(np.ascontiguousarray(X)), torch.from_numpy(y.astype(np.int64))
