"""Names of classes, for tables and pictures: labels are numbers everywhere else."""

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError


class ClassNames:
    """What labels are called: by their names, or by their numbers where none were given.

    Parameters
    ----------
    names : sequence of str or None
        The name of each class, in the order of the class indices; of two classes, that of label -1
        or 0 and that of label 1. None for numbers.

    Raises
    ------
    ArgumentError
        If it is no sequence of texts, or has fewer than two.

    Examples
    --------
    >>> names = ClassNames(["cat", "dog"])
    >>> names.of(1), names.of(-1), ClassNames(None).of(3)
    ('dog', 'cat', '3')
    >>> ClassNames("cat")
    Traceback (most recent call last):
    netmargin.errors.ArgumentError: class_names must be a list of names in the order of the class \
numbers, such as ["cat", "dog"]; got 'cat'
    """

    def __init__(self, names: Any):
        fits = names is None or (
            isinstance(names, Sequence)
            and not isinstance(names, (str, bytes))
            and len(names) > 1
            and all(isinstance(name, str) for name in names)
        )
        if not fits:
            raise ArgumentError(
                "class_names must be a list of names in the order of the class numbers, such as"
                f' ["cat", "dog"]; got {names!r:.100}'
            )
        self.names: tuple[str, ...] | None = None if names is None else tuple(names)

    def of(self, label: float) -> str:
        """The name of a label; a number beyond the names stays a number."""
        index = max(int(label), 0)  # the labels of two classes may be signs
        if self.names is None or index >= len(self.names):
            return str(int(label))
        return self.names[index]
