"""Direct ascent of the normalized margin."""

from .maximize_margin import MarginAscent, maximize_margin

__all__ = ["MarginAscent", "maximize_margin"]
