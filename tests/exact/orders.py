"""Judges of orders of homogeneity: nets of rational operations, scaled in rationals."""

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import torch
from torch import nn

import netmargin as nm

from . import spite
from .rational import exact
from .verdict import Entry, Verdict


class Chain(nn.Module):
    """Operations one after the other, each a name with an argument.

    Layers have an own weight, and a bias or none; "add" puts the value of an earlier step on top,
    "shift" a number.
    """

    def __init__(self, steps: list[tuple], layers: Mapping[str, np.ndarray]):
        super().__init__()
        self.steps = steps
        for name, W in layers.items():
            self.register_parameter(name, nn.Parameter(torch.from_numpy(W)))

    def forward(self, x):
        values = [x]
        for kind, argument in self.steps:
            value = values[-1]
            if kind == "linear":
                bias = getattr(self, f"b{argument}", None)
                value = nn.functional.linear(value, getattr(self, f"w{argument}"), bias)
            elif kind == "leaky":
                value = nn.functional.leaky_relu(value, argument)
            elif kind == "abs":
                value = value.abs()
            elif kind == "square":
                value = value * value
            elif kind == "add":
                value = value + values[argument]
            elif kind == "shift":
                value = value + argument
            values.append(value)
        return values[-1]


def evaluate(steps: list[tuple], layers: Mapping[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """The same in fractions."""
    values = [x]
    for kind, argument in steps:
        value = values[-1]
        if kind == "linear":
            value = value @ layers[f"w{argument}"].T + layers.get(f"b{argument}", Fraction(0))
        elif kind == "leaky":
            value = np.where(value > 0, value, value * Fraction(argument))
        elif kind == "abs":
            value = abs(value)
        elif kind == "square":
            value = value * value
        elif kind == "add":
            value = value + values[argument]
        elif kind == "shift":
            value = value + Fraction(argument)
        values.append(value)
    return values[-1]


def draw(rng: np.random.Generator) -> dict:
    """One to four layers of one width, with biases anywhere, skips, squares and shifts."""
    width, depth = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    steps: list[tuple] = []
    layers = {}
    biased = rng.choice(["none", "first", "all", "some", "zero"])
    for i in range(depth):
        W = spite.weights(rng, width, width + 1)
        layers[f"w{i}"] = np.clip(W[:, :-1], -1e30, 1e30)
        if (
            biased == "all"
            or (biased == "first" and i == 0)
            or (biased == "some" and rng.random() < 0.5)
        ):
            layers[f"b{i}"] = np.clip(W[:, -1], -1e30, 1e30)
        elif biased == "zero":
            layers[f"b{i}"] = np.zeros(width)
        steps.append(("linear", i))
        if i < depth - 1:
            steps.append(("leaky", float(rng.choice([0.0, 0.0, 0.1, 1.0]))))
        if rng.random() < 0.1:
            steps.append(("abs", None))
        if rng.random() < 0.1:
            steps.append(("square", None))
        if rng.random() < 0.15 and len(steps) > 1:
            steps.append(("add", int(rng.integers(0, len(steps)))))
        if rng.random() < 0.07:
            steps.append(("shift", float(rng.choice([1.0, 0.0, 1e-9, 1e-30, -1.0]))))
    X = np.clip(spite.inputs(rng, 3, width), -1e30, 1e30)
    return {"steps": steps, "layers": {n: W.copy() for n, W in layers.items()}, "X": X}


def judge(call: dict) -> Verdict:
    """Every exponent of `analyse`, where no small numbers are neglected.

    The whole net of order L: at twice and three times all parameters it is 2^L and 3^L times itself
    on the inputs, exactly. The same of each group of parameters by its own exponent, of the groups
    together by the order, and of the quasi-exponents, which multiply the net by 4^k.
    """
    model = Chain(call["steps"], call["layers"]).eval()
    found = nm.analyse(model, torch.from_numpy(call["X"]))
    verdict = Verdict(found.kind.name, found.whole)
    layers = {name: exact(W) for name, W in call["layers"].items()}
    x = exact(call["X"])
    at = evaluate(call["steps"], layers, x)

    def check(
        scaling: Mapping[str, Fraction | int], exponent: Fraction | int, c: int, what: str
    ) -> None:
        scaled = {n: W * Fraction(c) ** int(scaling.get(n, 0)) for n, W in layers.items()}
        moved = evaluate(call["steps"], scaled, x)
        verdict.blame(
            (moved != at * Fraction(c) ** int(exponent)).any(),
            f"{what}: exponent {exponent} is false",
        )

    for c in (2, 3):
        if found.whole and found.order is not None:
            check(dict.fromkeys(layers, 1), found.order, c, "all parameters")
        for name, exponent in found.groups.items():
            if Fraction(exponent).denominator == 1:
                check(dict.fromkeys(found.members[name], 1), exponent, c, f"group {name}")
        if found.order is not None and Fraction(found.order).denominator == 1:
            together = [n for name in found.groups for n in found.members[name]]
            check(dict.fromkeys(together, 1), found.order, c, "groups together")
    if found.quasi_exponents is not None:
        common = math.lcm(*(Fraction(e).denominator for e in found.quasi_exponents.values()))
        scaling = {n: Fraction(e) * common for n, e in found.quasi_exponents.items()}
        check(scaling, common, 3, "quasi-exponents")
    return verdict


ENTRIES = [Entry("orders", draw, judge, 2.0)]
