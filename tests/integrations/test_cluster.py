"""Figures and claims on the workers of a Dask scheduler: real processes, one of them killed."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FunctionType

import pytest
from joblib import Parallel, delayed, parallel_config

import netmargin as nm
from netmargin.cli import main
from netmargin.core.parallel import on_cluster, run_side_by_side

pytestmark = pytest.mark.integrations


def start(*arguments):
    """A process of Dask that listens on this machine only."""
    # Tasks of this file are functions that a worker imports.
    paths = [str(Path(__file__).parent), *sys.path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a scheduler."""
    pytest.importorskip("distributed")
    file = tmp_path_factory.mktemp("dask") / "scheduler.json"
    process = start(
        "scheduler",
        *("--host", "127.0.0.1", "--port", "0", "--no-dashboard"),
        *("--scheduler-file", str(file)),
    )
    while not file.exists():
        assert process.poll() is None
        time.sleep(0.1)
    yield json.loads(file.read_text())["address"]
    process.kill()
    process.wait()


@pytest.fixture
def workers(scheduler, tmp_path):
    """Two workers without a nanny: one that is killed stays dead."""
    options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory")
    found = [start("worker", scheduler, *options, str(tmp_path / str(k))) for k in range(2)]
    with pytest.importorskip("distributed").Client(scheduler) as client:
        client.wait_for_workers(2, timeout=60)
    yield found
    for worker in found:
        worker.kill()
        worker.wait()


def note_process(folder, number):
    """Leave the number of the process that came here, and take a while."""
    file = Path(folder) / f"{number}-{os.getpid()}"
    file.touch()
    time.sleep(0.4)
    file.with_suffix(".done").touch()
    return number, os.getpid()


def share_within():
    """Share work within a task; note when this one began and ended, and in which process."""
    began = time.monotonic()
    list(run_side_by_side((delayed(time.sleep)(0.1) for _ in range(2)), 2, None))
    return os.getpid(), began, time.monotonic()


def own_run(seed):
    return nm.weak_regularization(seed + 1.0, n=2).exponent


def test_a_function_of_ones_own_that_uses_the_package_runs_on_workers(scheduler, workers):
    """As a notebook has it: the function travels by value, and `nm` with it."""
    by_value = FunctionType(own_run.__code__, {"nm": nm}, "own")
    with pytest.importorskip("distributed").Client(scheduler), parallel_config(backend="dask"):
        found = Parallel()(delayed(by_value)(seed) for seed in range(2))
    assert found == [own_run(seed) for seed in range(2)]


def test_a_task_ends_before_its_worker_begins_another(scheduler, workers):
    """Even where it shares work itself: another task would seed the generator that it draws from."""
    with on_cluster(scheduler):
        tasks = (delayed(share_within)() for _ in range(8))
        found = sorted(run_side_by_side(tasks, 8, None))
    for (process, _, end), (other, begin, _) in itertools.pairwise(found):
        assert process != other or end <= begin


def test_a_worker_that_dies_costs_the_task_it_had(scheduler, workers, tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    done, killed = [], None
    with on_cluster(scheduler):
        tasks = (delayed(note_process)(str(folder), number) for number in range(16))
        for number, process in run_side_by_side(tasks, 16, None):
            done.append(number)
            if killed is None and len(done) == 4:
                killed = process
                os.kill(process, signal.SIGKILL)
    assert sorted(done) == list(range(16))
    unfinished = [file for file in folder.glob("*") if not file.with_suffix(".done").exists()]
    assert {file.name.split("-")[1] for file in unfinished} <= {str(killed)}
    assert len(list(folder.glob("*.done"))) <= 16 + 2


@pytest.mark.nightly
def test_figures_and_claims_are_those_of_one_process(scheduler, workers, tmp_path, capsys):
    options = ["reproduce", "chizat-bach/fig2c", "chizat-bach/fig2a", "--quiet", "--out"]
    assert main([*options, str(tmp_path / "cluster"), "--cluster", scheduler]) == 0
    assert main([*options, str(tmp_path / "here"), "--jobs", "1"]) == 0
    here, there = (
        json.loads((tmp_path / place / "chizat-bach/fig2c/smoke/numbers.json").read_text())["rows"]
        for place in ("here", "cluster")
    )
    for row in (*here, *there):
        del row["seconds"]
    assert here == there
    capsys.readouterr()
    claims = ["lyu-li/euler", "lyu-li/sandwich"]
    assert main(["verify", *claims, "--quick", "--cluster", scheduler, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [claim["id"] for claim in printed["claims"]] == claims


@pytest.mark.nightly
def test_what_does_not_answer_is_said():
    for address in ("tcp://127.0.0.1:9", "nowhere://x"):
        with (
            pytest.raises(
                nm.NetmarginError, match=f"No Dask scheduler with a worker answers at {address}"
            ),
            on_cluster(address),
        ):
            pass


def test_one_worker_computes_what_it_is_given(scheduler, tmp_path):
    worker = start(
        *("worker", scheduler, "--nthreads", "1", "--no-nanny", "--no-dashboard"),
        *("--local-directory", str(tmp_path)),
    )
    try:
        with on_cluster(scheduler):
            found = list(run_side_by_side((delayed(os.getpid)() for _ in range(2)), 2, None))
        assert found == [worker.pid] * 2
    finally:
        worker.terminate()
        worker.wait()


def test_threads_are_refused(scheduler, tmp_path):
    directory = ("--local-directory", str(tmp_path))
    worker = start("worker", scheduler, "--nthreads", "2", "--no-dashboard", *directory)
    try:
        with on_cluster(scheduler), pytest.raises(nm.ArgumentError, match="--nthreads 1"):
            list(run_side_by_side([delayed(pow)(2, 2)], 1, None))
    finally:
        worker.terminate()
        worker.wait()
    with parallel_config(backend="threading"), pytest.raises(nm.ArgumentError, match="loky"):
        nm.theory.verify("lyu-li/euler", trials=[0])
