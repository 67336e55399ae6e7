"""The content of five papers: their figures and tables, each by one command, and their claims, each
as an executable check.
"""

from .contents import list_figures
from .gallery.figure import SCALES, Check, Figure
from .gallery.reproduction import Reproduction, reproduce

__all__ = [
    "SCALES",
    "Check",
    "Figure",
    "Reproduction",
    "list_figures",
    "reproduce",
]
