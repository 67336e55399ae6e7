"""Figure 2 (c): test error against the dimension."""

from pathlib import Path

from ..gallery.figure import Check, Figure, Row, Settings
from ._performance import difference, draw_errors, errors, errors_by


def compute(run: Row, settings: Settings, folder: Path) -> Row:
    """Measure the test errors of one experiment."""
    return errors(settings["n"], run["d"], run["seed"], settings)


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Both layers beat the output layer alone, over the larger half of d."""
    values, both, output = errors_by("d", rows)
    larger = slice(len(values) // 2, None)
    return [
        difference(
            both[:, larger], output[:, larger], f"for d = {', '.join(map(str, values[larger]))}"
        )
    ]


FIGURE = Figure(
    id="chizat-bach/fig2c",
    title="test error as a function of d, n = 256",
    finding=(
        "in high dimension, with noise in all coordinates but two, training both layers errs less"
        " than training the output layer"
    ),
    differs="balanced start on the sphere instead of N(0, 1) for both layers",
    scales={
        "smoke": {"n": 128, "d": [4, 12], "runs": 6, "width": 100, "steps": 2000, "tested": 1000},
        "laptop": {
            "n": 256,
            "d": [5, 10, 15, 20, 25],
            "runs": 6,
            "width": 400,
            "steps": 10_000,
            "tested": 5000,
        },
        "paper": {
            "n": 256,
            "d": [5, 10, 15, 20, 25],
            "runs": 20,
            "width": 1000,
            "steps": 50_000,
            "tested": 10_000,
        },
    },
    minutes={"smoke": 0.1, "laptop": 1.5, "paper": 37.0},
    runs=lambda settings: [
        {"d": d, "seed": seed} for d in settings["d"] for seed in range(settings["runs"])
    ],
    compute=compute,
    concerns=lambda run, setting: setting not in ("d", "runs"),
    draw=lambda settings, rows: draw_errors("d", f"dimension d (n = {settings['n']})", rows),
    check=check,
)
