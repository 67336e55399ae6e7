"""Figure 2 (b): test error as a function of n, d = 15."""

from ..gallery.comparison import tabulate
from ..gallery.figure import Check, Row, Settings
from ._performance import check_larger_half, make_figure


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that both layers err less over the larger half of n, and that their error falls."""
    first, *_, last = tabulate(rows, "both_layers", "n")[1].mean(0)
    falls = f"the error of both layers falls from {100 * first:.1f}% to {100 * last:.1f}%"
    return [check_larger_half("n", rows), Check(falls, bool(last < first))]


_SIZES = [32, 64, 128, 256, 512]

FIGURE = make_figure(
    "n",
    "samples",
    logarithmic=True,
    n=([32, 128], _SIZES, _SIZES),
    d=(8, 15, 15),
    finding=(
        "with enough samples, training both layers errs on far fewer new ones than training the"
        " output layer"
    ),
    minutes={"smoke": 0.1, "laptop": 1.0, "paper": 17.0},
    check=check,
)
