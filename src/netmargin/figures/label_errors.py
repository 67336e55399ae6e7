"""A picture of the samples whose labels are most probably wrong."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.arguments import check_count, check_instance
from ..errors import DataError
from ..nets.images import as_images
from ..nets.labels import ClassNames
from .samples import check_samples
from .style import draw_gallery, open_folder, save_drawings

if TYPE_CHECKING:
    from ..label_errors import LabelErrors

_COLUMNS = 5
"""Images side by side: two words fit above each of them."""


def draw_label_errors(
    report: "LabelErrors", X: Any, folder: str | Path, *, count: int = 25
) -> list[Path]:
    """Draw the most suspicious images of a report, worst first, each with both labels.

    Written is label_errors as PNG and PDF. Above each image stand its index, the label that was
    given and the one that all other samples suggest.

    Parameters
    ----------
    report : LabelErrors
        What `netmargin.label_errors` returned.
    X : array_like, shape (n, channels, height, width) or (n, d)
        The samples that it was found for; vectors of square length are images.
    folder : str or Path
        Folder for the picture, made where it is not there.
    count : int, default 25
        How many images are drawn.

    Returns
    -------
    list of Path
        The PNG file.

    Raises
    ------
    ArgumentError
        If `report` is no such report, `count` no number from 1 on, or `folder` no path.
    DataError
        If X are no images, or of another number than in the report.

    Examples
    --------
    >>> import tempfile, netmargin as nm
    >>> X, y = nm.datasets.digits(limit=50)
    >>> report = nm.label_errors((X, y))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [path.name for path in nm.figures.draw_label_errors(report, X, folder, count=5)]
    ['label_errors.png']

    Beyond the papers.
    """
    from ..label_errors import LabelErrors  # late: not everybody who draws needs its solvers

    check_instance("report", report, LabelErrors, "what netmargin.label_errors returns")
    count = check_count("count", count)
    images = as_images(check_samples(X, report.given).X)
    if images is None:
        raise DataError(
            "X holds no images, and other samples have no picture. print(report.frame(25)) lists"
            " the worst ones."
        )
    names, folder = ClassNames(report.class_names), open_folder(folder)
    worst = report.order[:count].tolist()
    titles = [
        f"{row}: given {names.of(int(report.given[row]))},"
        f" rather {names.of(int(report.suggested[row]))}"
        for row in worst
    ]
    head, rows = "labels that are most probably wrong, worst first", -(-len(worst) // _COLUMNS)
    height = 1.9 * rows + 0.5
    figure = draw_gallery(
        images[worst], titles, head, rows=rows, columns=_COLUMNS, height=height, size=9
    )
    return save_drawings({"label_errors": figure}, folder)
