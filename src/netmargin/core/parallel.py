"""Independent work side by side: on the cores of this machine, or wherever joblib was told to."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

from joblib import Parallel, cpu_count, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend

from ..errors import ArgumentError, MissingLibraryError, NetmarginError

_ANSWER_SECONDS = 20
"""How long a scheduler and its first worker may take: those that run answer within a second."""


class WorkerKilledError(NetmarginError):
    """A process that was computing has gone, and its task with it."""


def count_threads(n_jobs: Any) -> int:
    """The number of threads that n_jobs stands for, as in joblib: None is one, -1 all cores."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ArgumentError(
            f"n_jobs must be None or an integer other than 0 (-1 for all cores); got {n_jobs!r}"
        )
    return int(effective_n_jobs(int(n_jobs)))


def run_side_by_side(tasks: Iterable[Any], count: int, jobs: int | None) -> Iterator[Any]:
    """Run `count` joblib.delayed tasks, and give the result of each as soon as it is there."""
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
            f"several workers died of one task ({error}), most likely for lack of memory"
        ) from None


def _run_whole(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Run a task whole: a worker of Dask that waits for its parts would begin another one, and that
    one seed torch's generator, from which the first one goes on to draw.
    """
    with parallel_config(backend="sequential"):
        return function(*given, **named)


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Let `run_side_by_side` give its tasks to a Dask scheduler; None: no change."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
        from joblib._dask import DaskDistributedBackend
    except ImportError:
        raise MissingLibraryError(
            "--cluster needs Dask: pip install 'netmargin[cluster]'"
        ) from None

    class Workers(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            # What joblib takes for one process's work it would do here, and not on the one worker.
            return max(int(super().effective_n_jobs(n_jobs)), 2)

    try:
        client = Client(address, timeout=_ANSWER_SECONDS)
        client.wait_for_workers(1, timeout=_ANSWER_SECONDS)
    except (OSError, ValueError) as error:
        raise NetmarginError(
            f"No Dask scheduler with a worker answers at {address} ({error}). Start one:"
            f" dask scheduler; and workers: dask worker {address} --nthreads 1"
        ) from None
    with client, parallel_config(backend=Workers(client=client)):
        yield


def _require_processes(backend: Any) -> None:
    """Raise ArgumentError where tasks would run in threads of one process."""
    if type(backend).__name__ == "ThreadingBackend":
        raise ArgumentError(
            "Threads would draw from torch's one random generator. Use processes: backend='loky'."
        )
    # Of Dask, which need not be installed.
    if (client := getattr(backend, "client", None)) is not None:
        several = [worker for worker, n in client.nthreads().items() if n > 1]
        if several:
            raise ArgumentError(
                f"The worker {several[0]} runs several threads, which would draw from torch's one"
                " random generator. Start: dask worker ADDRESS --nthreads 1 --nworkers 4"
            )
