"""Figure 2 (c): test error as a function of d, n = 256."""

from ._performance import check_larger_half, make_figure

_DIMENSIONS = [5, 10, 15, 20, 25]

FIGURE = make_figure(
    "d",
    "dimension",
    n=(128, 256, 256),
    d=([4, 12], _DIMENSIONS, _DIMENSIONS),
    finding=(
        "in high dimension, with noise in all coordinates but two, training both layers errs less"
        " than training the output layer"
    ),
    minutes={"smoke": 0.1, "laptop": 1.5, "paper": 37.0},
    check=lambda settings, rows: [check_larger_half("d", rows)],
)
