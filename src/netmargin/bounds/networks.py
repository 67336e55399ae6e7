"""Test errors of nets and kernel predictors from their training margins."""

import math

import numpy as np

from ..core.arguments import check_count, check_flag, check_number
from ..core.matrices import as_array
from ..errors import DataError
from .bound import Bound, check_delta, finite_array, margin_bound

_MOMENT = (
    "mean |x|^2 of the distribution is at most that of the samples (its expected value stands in"
    " the theorem)"
)


def two_layer_bound(
    q, X, *, radius: float, margin: float | None = None, delta: float = 0.05
) -> Bound:
    """Test error of a two-layer net with 1-Lipschitz, 1-homogeneous activation: 6 / gamma sqrt(D /
    n) + eps(gamma), D the mean of |x|^2, whatever the width.

    q : (n,), margins divided by ||Theta||^2, `report.q / report.norm**2`.
    X : (n, d), training inputs, with a column of ones if neurons have a bias.
    radius : C >= |x| for all x.
    margin : gamma, min q by default; samples below it count by the ramp loss.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> X = np.sign(np.random.default_rng(0).normal(size=(200_000, 2)))
    >>> round(nm.bounds.two_layer_bound(np.full(200_000, 0.17), X, radius=2**0.5).value, 2)
    0.12

    Raises as `margin_bound`. Source: Wei et al. 2018, Theorem 3.1 and its proof; with training
    errors, Theorem C.1.
    """
    # In units of the l1 norm over unit-norm features: twice the margin, Rad <= 3 |X|_F / n.
    radius = check_number("radius", radius, above=0)
    margin = check_number("margin", margin, above=0, at_most=radius, optional=True)
    q, X, gamma = (
        2 * finite_array(q, "q"),
        _inputs(X, radius),
        None if margin is None else 2 * margin,
    )
    if len(q) != len(X):
        raise DataError(
            f"There are {len(q)} margins for {len(X)} samples; give those of all samples in X."
        )
    rademacher = 3 * math.sqrt(float((X**2).sum(1).mean()) / len(X))
    return margin_bound(
        q,
        rademacher=rademacher,
        largest=radius,
        margin=gamma,
        delta=delta,
        assumptions=(_radius(radius), _MOMENT),
    )


def kernel_bound(
    q, K, *, largest: float, margin: float | None = None, delta: float = 0.05
) -> Bound:
    """Test error of a kernel predictor: 4 / gamma sqrt(trace K) / n + eps(gamma). For the
    arc-cosine kernel this is 2 sqrt 2 / gamma sqrt(D / (d n)).

    q : (n,), margins divided by the norm of f in the space of the kernel.
    K : (n, n), of the training inputs.
    largest : sup of sqrt(K(x, x)) over all x. Raises as `margin_bound`. Source: Wei et al. 2018,
        Lemma 3.4 with explicit constants; Chizat and Bach 2020, Theorem 22.
    """
    K, q, largest = (
        as_array(K, "K"),
        finite_array(q, "q"),
        check_number("largest", largest, above=0),
    )
    if K.shape != (len(q), len(q)) or not np.isfinite(K).all():
        raise DataError(
            f"K must be finite, of shape ({len(q)}, {len(q)}), as many as margins; got {K.shape}"
        )
    assumption = "mean K(x, x) of the distribution is at most that of the samples"
    return margin_bound(
        q,
        rademacher=math.sqrt(float(np.trace(K))) / len(q),
        largest=largest,
        margin=margin,
        delta=delta,
        assumptions=(f"K(x, x) <= {largest:.4g}^2", assumption),
    )


def deep_bound(q, *, depth: int, radius: float, delta: float = 0.05) -> Bound:
    """Test error of a ReLU net of `depth` layers that separates its samples: 4 C (sqrt(2 log 2
    depth) + 1) / (depth^{depth/2} gamma sqrt n) + eps(gamma).

    q : (n,), margins divided by ||Theta||^depth, all positive.
    radius : C >= |x| for all x. Raises DataError : margins that are not positive; else as
        `margin_bound`. Source: Wei et al. 2019, Proposition D.1, constants as in Golowich et al.
        2018, Theorem 1.
    """
    q, depth, radius = (
        finite_array(q, "q"),
        check_count("depth", depth),
        check_number("radius", radius, above=0),
    )
    n = len(q)
    # At ||Theta||_F <= 1 the product of layer norms is at most depth^{-depth/2}.
    largest = radius * depth ** (-depth / 2)
    rademacher = largest * (math.sqrt(2 * math.log(2) * depth) + 1) / math.sqrt(n)
    return margin_bound(
        q, rademacher=rademacher, largest=largest, delta=delta, assumptions=(_radius(radius),)
    )


