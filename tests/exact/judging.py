"""Every door, and how answers to drawn calls are judged, in this process or in several."""

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
from .verdict import Door, Verdict

DOORS = {
    door.name: door
    for room in (linear, kernel, wide_kernels, neurons, narrow, radii, certificates, orders)
    for door in room.DOORS
}
_CHUNK = 20
"""Instances that a process takes at once."""


def draw(door: Door, seed: int, index: int) -> dict:
    """The arguments of one instance, which depend on nothing else."""
    return door.draw(np.random.default_rng([seed, zlib.crc32(door.name.encode()), index]))


def judge(door: Door, seed: int, index: int) -> Verdict:
    """Draw one instance, ask the library, and judge its answer.

    A refusal in the words of the library states nothing; any other error is a fault.
    """
    call = draw(door, seed, index)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return door.judge(call)
    except NetmarginError as error:
        return Verdict(type(error).__name__, False)
    except NotFiniteError as error:
        return Verdict("not finite", False, [str(error)])
    except Exception as error:  # whatever escapes a door
        return Verdict(type(error).__name__, False, [f"raised {type(error).__name__}: {error}"])


def schedule(names: list[str], instances: int, seed: int) -> Iterator[tuple[str, int]]:
    """Doors in random order by their shares, each with its own count of instances."""
    counts: collections.Counter = collections.Counter()
    shares = [DOORS[name].share for name in names]
    for name in random.Random(seed).choices(names, shares, k=instances):
        yield name, counts[name]
        counts[name] += 1


def judge_some(task: tuple[list[tuple[str, int]], int, float]) -> list[tuple]:
    """Judge a chunk of instances until the time is up: rows (door, index, verdict, seconds)."""
    chosen, seed, until = task
    rows = []
    for name, index in chosen:
        started = time.monotonic()
        if started > until:
            break
        rows.append((name, index, judge(DOORS[name], seed, index), time.monotonic() - started))
    return rows


def judge_all(
    names: list[str], instances: int, seed: int, jobs: int = 1, seconds: float = float("inf")
) -> Iterator[tuple]:
    """Judge instances of doors: rows as of `judge_some`, as they come."""
    until = time.monotonic() + seconds
    plan = schedule(names, instances, seed)
    tasks = ((chunk, seed, until) for chunk in iter(lambda: [*itertools.islice(plan, _CHUNK)], []))
    if jobs == 1:
        yield from itertools.chain.from_iterable(map(judge_some, tasks))
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for rows in pool.imap_unordered(judge_some, tasks):
            yield from rows
