"""A row of a training history as a line of progress."""

from typing import Any

from ..core.progress import Progress


def show_row(
    display: Progress, row: dict[str, Any], epochs_left: float | None, trying: int = 0
) -> None:
    """Show the last accepted epoch, and how many tries the next one has taken."""
    line = describe_row(row)
    display.draw(row["epoch"], epochs_left, line, f"  try {trying}" if trying > 1 else "")


def describe_row(row: dict[str, Any]) -> str:
    """One line about a row."""
    margin = row["normalized_margin"] if row["accuracy"] == 1 else None
    shown = f"  margin {margin:.4g}" if margin is not None else f"  q_min {row['q_min']:.4g}"
    return (
        f"epoch {row['epoch']}  log10-loss {row['log10_mean_loss']:.3f}  correct"
        f" {100 * row['accuracy']:.2f}%{shown}"
    )
