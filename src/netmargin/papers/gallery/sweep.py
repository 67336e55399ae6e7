"""The runs of figures side by side, each kept in a file as soon as it is done."""

from collections.abc import Iterator
from pathlib import Path

from joblib import delayed

from ...core.files import make_folder
from ...core.parallel import WorkerKilledError, run_side_by_side
from ...core.progress import Progress
from ...errors import Interrupted, NetmarginError
from .runs import PlannedRun, compute_run, plan_runs, read_rows


def sweep(
    ids: list[str], scale: str, *, out: Path, jobs: int | None, progress: bool
) -> Iterator[tuple[str, NetmarginError | None]]:
    """Compute runs, each once, and name each figure that is ready, or failed by one of its runs."""
    plans = {id: plan_runs(id, scale, out) for id in ids}
    runs = {run.file: run for planned in plans.values() for run in planned}
    waiting = {file for file, run in runs.items() if not run.is_done}
    failed: dict[Path, NetmarginError] = {}
    left = {id: {run.file for run in planned} for id, planned in plans.items()}
    for file in waiting:
        make_folder(file.parent)

    def take_ready() -> Iterator[tuple[str, NetmarginError | None]]:
        for id in [id for id in left if not left[id] & waiting]:
            yield id, next((failed[file] for file in left.pop(id) if file in failed), None)

    with Progress(progress, "reproduce") as display:
        yield from take_ready()
        queue = [run for file, run in runs.items() if file in waiting]
        tasks = (delayed(_attempt_run)(run) for run in queue)
        display.draw(len(runs) - len(waiting), len(waiting), _count(runs, waiting))
        try:
            for file, error in run_side_by_side(tasks, len(queue), jobs):
                waiting.remove(file)
                if error is not None:
                    failed[file] = error
                else:
                    read_rows([runs[file]])  # raises where workers write elsewhere
                display.draw(len(runs) - len(waiting), len(waiting), _count(runs, waiting))
                yield from take_ready()
        except (KeyboardInterrupt, WorkerKilledError) as error:
            # What was written, and not told yet, counts as well.
            waiting = {file for file in waiting if not runs[file].is_done}
            kept = f"{_count(runs, waiting)} are done and kept in {out}"
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(f"{kept}. The same command goes on.") from None
            raise WorkerKilledError(f"{error}. {kept}, and the same command goes on") from None


def _attempt_run(run: PlannedRun) -> tuple[Path, NetmarginError | None]:
    """Compute a run, and return how it failed where it did: the others go on."""
    try:
        compute_run(run)
    except NetmarginError as error:
        return run.file, error
    return run.file, None


def _count(runs: dict[Path, PlannedRun], waiting: set[Path]) -> str:
    """How many runs are done."""
    return f"{len(runs) - len(waiting)} of {len(runs)} runs"
