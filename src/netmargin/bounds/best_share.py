"""How near the margin of a net is to the best one of all two-layer nets."""

import math
from dataclasses import dataclass

from ..core.arguments import check_instance
from ..core.records import Table
from ..core.saved_records import Record
from ..errors import ArgumentError
from ..margins import MarginReport
from ..solvers import TwoLayerFit, VariationNormSolution


@dataclass(frozen=True)
class BestShare(Record):
    """The normalized margin of a net as a part of the best one."""

    #: Over the margin of the best net that was found; above 1 for a net that is better
    found: float
    #: The net reaches at least this part of the best margin: over the proved upper bound, where its
    #: margin is positive
    proved: float

    def _table(self) -> Table:
        rows = [
            ("of the best margin found", f"{self.found:.1%}"),
            ("of the best margin, at least", f"{math.floor(1000 * self.proved) / 10:.1f}%"),
        ]
        return Table("Share of the best margin", rows)


def share_of_best(report: MarginReport, solution: VariationNormSolution | TwoLayerFit) -> BestShare:
    """Say how much of the best margin of all two-layer nets a net has reached on the same data.

    Parameters
    ----------
    report : MarginReport
        Of a two-layer net, from `netmargin.measure`, with a `normalized_margin` of order 2.
    solution : VariationNormSolution or TwoLayerFit
        The best net for the same samples: of `solvers.f1_max_margin`, or of
        `solvers.fit_two_layer_net(X, y, loss="hard_margin")` for several classes.

    Returns
    -------
    BestShare
        The part of the best margin found, and the part that is proved.

    Raises
    ------
    ArgumentError
        For a net that is not 2-homogeneous, another number of samples, or a solution that is no
        hard margin, or has none above 0.

    Examples
    --------
    >>> import torch, netmargin as nm
    >>> X, y = torch.tensor([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]), torch.tensor([0, 1, 2])
    >>> best = nm.solvers.fit_two_layer_net(X, y, loss="hard_margin", bias=False)
    >>> report = nm.measure(best.to_network().float(), (X, y))
    >>> abs(nm.bounds.share_of_best(report, best).found - 1) < 1e-5
    True

    Source: Wei et al. 2019, Theorems 4.1 and C.1, whose limit is this margin.
    """
    check_instance("report", report, MarginReport, "a report of netmargin.measure")
    kinds = (VariationNormSolution, TwoLayerFit)
    check_instance("solution", solution, kinds, "a result of f1_max_margin or fit_two_layer_net")
    margin, bound = solution.margin, solution.upper_bound
    if margin is None or bound is None or not margin > 0:
        raise ArgumentError(
            "solution must be a hard margin above 0: fit_two_layer_net(X, y, loss='hard_margin')."
        )
    if report.order != 2 or report.normalized_margin is None:
        raise ArgumentError(
            f"The best margins of two-layer nets are of order 2; this net has {report.order}."
        )
    if len(report.q) != len(solution.dual):
        raise ArgumentError(
            f"The report is about {len(report.q)} samples, the solution about {len(solution.dual)}."
            " Pass both the same data."
        )
    found = report.normalized_margin / margin
    # A negative margin is furthest from the best one where that is as small as it may be.
    return BestShare(found, min(found, report.normalized_margin / bound))
