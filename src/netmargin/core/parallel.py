"""Independent work side by side: on the cores of this machine, or wherever joblib was told to."""

import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend

from ..errors import ArgumentError, MissingLibraryError, NetmarginError
from ..version import __version__

_ANSWER_SECONDS = 20
"""How long a scheduler, and then a first worker, may take to answer: a job queue that has started
its workers answers in a second, and one that has not should be said before anybody waits longer.
"""


class WorkerKilledError(NetmarginError):
    """A process that was computing has gone, and its task with it."""


def run_side_by_side(tasks: Iterable[Any], count: int, jobs: int | None) -> Iterator[Any]:
    """Run tasks, and give the result of each as soon as it is there.

    Parameters
    ----------
    tasks : iterable of joblib.delayed calls
        The tasks. Functions and arguments have to be picklable.
    count : int
        How many there are.
    jobs : int or None
        The number of processes. None: as `joblib.parallel_config` says, in whose context this is
        called; outside of one, a process for each core of this machine.

    Yields
    ------
    Any
        The results, in the order in which they are done.

    Raises
    ------
    WorkerKilledError
        A process was killed.
    ArgumentError
        joblib was told to use threads, of whom all would draw from torch's one random generator.

    Examples
    --------
    >>> from joblib import delayed
    >>> sorted(run_side_by_side((delayed(pow)(n, 2) for n in range(4)), 4, jobs=1))
    [0, 1, 4, 9]
    """
    backend, configured = get_active_backend()
    _require_processes(backend)
    if jobs is None and configured is None and type(backend).__name__ == "LokyBackend":
        jobs = cpu_count()
    if jobs is not None:
        # One task needs no process, and a process takes seconds to import torch.
        jobs = max(min(jobs, count), 1)
    try:
        whole = (delayed(_run_whole)(*task) for task in tasks)
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(whole)
    except TerminatedWorkerError:
        raise WorkerKilledError(
            "a process was killed, most likely because memory ran out. Use fewer: --jobs 1"
        ) from None
    except Exception as error:
        # The class of Dask, which need not be installed.
        if type(error).__name__ != "KilledWorker":
            raise
        raise WorkerKilledError(
            f"several workers died of one task ({error}), most likely because it needs more memory"
            " than they have"
        ) from None


def _run_whole(function: Callable, given: tuple, named: dict) -> Any:
    """Run a task, and what it would share with others in the same process, one after the other.

    A worker of Dask whose task waits for others would begin another one meanwhile, and that one
    seed torch's generator, from which the first one goes on to draw.
    """
    with parallel_config(backend="sequential"):
        return function(*given, **named)


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Let `run_side_by_side` give its tasks to the workers of a Dask scheduler.

    Before anything is computed, one worker has to answer, and every worker has to run the versions
    of Python, netmargin and torch that this process runs.

    Parameters
    ----------
    address : str or None
        Where the scheduler listens, such as "tcp://node7:8786". None: nothing changes.

    Raises
    ------
    MissingLibraryError
        Dask is not installed here.
    NetmarginError
        Nobody answers, or other versions do.
    """
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise MissingLibraryError(
            "--cluster needs Dask. Install it: pip install 'netmargin[cluster]'"
        ) from None
    try:
        client = Client(address, timeout=_ANSWER_SECONDS)
    except ValueError as error:
        raise ArgumentError(
            f"{address!r} is no address of a scheduler ({error}). Give one such as"
            " tcp://localhost:8786."
        ) from None
    except OSError as error:
        raise NetmarginError(
            f"No Dask scheduler answers at {address} within {_ANSWER_SECONDS} seconds"
            f" ({error}). Start one: dask scheduler; and workers: dask worker {address}"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_ANSWER_SECONDS)
        except TimeoutError:
            raise NetmarginError(
                f"The scheduler at {address} has no worker. Start some: dask worker {address}"
            ) from None
        _require_same_versions(_list_versions(), _ask_workers(client))
        with parallel_config(backend="dask"):
            yield


def _require_processes(backend: Any) -> None:
    """Raise ArgumentError where tasks would run in threads of one process."""
    kind = type(backend).__name__
    if kind == "ThreadingBackend":
        raise ArgumentError(
            "joblib.parallel_config(backend='threading') would let several tasks draw from torch's"
            " one random generator. Use processes: backend='loky'."
        )
    if kind == "DaskDistributedBackend":
        several = [worker for worker, n in backend.client.nthreads().items() if n > 1]
        if several:
            raise ArgumentError(
                f"The worker {several[0]} runs several threads, which would draw from torch's one"
                " random generator. Start workers with one each, and more of them:"
                " dask worker ADDRESS --nthreads 1 --nworkers 4"
            )


def _list_versions() -> dict[str, str]:
    """The versions on which results depend, of the process that runs this."""
    return {
        "Python": platform.python_version(),
        "netmargin": __version__,
        "torch": version("torch"),
    }


def _ask_workers(client: Any) -> dict[str, dict[str, str]]:
    """The versions of every worker. Raises NetmarginError where one cannot import netmargin."""
    try:
        return client.run(_list_versions)
    except Exception as error:  # Dask raises whatever the worker raised, or a text about it
        raise NetmarginError(
            f"A worker cannot run netmargin: {error}. Give all workers the environment of this"
            " command."
        ) from None


def _require_same_versions(mine: dict[str, str], workers: dict[str, dict[str, str]]) -> None:
    """Raise NetmarginError where a worker runs other versions than this process."""
    for worker, theirs in workers.items():
        other = [
            f"{name} {theirs[name]}, not {mine[name]},"
            for name in mine
            if theirs[name] != mine[name]
        ]
        if other:
            raise NetmarginError(
                f"The worker {worker} runs {' and '.join(other)} so that results could differ. Give"
                " all workers the environment of this command."
            )
