"""Figure 2 (b): test error against the number of samples."""

from ..gallery.figure import Check, Row, Settings
from ._performance import draw_errors, errors_by, larger_half, make_figure


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that both layers err less over the larger half of n, and that their error falls."""
    means = errors_by("n", rows)[1].mean(0)
    falls = Check(
        f"the error of both layers falls from {100 * means[0]:.1f}% to {100 * means[-1]:.1f}%",
        bool(means[-1] < means[0]),
    )
    return [larger_half("n", rows), falls]


FIGURE = make_figure(
    "chizat-bach/fig2b",
    "n",
    [32, 64, 128, 256, 512],
    {"n": [32, 128], "d": 8},
    {"d": 15},
    title="test error as a function of n, d = 15",
    finding=(
        "with enough samples, training both layers errs on far fewer new ones than training the"
        " output layer"
    ),
    minutes={"smoke": 0.1, "laptop": 1.0, "paper": 17.0},
    draw=lambda settings, rows: draw_errors(
        "n", f"samples n (d = {settings['d']})", rows, logarithmic=True
    ),
    check=check,
)
