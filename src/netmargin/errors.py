"""Errors of netmargin: each message says what was wrong, where, and what to do."""

from typing import Any


class NetmarginError(Exception):
    """Base class of every error that netmargin raises on purpose."""


class ArgumentError(NetmarginError, ValueError):
    """An argument other than data or model cannot be used; the message says what to give."""


class DataError(NetmarginError, ValueError):
    """The samples or labels cannot be used: empty, not finite, of the wrong kind, or not found."""


class ModelError(NetmarginError, ValueError):
    """The model cannot be used.

    It is no torch module, has no parameters, holds values that are not finite, or returns outputs
    of a wrong shape.
    """


class NotHomogeneousError(ModelError):
    """The question needs a homogeneous model; the message names the modules that block it."""


class NotSeparatedError(ModelError):
    """The question needs a net that classifies every sample correctly, and this one does not."""


class OutOfMemoryError(ModelError, MemoryError):
    """The memory of the device does not suffice for so many samples; says which batch size to try.

    Attributes
    ----------
    samples : int
        How many samples were at work at once; 0 where that is not known.
    """

    samples = 0


class CheckpointError(NetmarginError, RuntimeError):
    """A file of a run cannot be read or written, or belongs to another run or another model."""


class DivergenceError(NetmarginError, ArithmeticError):
    """Training left the finite numbers; the model was put back to its last good epoch."""


class MissingLibraryError(NetmarginError, ImportError):
    """An optional library is not installed; the message holds the command that installs it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during long work, raised after what was done is saved; the same call goes on.

    Attributes
    ----------
    history : History or None
        What training recorded so far; None for other work.
    """

    def __init__(self, message: str, history: Any = None) -> None:
        super().__init__(message)
        self.history = history


class NonFiniteOutputError(ModelError):
    """The model's outputs, or the loss of them, are NaN or infinite on finite inputs."""


class ClassNotOfferedError(DataError, NonFiniteOutputError):
    """The score of a sample's label, or of all its rivals, is minus infinity."""
