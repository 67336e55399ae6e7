"""Everything about one net in the browser, in one file."""

from .making import PageFile, page

__all__ = ["PageFile", "page"]
