"""All runs of a figure side by side, each kept in a file as soon as it is done."""

import hashlib
import inspect
import json
import time
from collections.abc import Callable
from pathlib import Path

from joblib import Parallel, delayed

from ..errors import Interrupted
from ..interrupts import noticed_interrupts
from ..training.checkpoint import write_atomically
from ..training.progress import Progress
from .figure import Figure, Row, Settings, figure


def sweep(chosen: Figure, settings: Settings, folder: Path, *, jobs: int, progress: bool) -> list[Row]:
    """Rows of all runs, in order. Those whose file is in `folder` are read, the others computed by `jobs` processes; a killed sweep loses only the runs that were under way."""
    runs = chosen.runs(settings)
    files = [_file(chosen, settings, run, folder) for run in runs]
    waiting = [index for index, file in enumerate(files) if _read(file) is None]
    done = len(runs) - len(waiting)
    tasks = (delayed(_computed)(chosen.id, runs[index], dict(settings), files[index]) for index in waiting)
    with Progress(progress, chosen.id) as display:
        display.draw(done, len(waiting), f"{done} of {len(runs)} runs")
        try:
            for _ in Parallel(n_jobs=min(jobs, max(len(waiting), 1)), return_as="generator_unordered")(tasks):
                done += 1
                display.draw(done, len(runs) - done, f"{done} of {len(runs)} runs")
        except KeyboardInterrupt:
            raise Interrupted(
                f"{chosen.id}: {done} of {len(runs)} runs are done and kept in {folder}. The same command goes on."
            ) from None
    return [run | (_read(file) or {}) for run, file in zip(runs, files, strict=True)]


def finished(chosen: Figure, settings: Settings, folder: Path) -> tuple[int, int]:
    """How many runs are done, and of how many."""
    runs = chosen.runs(settings)
    return sum(_read(_file(chosen, settings, run, folder)) is not None for run in runs), len(runs)


def folder_of(chosen: Figure, settings: Settings, run: Row, folder: Path) -> Path:
    """What a run was given to keep its files in."""
    return _file(chosen, settings, run, folder).with_suffix("")


def _file(chosen: Figure, settings: Settings, run: Row, folder: Path) -> Path:
    # Results of other settings, or of another computation, are not those of this figure.
    text = json.dumps([dict(settings), run, _source(chosen.compute)], sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _read(file: Path) -> Row | None:
    """What a run left; None if it is not done, or its file is damaged."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def _source(function: Callable, seen: frozenset = frozenset()) -> str:
    """Of a function and of those in this package that it calls; not of the library."""
    called = (function.__globals__.get(name) for name in function.__code__.co_names)
    helpers = [f for f in called if inspect.isfunction(f) and f.__module__.startswith(__package__) and f not in seen]
    return "".join([inspect.getsource(function), *(_source(f, seen | {function, *helpers}) for f in helpers)])


def _computed(id: str, run: Row, settings: Settings, file: Path) -> None:
    started = time.monotonic()
    with noticed_interrupts() as interrupts:
        result = figure(id).compute(run, settings, file.with_suffix(""))
    if interrupts:  # some part of it was broken off
        raise KeyboardInterrupt
    write_atomically(file, json.dumps(result | {"seconds": time.monotonic() - started}, allow_nan=False).encode())
