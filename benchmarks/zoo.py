"""What `analyse` says of the nets that people have: kind, order, margin, time, memory, blockers.

    python -m benchmarks.zoo                    all nets, two at a time, and docs/zoo.md
    python -m benchmarks.zoo --only resnet bert nets whose names begin like this
    python -m benchmarks.zoo --jobs 4           four nets at a time

Every net runs in a process of its own, and its result is a line of runs/zoo.jsonl: a run that was
stopped goes on where it was. Delete that file to measure all nets anew. What `python -m
benchmarks.zoo_reports` wrote ends the page.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from .zoo_nets import ZOO
from .zoo_page import write_page
from .zoo_reports import REPORTS

RESULTS = Path("runs/zoo.jsonl")
PAGE = Path("docs/zoo.md")
_TIME_LIMIT = 300
"""Seconds for one net: twenty times what the slowest should take, and one hang costs five minutes.
"""


def main(arguments: list[str] | None = None) -> None:
    """Measure the nets that have no result yet, and write the page."""
    options = _parse(arguments or [])
    chosen = [
        name
        for name in ZOO
        if not options.only or name.lower().startswith(tuple(word.lower() for word in options.only))
    ]
    absent = [name for name in chosen if importlib.util.find_spec(ZOO[name].library) is None]
    for name in absent:
        print(f"skipped {name}: {ZOO[name].library} is not installed", flush=True)
    done = read_results(options.results)
    left = [name for name in chosen if name not in done and name not in absent]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with (
        ThreadPoolExecutor(options.jobs) as pool,
        open(options.results, "a", encoding="utf-8") as file,
    ):
        for future in as_completed([pool.submit(_measure_apart, name) for name in left]):
            result = future.result()
            file.write(json.dumps(result) + "\n")
            file.flush()
            done[result["name"]] = result
            print(_in_a_line(result), flush=True)
    results = [done[name] for name in ZOO if name in done]
    reports = REPORTS.read_text(encoding="utf-8") if REPORTS.exists() else ""
    write_page(options.page, results, absent, reports)
    print(f"{len(results)} nets in {options.page}")


def read_results(path: Path) -> dict[str, dict]:
    """The results of a file of JSON lines by the net's name; none where there is no file."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["name"]: row for row in rows}


def _parse(arguments: list[str]) -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="nets whose names begin so")
    parser.add_argument("--jobs", type=int, default=2, help="nets at a time (default 2)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of JSON lines")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
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


if __name__ == "__main__":
    main(sys.argv[1:])
