"""What sharing work between processes gains: a sweep on two workers of Dask, one of which is killed
in another run of it; and the ledger in two processes against one with as many threads as there are
cores, or one. `python -m benchmarks cluster` on a machine with two quiet cores, an hour.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from joblib import delayed

from netmargin.core.parallel import on_cluster, run_side_by_side
from netmargin.papers.gallery.figure import figure
from netmargin.papers.gallery.sweep import PlannedRun, compute_run, plan_runs

ROOT = Path(__file__).parents[1]
FIGURE = "two-homogeneity/parity"
"""At paper scale 140 runs of 3 to 5 seconds each, ten minutes of one core."""
KILLED_AFTER = 1 / 3
"""The share of the runs after which a worker is killed."""


def main() -> None:
    """Print the times of the sweep and of the ledger, and what became of the killed worker."""
    measure_sweep(FIGURE, "paper")
    measure_ledger([])


def measure_sweep(id: str, scale: str) -> None:
    """One process of one thread, two workers, and two workers of which one is killed and replaced.

    Every process has one thread, and all of them compute the same runs.
    """
    alone, shared = time_sweep(id, scale)
    print(
        f"{id} at {scale} scale: one process {alone:.1f} s, two workers {shared:.1f} s:"
        f" {alone / shared:.2f} times as fast",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder, _workers(Path(folder)) as (address, replace):
        with on_cluster(address):
            broken = _sweep(id, scale, Path(folder) / "broken", interrupt=replace)
        print(f"one of them killed and replaced: {broken:.1f} s", flush=True)


def time_sweep(id: str, scale: str) -> tuple[float, float]:
    """Seconds of one process of one thread, and of two workers with one thread each."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        alone = _sweep(id, scale, Path(folder) / "alone", jobs=1)
    with (
        tempfile.TemporaryDirectory() as folder,
        _workers(Path(folder)) as (address, _),
        on_cluster(address),
    ):
        shared = _sweep(id, scale, Path(folder) / "two")
    return alone, shared


def measure_ledger(arguments: list[str]) -> None:
    """`netmargin verify` in one process with one thread and with two, and in two processes.

    arguments : of the command, such as --quick; none for the full ledger.
    """
    seconds = {
        (jobs, threads): _time_command(["verify", *arguments, "--jobs", str(jobs)], threads)
        for jobs, threads in ((1, 1), (1, 2), (2, 1))
    }
    for (jobs, threads), spent in seconds.items():
        print(f"ledger: {jobs} processes, {threads} threads each: {spent:.1f} s", flush=True)
    best = min(spent for (jobs, _), spent in seconds.items() if jobs == 1)
    print(f"two processes take {seconds[2, 1] / best:.2f} of the best time of one", flush=True)


def _sweep(
    id: str,
    scale: str,
    folder: Path,
    *,
    jobs: int | None = None,
    interrupt: Callable[[int], None] | None = None,
) -> float:
    """Compute all runs of a figure, and return the seconds; raise where one is lost or doubled.

    interrupt : called with the number of a process that computes, when a third is done.
    """
    chosen = figure(id)
    runs = plan_runs(chosen, chosen.scales[scale], folder)
    folder.mkdir(parents=True)
    log = folder / "log.jsonl"
    started, kept = time.monotonic(), dict[Path, int]()
    tasks = (delayed(_note_run)(run, log) for run in runs)
    for done, process in enumerate(run_side_by_side(tasks, len(runs), jobs), 1):
        if interrupt is not None and done == max(1, round(KILLED_AFTER * len(runs))):
            kept = {file: file.stat().st_mtime_ns for file in folder.glob("*.json")}
            interrupt(process)
    seconds = time.monotonic() - started
    written = sorted(folder.glob("*.json"))
    notes = [json.loads(line) for line in log.read_text().splitlines()]
    begun = [note["run"] for note in notes if note["begun"]]
    ended = [note["run"] for note in notes if not note["begun"]]
    print(
        f"{len(runs)} runs: {len(written)} files, begun {len(begun)} times, written"
        f" {len(ended)} times by {len({note['process'] for note in notes})} processes",
        flush=True,
    )
    if written != sorted(run.file for run in runs) or sorted(ended) != [f.name for f in written]:
        raise RuntimeError("a run is missing, or was written twice")
    if any(file.stat().st_mtime_ns != when for file, when in kept.items()):
        raise RuntimeError("a run that was done was written again")
    return seconds


def _note_run(run: PlannedRun, log: Path) -> int:
    """Compute a run, note its begin and its end, and return the number of the process."""
    for begun in (True, False):
        if not begun:
            compute_run(run)
        # A line of this length is appended at once, whoever else writes.
        with open(log, "a") as file:
            file.write(
                json.dumps({"run": run.file.name, "process": os.getpid(), "begun": begun}) + "\n"
            )
    return os.getpid()


@contextmanager
def _workers(folder: Path) -> Iterator[tuple[str, Callable[[int], None]]]:
    """The address of a scheduler with two workers, and a function that kills and replaces one."""
    known = folder / "scheduler.json"
    running = [
        _start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(known))
    ]
    while not known.exists():
        time.sleep(0.1)
    address = json.loads(known.read_text())["address"]

    def add() -> None:
        directory = str(folder / f"worker-{len(running)}")
        # Without a nanny, who would start a dead worker again by himself.
        options = ("--nthreads", "1", "--no-nanny", "--local-directory", directory)
        running.append(_start("worker", address, *options))

    def replace(process: int) -> None:
        os.kill(process, signal.SIGKILL)
        print(f"killed the worker {process}", flush=True)
        add()

    try:
        add()
        add()
        from distributed import Client

        # With one worker joblib would compute in this process.
        with Client(address) as client:
            client.wait_for_workers(2, timeout=60)
        yield address, replace
    finally:
        for process in running:
            process.kill()
            process.wait()


def _start(*arguments: str) -> subprocess.Popen:
    """A process of Dask that knows this file, with one thread."""
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _time_command(arguments: list[str], threads: int) -> float:
    """The seconds that a command takes with this number of threads in each process."""
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "netmargin", *arguments],
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.monotonic() - started
