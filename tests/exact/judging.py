"""Every entry, and how answers to drawn calls are judged, in this process or in several."""

import collections
import itertools
import multiprocessing
import random
import time
import warnings
import zlib
from collections.abc import Iterator

import numpy as np

from netmargin.errors import NetmarginError

from . import certificates, kernel, linear, narrow, neurons, orders, radii, wide_kernels
from .rational import NotFiniteError
from .verdict import Entry, Verdict

ENTRIES = {
    entry.name: entry
    for package in (linear, kernel, wide_kernels, neurons, narrow, radii, certificates, orders)
    for entry in package.ENTRIES
}
_CHUNK = 20
"""Instances that a process takes at once."""


def draw(entry: Entry, seed: int, index: int) -> dict:
    """The arguments of one instance, which depend on nothing else."""
    return entry.draw(np.random.default_rng([seed, zlib.crc32(entry.name.encode()), index]))


def judge(entry: Entry, seed: int, index: int) -> Verdict:
    """Judge the answer of the library to one instance; a refusal in words states nothing."""
    call = draw(entry, seed, index)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return entry.judge(call)
    except NetmarginError as error:
        return Verdict(type(error).__name__, False)
    except NotFiniteError as error:
        return Verdict("not finite", False, [str(error)])
    except Exception as error:  # whatever escapes a entry
        return Verdict(type(error).__name__, False, [f"raised {type(error).__name__}: {error}"])


def schedule(names: list[str], instances: int, seed: int) -> Iterator[tuple[str, int]]:
    """Entries in random order by their shares, each with its own count of instances."""
    counts: collections.Counter = collections.Counter()
    shares = [ENTRIES[name].share for name in names]
    for name in random.Random(seed).choices(names, shares, k=instances):
        yield name, counts[name]
        counts[name] += 1


def judge_some(task: tuple[list[tuple[str, int]], int, float]) -> list[tuple]:
    """Judge a chunk of instances until the time is up: rows (entry, index, verdict, seconds)."""
    chosen, seed, until = task
    rows = []
    for name, index in chosen:
        started = time.monotonic()
        if started > until:
            break
        rows.append((name, index, judge(ENTRIES[name], seed, index), time.monotonic() - started))
    return rows


def judge_all(
    names: list[str], instances: int, seed: int, jobs: int = 1, seconds: float = float("inf")
) -> Iterator[tuple]:
    """Judge instances of entries: rows as of `judge_some`, as they come."""
    until = time.monotonic() + seconds
    plan = schedule(names, instances, seed)
    tasks = ((chunk, seed, until) for chunk in iter(lambda: [*itertools.islice(plan, _CHUNK)], []))
    if jobs == 1:
        yield from itertools.chain.from_iterable(map(judge_some, tasks))
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for rows in pool.imap_unordered(judge_some, tasks):
            yield from rows
