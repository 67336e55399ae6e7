"""Blocks of the documents, pasted line by line into a fresh interpreter: `python -m
tests.docs_blocks [FILE]`.

A Python block may say how long it takes in its first line, as in `# about 20 seconds` or `# about 2
minutes`. The command prints the time of each block beside what it says, and how long the processor
was at work on it, which is what a quiet machine takes. It ends with exit code 1 if a block fails or
takes longer than it says.
"""

import code
import re
import shlex
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
QUICK = 10.0
"""Seconds that a block may take which says nothing."""
_UNITS = {"second": 1.0, "minute": 60.0}


class Block(NamedTuple):
    """One fenced block: where it begins, its language, its text."""

    file: str
    line: int
    language: str
    text: str

    @property
    def stated(self) -> float:
        """Seconds that it says it takes."""
        found = re.match(r"# about (\d+) (second|minute)s?\b", self.text)
        return float(found.group(1)) * _UNITS[found.group(2)] if found else QUICK


def blocks_of(path: Path) -> list[Block]:
    """All fenced blocks of a Markdown file, in their order."""
    text = path.read_text()
    return [
        Block(path.name, text.count("\n", 0, found.start()) + 1, found.group(1), found.group(2))
        for found in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    ]


def commands_of(path: Path) -> list[list[str]]:
    """Every `netmargin ...` command line of a file, in blocks or running text, as words."""
    blocks = [block for block in blocks_of(path) if block.language in ("", "sh")]
    lines = [line for block in blocks for line in block.text.splitlines()]
    lines += [
        line for line in re.findall(r"`(netmargin [^`]+)`", path.read_text()) if " --" in line
    ]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("netmargin ")]


class _Console(code.InteractiveConsole):
    """Python's own prompt, except that the first exception ends it."""

    def showtraceback(self):
        raise sys.exc_info()[1]

    def showsyntaxerror(self, filename=None, **_):
        raise sys.exc_info()[1]


def paste(blocks: list[Block], note) -> None:
    """Every block into one prompt, by lines; `note(block, seconds, processor_seconds)` after."""
    console = _Console({"__name__": "__main__"})
    for block in blocks:
        started, worked, waits = time.monotonic(), time.process_time(), False
        for number, line in enumerate([*block.text.splitlines(), ""]):
            try:
                waits = console.push(line)
            except BaseException as error:
                error.add_note(f"in {block.file}, line {block.line + 1 + number}: {line}")
                raise
        if waits:
            raise SyntaxError(f"{block.file}, line {block.line}: the block ends within a statement")
        note(block, time.monotonic() - started, time.process_time() - worked)


def main(names: list[str]) -> int:
    """Paste the Python blocks of a file, the README by default; the exit code."""
    late = []

    def note(block: Block, seconds: float, worked: float) -> None:
        print(
            f"{block.file}:{block.line}: {seconds:.1f} s, {worked:.1f} s of it at work, stated"
            f" {block.stated:.0f} s",
            file=sys.stderr,
            flush=True,
        )
        if seconds > block.stated:
            late.append(block)

    path = ROOT / (names[0] if names else "README.md")
    paste([block for block in blocks_of(path) if block.language == "python"], note)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
