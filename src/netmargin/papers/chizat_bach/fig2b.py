"""Figure 2 (b): test error against the number of samples."""

from pathlib import Path

from ..gallery.figure import Check, Figure, Row, Settings
from ._performance import difference, draw_errors, errors, errors_by


def compute(run: Row, settings: Settings, folder: Path) -> Row:
    """Measure the test errors of one experiment."""
    return errors(run["n"], settings["d"], run["seed"], settings)


def check(settings: Settings, rows: list[Row]) -> list[Check]:
    """Check that both layers err less over the larger half of n, and that their error falls."""
    values, both, output = errors_by("n", rows)
    larger = slice(len(values) // 2, None)
    means = both.mean(0)
    falls = Check(
        f"the error of both layers falls from {100 * means[0]:.1f}% to {100 * means[-1]:.1f}%",
        bool(means[-1] < means[0]),
    )
    return [
        difference(
            both[:, larger], output[:, larger], f"for n = {', '.join(map(str, values[larger]))}"
        ),
        falls,
    ]


FIGURE = Figure(
    id="chizat-bach/fig2b",
    title="test error as a function of n, d = 15",
    finding=(
        "with enough samples, training both layers errs on far fewer new ones than training the"
        " output layer"
    ),
    differs="balanced start on the sphere instead of N(0, 1) for both layers",
    scales={
        "smoke": {"n": [32, 128], "d": 8, "runs": 6, "width": 100, "steps": 2000, "tested": 1000},
        "laptop": {
            "n": [32, 64, 128, 256, 512],
            "d": 15,
            "runs": 6,
            "width": 400,
            "steps": 10_000,
            "tested": 5000,
        },
        "paper": {
            "n": [32, 64, 128, 256, 512],
            "d": 15,
            "runs": 20,
            "width": 1000,
            "steps": 50_000,
            "tested": 10_000,
        },
    },
    minutes={"smoke": 0.1, "laptop": 1.0, "paper": 17.0},
    runs=lambda settings: [
        {"n": n, "seed": seed} for n in reversed(settings["n"]) for seed in range(settings["runs"])
    ],
    compute=compute,
    concerns=lambda run, setting: setting not in ("n", "runs"),
    draw=lambda settings, rows: draw_errors(
        "n", f"samples n (d = {settings['d']})", rows, logarithmic=True
    ),
    check=check,
)
