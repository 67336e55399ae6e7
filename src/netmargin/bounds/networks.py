"""Bounds of the test error of nets and kernel predictors from their training margins."""

import math
from typing import Any

import numpy as np

from ..core.arguments import check_count, check_number
from ..core.matrices import check_kernel, finite_rows
from ..errors import DataError
from .bound import SAMPLE_MOMENT, Bound, bounded_inputs, finite_array, margin_bound


def two_layer_bound(
    q: Any, X: Any, *, radius: float, margin: float | None = None, delta: float = 0.05
) -> Bound:
    """Bound the test error of a two-layer net by its normalized margins, whatever its width.

    For 1-Lipschitz, 1-homogeneous activations such as ReLU: 6 / gamma sqrt(D / n), where D is the
    mean of |x|^2, and the other terms of `margin_bound`.

    Parameters
    ----------
    q : array_like, shape (n,)
        Margins divided by ||Theta||^2, `report.q / report.norm**2`.
    X : array_like, shape (n, d)
        Training inputs, with a column of ones if neurons have a bias.
    radius : float
        C >= |x| for all x of the distribution.
    margin : float, optional
        gamma, at most `radius`; min q by default. Below it samples count by the ramp loss.
    delta : float, default 0.05
        The probability with which the bound may fail.

    Returns
    -------
    Bound
        The terms of `margin_bound`.

    Raises
    ------
    DataError
        Arrays cannot be used, an input is longer than `radius`, margins are impossibly large, or
        the least one is not positive and no `margin` is given.
    ArgumentError
        Another argument is out of its range.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> X = np.sign(np.random.default_rng(0).normal(size=(200_000, 2)))
    >>> round(nm.bounds.two_layer_bound(np.full(200_000, 0.17), X, radius=2**0.5).value, 2)
    0.12

    Source: Wei et al. 2018, Theorem 3.1 and its proof; with training errors, Theorem C.1.
    """
    # ||Theta|| = 1 leaves an l1 norm of 1/2 over unit-norm features: Rad <= 3 |X|_F / 2n.
    radius = check_number("radius", radius, above=0)
    q, X = finite_array(q, "q"), bounded_inputs(X, radius)
    if len(q) != len(X):
        raise DataError(f"There are {len(q)} margins for {len(X)} samples: one is needed for each.")
    return margin_bound(
        q,
        rademacher=1.5 * math.sqrt(float((X**2).sum(1).mean()) / len(X)),
        largest=radius / 2,
        margin=margin,
        delta=delta,
        assumptions=(describe_radius(radius), SAMPLE_MOMENT),
    )


def kernel_bound(
    q: Any, K: Any, *, largest: float, margin: float | None = None, delta: float = 0.05
) -> Bound:
    """Bound the test error of a kernel predictor by its normalized margins.

    4 / gamma sqrt(trace K) / n, and the other terms of `margin_bound`. For the arc-cosine kernel
    this is 2 sqrt 2 / gamma sqrt(D / (d n)), where D is the mean of |x|^2.

    Parameters
    ----------
    q : array_like, shape (n,)
        Margins divided by the norm of f in the space of the kernel.
    K : array_like, shape (n, n)
        The kernel matrix of the training inputs.
    largest : float
        The supremum of sqrt(K(x, x)) over all x of the distribution.
    margin, delta : optional
        gamma, and the probability with which the bound may fail, as for `margin_bound`.

    Returns
    -------
    Bound
        The terms of `margin_bound`.

    Raises
    ------
    DataError
        Arrays cannot be used, margins are above `largest`, or the least one is not positive and no
        `margin` is given.
    ArgumentError
        Another argument is out of its range.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> X = np.sign(np.random.default_rng(0).normal(size=(1000, 2)))
    >>> K = nm.kernels.arc_cosine(X, bias=False)  # K(x, x) = |x|^2 / (2 d) = 1/2
    >>> bound = nm.bounds.kernel_bound(np.full(1000, 0.5), K, largest=0.5**0.5)
    >>> round(bound.terms["complexity, 4 Rad / gamma"], 4)
    0.1789

    Source: Wei et al. 2018, Lemma 3.4 with explicit constants; Chizat and Bach 2020, Theorem 22.
    """
    q = finite_array(q, "q")
    K, largest = finite_rows(K, "K"), check_number("largest", largest, above=0)
    trace = float(np.trace(check_kernel(K, len(q))))
    if trace < 0:
        raise DataError(f"K is no kernel: the sum of its diagonal is {trace:.3g}, below 0.")
    assumption = "mean K(x, x) of the distribution is at most that of the samples"
    return margin_bound(
        q,
        rademacher=math.sqrt(trace) / len(q),
        largest=largest,
        margin=margin,
        delta=delta,
        assumptions=(f"K(x, x) <= {largest:.4g}^2", assumption),
    )


def deep_bound(
    q: Any, *, depth: int, radius: float, margin: float | None = None, delta: float = 0.05
) -> Bound:
    """Bound the test error of a deep ReLU net by its normalized margins.

    For a net of `depth` layers without biases: 4 C (sqrt(2 log 2 depth) + 1) / (depth^{depth/2}
    gamma sqrt n), and the other terms of `margin_bound`.

    Parameters
    ----------
    q : array_like, shape (n,)
        Margins divided by ||Theta||^depth.
    depth : int
        The number of layers, at least 1.
    radius, margin, delta : optional but for the radius
        As for `two_layer_bound`.

    Returns
    -------
    Bound
        The terms of `margin_bound`.

    Raises
    ------
    DataError
        q is empty, not finite or impossibly large, or the least one is not positive and no
        `margin` is given.
    ArgumentError
        Another argument is out of its range.

    Examples
    --------
    >>> import netmargin as nm
    >>> bound = nm.bounds.deep_bound([0.05] * 1_000_000, depth=3, radius=1.0)
    >>> round(bound.terms["complexity, 4 Rad / gamma"], 4), bound.vacuous
    (0.0468, False)

    Source: Wei et al. 2019, Proposition D.1, constants as in Golowich et al. 2018, Theorem 1.
    """
    q, depth = finite_array(q, "q"), check_count("depth", depth)
    radius = check_number("radius", radius, above=0)
    # At ||Theta||_F <= 1 the product of layer norms is at most depth^{-depth/2}.
    largest = radius * depth ** (-depth / 2)
    rademacher = largest * (math.sqrt(2 * math.log(2) * depth) + 1) / math.sqrt(len(q))
    return margin_bound(
        q,
        rademacher=rademacher,
        largest=largest,
        margin=margin,
        delta=delta,
        assumptions=(describe_radius(radius),),
    )


def describe_radius(radius: float) -> str:
    """The assumption that `radius` bounds all inputs, in words."""
    return f"|x| <= {radius:.4g} for all x"