def fast_rate_bound(q, *, radius: float, delta: float = 0.05, constant: float = 1e5) -> Bound:
    """Test error of a normalized two-layer net that separates its samples: K (log^3 n Rad^2 /
    gamma^2 + log(log(4 b / gamma) / delta) / n), Rad <= radius / sqrt n.

    q : (n,), margins y h / (|a|^2 + |b|^2) of sum_j a_j b_j relu(v_j . x / |v_j|), at most radius /
        2.
    constant : K, which the source does not give better than "below 10^5". A bound that falls like 1
        / n, not 1 / sqrt n, and is vacuous for any n that fits in memory unless a smaller constant
        is assumed. Source: "The ubiquity of 2-homogeneity" 2024, Theorem 4.1; Srebro, Sridharan,
        Tewari 2010, Theorem 5.
    """
    q = 2 * finite_array(q, "q")
    radius, constant = (
        check_number("radius", radius, above=0),
        check_number("constant", constant, above=0),
    )
    delta = check_delta(delta)
    gamma, n = float(q.min()), len(q)
    if not 0 < gamma <= radius:
        raise DataError(
            "margins must be positive and at most radius / 2; got a smallest one of"
            f" {gamma / 2:.4g} for radius {radius:.4g}"
        )
    return Bound(
        {
            "complexity, K log^3 n (Rad / gamma)^2": (
                constant * max(math.log(n), 1.0) ** 3 * (radius / gamma) ** 2 / n
            ),
            "confidence": constant * math.log(math.log(4 * radius / gamma) / delta) / n,
        },
        1 - delta,
        (
            "samples drawn independently from one distribution",
            _radius(radius),
            f"the universal constant of the theorem is at most {constant:g} (chosen)",
        ),
    )


def regression_bound(
    losses,
    X,
    *,
    norm: float,
    largest_loss: float,
    lipschitz: float,
    kernel: bool = False,
    delta: float = 0.05,
) -> Bound:
    """Expected loss of a two-layer ReLU function: mean training loss + 12 M max(1, |alpha| |X|_F) /
    n + 2 c sqrt((log(1 / delta) + log max(2, 4 |alpha| |X|_F)) / 2n).

    losses : (n,), of the training samples, in [-c, c]; such as `truncated_squares`.
    X : (n, d), a column of ones included for a bias.
    norm : |alpha|_1 over unit-norm features, half of ||Theta||^2, or for kernel=True the norm in
        the arc-cosine space, with 4 M / sqrt(2 d) in place of 12 M.
    largest_loss : c.
    lipschitz : M, of the loss in the prediction.

    Raises DataError, ArgumentError. Source: Wei et al. 2018, Lemmas D.4 and D.5, with the factors 4
    and 2 c that the union over norms and losses in [-c, c] take (docs/errata.md).
    """
    losses, X = finite_array(losses, "losses"), _inputs(X, math.inf)
    norm, lipschitz = (
        check_number("norm", norm, at_least=0),
        check_number("lipschitz", lipschitz, above=0),
    )
    largest_loss, kernel, delta = (
        check_number("largest_loss", largest_loss, above=0),
        check_flag("kernel", kernel),
        check_delta(delta),
    )
    if len(losses) != len(X):
        raise DataError(
            f"There are {len(losses)} losses for {len(X)} samples; give one per sample."
        )
    if np.abs(losses).max() > largest_loss:
        raise DataError(
            f"A loss of {np.abs(losses).max():.4g} is beyond largest_loss = {largest_loss:.4g}. Cut"
            " it, as `truncated_squares` does."
        )
    n, size = len(X), norm * math.sqrt(float((X**2).sum()))
    rate = 4 / math.sqrt(2 * X.shape[1]) if kernel else 12.0
    return Bound(
        {
            "mean training loss": float(losses.mean()),
            "complexity": rate * lipschitz * max(1.0, size) / n,
            "confidence, all norms at once": (
                2
                * largest_loss
                * math.sqrt((math.log(1 / delta) + math.log(max(2.0, 4 * size))) / (2 * n))
            ),
        },
        1 - delta,
        ("samples drawn independently from one distribution", _MOMENT),
        largest=largest_loss,
    )


def truncated_squares(predictions, y, *, largest: float = 1.0) -> np.ndarray:
    """min(largest, (f(x) - y)^2), (n,): a loss in [0, largest] with Lipschitz constant 2
    sqrt(largest), for `regression_bound`.
    """
    largest = check_number("largest", largest, above=0)
    f, y = finite_array(predictions, "predictions"), finite_array(y, "y")
    if f.shape != y.shape:
        raise DataError(f"There are {len(f)} predictions for {len(y)} values y.")
    return np.minimum(largest, (f - y) ** 2)


def _inputs(X, radius: float) -> np.ndarray:
    X = as_array(X, "X")
    if X.ndim != 2 or not len(X) or not np.isfinite(X).all():
        raise DataError(f"X must be a finite array of shape (n, d); got shape {X.shape}")
    longest = float(np.linalg.norm(X, axis=1).max())
    if longest > radius * (1 + 1e-12):
        raise DataError(
            "radius must bound |x| over the distribution, but a training sample has |x| ="
            f" {longest:.6g} > {radius:.6g}"
        )
    return X


def _radius(radius: float) -> str:
    return f"|x| <= {radius:.4g} for all x"
