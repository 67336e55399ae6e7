"""Errors of netmargin: each message says what was wrong, where, and what to do."""


class NetmarginError(Exception):
    """Base class of every error that netmargin raises on purpose."""


class ArgumentError(NetmarginError, ValueError):
    """An argument that is neither data nor a model has a value or a type that cannot be used; the
    message names what to give.
    """


class DataError(NetmarginError, ValueError):
    """The samples or the labels cannot be used: empty, not finite, of the wrong kind, or not to be
    found.
    """


class ModelError(NetmarginError, ValueError):
    """The model cannot be used: no parameters, parameters or outputs that are not finite, outputs
    of a wrong shape.
    """


class NotHomogeneousError(ModelError):
    """The question needs a homogeneous model and this one is not; the message names the blocking
    modules.
    """


class NotSeparatedError(ModelError):
    """The question needs a net that classifies every sample correctly, and this one does not."""


class CheckpointError(NetmarginError, RuntimeError):
    """A file of a run cannot be read or written, or belongs to another run or another model."""


class DivergenceError(NetmarginError, ArithmeticError):
    """Training produced a loss or parameters that are not finite; the model was put back to its
    last good epoch.
    """


class MissingLibraryError(NetmarginError, ImportError):
    """An optional library is not installed; the message holds the command that installs it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during long work, after what was done is saved; the same call goes on. Of training, it
    carries the `history` so far.
    """

    def __init__(self, message: str, history=None):
        super().__init__(message)
        self.history = history


class NonFiniteOutputError(ModelError):
    """The model's outputs, or the loss of them, are NaN or infinite on finite inputs."""
