"""Certified radii of chains of dense layers and kinks, each accepted by the judge of `exact`."""

import math
from typing import Any

import torch
from torch import Tensor

from ..core.deadline import Deadline
from .attacks import ScaledScores
from .boundary import Attacked, judge_points
from .exact.ball import compact
from .exact.chain import Chain
from .exact.radius import Proved, RadiusSearch
from .input_box import InputBox
from .region_descent import descend_through_regions

EFFORTS = ("quick", "standard", "exact")
"""How much work goes into certified radii, in ascending order."""

TREE = "search for proofs"
"""The name under which misclassified inputs are reported that a search for proofs came upon."""


class ChainRadii:
    """The search of certified radii of one float64 net, which is the chain, sample by sample.

    The net has scores of a size of 1; certified radii ignore the box. Searches end where lower >=
    (1 - tol) upper, or for all samples `time_limit` seconds from now on.
    """

    def __init__(
        self,
        net: ScaledScores,
        chain: Chain,
        box: InputBox,
        effort: str,
        tol: float,
        time_limit: float | None,
    ) -> None:
        self.net, self.compacted, self.box = net, compact(chain), box
        self.exact, self.tol = effort == "exact", tol
        self.deadline = Deadline(time_limit)

    def bracket(
        self, x: Tensor, y: Tensor, upper: float, waiting: int
    ) -> tuple[Proved, float, Tensor]:
        """Search the radius of one sample x, (1, ...), of class or sign y, (1,).

        upper : the distance of the nearest misclassified input known. waiting : how many samples
        share the time left. Returns what is proved, and the distance of the nearest misclassified
        input in the box that was come upon, infinite for none, and that input, on the CPU.
        """
        samples = Attacked(self.net, x, (y > 0).long() if y.is_floating_point() else y)
        in_box, nearest = math.inf, torch.full_like(x[0], math.nan)

        def refine(point: Any) -> float:
            nonlocal in_box, nearest
            points = torch.from_numpy(point).to(x).reshape_as(x)
            distance, points = judge_points(samples, points)
            if not distance.isfinite():
                return math.inf
            points = descend_through_regions(samples, self.compacted.chain, points)
            distance, points = judge_points(samples, points)
            inside = self.box is None or bool(
                ((points >= self.box[0]) & (points <= self.box[1])).all()
            )
            if inside and float(distance) < in_box:
                in_box, nearest = float(distance), points[0]
            return float(distance)

        anchor, label = x.flatten().cpu().numpy(), int(y.sign() if y.is_floating_point() else y)
        search = RadiusSearch(self.compacted, anchor, label, upper, refine)
        share = self.deadline.share(waiting)
        proved = search.run(tol=self.tol, exact=self.exact, time_limit=share)
        return proved, in_box, nearest.cpu()
