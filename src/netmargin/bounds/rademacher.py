"""Rademacher complexities of two-layer function classes: bounds of the lemmas, and estimates."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING
from typing import Any

import numpy as np

from ..core.arguments import check_count, check_flag, check_seed
from ..core.records import Certainty, Table, number
from ..core.saved_records import Record
from ..kernels import arc_cosine
from ..solvers.neurons.activations import read_activation
from ..solvers.neurons.search import draw_starts, search_neurons
from ..solvers.pricing.bounds import PricingBound
from .bound import bounded_inputs

_RANDOM_STARTS = 64
"""Random directions beside the inputs and their opposites, for maxima that lie near none of them;
more of them can only raise suprema that are not exact.
"""


@dataclass(frozen=True)
class Rademacher(Record):
    """An estimate of an empirical Rademacher complexity, beside the bound that a lemma gives."""

    estimate: float  #: The mean over draws of signs
    error: float  #: The standard error of the estimate
    bound: float  #: What the lemma says the complexity is at most
    #: Whether each supremum is exact; else they are the best of a search, and may be too low
    exact: bool

    def _table(self) -> Table:
        """The bound, and the estimate with its error."""
        low = "" if self.exact else "; it may be too low, as suprema are the best of a search"
        estimate = (f"{number(self.estimate)} ± {number(self.error)}{low}", Certainty.ESTIMATED)
        bound = (number(self.bound, ROUND_CEILING), Certainty.PROVED)
        rows = [("at most", bound), ("mean over draws of signs", estimate)]
        return Table("Empirical Rademacher complexity", rows)


def variation_ball(
    X: Any, *, bias: bool = True, draws: int = 100, seed: int = 0, activation: Any = "relu"
) -> Rademacher:
    """Estimate and bound the Rademacher complexity of the unit ball of the variation norm.

    Of the class {sum_j alpha_j phi(u_j . x~), |u_j| = 1, |alpha|_1 <= 1} it is (1/n) E max_u
    |sum_i eps_i phi(u . x~_i)| <= 3 M |X~|_F / n, where x~ is x, or (x, 1) with a bias, and M the
    Lipschitz constant of phi. Suprema are exact for inputs of rank at most 3 (with the bias), as
    far as the arrangement is affordable.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Inputs.
    bias : bool, default True
        Whether neurons have a bias.
    draws : int, default 100
        How many vectors of signs are drawn, at least 2.
    seed : int, default 0
        Seed of the signs.
    activation : str or callable, default "relu"
        phi, as for `f1_max_margin`.

    Returns
    -------
    Rademacher
        Estimate, its standard error, and the bound.

    Raises
    ------
    DataError
        X is not a finite array of shape (n, d).
    ArgumentError
        Another argument is out of its range.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> found = nm.bounds.variation_ball(np.random.default_rng(0).normal(size=(30, 1)))
    >>> 0 < found.estimate + 3 * found.error < found.bound, found.exact
    (True, True)

    Source: Wei et al. 2018, Lemmas C.2 and C.4, Corollary C.5.
    """
    draws, seed = check_count("draws", draws, at_least=2), check_seed(seed)
    phi = read_activation(activation, squares=False)
    Z, signs = _draw_signs(X, bias, draws, seed)
    pricing = PricingBound(Z, phi, "auto", np.inf)
    # Pricing would visit arrangements of rank 4 as well, but once for each draw is too slow.
    exact = pricing.exact and np.linalg.matrix_rank(Z) <= 3
    random = np.random.default_rng(seed)
    values = np.empty(draws)
    for index, eps in enumerate(signs):
        if exact:
            values[index] = pricing.largest_response(eps)
        else:
            starts = draw_starts(Z, random, samples=2 * len(Z), normal=_RANDOM_STARTS)
            _, found = search_neurons(Z, eps, starts, count=1, activation=phi)
            values[index] = np.abs(found).max(initial=0.0)
    bound = 3 * phi.largest * float(np.linalg.norm(Z)) / len(Z)
    return _estimate(values / len(Z), bound, bool(exact))


def kernel_ball(X: Any, *, bias: bool = True, draws: int = 100, seed: int = 0) -> Rademacher:
    """Estimate and bound the Rademacher complexity of the unit ball of F_2.

    It is (1/n) E sqrt(eps' K eps) <= sqrt(trace K) / n = |X~|_F / (n sqrt(2 D)), where K is the
    arc-cosine kernel and D the dimension of x~, which is x, or (x, 1) with a bias.

    Parameters
    ----------
    X, bias, draws, seed
        As for `variation_ball`.

    Returns
    -------
    Rademacher
        Estimate, its standard error, and the bound; every supremum is exact.

    Raises
    ------
    DataError, ArgumentError
        As for `variation_ball`.

    Examples
    --------
    >>> import numpy as np, netmargin as nm
    >>> found = nm.bounds.kernel_ball(np.eye(8), bias=False)
    >>> abs(found.bound - 8**0.5 / (8 * 16**0.5)) < 1e-12, found.estimate < found.bound
    (True, True)

    Source: Wei et al. 2018, Lemma C.3 and Corollary C.5 (with kappa divided out,
    E_u relu(u . x)^2 = |x|^2 / (2 D)).
    """
    draws, seed = check_count("draws", draws, at_least=2), check_seed(seed)
    Z, signs = _draw_signs(X, bias, draws, seed)
    K = arc_cosine(Z, bias=False)
    # s'Ks >= 0; rounding can leave a small negative number where it is 0.
    values = np.sqrt(np.maximum(np.einsum("si,ij,sj->s", signs, K, signs), 0.0))
    return _estimate(values / len(Z), math.sqrt(float(np.trace(K))) / len(Z), True)


def _draw_signs(X: Any, bias: bool, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, D) with the bias, and signs (draws, n); raises DataError and ArgumentError."""
    bias = check_flag("bias", bias)
    X = bounded_inputs(X, math.inf)
    Z = np.hstack([X, np.ones((len(X), 1))]) if bias else X
    # A stream of its own: random directions of the search come from the plain seed.
    return Z, np.random.default_rng([seed, 1]).choice([-1.0, 1.0], (draws, len(Z)))


def _estimate(values: np.ndarray, bound: float, exact: bool) -> Rademacher:
    """Mean and standard error of the suprema, as a record."""
    error = float(values.std(ddof=1) / math.sqrt(len(values)))
    return Rademacher(float(values.mean()), error, bound, exact)
