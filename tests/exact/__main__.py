"""Judge answers of the library in exact arithmetic: `python -m tests.exact --instances 1000`.

Each instance is a call of one entry (a function of the library) with drawn data, half of them
spiteful. The answer is judged statement by statement, floats taken as the rationals that they are.
The table says how many were certified, and how many statements are false; each of these comes with
a line that repeats it alone. The exit code is 1 where there is any.
"""

import argparse
import collections
import sys

from .judging import ENTRIES, draw, judge, judge_all


def table(rows: list[tuple]) -> str:
    """Entries and statuses with their instances, certified ones, violations and seconds."""
    lines = [
        f"{'entry':16}{'status':20}{'instances':>10}{'certified':>10}{'violations':>11}{'s':>8}"
    ]
    groups = collections.defaultdict(list)
    for name, _, verdict, seconds in rows:
        groups[name, verdict.status].append((verdict, seconds))
    order = {name: place for place, name in enumerate(ENTRIES)}
    for (name, status), group in [
        *sorted(groups.items(), key=lambda item: (order[item[0][0]], item[0][1])),
        (("all", ""), [(verdict, seconds) for _, _, verdict, seconds in rows]),
    ]:
        certified = sum(verdict.certified for verdict, _ in group)
        false = sum(bool(verdict.faults) for verdict, _ in group)
        spent = sum(seconds for _, seconds in group)
        lines.append(f"{name:16}{status:20}{len(group):10,}{certified:10,}{false:11,}{spent:8.1f}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.exact", description=__doc__)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument(
        "--only", metavar="ENTRY", help=f"of {', '.join(ENTRIES)}; or their beginning"
    )
    parser.add_argument("--index", type=int, help="this instance of the entry alone, in full")
    options = parser.parse_args(arguments)
    names = [name for name in ENTRIES if name.startswith(options.only or "")]
    if options.only in ENTRIES:
        names = [options.only]
    if not names or (options.index is not None and len(names) > 1):
        parser.error(f"no such entry: {options.only}")
    if options.index is not None:
        entry = ENTRIES[names[0]]
        for name, value in draw(entry, options.seed, options.index).items():
            print(f"{name} = {value!r}")
        verdict = judge(entry, options.seed, options.index)
        print(verdict.status, "certified" if verdict.certified else "", *verdict.faults, sep="\n  ")
        return int(bool(verdict.faults))
    rows = []
    for row in judge_all(names, options.instances, options.seed, options.jobs, options.seconds):
        rows.append(row)
        name, index, verdict, _ = row
        for fault in verdict.faults:
            print(
                f"--only {name} --index {index} --seed {options.seed}: {verdict.status}"
                f"{', certified' * verdict.certified}: {fault}"[:300],
                flush=True,
            )
    print(table(rows))
    return int(any(verdict.faults for _, _, verdict, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
