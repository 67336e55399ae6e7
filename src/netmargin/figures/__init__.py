"""Pictures of what netmargin computes, as PNG and PDF files."""

from .certificate import draw_certificate
from .label_errors import draw_label_errors
from .neurons import draw_neurons
from .robustness import draw_robustness
from .training import draw_run

__all__ = ["draw_certificate", "draw_label_errors", "draw_neurons", "draw_robustness", "draw_run"]
