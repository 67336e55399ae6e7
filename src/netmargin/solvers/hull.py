"""Exact proofs that 0 is in the hull of samples: no linear function separates them as they are."""

from fractions import Fraction
from itertools import chain

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..core.matrices import EPS
from .extended import multiply_extended
from .simplex import Simplex

_SUPPORTS = (1e-8, 1e-5, 1e-3, 0.0)
"""Parts of the largest weight from which a weight counts as one: solvers leave dust."""
DECIDED = 20_000
"""Samples times squared dimensions up to which whole numbers are tried: seconds at worst."""
_FEW_DIMENSIONS = 100
"""Dimensions up to which a vertex is looked for first: a second for 2,000 samples."""
_NEWTON_STEPS, _PART_OF_WAY, _NEWTON_ENDS, _SHORTEST_STEP = 100, 0.9, 0.1, 1e-3
"""Newton steps for the centre, of which 10 to 30 are needed where there is one; how far they go
towards weights of 0; the relative step that is near enough; and the length that tells of none.
"""
_INVERSE = 4_000_000
"""Entries of a pseudo-inverse up to which one is taken: 5,000 samples in 800 dimensions take some
seconds. Of more samples those with the largest weights must do.
"""


def normalize_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows over powers of 2, their largest entries in [1/2, 1), and the exponents (n,)."""
    exponents = np.frexp(np.abs(rows).max(1))[1]
    return np.ldexp(rows, -exponents[:, None]), exponents


def find_contradiction(
    rows: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    strict: int | None = None,
    quick: bool = False,
) -> np.ndarray | None:
    """Prove that positive parts of some rows (n, D) sum to 0 exactly; None where no proof is found.

    Returns weights (n,), >= 0 with sum 1 over the first `strict` rows (all by default), that differ
    from such parts by rounding only. `weights` are tried first; a quick search looks for a proof by
    all samples only, in the time of some products of the rows.
    """
    strict = len(rows) if strict is None else strict
    scaled, exponents = normalize_rows(rows)
    # A sample with entries of more scales than float64 has is not the same after scaling.
    exact = (np.ldexp(scaled, exponents[:, None]) == rows).all(1)
    indices = np.flatnonzero(exact & rows.any(1))
    strict = int((indices < strict).sum())
    scaled, exponents = scaled[indices], exponents[indices]
    if not strict:
        return None

    def try_weights(q: np.ndarray) -> np.ndarray | None:
        """Weights of all rows by those of the scaled ones, where they can be made exact."""
        found = _make_exact(scaled, q, strict)
        if found is None:
            return None
        # Products with powers of 2, relative to the largest, as the powers may be out of range.
        mantissas, powers = np.frexp(found)
        powers = np.where(found > 0, powers - exponents, -(2**20))
        p = np.zeros(len(rows))
        p[indices] = np.ldexp(mantissas, powers - powers[:strict].max())
        return p / float(p[indices[:strict]].sum())

    few = scaled.shape[1] + 1
    if weights is not None and 0 < np.count_nonzero(weights[indices]) <= few:
        found = try_weights(np.ldexp(weights[indices], exponents - exponents.max()))
        if found is not None:
            return found
    # A vertex names few samples, but takes long in many dimensions.
    vertex_first = few <= _FEW_DIMENSIONS
    for vertex in [False] if quick else [vertex_first, not vertex_first]:
        q = _propose_vertex(scaled, strict) if vertex else find_center(scaled)
        found = None if q is None else try_weights(q)
        if found is not None:
            return found
    return None


def _make_exact(rows: np.ndarray, weights: np.ndarray, strict: int) -> np.ndarray | None:
    """Weights near the given ones that are proved to be near exact ones."""
    largest = weights.max(initial=0.0)
    if not (np.isfinite(weights).all() and largest > 0):
        return None
    for part in _SUPPORTS:
        used = np.flatnonzero(weights > part * largest)
        if not (used < strict).any():
            continue
        columns = np.flatnonzero(rows[used].any(0))
        A = rows[np.ix_(used, columns)].T
        found = _perturb(A, weights[used] / largest)
        if found is None and A.shape[1] * A.shape[0] ** 2 <= DECIDED:
            found = decide(A.T)[1]
        if found is not None and found[used < strict].any():
            exact = np.zeros(len(weights))
            exact[used] = found
            return exact
    return None


def _perturb(A: np.ndarray, p: np.ndarray) -> np.ndarray | None:
    """Weights p (m,) > 0, moved so that A p is 0 to rounding, if an exact solution is proved to be
    nearer to them than to 0: A (D, m) has a right inverse X, and q = X (A X)^-1 A p has A q = A p.
    """
    D, m = A.shape
    if m <= D or A.size > _INVERSE:
        return None
    X = np.linalg.pinv(A)
    p = p - X @ (A @ p)
    if not p.min() > 0:
        return None
    residual, errors = multiply_extended(A, p)
    rest = np.abs(residual).astype(float) + errors
    # Sums of m products are known to m + 2 roundings of the sum of their sizes; norms of what is
    # computed here to far less than the factor 2.
    defect = np.abs(A @ X - np.eye(D)) + (m + 2) * EPS * (np.abs(A) @ np.abs(X) + np.eye(D))
    size = 2 * float(np.linalg.norm(defect))
    moved = 2 * float(np.linalg.norm(X)) * float(np.linalg.norm(rest))
    return p if size < 0.5 and moved < (1 - size) * p.min() else None


def decide(rows: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Weights w (D,) with rows @ w > 0, or p (n,) >= 0 with p @ rows = 0, not 0, by the simplex
    method in whole numbers; one of them is None. What is returned is rounded to float64.
    """
    n, D = rows.shape
    columns = [as_integers(column) for column in rows.T]
    # Phase one: p @ rows = 0, sum p = 1 with artificial variables, whose sum is the last row. All
    # is over one denominator, so that every division is exact (Edmonds 1967, Bareiss 1968).
    table = np.zeros((D + 2, n + D + 2), dtype=object)
    for k, (values, _) in enumerate(columns):
        table[k, :n] = values
    # The sum is in such a unit that it is worth more than all others.
    table[D, :n] = table[D, -1] = 1 + sum(map(abs, chain.from_iterable(v for v, _ in columns)))
    for k in range(D + 1):
        table[k, n + k] = 1
    table[-1] = -table[:-1].sum(0)
    table[-1, n:-1] = 0
    basis, unit = list(range(n, n + D + 1)), 1
    while (entering := next((j for j in range(n) if table[-1, j] < 0), None)) is not None:
        ratios = [
            (Fraction(table[k, -1], table[k, entering]), basis[k], k)
            for k in range(D + 1)
            if table[k, entering] > 0
        ]
        k = min(ratios)[2]  # the first of all, as Bland's rule knows no cycles
        row, factors = table[k].copy(), table[:, entering].copy()
        table = (table * row[entering] - np.multiply.outer(factors, row)) // unit
        table[k], basis[k], unit = row, entering, row[entering]
    if table[-1, -1] == 0:
        p = np.zeros(n)
        for k, j in enumerate(basis):
            if j < n:
                p[j] = float(Fraction(table[k, -1], unit))
        return None, p
    # Prices of the equations: their sum with each sample is above 0.
    prices = [
        (Fraction(table[-1, n + k], unit) - 1) * units for k, (_, units) in enumerate(columns)
    ]
    largest = max(map(abs, prices))
    return np.array([float(price / largest) for price in prices]), None


