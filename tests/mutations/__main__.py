"""Break the source in many small ways, one at a time, and see whether a test notices.

`python -m tests.mutations [PACKAGE ...]` prints for every package how many mutations of its table were
killed, which survived, and which are equivalent, with the reason. The exit code is 1 when fewer
than 90% of those that are not equivalent are killed, or when the tests fail without any mutation.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from .mutation import TABLES, Mutation, read_table
from .running import Outcome, Workplace

ENOUGH = 0.9
Fate = tuple[Mutation, Outcome]


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(TABLES)}; all by default"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many mutations are tested at once")
    parser.add_argument(
        "--match", default="", help="only mutations whose file, text or reason contains this"
    )
    parser.add_argument(
        "--tests",
        nargs="+",
        metavar="TARGET",
        help="pytest targets in place of those of the package: quicker, and more may survive",
    )
    parser.add_argument("--list", action="store_true", help="show the tables, run nothing")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.packages) - set(TABLES)):
        parser.error(f"no such package: {', '.join(unknown)}; there are {', '.join(TABLES)}")
    killed = tried = 0
    for package in options.packages or TABLES:
        tests, mutations = read_table(TABLES[package])
        chosen = [m for m in mutations if options.match in f"{m.file} {m.old} {m.new} {m.why}"]
        if options.list:
            print(f"{package}: {len(chosen)} mutations")
            for mutation in chosen:
                print(
                    _line(
                        "equivalent" if mutation.equivalent else "", mutation, mutation.equivalent
                    )
                )
            continue
        if not (real := [m for m in chosen if not m.equivalent]):
            continue
        fates = _fates(options.tests or tests, real, options.jobs)
        if fates is None:
            return 1
        killed, tried = killed + _show(package, chosen, *fates), tried + len(fates[0])
    if options.list:
        return 0
    if not tried:
        print(f"No mutation contains {options.match!r}.")
        return 1
    print(f"all: {killed} of {tried} killed ({100 * killed / tried:.1f}%)")
    return int(killed < ENOUGH * tried)


def _fates(
    tests: list[str], mutations: list[Mutation], jobs: int
) -> tuple[list[Fate], float] | None:
    """What became of each mutation, and the seconds; None where the tests fail without any."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        first = Workplace(Path(folder) / "0")
        quickest = sorted({m.killed_by for m in mutations if m.killed_by})
        baseline = first.baseline(tests, quickest)
        if not baseline.passed:
            print(f"{first.log.read_text()}\nThe tests fail without a mutation: {baseline.failed}")
            return None
        free: SimpleQueue[Workplace] = SimpleQueue()
        for workplace in [first, *(Workplace(Path(folder) / str(n)) for n in range(1, jobs))]:
            workplace.limit = first.limit
            free.put(workplace)

        def tried(mutation: Mutation) -> Fate:
            workplace = free.get()
            try:
                outcome = workplace.outcome(mutation, tests)
            finally:
                free.put(workplace)
            said = "SURVIVED" if outcome.passed else "killed"
            print(
                _line(
                    said, mutation, outcome.failed and f"{outcome.seconds:.0f} s, {outcome.failed}"
                ),
                flush=True,
            )
            return mutation, outcome

        pool = ThreadPoolExecutor(jobs)
        try:
            fates = list(pool.map(tried, mutations))
        finally:
            pool.shutdown(cancel_futures=True)
    return fates, time.monotonic() - started


def _show(package: str, chosen: list[Mutation], fates: list[Fate], seconds: float) -> int:
    """Print the package's table; returns how many were killed."""
    equivalent = [m for m in chosen if m.equivalent]
    survived = [m for m, outcome in fates if outcome.passed]
    killed = len(fates) - len(survived)
    print(
        f"{package}: {killed} of {len(fates)} killed ({100 * killed / max(len(fates), 1):.1f}%), "
        f"{len(survived)} survived, {len(equivalent)} equivalent, {seconds:.0f} s"
    )
    for mutation in survived:
        print(_line("survived", mutation))
    for mutation in equivalent:
        print(_line("equivalent", mutation, mutation.equivalent))
    return killed


def _line(said: str, mutation: Mutation, more: str = "") -> str:
    return f"  {said:10} {mutation.file}: {mutation.why}" + (f"  ({more})" if more else "")


if __name__ == "__main__":
    sys.exit(main())
