"""Labels that are probably wrong, found by what all other samples predict."""

from ..core.public import guard
from .finding import label_errors
from .report import LabelErrors

__all__ = ["LabelErrors", "label_errors"]
guard(globals())
