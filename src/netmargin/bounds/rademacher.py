"""Rademacher complexities of two-layer function classes: the bounds of the lemmas, and estimates by
drawing signs.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..core.arguments import check_count, check_flag, check_seed
from ..core.matrices import as_array
from ..errors import DataError
from ..kernels import arc_cosine
from ..solvers.pricing.bounds import Prover
from ..solvers.pricing.local import price_locally

_STARTS = 64


@dataclass(frozen=True)
class Rademacher:
    """estimate : mean over draws of signs.

    error : its standard error.
    bound : of the lemma.
    exact : whether each supremum is exact; else they are the best of a search, and may be too
        low.
    """

    estimate: float
    error: float
    bound: float
    exact: bool


def variation_ball(X, *, bias: bool = True, draws: int = 100, seed: int = 0) -> Rademacher:
    """Of {sum_j alpha_j relu(u_j . x~), |u_j| = 1, |alpha|_1 <= 1}: (1/n) E max_u |sum_i eps_i
    relu(u . x~_i)| <= 3 |X~|_F / n.

    X : (n, d). Suprema are exact for inputs of rank at most 3 (with the bias), as far as the
        arrangement is affordable. Raises DataError, ArgumentError. Source: Wei et al. 2018, Lemmas
        C.2 and C.4, Corollary C.5.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> found = nm.bounds.variation_ball(np.random.default_rng(0).normal(size=(30, 1)))
    >>> 0 < found.estimate + 3 * found.error < found.bound, found.exact
    (True, True)
    """
    draws, seed = check_count("draws", draws, at_least=2), check_seed(seed)
    Z, signs = _prepared(X, bias, draws, seed)
    prover = Prover(Z, 1, "auto", np.inf)
    exact = prover.exact and np.linalg.matrix_rank(Z) <= 3
    random = np.random.default_rng(seed)
    values = np.empty(draws)
    for index, eps in enumerate(signs):
        if exact:
            values[index] = prover.price(
                eps,
                floor=0.0,
                found=0.0,
                tol=1e-9,
                count=1,
                thoroughly=False,
                report=lambda _: None,
            ).upper_bound
        else:
            starts = np.concatenate([Z, -Z, random.normal(size=(_STARTS, Z.shape[1]))])
            values[index] = np.abs(
                price_locally(Z, eps, starts[np.linalg.norm(starts, axis=1) > 0], count=1)[1]
            ).max(initial=0.0)
    return _estimate(values / len(Z), 3 * float(np.linalg.norm(Z)) / len(Z), bool(exact))


def kernel_ball(X, *, bias: bool = True, draws: int = 100, seed: int = 0) -> Rademacher:
    """Of the unit ball of F_2: (1/n) E sqrt(eps' K eps) <= sqrt(trace K) / n = |X~|_F / (n sqrt(2
    D)), K the arc-cosine kernel.

    Raises DataError, ArgumentError. Source: Wei et al. 2018, Lemma C.3 and Corollary C.5 (with
    kappa divided out, E_u relu(u . x)^2 = |x|^2 / (2 D)).
    """
    draws, seed = check_count("draws", draws, at_least=2), check_seed(seed)
    Z, signs = _prepared(X, bias, draws, seed)
    K = arc_cosine(Z, bias=False)
    values = np.sqrt(np.maximum(np.einsum("si,ij,sj->s", signs, K, signs), 0.0))
    return _estimate(values / len(Z), math.sqrt(float(np.trace(K))) / len(Z), True)


def _prepared(X, bias: bool, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    bias = check_flag("bias", bias)
    X = as_array(X, "X")
    if X.ndim != 2 or not X.size or not np.isfinite(X).all():
        raise DataError(
            f"X must be a finite array of shape (n, d), n and d at least 1; got shape {X.shape}"
        )
    Z = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    return Z, np.random.default_rng([seed, 1]).choice([-1.0, 1.0], (draws, len(Z)))


def _estimate(values: np.ndarray, bound: float, exact: bool) -> Rademacher:
    return Rademacher(
        float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values))), bound, exact
    )
