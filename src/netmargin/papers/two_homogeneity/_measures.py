"""Measures on features that are good and spread: of least divergence, and that of Lemma B.1."""

import math

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from torch.nn import functional as F

from ...core.matrices import binary_data
from ...errors import DataError, ModelError
from ...nets.data import Data, read_model_and_data, takes_data
from ...solvers import f1_max_margin
from ...solvers.solution import VariationNormSolution
from ._normalized_nets import NormalizedNet, NormalizedReLU


def least_divergence(z: np.ndarray, u: np.ndarray, margin: float) -> np.ndarray:
    """The p = u exp(lambda z) / sum of least sum p ln(p / u) with z p >= margin, or near to it."""
    base, n = np.log(u), len(z)

    def dual(lam: np.ndarray) -> tuple[float, np.ndarray]:
        """Evaluate the negative dual and its gradient at multipliers of the margins."""
        logs = base + lam @ z
        total = logsumexp(logs)
        return total - margin * lam.sum(), z @ np.exp(logs - total) - margin

    found = minimize(dual, np.zeros(n), jac=True, bounds=[(0, None)] * n, method="L-BFGS-B")
    p: np.ndarray = np.exp(base + found.x @ z - logsumexp(base + found.x @ z))
    return p / float(p.sum())


@takes_data
def spread_measure(net: NormalizedNet, data: Data) -> np.ndarray:
    """The p of Lemma B.1 for a start: good random features, none with much weight.

    The weight of each neuron of the best net, of any width, is spread evenly over those features of
    the same sign whose directions are within gamma / 4 of its own, gamma the largest l1 margin of
    inputs divided by the longest; so margins are at least half of the largest. `early_margin` takes
    these probabilities, (m,), as its `p`. "The ubiquity of 2-homogeneity" 2024, Lemma B.1.
    """
    model, samples = read_model_and_data(net, data)
    if not (isinstance(model, NormalizedNet) and isinstance(model.inner, NormalizedReLU)):
        raise ModelError(
            "Lemma B.1 is about a NormalizedNet whose inner module is a NormalizedReLU"
        )
    beta = np.sign(model.balanced_product().cpu().numpy())
    v = F.normalize(model.inner.v.detach().double(), dim=1).cpu().numpy()
    known = binary_data(samples.X.cpu(), samples.y.cpu(), bias=False)
    best = f1_max_margin(known.scaled, known.y, bias=False)
    p, missed = spread_atoms(best, v, beta)
    if missed:
        ours, printed = subsampling_widths(
            2 * best.margin, v.shape[1], len(best.weights), len(samples.X)
        )
        raise DataError(
            f"{missed} of the {len(best.weights)} neurons of the best net have no feature near"
            f" them. Take a wider net: Lemma B.1 asks for m >= {ours:.3g} ({printed:.3g} printed)"
        )
    return p


def spread_atoms(
    best: VariationNormSolution, v: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, int]:
    """Spread neurons' weights over v (m, d) of sign beta within gamma / 4; count those without."""
    u, missed = np.zeros(len(v)), 0
    # The paper's neurons have unit directions, ours balanced halves.
    for atom, weight in zip(best.atoms, best.weights, strict=True):
        center = atom[:-1] * math.sqrt(2)
        near = np.linalg.norm(v - center, axis=1) <= best.margin / 2
        near &= beta == np.sign(atom[-1])
        missed += not near.any()
        u[near] += weight / max(near.sum(), 1)
    return u, missed


def hit_probability(gamma: float, d: int) -> float:
    """The tau of Lemma B.1: less than that of a random neuron near a given one, with its sign."""
    return (gamma / 8) ** (d - 1) / 4


def subsampling_widths(gamma: float, d: int, atoms: int, n: int) -> tuple[float, float]:
    """Widths from which Lemma B.1 holds with probability 1 - delta: by Chernoff, and printed."""
    tau, delta = hit_probability(gamma, d), 1e-3
    ours = max(8 * math.log(atoms / delta) / tau, 4 / tau**2)
    return ours, 2**10 * math.log(2 * n / (delta * gamma)) ** 2 * (8 / gamma) ** (2 * d - 2)
