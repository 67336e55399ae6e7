"""Rows in a file of JSON lines: a benchmark that was stopped goes on from there."""

import json
from pathlib import Path


def read_rows(path: Path) -> list[dict]:
    """The rows of a file; a line cut off by a kill is left out, none where there is no file."""
    return [json.loads(s) for s in path.read_text().split("\n")[:-1]] if path.exists() else []


def add_row(path: Path, row: dict) -> None:
    """Add a row as soon as it is measured."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
