"""Judges of KKT certificates of small nets: linear ones, and two layers of ReLUs."""

from fractions import Fraction

import numpy as np
import torch

import netmargin as nm
from netmargin.kkt import Completeness

from .arrangement import Vector, dot, primitive, solve
from .nets import Net, draw_net
from .rational import SLACK, exact, exceeds, finite, root, shown
from .spite import inputs
from .verdict import Entry, Verdict

TOLERANCE = Fraction(5, 1000)
"""Of `certify`, up to which completeness is ALL or PROVED."""
ROUNDED = Fraction(1, 2**40)
"""What epsilon, which is measured and not proved, may err by, relative to the norm."""


def draw(rng: np.random.Generator) -> dict:
    """Up to 5 samples in up to 3 dimensions, labelled by the net; biases in its first layer."""
    d, outputs = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
    hidden = [] if rng.random() < 0.5 else [int(rng.integers(1, 5))]
    net = draw_net(rng, hidden, outputs, d)
    biases = bool(hidden and rng.random() < 0.5)
    layers = [
        np.column_stack([W[:, :-1], W[:, -1] * (biases and i == 0)])
        for i, W in enumerate(net.layers)
    ]
    net = Net(layers, net.slope if hidden else 0.0)
    X = inputs(rng, int(rng.integers(1, 6)), d)
    forms = [forward(net, exact(x))[1] for x in X]
    if outputs == 1:
        y = [1 if value[0] > 0 else -1 for value in forms]
    else:
        y = [int(np.argmax(value)) for value in forms]
    return {"net": net, "biases": biases, "X": X, "y": y}


