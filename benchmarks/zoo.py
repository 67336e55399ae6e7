"""What `analyse` says of the nets that people have: kind, order, margin, time, memory, blockers.

    python -m benchmarks.zoo                    all nets, two at a time
    python -m benchmarks.zoo --only resnet bert nets whose names begin like this
    python -m benchmarks.zoo --jobs 4           four nets at a time

Every net runs in a process of its own, and its result is a line of runs/zoo.jsonl: a run that was
stopped goes on where it was. Delete that file to measure all nets anew. At the end it says how many
nets failed, and how many forward passes `analyse` took.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from .rows import add_row, read_rows
from .zoo_nets import ZOO

RESULTS = Path("runs/zoo.jsonl")
_TIME_LIMIT = 300
"""Seconds for one net: twenty times what the slowest should take, and one hang costs five minutes.
"""


def main(arguments: list[str] | None = None) -> None:
    """Measure the nets that have no result yet, and say what all have in common."""
    options = _parse(arguments or [])
    chosen = [
        name
        for name in ZOO
        if not options.only or name.lower().startswith(tuple(word.lower() for word in options.only))
    ]
    absent = [name for name in chosen if importlib.util.find_spec(ZOO[name].library) is None]
    for name in absent:
        print(f"skipped {name}: {ZOO[name].library} is not installed", flush=True)
    done = {row["name"]: row for row in read_rows(options.results)}
    left = [name for name in chosen if name not in done and name not in absent]
    with ThreadPoolExecutor(options.jobs) as pool:
        for future in as_completed([pool.submit(_measure_apart, name) for name in left]):
            result = future.result()
            add_row(options.results, result)
            done[result["name"]] = result
            print(_in_a_line(result), flush=True)
    results = [done[name] for name in ZOO if name in done]
    print(_summarize(results))


def _parse(arguments: list[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="nets whose names begin so")
    parser.add_argument("--jobs", type=int, default=2, help="nets at a time (default 2)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of JSON lines")
    return parser.parse_args(arguments)


def _measure_apart(name: str) -> dict:
    """The result of one net, from a process of its own: what it breaks is its own."""
    # One thread each: times over times of the same process do not depend on its neighbours.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "benchmarks.zoo_net", name]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIME_LIMIT, env=environment
        )
    except subprocess.TimeoutExpired:
        return {"name": name, "error": f"not finished after {_TIME_LIMIT} s"}
    if run.returncode:
        last = (run.stderr.strip().splitlines() or ["no message"])[-1]
        return {"name": name, "error": f"exit status {run.returncode}: {last}"}
    return json.loads(run.stdout.splitlines()[-1])


def _in_a_line(result: dict) -> str:
    """A result as a line of the terminal."""
    if "error" in result:
        return f"{result['name']}: FAILED, {result['error']}"
    memory = "" if result["memory"] is None else f", {result['memory'] / 2**20:.0f} MB"
    return (
        f"{result['name']}: {result['kind']}, order {result['order']}, "
        f"{result['analyse_seconds'] / result['forward_seconds']:.1f} passes of"
        f" {result['batch']}{memory}, {result['evidence']}"
    )


def _summarize(results: list[dict]) -> str:
    """Kinds, failures, contradictions and cost of all nets in a few lines."""
    good = [row for row in results if "error" not in row]
    kinds = Counter(f"{row['kind']} of order {row['order']}" for row in good)
    against = [row["name"] for row in good if row["evidence"] == "contradicted"]
    lines = [
        f"{len(results)} nets, failed: {len(results) - len(good)}",
        ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()),
        f"derivation and numerical check disagree: {', '.join(against) or 'none'}",
    ]
    for batch in (16, 4):
        rows = [row for row in good if row["batch"] == batch]
        passes = [row["analyse_seconds"] / row["forward_seconds"] for row in rows]
        if passes:
            lines.append(
                f"forward passes of {batch} samples, median / largest of {len(rows)}:"
                f" {statistics.median(passes):.1f} / {max(passes):.1f}"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
