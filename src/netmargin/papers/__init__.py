"""Five papers: their figures and tables, each by one command, and their claims, each as a check."""

from .contents import list_figures
from .gallery.figure import SCALES
from .gallery.reproduction import Reproduction, reproduce

__all__ = ["SCALES", "Reproduction", "list_figures", "reproduce"]
