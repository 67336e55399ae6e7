"""The result of the variation-norm problem, and its conversion to a net."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ..errors import DataError
from ..result import Solution


@dataclass(frozen=True)
class VariationNormSolution(Solution):
    """A measure on the unit sphere of (a, b) whose function f(x) = sum_j weights_j b_j relu(a_j . x~) has a large margin.

    The margin equals the best q_min / ||theta||^2 of two-layer nets where it is optimal, and is half the l1 margin over unit-norm
    features (Chizat and Bach 2020, Proposition 9).

    atoms : (k, D + 1), rows (a, b) of unit norm, D = d + 1 with a bias. weights : (k,), nonnegative, sum 1.
    slackness : largest violation of complementary slackness, relative to the largest feature.
    """

    atoms: np.ndarray
    weights: np.ndarray
    slackness: float
    bias: bool
    rounds: int

    def decision_function(self, X) -> np.ndarray:
        """f(x) for inputs of shape (N, d)."""
        X = np.asarray(X, dtype=np.float64)
        Z = np.hstack([X, np.ones((len(X), 1))]) if self.bias else X
        return np.maximum(Z @ self.atoms[:, :-1].T, 0.0) @ (self.weights * self.atoms[:, -1])

    def to_network(self, width: int | None = None) -> nn.Sequential:
        """A float64 net Linear - ReLU - Linear with the same function, ||theta|| = 1, and so the same normalized margin.

        `width` is the number of hidden units, at least the number of atoms (the default); heavier atoms are then shared by
        several units. Source: Chizat and Bach 2020, (3); Wei et al. 2018, proof of Theorem 3.3.
        """
        k = len(self.weights)
        if k == 0:
            raise DataError("The solution has no atoms (its margin is 0), so there is no net of norm 1 to build.")
        width = k if width is None else width
        if width < k:
            raise DataError(f"width must be at least {k}, the number of atoms; got {width}")
        copies = np.full(k, width // k)
        copies[np.argsort(-self.weights, kind="stable")[: width % k]] += 1
        units = np.repeat(self.atoms * np.sqrt(self.weights / copies)[:, None], copies, axis=0)
        inputs = units.shape[1] - 1 - self.bias
        hidden, output = nn.Linear(inputs, width, bias=self.bias), nn.Linear(width, 1, bias=False)
        net = nn.Sequential(hidden, nn.ReLU(), output).double()
        with torch.no_grad():
            hidden.weight.copy_(torch.from_numpy(units[:, :inputs]))
            if self.bias:
                hidden.bias.copy_(torch.from_numpy(units[:, inputs]))
            output.weight.copy_(torch.from_numpy(units[:, -1:].T))
        return net
