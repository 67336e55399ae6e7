"""What a mutation is, how a table of them is written, and how one is applied to a copy of the source.

A table is a text file beside this one. It names the pytest targets of its package, and then for
every `## file` below src/netmargin what is wrong, and how:

    half the cross term in the length of the dual vector
    - below = length - 2 * worst * inner
    + below = length - worst * inner
    ? test_sound_certificates.py::test_the_lower_bound_is_attained_in_a_plane

The text after "- " occurs once in the file; that after "+ " replaces it; "? " names a test that
notices, below tests/. "= " says why no test can notice.
"""

from dataclasses import dataclass
from pathlib import Path

TABLES = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.txt"))}


class StaleTableError(Exception):
    """The source has moved on: a mutation of the table does not apply to it."""


def read_table(path: Path) -> tuple[list[str], list["Mutation"]]:
    """The pytest targets of a table, and its mutations."""
    tests, mutations, file = [], [], ""
    for block in path.read_text().rstrip("\n").split("\n\n")[1:]:
        if block.startswith("tests: "):
            tests = [f"tests/{name}" for name in block.split()[1:]]
        elif block.startswith("## "):
            file = block[3:]
        else:
            why, *lines = block.split("\n")
            parts = {
                sign: "\n".join(line[2:] for line in lines if line[:1] == sign) for sign in "-+?="
            }
            killed_by = parts["?"] and f"tests/{parts['?']}"
            mutations.append(Mutation(file, parts["-"], parts["+"], why, killed_by, parts["="]))
    return tests, mutations


@dataclass(frozen=True)
class Mutation:
    """One wrong change of one file.

    file : below src/netmargin.
    old, new : source text that occurs exactly once in the file, and what replaces it.
    why : what is wrong then, in a few words.
    killed_by : the pytest target that notices, tried first so that a run is quick; the tests of the
        package follow where it does not.
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
