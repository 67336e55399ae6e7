"""What a mutation is, and how one is applied to a copy of the source."""

from dataclasses import dataclass
from pathlib import Path

ROOMS = ("radii", "kkt", "homogeneity", "solvers", "guarantees", "margins", "exact")
"""Each has a module of this package with TESTS, the pytest targets of the room, and MUTATIONS."""


class StaleTableError(Exception):
    """The source has moved on: a mutation of the table does not apply to it."""


@dataclass(frozen=True)
class Mutation:
    """One wrong change of one file.

    file : below src/netmargin.
    old, new : source text that occurs exactly once in the file, and what replaces it.
    why : what is wrong then, in a few words.
    killed_by : the pytest target that notices, tried first so that a run is quick; the tests of the
        room follow where it does not.
    equivalent : the reason why no test can notice; such mutations are listed and not run.
    """

    file: str
    old: str
    new: str
    why: str
    killed_by: str = ""
    equivalent: str = ""

    def applied(self, source: str) -> str:
        """The mutated source. Raises StaleTableError unless `old` occurs exactly once."""
        found = source.count(self.old)
        if found != 1 or self.old == self.new:
            raise StaleTableError(
                f"{self.file}: the text of a mutation must occur once and be changed by it, but it"
                f" occurs {found} times:\n    {self.old!r}\n    {self.new!r}\nWrite the table anew"
                " from the present source."
            )
        return source.replace(self.old, self.new)

    def apply(self, package: Path) -> str:
        """Mutate the file of a copy of the package; returns the text that was there."""
        path = package / self.file
        source = path.read_text()
        self.put(package, self.applied(source))
        return source

    def put(self, package: Path, source: str) -> None:
        """Write the file, and forget its compiled form, which may look as new as the source."""
        path = package / self.file
        path.write_text(source)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
