"""Figure 2 (c): test error against the dimension."""

from ._performance import draw_errors, larger_half, make_figure

FIGURE = make_figure(
    "chizat-bach/fig2c",
    "d",
    [5, 10, 15, 20, 25],
    {"n": 128, "d": [4, 12]},
    {"n": 256},
    title="test error as a function of d, n = 256",
    finding=(
        "in high dimension, with noise in all coordinates but two, training both layers errs less"
        " than training the output layer"
    ),
    minutes={"smoke": 0.1, "laptop": 1.5, "paper": 37.0},
    draw=lambda settings, rows: draw_errors("d", f"dimension d (n = {settings['n']})", rows),
    check=lambda settings, rows: [larger_half("d", rows)],
)
