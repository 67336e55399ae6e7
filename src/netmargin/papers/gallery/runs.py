"""The runs of figures: what each is computed from, and the file that keeps its results."""

import ast
import functools
import hashlib
import inspect
import json
import os
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from filelock import FileLock

from ...core.files import write_atomically
from ...core.interrupts import whole_or_interrupted
from ...errors import CheckpointError, DataError
from .. import contents
from .figure import Figure, Row, Settings, figure


@dataclass(frozen=True)
class PlannedRun:
    """A run of a figure: what it is computed from, and the file of its results."""

    id: str  # of the figure
    run: Row
    settings: Settings  # those on which it depends
    file: Path  # several figures may have the same run, and so the same file

    @property
    def folder(self) -> Path:
        """The folder that it is given to keep its own files in."""
        return self.file.with_suffix("")

    @property
    def is_done(self) -> bool:
        """Whether its results are there."""
        return _read(self.file) is not None


def plan_runs(id: str, scale: str, out: str | Path) -> list[PlannedRun]:
    """All runs of a figure at a scale, in order, whether they are done or not."""
    chosen = figure(id)
    settings = chosen.scales[scale]
    # Another figure may own the folder. A worker on a cluster has another working directory.
    folder = (Path(out) / (chosen.runs_of or id) / scale / "runs").resolve()
    return [plan_run(chosen, settings, run, folder) for run in chosen.runs(settings)]


def plan_run(chosen: Figure, settings: Settings, run: Row, folder: Path) -> PlannedRun:
    """A run of a figure whose file is in a folder, named by a hash of all that determines it."""
    # Results of other settings, or of another computation, are not those of this figure: the
    # code of `compute` is part of the name, so that changed code computes its runs again.
    selected = {name: value for name, value in settings.items() if chosen.concerns(run, name)}
    text = json.dumps([selected, run, _definition(chosen.compute, [])], sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    return PlannedRun(chosen.id, run, selected, folder / f"{name}.json")


def read_rows(runs: list[PlannedRun]) -> list[Row]:
    """Parameters and results of runs, in order. Raises CheckpointError where one is not there."""
    found = [_read(planned.file) for planned in runs]
    rows = [planned.run | row for planned, row in zip(runs, found, strict=True) if row is not None]
    if len(rows) < len(runs):
        missing = len(runs) - len(rows)
        raise CheckpointError(
            f"{missing} of {len(runs)} runs were computed, and are not in {runs[0].file.parent}."
            " Workers on other machines have to write there too: give an --out that all share."
        )
    return rows


def _read(file: Path) -> Row | None:
    """Read the results of a run; None if it is not done, or its file is damaged."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def _definition(value: Any, seen: list[Any]) -> str:
    """The code of a function or class of the papers' folders and of all that it refers to there.

    The library outside, and the engine of figures, which says where files are, are left out: their
    results are held by tests, and a hash that covered them would throw away hours of computing.
    """
    if isinstance(value, dict):
        return "".join(f"{key!r}: {_definition(item, seen)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "".join(_definition(item, seen) for item in value)
    if isinstance(value, str | int | float | None):
        return repr(value)
    code = inspect.isfunction(value) or inspect.isclass(value)
    own = code and value.__module__.startswith("netmargin.papers.")
    engine = own and value.__module__.startswith(("netmargin.papers.gallery", contents.__name__))
    if not own or engine or value in seen:
        return getattr(value, "__qualname__", "")
    seen.append(value)
    parts = [value] if inspect.isfunction(value) else vars(value).values()
    return _read_syntax(value) + "".join(
        f"{name}: {_definition(f.__globals__[name], seen)}"
        for f in filter(inspect.isfunction, parts)
        for name in _names(f.__code__)
        if name in f.__globals__
    )


@functools.cache
def _read_syntax(value: Any) -> str:
    """The code of a function or class by its syntax tree: without layout and docstrings."""
    tree = _parse_module(value.__module__)
    if inspect.isclass(value):
        found = [n for n in ast.walk(tree) if getattr(n, "name", "") == value.__name__]
    else:
        line = value.__code__.co_firstlineno  # of the first decorator, where there is one
        found = [
            n
            for n in ast.walk(tree)
            if isinstance(n, ast.FunctionDef | ast.Lambda)
            and min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", []))]) == line
        ]
    return "".join(map(ast.unparse, found))


@functools.cache
def _parse_module(name: str) -> ast.Module:
    """The syntax tree of a module, without docstrings; read once, as runs of figures share it."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _names(code: CodeType) -> list[str]:
    """List the names that a function uses, comprehensions and inner functions included."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names(part)]
    return [*code.co_names, *inner]


def compute_run(planned: PlannedRun) -> None:
    """Compute one run in a process of its own, and write its results to its file."""
    id, run, file, chosen = planned.id, planned.run, planned.file, figure(planned.id)
    own = [planned.folder] if chosen.with_folder else []
    # Another command may be at the same run: wait for what it finds.
    with FileLock(file.with_suffix(".lock")):
        if _read(file) is not None:
            return
        started = time.monotonic()
        # What a solver had when Ctrl-C came must not be kept as the result of the run.
        with whole_or_interrupted():
            result = chosen.compute(run, planned.settings, *own)
        record = {"seconds": time.monotonic() - started, "hardware": hardware()} | result
        try:
            text = json.dumps(record, allow_nan=False)
        except ValueError:
            raise DataError(
                f"{id}: the run {run} found a number that is not finite. Nothing of it was kept."
            ) from None
        write_atomically(file, text.encode())


def hardware() -> str:
    """Describe this machine in a few words: cores, architecture and GPU."""
    gpu = [torch.cuda.get_device_name()] if torch.cuda.is_available() else []
    return ", ".join([f"{os.cpu_count()} cores", platform.machine(), *gpu])
