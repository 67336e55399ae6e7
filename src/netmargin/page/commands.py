"""The command line that makes a page: the lines that add to it are commands, too."""

import math
import os
import shlex
import shutil
import sys
from dataclasses import dataclass

from ..core.records import short_repr


@dataclass(frozen=True)
class Command:
    """A call of `netmargin page`.

    Attributes
    ----------
    words : tuple of str
        Its words, the first of them "page".
    training : tuple of str
        The words that go on with its run, the first of them "train"; empty where they are not
        known.
    program : tuple of str
        What is typed before them.
    """

    words: tuple[str, ...]
    training: tuple[str, ...] = ()
    program: tuple[str, ...] = ("netmargin",)

    __repr__ = short_repr

    def add(self, *words: str) -> str:
        """The same call with more words, as it is typed.

        Examples
        --------
        >>> Command(("page", "runs/my net")).add("--radii", "100")
        "netmargin page 'runs/my net' --radii 100"
        """
        return shlex.join((*self.program, *self.words, *words))

    def train_below(self, log10_loss: float) -> str:
        """What trains the net further, down to this log10 of the mean loss; "" if not known.

        Examples
        --------
        >>> command = Command(("page", "runs/a"), ("train", "digits-mlp", "--out", "runs/a"))
        >>> command.train_below(-80.04)
        'netmargin train digits-mlp --out runs/a --until-log10-loss -80.1'
        """
        if not self.training:
            return ""
        # Rounded down: the loss must fall at least that far.
        below = f"{math.floor(10 * log10_loss) / 10:g}"
        return shlex.join((*self.program, *self.training, "--until-log10-loss", below))


def name_program() -> tuple[str, ...]:
    """What runs the command line of this interpreter where it is typed: `netmargin` where the shell
    finds that of the same environment, else the interpreter, seen from the folder that it runs in.
    """
    own, found = os.path.dirname(sys.executable), shutil.which("netmargin")
    if found is not None and os.path.abspath(os.path.dirname(found)) == os.path.abspath(own):
        return ("netmargin",)
    near = os.path.relpath(sys.executable)
    return (sys.executable if near.startswith(os.pardir) else near, "-m", "netmargin")
