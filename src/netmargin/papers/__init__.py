"""Every figure and table of the five papers, by one command each."""

from .figure import IDS, SCALES, Check, Figure, figure
from .gallery import write_gallery
from .reproduction import Reproduction, reproduce, status

__all__ = ["IDS", "SCALES", "Check", "Figure", "Reproduction", "figure", "reproduce", "status", "write_gallery"]
