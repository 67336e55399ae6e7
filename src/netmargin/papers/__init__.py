"""The content of five papers: their figures and tables, each by one command, and their claims, each
as an executable check.
"""

from .contents import list_figures
from .gallery.figure import SCALES, Check, Figure, figure
from .gallery.page import write_gallery
from .gallery.reproduction import Reproduction, reproduce, status

__all__ = [
    "SCALES",
    "Check",
    "Figure",
    "Reproduction",
    "figure",
    "list_figures",
    "reproduce",
    "status",
    "write_gallery",
]
