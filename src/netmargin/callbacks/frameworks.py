"""Frameworks that may be installed or not, and what all their callbacks have in common."""

import importlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

from ..core.arguments import check_choice, check_count, check_instance
from ..errors import ArgumentError, MissingLibraryError
from ..training.checkpoint import HISTORY
from .watch import Watch

UNITS = ("epoch", "step")


def find_base(modules: tuple[str, ...], name: str) -> type:
    """The class a callback is made of, of the first module in use or installed; else `object`."""
    in_use = [module for module in modules if module in sys.modules]
    for module in in_use or modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):  # not installed, or of a version without it
            continue
    return object


def require_base(base: type, library: str) -> None:
    """Raise MissingLibraryError where `find_base` found none."""
    if base is object:
        raise MissingLibraryError(
            f"This callback needs {library}, in a version that has its callbacks. Install it: pip"
            " install 'netmargin[integrations]'"
        )


class MarginCallback(ABC):
    """What the callbacks of all frameworks do: begin a watch, measure, and report the rows."""

    _watch: Watch | None = None

    @property
    def watch(self) -> Watch:
        """The watch. Raises AttributeError before training has begun."""
        if self._watch is None:
            raise AttributeError(
                f"{type(self).__name__} has no watch before training has begun; a trainer with no"
                " epochs or no steps to take (max_epochs=0) never begins."
            )
        return self._watch

    def _set_up(
        self, data: Any, folder: Any, every: Any, unit: Any, name: Any, watched: dict[str, Any]
    ) -> None:
        """Keep the arguments. Raises ArgumentError, and TypeError for options that no watch has."""
        inspect.signature(Watch).bind(None, data, **watched)
        self.data, self.folder, self._options = data, folder, watched
        self.every = check_count("every", every)
        self.unit = check_choice("unit", unit, UNITS)
        self.name = check_instance("name", name, str, 'a word such as "margins"')

    @abstractmethod
    def _log(self, values: dict[str, float], step: int) -> None:
        """Give values to the loggers of the framework."""

    def _begin(
        self,
        net: Any,
        folder: Path,
        state: dict[str, Any] | None,
        step: int,
        callbacks: Iterable[Any],
    ) -> None:
        """Begin to watch, or go on from a state, or where the last call of the trainer ended."""
        for other in callbacks:
            if other is not self and getattr(getattr(other, "watch", None), "folder", "") == folder:
                raise ArgumentError(
                    f"Two callbacks write to {folder}. Give each a name of its own, such as"
                    f" name={self.name + '-2'!r}."
                )
        last, self._seen, self._before = self._watch, step, (0.0, 0)
        if state is None and last and (folder / HISTORY).exists():
            if last.model is net:
                state, folder, rows = last.state_dict(), last.folder or folder, last.history.rows
                if rows and rows[-1]["step"] > step:  # the trainer counts anew
                    self._before = (rows[-1]["epoch"], rows[-1]["step"])
            else:  # made anew, as `model_init` does: in a folder of its own
                others = (folder.with_name(f"{folder.name}-{n}") for n in count(2))
                folder = next(other for other in others if not other.exists())
        # A checkpoint from before this callback was added holds no rows: the first is made later.
        state = {"calls": 0, "rows": []} if state is None and step else state
        self._watch = Watch(net, self.data, folder=folder, state=state, **self._options)
        if state is None:
            self._report_from(0)

    def _is_due(self, step: int) -> bool:
        """Whether another `every` steps are done; several optimizers take some at a time."""
        seen, self._seen = self._seen, step
        return step // self.every > seen // self.every

    def _measure(self, epoch: float, step: int, *, ended: bool = False) -> None:
        """Measure, and report new rows: at the end also of weights put in since, as averages."""
        known = len(self.watch.history)
        self.watch.look(epoch=epoch + self._before[0], step=step + self._before[1])
        if ended:
            self.watch.finish()
        self._report_from(known)

    def _report_from(self, known: int) -> None:
        """Log the numbers of all rows after those."""
        for row in self.watch.history.rows[known:]:
            values = {
                f"{self.name}/{key}": float(value)
                for key, value in row.items()
                if value is not None
                and key not in UNITS
                # Normalized margins are negative until all samples are right, and say nothing.
                and not (key.endswith("_margin") and value <= 0)
            }
            self._log(values, row["step"])
