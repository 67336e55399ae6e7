"""The share of samples that no change of a given size turns, over that size."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core.arguments import check_instance
from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..l2_robustness import RobustnessReport
from .style import open_folder, open_row, save_drawings


def draw_robustness(reports: "dict[str, RobustnessReport]", folder: str | Path) -> list[Path]:
    """Write robust accuracy over epsilon, for reports by name, as PNG and PDF: attacked (solid) and
    certified (dashed); returns the PNG path.
    """
    from ..l2_robustness import RobustnessReport

    check_instance(
        "reports",
        reports,
        dict,
        "a dict of reports by name, such as {'net': netmargin.robustness(net, data)}",
    )
    for name, report in reports.items():
        check_instance(
            f"reports[{name!r}]",
            report,
            RobustnessReport,
            "the RobustnessReport that netmargin.robustness returns",
        )
    if not reports:
        raise ArgumentError("reports holds no report, so there is nothing to draw.")
    folder = open_folder(folder)
    figure, (axis,) = open_row()
    most = max(report.largest for report in reports.values())
    for index, (name, report) in enumerate(reports.items()):
        curve, colour = report.curve(np.linspace(0, 1.02 * most, 301)), f"C{index}"
        label = f"{name}, " if name else ""
        if report.attacks:
            axis.plot(
                curve["epsilon"], 100 * curve["attacked"], color=colour, label=f"{label}attacked"
            )
        if not report.no_lower:
            axis.plot(
                curve["epsilon"],
                100 * curve["certified"],
                color=colour,
                linestyle="--",
                label=f"{label}certified",
            )
    axis.set(
        xlabel=r"$\epsilon$ (L2)",
        ylabel="robust accuracy in %",
        title="samples that no change of size epsilon turns",
    )
    axis.legend(frameon=False)
    return save_drawings({"robustness": figure}, folder)
