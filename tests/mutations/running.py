"""Tests against a mutated copy of the source, in processes of their own."""

import contextlib
import importlib.util
import multiprocessing
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from .mutation import Mutation

REPOSITORY = Path(__file__).resolve().parents[2]
_PRELOADED = [
    "numpy",
    "scipy.optimize",
    "torch",
    "sklearn.svm",
    "pandas",
    "highspy",
    "clarabel",
    "rich",
    "pytest",
]
"""Imported once: every run of tests is a fork of a process that has them."""
_IMPORT_SECONDS = 60.0
"""Beyond a multiple of what the unmutated tests took: a mutated search may never end."""
_SLOWER = 4.0
_NO_START = (
    "the process died before its tests; call `python -m tests.mutations`, or `main` in a file, below"
    " `if __name__ == '__main__':`"
)
_SLOW_ONES_TOO = ["-m", "not integrations"]
"""One test that notices may be a slow one; the tests of a package are those that `make test` runs."""
_WITHOUT_TESTS = (4, 5)
"""Exit codes of pytest: it could not start, or all tests were left out."""
_processes = multiprocessing.get_context("forkserver")


@dataclass(frozen=True)
class Outcome:
    """Of one run of tests.

    passed : all of them.
    failed : the first that did not, or why there was none.
    """

    passed: bool
    failed: str
    seconds: float


class Workplace:
    """A copy of the repository in which one mutation at a time is tested."""

    def __init__(self, folder: Path):
        self.folder, self.package = folder, folder / "src" / "netmargin"
        without_caches = shutil.ignore_patterns("__pycache__", "*.egg-info")
        _processes.set_forkserver_preload(_PRELOADED)
        for name in ("src", "tests"):
            shutil.copytree(REPOSITORY / name, folder / name, ignore=without_caches)
        shutil.copy(REPOSITORY / "pyproject.toml", folder)
        for other in REPOSITORY.iterdir():
            if not other.name.startswith(".") and not (folder / other.name).exists():
                (folder / other.name).symlink_to(other)
        self.log = folder / "pytest.log"
        self.limit: float | None = None

    def baseline(self, tests: list[str], quickest: list[str]) -> Outcome:
        """Run the tests without a mutation; their seconds decide how long mutated ones may take."""
        outcome = self._run(tests)
        if outcome.passed and quickest:
            first, outcome = outcome, self._run([*_SLOW_ONES_TOO, *quickest])
            outcome = replace(outcome, seconds=first.seconds + outcome.seconds)
        self.limit = _IMPORT_SECONDS + _SLOWER * outcome.seconds
        return outcome

    def outcome(self, mutation: Mutation, tests: list[str]) -> Outcome:
        """With one mutation: `killed_by` first, then the tests of the package."""
        source = mutation.apply(self.package)
        try:
            if mutation.killed_by:
                outcome = self._run([*_SLOW_ONES_TOO, mutation.killed_by])
                if not outcome.passed:
                    return outcome
            return self._run(tests)
        finally:
            mutation.put(self.package, source)

    def _run(self, tests: list[str]) -> Outcome:
        answer, sender = _processes.Pipe(duplex=False)
        started = time.monotonic()
        self.log.write_text("")
        process = _processes.Process(target=_test, args=(self.folder, self.log, tests, sender))
        process.start()
        sender.close()  # the process holds the other copy: when it dies, there is an end to wait for
        try:
            ended = answer.poll(self.limit)
            code, failed = answer.recv() if ended else (None, f"no end within {self.limit:.0f} s")
        except EOFError:
            # Before the tests it dies where it cannot import what called: it starts like a new one.
            code, failed = None, "the process died" if self.log.read_text() else _NO_START
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
        if code in _WITHOUT_TESTS:  # neither passed nor failed
            raise ValueError(f"no test ran: {failed}, of {' '.join(tests)}")
        return Outcome(code == 0, failed, time.monotonic() - started)


class _FirstFailure:
    """A pytest plugin that keeps the name of the first failure."""

    name = ""

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.name = self.name or report.nodeid

    def pytest_collectreport(self, report):
        if report.failed:
            self.name = self.name or f"import of {report.nodeid}"


def _test(folder: Path, path: Path, tests: list[str], answer) -> None:
    """In a process of its own: pytest, on the copy of the source."""
    os.setsid()  # whatever the tests start ends with them
    log = os.open(path, os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder / "src")
    sys.path.insert(0, str(folder / "src"))
    import pytest
    import torch

    torch.set_num_threads(1)
    tested = importlib.util.find_spec("netmargin").origin
    if not Path(tested).is_relative_to(folder):
        answer.send((None, f"{tested} would be tested, not the copy in {folder}"))
        return
    first = _FirstFailure()
    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], plugins=[first])
    answer.send((int(code), first.name or f"pytest ended with {pytest.ExitCode(code).name}"))
