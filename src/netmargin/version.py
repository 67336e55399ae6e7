"""The version of this package, in a module that imports nothing: `pyproject.toml` reads it too."""

__version__ = "0.1.0"
