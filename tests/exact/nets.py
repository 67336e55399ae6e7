"""Small ReLU nets twice: as modules of torch in float64, and in whole numbers."""

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch
from torch import nn

from . import spite
from .arrangement import Vector, combine, dot, faces
from .rational import exact

SLOPES = (-3.0, -1.0, -0.25, 0.0, 1e-30, 0.01, 0.25, 0.9, 1.0, 1.5, 20.0)
"""Slopes of PReLUs below 0."""


@dataclass(frozen=True)
class Net:
    """Affine layers with an activation after each but the last.

    layers : arrays (rows, columns + 1) of float64, the last column biases.
    slope : of the activation below 0; 0 is ReLU.
    slopes : of each hidden layer one for each unit, or one for all, in place of `slope`: PReLU.
    variance : of a BatchNorm after the first layer, which has a third of it as epsilon, so that the
        root is exact where it is 3 times a power of 4; 0 for none.
    first : weights of a linear layer without biases before all others; None for none.
    """

    layers: list[np.ndarray]
    slope: float = 0.0
    variance: float = 0.0
    first: np.ndarray | None = None
    slopes: list[np.ndarray] | None = None

    def module(self, bias: bool = True) -> nn.Sequential:
        """The module, in evaluation mode; without biases they are left out."""
        parts: list[nn.Module] = []
        if self.first is not None:
            first = nn.Linear(*self.first.shape[::-1], bias=False, dtype=torch.float64)
            first.weight.data.copy_(torch.from_numpy(self.first))
            parts.append(first)
        for i, W in enumerate(self.layers):
            linear = nn.Linear(W.shape[1] - 1, len(W), bias=bias, dtype=torch.float64)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(W[:, :-1].copy()))
                if bias:
                    linear.bias.copy_(torch.from_numpy(W[:, -1].copy()))
            parts.append(linear)
            if i == 0 and self.variance:
                norm = nn.BatchNorm1d(len(W), eps=self.variance / 3, dtype=torch.float64)
                assert norm.running_var is not None
                norm.running_var.fill_(self.variance)
                parts.append(norm)
            if i < len(self.layers) - 1:
                parts.append(nn.LeakyReLU(self.slope) if self.slope else nn.ReLU())
                if self.slopes is not None:
                    parts[-1] = nn.PReLU(len(self.slopes[i]), dtype=torch.float64)
                    parts[-1].weight.data.copy_(torch.from_numpy(self.slopes[i]))
        return nn.Sequential(*parts).eval()

    def affine(self) -> list[tuple[list[Vector], int]]:
        """The layers as whole numbers over one denominator each, BatchNorm folded in."""
        found = []
        for i, W in enumerate(self.layers):
            rows = exact(W)
            if i == 0 and self.first is not None:
                rows = np.concatenate([rows[:, :-1] @ exact(self.first), rows[:, -1:]], 1)
            if i == 0 and self.variance:
                rows = rows / Fraction(math.sqrt(self.variance / 3 * 4))
            denominator = math.lcm(*(part.denominator for part in rows.reshape(-1)))
            found.append(([[int(p * denominator) for p in row] for row in rows], denominator))
        return found

    def factors(self, layer: int) -> tuple[list[int], int]:
        """The slopes below 0 of the units of a hidden layer, as whole numbers over one."""
        units = len(self.layers[layer])
        slopes = [self.slope] if self.slopes is None else self.slopes[layer].tolist()
        fractions = [Fraction(s) for s in (slopes * units if len(slopes) == 1 else slopes)]
        q = math.lcm(*(fraction.denominator for fraction in fractions))
        return [int(fraction * q) for fraction in fractions], q

    def activate(self, values: Vector, scale: int, layer: int) -> tuple[Vector, int]:
        """The activation of values over `scale` of a hidden layer."""
        below, q = self.factors(layer)
        pairs = zip(values, below, strict=True)
        return [value * (p if value < 0 else q) for value, p in pairs], scale * q

    def scores(self, point: Vector, layers: list[tuple[list[Vector], int]]) -> Vector:
        """The scores at (x, w), which stands for x / w with w > 0, times a positive number."""
        values, scale = point[:-1], point[-1]
        for i, (rows, denominator) in enumerate(layers):
            values = [dot(row, [*values, scale]) for row in rows]
            scale *= denominator
            if i < len(layers) - 1:
                values, scale = self.activate(values, scale, i)
        return values

    def pieces(self) -> list[tuple[list[Vector], list[Vector]]]:
        """The linear pieces in the plane: lines (a, b, c), a x + b y + c = 0, among which all sides
        of the piece are, and the scores on it as such forms, each times a positive number.
        """
        layers = self.affine()
        found: list = [([], [[1, 0, 0], [0, 1, 0]], 1)]
        for i, (rows, denominator) in enumerate(layers):
            last, grown = i == len(layers) - 1, []
            for lines, forms, scale in found:
                units = [combine(row, [*forms, [0, 0, scale]]) for row in rows]
                if last:
                    grown.append((lines, units, 1))
                    continue
                below, q = self.factors(i)
                for signs in self._patterns(units):
                    active = [
                        [part * (q if s > 0 else p) for part in unit]
                        for unit, s, p in zip(units, signs, below, strict=True)
                    ]
                    grown.append((lines + units, active, scale * denominator * q))
            found = grown
        return [(lines, forms) for lines, forms, _ in found]

    @staticmethod
    def _patterns(units: list[Vector]) -> set[tuple[int, ...]]:
        """The signs of forms on all cells in the plane w = 1."""
        used = [i for i, unit in enumerate(units) if any(unit)]
        forms = [units[i] for i in used] + [[0, 0, 1]]
        patterns = set()
        for _, _, sides in faces(forms):
            if sides and sides[-1] > 0:
                signs = [0] * len(units)
                for i, s in zip(used, sides, strict=False):
                    signs[i] = s
                patterns.add(tuple(signs))
        return patterns