def forward(net: Net, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    """Pre-activations and scores, exactly, and whether rounding may turn a unit on or off."""
    first = exact(net.layers[0])
    point = np.append(x, Fraction(1))
    values = first @ point
    if len(net.layers) == 1:
        return values, values, False
    sizes = abs(first) @ abs(point)
    near = any(abs(v) <= size * SLACK and size for v, size in zip(values, sizes, strict=True))
    active = np.array([v if v > 0 else v * Fraction(net.slope) for v in values], dtype=object)
    return values, exact(net.layers[1])[:, :-1] @ active, near


def gradient(net: Net, biases: bool, x: np.ndarray, rise: np.ndarray) -> np.ndarray:
    """The gradient of rise . scores in all parameters, with slope 0 of ReLU at 0, as of torch."""
    point = np.append(x, Fraction(1)) if biases else x
    if len(net.layers) == 1:
        return np.multiply.outer(rise, point).reshape(-1)
    values, _, _ = forward(net, x)
    slopes = np.array([Fraction(1) if v > 0 else Fraction(net.slope) for v in values], dtype=object)
    outer = rise @ exact(net.layers[1])[:, :-1]
    return np.concatenate(
        [
            np.multiply.outer(outer * slopes, point).reshape(-1),
            np.multiply.outer(rise, values * slopes).reshape(-1),
        ]
    )


def nearest_in_cone(target: Vector, rays: list[Vector]) -> Fraction:
    """The squared distance of a vector to the cone of others, by Lawson and Hanson's method.

    A ray enters where it makes an acute angle with what is left, so those inside are independent,
    and at the end none makes one: complementary slackness, in whole numbers.
    """
    inside: list[int] = []
    weights: dict[int, Fraction] = {}
    gram = [[dot(a, b) for b in rays] for a in rays]
    slopes = [dot(a, target) for a in rays]
    while True:
        gains = [s - sum(w * gram[k][j] for j, w in weights.items()) for k, s in enumerate(slopes)]
        entering = [k for k, gain in enumerate(gains) if gain > 0 and k not in inside]
        if not entering:
            return Fraction(dot(target, target)) - sum(w * slopes[k] for k, w in weights.items())
        inside.append(max(entering, key=lambda k: Fraction(gains[k] ** 2, gram[k][k])))
        weights[inside[-1]] = Fraction(0)
        while True:
            wanted = solve(
                [[gram[a][b] for b in inside] for a in inside], [slopes[a] for a in inside]
            )
            assert wanted is not None
            falling = [
                (weights[k] / (weights[k] - value), k)
                for k, value in zip(inside, wanted, strict=True)
                if value <= 0
            ]
            if not falling:
                weights = dict(zip(inside, wanted, strict=True))
                break
            step = min(falling)[0]
            weights = {
                k: weights[k] + step * (v - weights[k]) for k, v in zip(inside, wanted, strict=True)
            }
            inside = [k for k in inside if weights[k] > 0]
            weights = {k: weights[k] for k in inside}


def judge(call: dict) -> Verdict:
    """Every statement of `certify`, of nets whose units rounding cannot turn on or off.

    The smallest margin is above 0, and `q_min` to a part of `q_rounding`. epsilon_lower / norm is
    at most the sine of the angle between theta and the cone of all gradients, epsilon / norm at
    least that, and where completeness is not OPEN, no more than the tolerance above it. Some
    multiple of the multipliers attains epsilon; delta is the largest lambda (s - 1).
    """
    net, labels = call["net"], call["y"]
    module = net.module(bias=False)
    if call["biases"]:
        module[0] = net.module()[0]
    found = nm.certify(module, (torch.from_numpy(call["X"]), torch.tensor(labels)))
    verdict = Verdict(found.completeness.name, found.completeness is not Completeness.OPEN)
    finite([found.epsilon, found.epsilon_lower, found.norm, found.q_min, found.delta])
    outputs, margins, gradients, keys = len(net.layers[-1]), [], [], []
    for n, (x, label) in enumerate(zip(exact(call["X"]), labels, strict=True)):
        _, scores, near = forward(net, x)
        if near:
            return Verdict("near a kink", False)
        for rival in [k for k in range(outputs) if k != label] if outputs > 1 else [-1]:
            rise = np.array([Fraction(0)] * outputs, dtype=object)
            rise[label if outputs > 1 else 0] += 1 if outputs > 1 else label
            if outputs > 1:
                rise[rival] -= 1
            margins.append(Fraction(rise @ scores))
            gradients.append(gradient(net, call["biases"], x, rise))
            keys.append((n, rival))
    q = min(margins)
    verdict.blame(q <= 0, f"certified with the smallest margin {shown(q)}, q_min {found.q_min!r}")
    if q <= 0:
        return verdict
    rounding = Fraction(getattr(found, "q_rounding", 0.0)) + SLACK
    verdict.blame(
        abs(Fraction(found.q_min) / q - 1) > rounding,
        f"q_min {found.q_min!r}, exactly {shown(q)}: off by a part of"
        f" {shown(Fraction(found.q_min) / q - 1)}, {shown(rounding)} allowed",
    )
    parts = [exact(W if call["biases"] and i == 0 else W[:, :-1]) for i, W in enumerate(net.layers)]
    theta = np.concatenate([part.reshape(-1) for part in parts])
    square = sum(theta * theta)
    distance = nearest_in_cone(_whole(theta), [_whole(g) for g in gradients if any(g)])
    sine_squared = distance / dot(_whole(theta), _whole(theta))
    lower, relative = (
        Fraction(v) / Fraction(found.norm) for v in (found.epsilon_lower, found.epsilon)
    )
    sine = root(sine_squared)
    verdict.blame(
        lower > 0 and exceeds(lower**2, sine_squared),
        f"epsilon at least {shown(lower)} of the norm, but it is {shown(sine)}",
    )
    verdict.blame(
        sine > relative + ROUNDED + rounding,
        f"epsilon {shown(relative)} of the norm, but it is at least {shown(sine)}",
    )
    verdict.blame(
        verdict.certified and relative - sine > TOLERANCE,
        f"{found.completeness.name} with epsilon {shown(relative)} of the norm, but {shown(sine)} is attained",
    )
    used = [keys.index(tuple(pair)) for pair in found.constraints.tolist()]
    combination = np.array([Fraction(0)] * len(theta), dtype=object)
    excess = largest = Fraction(0)
    # Gradients at theta~ are multiples of these, and so is the best multiple of their sum.
    for k, multiplier in zip(used, exact(found.multipliers), strict=True):
        combination = combination + multiplier * gradients[k]
        excess = max(excess, multiplier * (margins[k] / q - 1))
        largest = max(largest, multiplier * margins[k] / q)
    length, along = sum(combination**2), max(sum(combination * theta), Fraction(0))
    left = 1 - along**2 / (length * square) if length else Fraction(1)
    verdict.blame(
        root(left) > relative + ROUNDED + rounding,
        f"epsilon {shown(relative)} of the norm: the multipliers attain {shown(root(left))}",
    )
    verdict.blame(
        abs(excess - Fraction(found.delta)) > (ROUNDED + 4 * rounding) * largest,
        f"delta {found.delta!r}, exactly {shown(excess)}",
    )
    return verdict


def _whole(vector: np.ndarray) -> Vector:
    """The direction of a vector of dyadic fractions in whole numbers."""
    denominator = max(part.denominator for part in vector)
    return primitive([int(part * denominator) for part in vector])


ENTRIES = [Entry("certify", draw, judge, 3.0)]
