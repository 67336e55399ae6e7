"""Pictures of what netmargin computes, as PNG and PDF files; drawn by `netmargin.drawing`."""

from .drawing import (
    draw_certificate,
    draw_comparison,
    draw_data,
    draw_label_errors,
    draw_neurons,
    draw_robustness,
    draw_run,
    draw_two_layer_runs,
)

__all__ = [
    "draw_certificate",
    "draw_comparison",
    "draw_data",
    "draw_label_errors",
    "draw_neurons",
    "draw_robustness",
    "draw_run",
    "draw_two_layer_runs",
]
