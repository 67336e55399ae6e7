"""All runs of a figure side by side, each kept in a file as soon as it is done."""

import functools
import hashlib
import inspect
import json
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from filelock import FileLock
from joblib import delayed

from ...core.files import make_folder, write_atomically
from ...core.interrupts import whole_or_interrupted
from ...core.parallel import WorkerKilledError, run_side_by_side
from ...core.progress import Progress
from ...core.records import short_repr
from ...errors import CheckpointError, DataError, Interrupted, NetmarginError
from .figure import Figure, Row, Settings, figure


@dataclass(frozen=True)
class PlannedRun:
    """A run of a figure: what it is computed from, and the file of its results.

    Attributes
    ----------
    id : str
        The id of the figure.
    run : dict
        The parameters of the run.
    settings : mapping
        The settings on which it depends.
    file : Path
        Where its results are kept; several figures may have the same run, and so the same file.
    """

    id: str
    run: Row
    settings: Settings
    file: Path

    __repr__ = short_repr

    @property
    def is_done(self) -> bool:
        """Whether its results are there."""
        return _read(self.file) is not None


def plan_runs(chosen: Figure, settings: Settings, folder: Path) -> list[PlannedRun]:
    """All runs of a figure, in order, whether they are done or not."""
    # A worker on a cluster has another working directory.
    folder = folder.resolve()
    return [
        PlannedRun(
            chosen.id,
            run,
            _select_settings(chosen, run, settings),
            _file(chosen, settings, run, folder),
        )
        for run in chosen.runs(settings)
    ]


def sweep(
    chosen: Figure, settings: Settings, folder: Path, *, jobs: int | None, progress: bool
) -> list[Row]:
    """Compute all runs of a figure and return their rows, in order.

    Those whose file is in `folder` are read, the others computed by `jobs` processes, as
    `run_side_by_side` takes them; a killed sweep loses only the runs that were under way.
    """
    runs, folder = plan_runs(chosen, settings, folder), folder.resolve()
    waiting = [planned for planned in runs if not planned.is_done]
    done = len(runs) - len(waiting)
    make_folder(folder)
    tasks = (delayed(compute_run)(planned) for planned in waiting)
    with Progress(progress, chosen.id) as display:
        display.draw(done, len(waiting), f"{done} of {len(runs)} runs")
        try:
            # The rows are read back from their files, so that the order of the results is free and
            # the display moves with each one that is done.
            for _ in run_side_by_side(tasks, len(waiting), jobs):
                done += 1
                display.draw(done, len(runs) - done, f"{done} of {len(runs)} runs")
        except KeyboardInterrupt:
            raise Interrupted(
                f"{chosen.id}: {done} of {len(runs)} runs are done and kept in {folder}. The same"
                " command goes on."
            ) from None
        except WorkerKilledError as error:
            raise NetmarginError(
                f"{chosen.id}: {error}. {done} of {len(runs)} runs are done and kept in {folder},"
                " and the same command goes on."
            ) from None
    found = [_read(planned.file) for planned in runs]
    rows = [planned.run | row for planned, row in zip(runs, found, strict=True) if row is not None]
    if len(rows) < len(runs):
        raise say_not_here(f"{chosen.id}: {len(runs) - len(rows)} of {len(runs)} runs", folder)
    return rows


def say_not_here(what: str, folder: Path) -> CheckpointError:
    """The error for runs whose files are not where this process looks for them."""
    return CheckpointError(
        f"{what} were computed, and are not in {folder}. Workers on other machines have to write"
        " there too: give an --out that all of them share."
    )


def finished(chosen: Figure, settings: Settings, folder: Path) -> tuple[int, int]:
    """Count the runs that are done, and all runs."""
    runs = plan_runs(chosen, settings, folder)
    return sum(planned.is_done for planned in runs), len(runs)


def folder_of(chosen: Figure, settings: Settings, run: Row, folder: Path) -> Path:
    """The folder that a run was given to keep its files in."""
    return _file(chosen, settings, run, folder).with_suffix("")


def _select_settings(chosen: Figure, run: Row, settings: Settings) -> Settings:
    """The settings on which a run depends."""
    return {name: value for name, value in settings.items() if chosen.concerns(run, name)}


def _file(chosen: Figure, settings: Settings, run: Row, folder: Path) -> Path:
    """The file of a run, named by a hash of everything that determines its results."""
    # Results of other settings, or of another computation, are not those of this figure: the
    # source of `compute` is part of the name, so that changed code computes its runs again.
    text = json.dumps(
        [_select_settings(chosen, run, settings), run, _definition(chosen.compute, [])],
        sort_keys=True,
    )
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _read(file: Path) -> Row | None:
    """Read the results of a run; None if it is not done, or its file is damaged."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def _definition(value: Any, seen: list) -> str:
    """The source of a function or class of the papers' folders and of all that it refers to there,
    constants included.

    The library outside these folders is left out: its results are held by tests, and a hash that
    covered it would throw away hours of computing with every release.
    """
    if isinstance(value, dict):
        return "".join(f"{key!r}: {_definition(item, seen)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return "".join(_definition(item, seen) for item in value)
    if isinstance(value, str | int | float | None):
        return repr(value)
    own = (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__.startswith(
        "netmargin.papers."
    )
    if not own or value in seen:
        return getattr(value, "__qualname__", "")
    seen.append(value)
    functions = (
        [value]
        if inspect.isfunction(value)
        else [f for f in vars(value).values() if inspect.isfunction(f)]
    )
    named = [
        (name, f.__globals__[name])
        for f in functions
        for name in _names(f.__code__)
        if name in f.__globals__
    ]
    return _read_source(value) + "".join(
        f"{name}: {_definition(item, seen)}" for name, item in named
    )


@functools.cache
def _read_source(value: Any) -> str:
    """The source of a function or class; read once, as all runs of a figure share it."""
    return inspect.getsource(value)


def _names(code: CodeType) -> list[str]:
    """List the names that a function uses, comprehensions and inner functions included."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names(part)]
    return [*code.co_names, *inner]


def compute_run(planned: PlannedRun) -> None:
    """Compute one run in a process of its own, and write its results to its file."""
    id, run, file = planned.id, planned.run, planned.file
    # Another command may be at the same run: wait for what it finds.
    with FileLock(file.with_suffix(".lock")):
        if _read(file) is not None:
            return
        started = time.monotonic()
        # What a solver had when Ctrl-C came must not be kept as the result of the run.
        with whole_or_interrupted():
            result = figure(id).compute(run, planned.settings, file.with_suffix(""))
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