def draw_net(rng: np.random.Generator, hidden: list[int], outputs: int, inputs: int = 2) -> Net:
    """A net with plain or spoiled layers; LeakyReLU and a BatchNorm of small variance at times, or
    hidden units that are copies of one, whose huge outgoing weights cancel.
    """
    widths = [inputs, *hidden, outputs]
    layers = [spite.weights(rng, rows, columns + 1) for columns, rows in itertools.pairwise(widths)]
    if hidden and rng.random() < 0.1:
        layers[-2][1:] = layers[-2][0]
        layers[-1] = spite.cancel_columns(rng, layers[-1])
    slope = float(rng.choice([0.0, 0.01, 0.9], p=[0.8, 0.1, 0.1]))
    variance = 3.0 * 4.0 ** -int(rng.integers(0, 50)) if rng.random() < 0.1 else 0.0
    return Net(layers, slope, variance)


def with_slopes(rng: np.random.Generator, net: Net) -> Net:
    """The net with PReLUs, whose slopes may be negative or above 1: one for all units, or each."""
    sizes = [1 if rng.random() < 0.3 else len(layer) for layer in net.layers[:-1]]
    return replace(net, slopes=[rng.choice(SLOPES, size) for size in sizes])


def split_first_layer(rng: np.random.Generator, net: Net) -> Net:
    """The net with two linear layers for its first one, whose product nearly cancels: (1 + e) of
    something less what is (1 - e) of it one layer on.
    """
    (W, *others), e = net.layers, 2.0 ** -int(rng.integers(8, 32))
    rows = rng.normal(size=(W.shape[1] - 1, 2))
    weights = np.clip(W[:, :-1] * rng.choice([1.0, e**-2]), -spite.LARGEST, spite.LARGEST)
    second = np.concatenate([weights, weights * (e - 1), W[:, -1:]], 1)
    return replace(net, layers=[second, *others], first=np.concatenate([rows, rows * (1 + e)]))
