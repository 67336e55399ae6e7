"""The faces of an arrangement of lines through 0 in a plane, in order of angle."""

from typing import Any

import numpy as np


def list_faces(members: int) -> Any:
    """Yield pairs (signs, pinned) of the faces of M lines sorted by angle, in the span of their
    normals: signs in {-1, 0, 1}, and None for open cells, a line's index for rays, "plane" for 0.
    """
    if members == 0:
        yield (), None
        return
    yield (0,) * members, "plane"
    if members == 1:
        yield (1,), None
        yield (-1,), None
        return
    # Directions at angle t; line k has its normal at angle_k in [0, pi), so it is positive for t -
    # angle_k in (-pi/2, pi/2).
    for half in (1, -1):
        for k in range(members):
            # At t = angle_k + pi/2 line k is pinned, earlier ones negative, later ones positive.
            ray = tuple(half * (-1 if i < k else 1 if i > k else 0) for i in range(members))
            yield ray, k
            yield tuple(half * (-1 if i <= k else 1) for i in range(members)), None


def sort_by_angle(flat: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort lines by the angle of their normal modulo pi, and say which were turned round."""
    if flat.shape[1] < 2:
        return lines, np.zeros(len(lines), dtype=bool)
    angle = np.arctan2(flat[:, 1], flat[:, 0])
    flip = (angle < 0) | (angle >= np.pi)
    order = np.argsort(np.where(flip, angle % np.pi, angle), kind="stable")
    return lines[order], flip[order]
