"""Judges of the distances to the nearest misclassified input, of nets on the plane."""

from fractions import Fraction

import numpy as np
import torch

import netmargin as nm

from .arrangement import Vector, dot, primitive
from .nets import Net, draw_net, split_first_layer, with_slopes
from .rational import exceeds, root, shown, whole
from .spite import inputs
from .verdict import Entry, Verdict


def draw(rng: np.random.Generator) -> dict:
    """A net of one hidden layer of up to 6 units or of two, and three samples that it labels
    itself, most often rightly. Attacks, which take a second, run in a fifth of all cases.
    """
    hidden = [int(rng.integers(1, 7))] if rng.random() < 0.7 else rng.integers(1, 4, 2).tolist()
    outputs = int(rng.choice([1, 1, 2, 3]))
    net = draw_net(rng, hidden, outputs)
    if rng.random() < 0.35:
        net = with_slopes(rng, net)
    X = inputs(rng, 3, 2)
    if rng.random() < 0.15:
        net, X[0] = split_first_layer(rng, net), 0.0  # where the rounding of values hides nothing
    scores = [net.scores(homogeneous(x), net.affine()) for x in X]
    if outputs == 1:
        y = [1 if value[0] > 0 else -1 for value in scores]
    else:
        y = [value.index(max(value)) for value in scores]
    if rng.random() < 0.1:
        y[0] = -y[0] if outputs == 1 else (y[0] + 1) % outputs
    attacks = bool(rng.random() < 0.2)
    effort = str(rng.choice(["quick", "standard", "exact"], p=[0.2, 0.4, 0.4]))
    return {"net": net, "X": X, "y": y, "effort": effort, "attacks": attacks}


def homogeneous(x: np.ndarray) -> Vector:
    """A point (x, w) in whole numbers, standing for x / w."""
    numbers, exponent = whole(x)
    if exponent > 0:
        return [int(part) << exponent for part in numbers] + [1]
    return [int(part) for part in numbers] + [1 << -exponent]


def gaps(scores: Vector, label: int) -> Vector:
    """What has to stay positive: y f, or the score of the class less those of the others."""
    if len(scores) == 1:
        return [label * scores[0]]
    return [scores[label] - score for k, score in enumerate(scores) if k != label]


def forms_of_gaps(forms: list[Vector], label: int) -> list[Vector]:
    """The same of linear forms."""
    return [
        list(gap)
        for gap in zip(*(gaps(list(p), label) for p in zip(*forms, strict=True)), strict=True)
    ]


def radius_squared(net: Net, x: Vector, label: int) -> Fraction | None:
    """The square of the distance to the nearest input with a gap of 0 or less; None for none.

    In each linear piece the nearest such point is the sample, its projection on a side of the piece
    or on the line where a gap is 0, or where two of these cross. The net itself is asked at each.
    """
    layers = net.affine()
    if min(gaps(net.scores(x, layers), label)) <= 0:
        return Fraction(0)
    best: Fraction | None = None
    asked: set[tuple[int, ...]] = set()
    for lines, forms in net.pieces():
        borders = [*lines, *forms_of_gaps(forms, label)]
        borders = [list(line) for line in {tuple(primitive(b)) for b in borders if b[0] or b[1]}]
        points = []
        for i, (a, b, c) in enumerate(borders):
            square, at = a * a + b * b, dot([a, b, c], x)
            points.append([x[0] * square - at * a, x[1] * square - at * b, x[2] * square])
            for p, q, r in borders[:i]:
                points.append([b * r - c * q, c * p - a * r, a * q - b * p])
        for point in points:
            if point[2] == 0:
                continue
            point = primitive(point if point[2] > 0 else [-part for part in point])
            if (key := tuple(point)) in asked:
                continue
            asked.add(key)
            u, v, w = (
                point[0] * x[2] - x[0] * point[2],
                point[1] * x[2] - x[1] * point[2],
                point[2] * x[2],
            )
            distance = Fraction(u * u + v * v, w * w)
            if (best is None or distance < best) and min(
                gaps(net.scores(point, layers), label)
            ) <= 0:
                best = distance
    return best


def judge(call: dict) -> Verdict:
    """Every statement of `robustness`: the exact radius is between `lower` and `upper`.

    Both are 0 for a sample that is misclassified; `upper` is asked where it is called proved. An
    answer counts as certified where both radii
    are known to the tolerance.
    """
    net = call["net"]
    labels = torch.tensor(call["y"])
    report = nm.robustness(
        net.module(),
        (torch.from_numpy(call["X"]), labels),
        effort=call["effort"],
        attacks=call["attacks"],
        time_limit=1.0,
        progress=False,
    )
    verdict = Verdict(report.status.name, bool(report.closed.all()))
    proved = getattr(report, "upper_proved", True)
    for n, (x, label) in enumerate(zip(call["X"], call["y"], strict=True)):
        square = radius_squared(net, homogeneous(x), label)
        lower, upper = float(report.lower[n]), float(report.upper[n])
        truth = "infinite" if square is None else shown(root(square))
        verdict.blame(
            square is not None and lower > 0 and exceeds(Fraction(lower) ** 2, square),
            f"sample {n}: lower {lower!r} ({report.certified_by[n]}), the radius is {truth}",
        )
        verdict.blame(
            proved and upper < np.inf and (square is None or exceeds(square, Fraction(upper) ** 2)),
            f"sample {n}: upper {upper!r} ({report.found_by[n]}), the radius is {truth}",
        )
    return verdict


ENTRIES = [Entry("radii", draw, judge, 1.0)]
