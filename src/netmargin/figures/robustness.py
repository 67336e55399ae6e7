"""Pictures of robust accuracy: the share of samples that no change of a given size turns."""

from pathlib import Path

import numpy as np

from ..core.arguments import check_instance
from ..errors import ArgumentError
from ..radii import RobustnessReport
from .style import open_folder, open_row, save_drawings


def draw_robustness(reports: dict[str, RobustnessReport], folder: str | Path) -> list[Path]:
    """Draw robust accuracy over epsilon for one or more reports, attacked and certified.

    Written is robustness as PNG and PDF; attacked accuracy is solid, certified dashed.

    Parameters
    ----------
    reports : dict of str to RobustnessReport
        What `netmargin.robustness` returned, by the name for the legend.
    folder : str or Path
        Folder for the pictures, made where it is not there.

    Returns
    -------
    list of Path
        The PNG file.

    Raises
    ------
    ArgumentError
        If `reports` is no dict of reports, is empty, or `folder` is no path.

    Examples
    --------
    >>> import tempfile, torch, netmargin as nm
    >>> _ = torch.manual_seed(0)
    >>> net, data = nm.models.mlp([64, 16, 10]), nm.datasets.digits(limit=10)
    >>> _ = nm.train(net, data, until=nm.LogLossBelow(-1), progress=False)
    >>> report = nm.robustness(net, data, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in nm.figures.draw_robustness({"net": report}, folder)]
    ['robustness.png']

    Source: Lyu and Li 2019, Figure 8.
    """
    made = "what netmargin.robustness returns"
    check_instance("reports", reports, dict, f"a dict, by name, of {made}")
    for name, report in reports.items():
        check_instance(f"reports[{name!r}]", report, RobustnessReport, made)
    if not reports:
        raise ArgumentError("reports holds no report, so there is nothing to draw.")
    folder = open_folder(folder)
    figure, (axis,) = open_row()
    largest = max(report.largest for report in reports.values())
    for index, (name, report) in enumerate(reports.items()):
        # A little beyond the largest radius of all, where every curve is seen to end.
        curve, colour = report.curve(np.linspace(0, 1.02 * largest, 301)), f"C{index}"
        epsilons, start = curve["epsilon"], f"{name}, " if name else ""
        # What is proved is an area, what was found a line: dashes are for estimates.
        if report.attacks:
            label = f"{start}attacked (measured)"
            axis.plot(epsilons, 100 * curve["attacked"], color=colour, linewidth=1, label=label)
        if not report.no_lower:
            label, proved = f"{start}certified (proved)", 100 * curve["certified"]
            axis.fill_between(epsilons, proved, color=colour, alpha=0.3, label=label)
    axis.set(
        xlabel=r"$\epsilon$ (L2)",
        ylabel="robust accuracy in %",
        title="samples that no change of size epsilon turns",
    )
    axis.legend(frameon=False)
    return save_drawings({"robustness": figure}, folder)