def as_integers(values: np.ndarray) -> tuple[list[int], int]:
    """Whole numbers in the ratios of float64 values, and what these were multiplied by."""
    fractions = [Fraction(float(value)) for value in values]
    unit = max(value.denominator for value in fractions)  # all are powers of 2
    return [value.numerator * (unit // value.denominator) for value in fractions], unit


def find_center(rows: np.ndarray) -> np.ndarray | None:
    """Weights (n,) > 0 of largest product under which rows (n, D) sum to 0; None without any."""
    n = len(rows)
    A = np.vstack([rows.T[rows.any(0)], np.ones(n)])
    p, target = np.ones(n), np.append(np.zeros(len(A) - 1), n)
    for _ in range(_NEWTON_STEPS):
        scaled = A * p
        try:
            prices = cho_solve(cho_factor(scaled @ scaled.T), 2 * A @ p - target)
        except (LinAlgError, ValueError):
            return None
        step = 1 - p * (prices @ A)  # relative to p
        length = min(1.0, _PART_OF_WAY / max(-step.min(), 1e-300))
        p *= 1 + length * step
        if length < _SHORTEST_STEP:
            return None
        if length == 1.0 and np.abs(step).max() < _NEWTON_ENDS:
            return p
    return None


def _propose_vertex(rows: np.ndarray, strict: int) -> np.ndarray | None:
    """Weights (n,) of a vertex, few of them above 0: multipliers of a linear program."""
    # The largest t to which a function with coefficients in [-1, 1] comes on the first rows.
    n = len(rows)
    least = np.where(np.arange(n) < strict, 1.0, 0.0)
    program = Simplex()
    program.add_rows(np.zeros((n, 0)), np.zeros(n), np.full(n, np.inf))
    program.add_columns(rows, lower=-1.0, upper=1.0)
    program.add_columns(-least[:, None], cost=-1.0, lower=-np.inf)
    program.solve_until()
    return np.maximum(program.getSolution().row_dual, 0.0)
