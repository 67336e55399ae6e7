"""All that two-layer ReLU nets can do on a few samples, exactly, in up to three dimensions."""

import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from .rational import power_of_two, separate, whole

Vector = list[int]


def dot(a: Vector, b: Vector) -> int:
    """The inner product."""
    return sum(p * q for p, q in zip(a, b, strict=True))


def primitive(v: Vector) -> Vector:
    """The direction of a vector in the smallest whole numbers."""
    common = math.gcd(*v) or 1
    return [part // common for part in v]


def combine(coefficients: Vector, vectors: list[Vector]) -> Vector:
    """A linear combination of vectors."""
    return [dot(coefficients, list(column)) for column in zip(*vectors, strict=True)]


def _cross(a: Vector, b: Vector) -> Vector:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def _before(a: Vector, b: Vector) -> int:
    """The order of rays in the plane by their angle."""
    upper_a, upper_b = a[1] < 0 or (a[1] == 0 > a[0]), b[1] < 0 or (b[1] == 0 > b[0])
    return upper_a - upper_b or -(a[0] * b[1] - a[1] * b[0])


def circle(normals: list[Vector]) -> tuple[list[Vector], list[Vector]]:
    """The rays on which some normal vanishes, in the plane, and a ray between each two of them."""
    found = {tuple(primitive([-s * b, s * a])) for a, b in normals if a or b for s in (1, -1)}
    rays = sorted(map(list, found), key=functools.cmp_to_key(_before))
    if len(rays) == 2:
        return rays, [[-y, x] for x, y in rays]
    return rays, [
        [a[0] + b[0], a[1] + b[1]] for a, b in zip(rays, rays[1:] + rays[:1], strict=True)
    ]


def faces(Z: list[Vector]) -> Iterator[tuple[int, Vector, Vector]]:
    """Each z_k, each ray of the arrangement on z_k . u = 0, and, on the two sides, each cell.

    Yields (k, ray, sides): `sides` are the signs of all z_j . u where u moves from a point of the
    face along z_k, or is empty for a ray that is a vertex. Every cell has such a face.
    """
    dimension = len(Z[0])
    for k, z in enumerate(Z):
        if dimension == 1:
            vertices, inside = [], [[0]]
        elif dimension == 2:
            vertices, inside = [[-z[1], z[0]], [z[1], -z[0]]], []
            inside = vertices
        else:
            axis = [int(i == min(range(3), key=lambda i: abs(z[i]))) for i in range(3)]
            e = primitive(_cross(z, axis))
            basis = [e, primitive(_cross(z, e))]
            corners, middles = circle([[dot(b, other) for b in basis] for other in Z])
            vertices = [primitive(combine(ray, basis)) for ray in corners]
            inside = [primitive(combine(ray, basis)) for ray in middles] or [[0, 0, 0]]
        for ray in vertices:
            yield k, ray, []
        for ray in inside:
            values = [(dot(ray, other), dot(z, other)) for other in Z]
            for side in (1, -1):
                yield k, ray, [_sign(far) or side * _sign(near) for far, near in values]


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def largest_response(Z: np.ndarray, c: np.ndarray) -> Fraction:
    """The square of max over unit u of |sum_n c_n relu(u . z_n)|, for whole numbers Z and c.

    The sum is linear in each cell: its maximum lies where u is a gradient of a cell, the projection
    of one to a face, or a vertex. The sum is evaluated at each of these.
    """
    used = [(list(map(int, z)), int(w)) for z, w in zip(Z, c, strict=True) if w and any(z)]
    if not used:
        return Fraction(0)
    if len(used[0][0]) > 3:
        return _by_patterns(used)
    rows, weights = [z for z, _ in used], [w for _, w in used]
    tried: set[tuple[int, ...]] = set()
    best, square = 0, 1
    for k, ray, sides in faces(rows):
        candidates = [ray]
        if sides:
            slope = combine([w * (s > 0) for w, s in zip(weights, sides, strict=True)], rows)
            normal = rows[k]
            along = dot(slope, normal)
            flat = [
                dot(normal, normal) * part - along * n
                for part, n in zip(slope, normal, strict=True)
            ]
            candidates = [v for w in (slope, flat) for v in (w, [-part for part in w])]
        for candidate in candidates:
            u = primitive(candidate)
            if (key := tuple(u)) in tried or not any(u):
                continue
            tried.add(key)
            value = sum(w * max(dot(u, z), 0) for w, z in zip(weights, rows, strict=True))
            if value * value * square > best * dot(u, u):
                best, square = value * value, dot(u, u)
    return Fraction(best, square)


def _by_patterns(used: list[tuple[Vector, int]]) -> Fraction:
    """The same in any dimension, of few samples: each is on, off, or on the border at the maximum,
    so that the neuron is the sum of those on, projected from those on the border.
    """
    n, best = len(used), Fraction(0)
    gram = [[dot(a, b) for b, _ in used] for a, _ in used]
    for sides in itertools.product((0, 1, 2), repeat=n):
        border = [i for i in range(n) if sides[i] == 2]
        on = [sum(used[j][1] * gram[i][j] for j in range(n) if sides[j] == 1) for i in range(n)]
        share = solve([[gram[i][j] for j in border] for i in border], [on[i] for i in border])
        if share is None:
            continue
        values = [
            on[i] - sum(b * gram[i][j] for j, b in zip(border, share, strict=True))
            for i in range(n)
        ]
        square = sum(
            c * v for side, (_, c), v in zip(sides, used, values, strict=True) if side == 1
        )
        if square > 0:
            for sign in (1, -1):
                total = sum(c * max(sign * v, 0) for (_, c), v in zip(used, values, strict=True))
                best = max(best, Fraction(total) ** 2 / square)
    return best


def solve(matrix: list[Vector], right: Vector) -> list[Fraction] | None:
    """Solve a system of linear equations; None where it is singular."""
    rows = [[Fraction(p) for p in [*row, value]] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        if not rows[i][i]:
            return None  # in a Gram matrix, which needs no exchange of rows
        rows[i] = [part / rows[i][i] for part in rows[i]]
        for k in range(len(rows)):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [p - factor * q for p, q in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def response_of_squares(Z: np.ndarray, c: np.ndarray) -> Fraction:
    """At most max over unit u of |sum_n c_n relu(u . z_n)^2|, and near it: it is attained at an
    eigenvector of the samples that are on, found in float64 and evaluated exactly.
    """
    (rows, z_unit), (weights, c_unit) = whole(Z), whole(c)
    best = Fraction(0)
    with np.errstate(all="ignore"):
        for on in itertools.product((0.0, 1.0), repeat=len(Z)):
            form = (Z.T * (c * on)) @ Z
            if not np.isfinite(form).all():
                continue
            for u in np.linalg.eigh(form)[1].T:
                for v in (whole(u)[0], whole(-u)[0]):
                    value = sum(weights * np.maximum(rows @ v, 0) ** 2)
                    best = max(best, Fraction(abs(value), sum(v * v)))
    return best * power_of_two(2 * z_unit + c_unit)


def _features(Z: np.ndarray, power: int = 1) -> np.ndarray:
    """What a net is on the samples, z = r u with u on a line through 0: on each line an even
    function of its own, |r|, and over all lines one linear function. With squares an odd one of its
    own, r |r|, and over all one quadratic form.
    """
    lines: dict[tuple[int, ...], int] = {}
    found = []
    for z in Z.tolist():
        length, u = math.gcd(*z), tuple(primitive(z))
        if any(u) and next(part for part in u if part) < 0:
            u = tuple(-part for part in u)
            length *= -1
        found.append((length, lines.setdefault(u, len(lines))))
    rows = np.zeros((len(Z), len(lines)), dtype=object)
    for n, (length, line) in enumerate(found):
        rows[n, line] = abs(length) if power == 1 else length * abs(length)
    shared = Z if power == 1 else (Z[:, :, None] * Z[:, None]).reshape(len(Z), -1)
    return np.hstack([rows, shared])


def nets_separate(Z: np.ndarray, signs: np.ndarray, power: int = 1) -> bool:
    """Whether some two-layer ReLU net, of any width, is positive on all signed samples."""
    return separate(signs[:, None] * _features(Z, power))[0] is not None


def nets_attain(Z: np.ndarray, y: np.ndarray) -> bool:
    """Whether some two-layer ReLU net takes the values y on the samples, in whole numbers both."""
    rows = [
        [*map(Fraction, row), Fraction(value)] for row, value in zip(_features(Z), y, strict=True)
    ]
    while rows:
        row = rows.pop()
        pivot = next((i for i, part in enumerate(row[:-1]) if part), None)
        if pivot is None:
            if row[-1]:
                return False
            continue
        rows = [
            [p - other[pivot] / row[pivot] * q for p, q in zip(other, row, strict=True)]
            for other in rows
        ]
    return True
