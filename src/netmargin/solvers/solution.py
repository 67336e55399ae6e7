"""Results of the variation-norm problems, and their conversion to a net."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core.arguments import check_count, check_flag, check_optional
from ..core.matrices import Floats, as_array, binary_data, evaluation_inputs
from ..core.saved_records import Record
from ..errors import ArgumentError, DataError, ModelError
from ..models import ReLUPower, SignedSum
from ..nets.model import float64_copy, scores
from ..result import MarginSolution, RegularizedSolution, SoftSolution
from .neurons.activations import Activation

_ROUNDING = 1e-12
"""How far a net may be from its measure, relative to the largest value that neurons of its mass can
have: sums of 10,000 float64 terms are off by a hundredth of it.
"""


@dataclass(frozen=True, kw_only=True)
class ReLUMeasure(Record):
    """A function of two-layer nets, f(x) = sum_j weights_j b_j phi(a_j . x~): phi(t) is
    relu(t)^power, or for power 1 and a slope t above 0 and slope t below.

    It is a measure on the unit sphere of (a, b), or for power 2 on unit a and b = +-1; x~ is x, or
    (x, 1) with a bias.

    Examples
    --------
    >>> import numpy as np
    >>> from netmargin.solvers import ReLUMeasure
    >>> relu = ReLUMeasure(atoms=np.array([[0.6, 0.8]]), weights=np.array([2.0]), bias=False)
    >>> relu.decision_function([[-1.0], [1.0]]).tolist(), relu.mass
    ([0.0, 0.96], 2.0)
    """

    atoms: np.ndarray  #: (k, D): Rows (a, b), D = d + 1, or d + 2 with a bias
    weights: np.ndarray  #: (k,): Those of the atoms, at least 0
    bias: bool  #: Whether neurons have a bias
    power: int = 1  #: 1 for ReLU, 2 for squared ReLU
    slope: float = 0.0  #: For power 1, that below 0: 0 for ReLU, -1 for absolute values

    @property
    def activation(self) -> Activation:
        """The activation of the neurons."""
        return Activation(self.slope, self.power)

    def decision_function(self, X: Any) -> np.ndarray:
        """Values f(x), shape (N,), at inputs X of shape (N, d)."""
        Z = evaluation_inputs(X, self.atoms.shape[1] - 1, bias=self.bias)
        outer: Floats = self.weights * self.atoms[:, -1]
        return self.activation.feature(Z @ self.atoms[:, :-1].T) @ outer

    @property
    def mass(self) -> float:
        """The sum of the weights, ||theta||^2 of the net."""
        return float(self.weights.sum())

    def normalized_margin(self, X: Any, y: Any) -> float:
        """The least y_n f(x_n) / mass over samples X (n, d) with labels y (n,), {-1, +1} or {0, 1};
        0 for no atoms. Raises DataError for data of a wrong shape or kind.
        """
        data = binary_data(X, y, bias=False)
        return float((data.y * self.decision_function(data.Z)).min()) / (self.mass or 1.0)

    def balanced(self) -> "ReLUMeasure":
        """The same function with |a| = |b| in every atom (power 1), which has the least mass."""
        if self.power == 2:
            return self
        a, b = np.linalg.norm(self.atoms[:, :-1], axis=1), np.abs(self.atoms[:, -1])
        used = (a > 0) & (b > 0)
        inner, outer = self.atoms[used, :-1] / a[used, None], self.atoms[used, -1] / b[used]
        atoms = np.column_stack([inner, outer]) / np.sqrt(2)
        weights = (2 * a * b * self.weights)[used]
        return self._move(atoms, weights)

    @classmethod
    def projected(
        cls, positions: Any, weights: Any = None, *, bias: bool, power: int = 1
    ) -> "ReLUMeasure":
        """The same function as a measure on the sphere: weight_j |w_j|^2 at w_j / |w_j|.

        Rows w_j = (a_j, b_j) of `positions` (k, D) have `weights` (k,) >= 0, 1 / k each by default;
        those of size 0 are left out. For power 2 the |a_j| count and the b_j are signs. Raises
        DataError for a wrong shape, NaN, or output weights that are no signs (power 2).

        Source: Chizat and Bach 2020, (3), the projection Pi_2.
        """
        bias, power = check_flag("bias", bias), check_count("power", power, at_most=2)
        units = as_array(positions, "positions").copy()
        if units.ndim != 2 or units.shape[1] < 2 + bias or not np.isfinite(units).all():
            raise DataError(
                f"positions must be a finite array of shape (k, {2 + bias} or more); got shape"
                f" {units.shape}"
            )
        if weights is None:
            weights = np.full(len(units), 1 / max(len(units), 1))
        weights = as_array(weights, "weights")
        if weights.shape != units.shape[:1] or not (weights >= 0).all():
            raise DataError(f"weights must be {len(units)} numbers >= 0; got shape {weights.shape}")
        if power == 2 and not (np.abs(units[:, -1]) == 1).all():
            raise DataError(
                "For power 2 the last column of positions holds the signs of the output weights, +1"
                " or -1."
            )
        moving = units if power == 1 else units[:, :-1]
        sizes = np.linalg.norm(moving, axis=1)
        used = sizes * np.sqrt(weights) > 0
        moving[used] /= sizes[used, None]
        return ReLUMeasure(
            atoms=units[used], weights=(weights * sizes**2)[used], bias=bias, power=power
        )

    def normalized(self) -> "ReLUMeasure":
        """The probability measure: weights divided by the mass. Raises DataError if that is 0."""
        if not self.mass > 0:
            raise DataError(
                "A measure without mass cannot be normalized: all its neurons have vanished."
            )
        return self._move(self.atoms, self.weights / self.mass)

    def _move(self, atoms: np.ndarray, weights: np.ndarray) -> "ReLUMeasure":
        """A measure of other atoms of the same activation."""
        return ReLUMeasure(
            atoms=atoms, weights=weights, bias=self.bias, power=self.power, slope=self.slope
        )

    @classmethod
    def from_network(cls, net: nn.Module) -> "ReLUMeasure":
        """The measure of a net Linear - ReLU or LeakyReLU - Linear with one output and no output
        bias, or of squared ReLUs and a `SignedSum`: the same function, compared at random inputs.

        ReLUs may be calls in `forward`. Its mass is ||theta||^2. Raises ModelError for other nets.

        Source: Chizat and Bach 2020, (3).
        """
        twin, slope = float64_copy(net).cpu(), 0.0
        leaves = [m for m in twin.modules() if not list(m.children())]
        match [m for m in leaves if isinstance(m, SignedSum) or list(m.parameters())]:
            case [nn.Linear() as hidden, nn.Linear(out_features=1, bias=None) as output]:
                outgoing, power = output.get_parameter("weight")[0], 1
                slope = next((m.negative_slope for m in leaves if isinstance(m, nn.LeakyReLU)), 0.0)
            case [nn.Linear() as hidden, SignedSum() as output]:
                outgoing, power = output.signs, 2
            case _:
                raise _no_measure(leaves, "")
        given: Any = hidden.bias
        biases = [] if given is None else [given[:, None]]
        rows = torch.cat([hidden.weight, *biases, outgoing[:, None]], 1)
        units = rows.detach().numpy()
        made = cls.projected(units, np.ones(len(units)), bias=given is not None, power=power)
        made = replace(made, slope=slope)
        # Of several sizes: what cuts off shows at large ones, what adds a constant at small ones.
        draws = torch.Generator().manual_seed(0)
        kind: dict[str, Any] = {"dtype": torch.float64, "device": "cpu"}
        x = torch.randn(64, hidden.in_features, generator=draws, **kind)
        x *= torch.logspace(-3, 3, len(x), **kind)[:, None]
        with torch.no_grad():
            misses = np.abs(scores(twin, x)[:, 0].numpy() - made.decision_function(x))
        largest = made.balanced().mass * (1 + x.norm(dim=1).numpy()) ** power
        if not (misses <= _ROUNDING * largest).all():
            raise _no_measure(leaves, ", whose forward pass does something else with them")
        return made

    def to_network(self, width: int | None = None) -> nn.Sequential:
        """A float64 net Linear - ReLU - Linear with the same function and ||theta||^2 = the mass.

        With a slope it has a LeakyReLU, absolute values too, whose slope is -1. For power 2 the
        output layer is a sum with fixed signs. `width` is the number of hidden units, at least the
        number of atoms (the default); heavier atoms are shared by several units. Raises DataError
        for a measure without atoms, ArgumentError for a smaller width.

        Source: Chizat and Bach 2020, (3); Wei et al. 2018, proof of Theorem 3.3.
        """
        k = len(self.weights)
        if k == 0:
            raise DataError("The solution has no atoms (f = 0), so there is no net to build.")
        width = check_optional(check_count, "width", width) or k
        if width < k:
            raise ArgumentError(f"width must be at least {k}, the number of atoms; got {width}")
        # Every atom gets as many units as fit; the heaviest ones get what is left over.
        copies = np.full(k, width // k)
        copies[np.argsort(-self.weights, kind="stable")[: width % k]] += 1
        units = np.repeat(self.atoms * np.sqrt(self.weights / copies)[:, None], copies, axis=0)
        bend = nn.LeakyReLU(self.slope) if self.slope else nn.ReLU()
        net = build_net(units[:, :-1], units[:, -1:], self.bias, bend)
        if self.power == 2:
            signs = torch.from_numpy(np.repeat(self.atoms[:, -1], copies))
            return nn.Sequential(net[0], ReLUPower(2), SignedSum(signs))
        return net


def build_net(inner: np.ndarray, outer: np.ndarray, bias: bool, *bends: nn.Module) -> nn.Sequential:
    """A float64 net of neurons (k, D), the bias last, the functions `bends`, and outputs (k, K)."""
    (k, D), K = inner.shape, outer.shape[1]
    hidden = nn.Linear(D - bias, k, bias=bias, dtype=torch.float64)
    output = nn.Linear(k, K, bias=False, dtype=torch.float64)
    with torch.no_grad():
        hidden.weight.copy_(torch.from_numpy(inner[:, : D - bias]))
        if bias:
            hidden.bias.copy_(torch.from_numpy(inner[:, -1]))
        output.weight.copy_(torch.from_numpy(outer.T))
    return nn.Sequential(hidden, *bends, output)


def _no_measure(layers: list[nn.Module], more: str) -> ModelError:
    """The error for a net that is no measure."""
    return ModelError(
        "A measure on the sphere is a net Linear - ReLU - Linear(.., 1, bias=False), with LeakyReLU"
        f" as well, or Linear - ReLUPower(2) - SignedSum; got {', '.join(map(repr, layers))}{more}."
    )


def build_measure(
    U: np.ndarray, signs: np.ndarray, alphas: np.ndarray, activation: Activation, bias: bool
) -> ReLUMeasure:
    """The measure of sum_j alphas_j signs_j phi(U_j . x~), unit U (k, D) and alphas >= 0."""
    root, mass = (np.sqrt(2), 2) if activation.power == 1 else (1.0, 1)
    return ReLUMeasure(
        atoms=np.column_stack([U, signs]) / root,
        weights=mass * alphas,
        bias=bias,
        power=activation.power,
        slope=activation.slope,
    )


@dataclass(frozen=True, kw_only=True)
class VariationNormSolution(ReLUMeasure, MarginSolution):
    """A probability measure whose function has a large margin.

    Where it is optimal, the margin is the best q_min / ||theta||^2 of two-layer nets, half the l1
    margin over unit-norm features (Chizat and Bach 2020, Proposition 9). The weights sum to 1.
    """

    rounds: int  #: Rounds of column generation
    #: Relative gap between the margin and the largest value of a neuron that search found at the
    #: best dual weights; it proves nothing
    local_gap: float
    #: How the upper bound was proved, for instance "54 of 256 samples carry it, 7,012 nodes" of a
    #: search tree
    upper_bound_from: str


@dataclass(frozen=True, kw_only=True)
class SoftVariationNormSolution(ReLUMeasure, SoftSolution):
    """A measure with small variation norm and hinge loss; the sum of the weights is ||theta||^2."""

    local_gap: float  #: As in `VariationNormSolution`
    lower_bound_from: str  #: How the lower bound was proved


@dataclass(frozen=True, kw_only=True)
class LogisticVariationNormSolution(ReLUMeasure, RegularizedSolution):
    """A measure with small mean logistic loss and small mass, which is ||theta||^2 of the net."""

    log_loss: float  #: The natural log of the mean loss
    local_gap: float  #: As in `VariationNormSolution`
    lower_bound_from: str  #: How the lower bound was proved


def describe_proof(dual: np.ndarray, proof: str) -> str:
    """How a bound was proved, in words: the samples with dual weight, and `proof`."""
    count = np.count_nonzero(dual)
    carry = "sample carries" if count == 1 else "samples carry"
    return f"{count:,} of {len(dual):,} {carry} it, {proof}"
