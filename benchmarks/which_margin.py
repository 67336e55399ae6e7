"""Which margin should one compare nets by? Each against test errors of nets that fit their data.

    python -m benchmarks.which_margin [--only TEXT] [--budget-s S] [--jobs N] [--nets FILE]
    python -m benchmarks.which_margin --analyse

trains and measures the nets that FILE lacks, one JSON line each, in an order in which results of
both data sets are there whenever it is stopped; then, or with --analyse at once, it rewrites the
tables of docs/comparing.md and its picture. Training ends at a given loss, but at the latest after
12 CPU seconds, so on other machines a few nets end elsewhere.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from joblib import Parallel, delayed

import netmargin as nm
from netmargin.core.files import write_atomically

from .nets_of_the_study import Setting, list_settings, study_net
from .page_of_the_study import draw_ranking, fill_page, make_populations

DOCS = Path(__file__).parents[1] / "docs"
NETS = DOCS / "data" / "which_margin.jsonl"
"""The records behind the page."""
PAGE = DOCS / "comparing.md"


def read_nets(path: Path) -> list[dict]:
    """The records of a file, none where it is not there; a line cut off by a kill is left out."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]


def as_line(record: dict) -> str:
    """A record as one line of JSON."""
    return json.dumps(record, separators=(",", ":")) + "\n"


def run(path: Path, *, only: str, budget: float, jobs: int) -> None:
    """Train and measure what the file lacks, and append one line per net as soon as it is known."""
    known = read_nets(path)
    # Written anew, so that no line follows one that was cut off.
    write_atomically(path, "".join(map(as_line, known)).encode())
    there = [Setting(*record["setting"]) for record in known]
    left = [s for s in list_settings() if s not in there and only in s.key]
    started = time.monotonic()

    def next_settings() -> Iterator[Setting]:
        for setting in left:
            if time.monotonic() - started > budget:
                return
            yield setting

    # One at a time to each process: what is handed out early would be done after the budget.
    work = Parallel(jobs, return_as="generator", pre_dispatch=jobs, batch_size=1)
    for record in work(delayed(study_net)(setting) for setting in next_settings()):
        with path.open("a") as file:
            file.write(as_line(record))
        numbers = record["numbers"]
        print(
            Setting(*record["setting"]).key,
            f"{record['epochs']} epochs, {record['seconds']} CPU s,",
            *(f"{name} {numbers[name]:.4g}" for name in ("train loss", "test error")),
            flush=True,
        )


def write_page(nets: Path, page: Path) -> None:
    """Write the tables of the page, and the picture beside it, from the records."""
    populations = make_populations(read_nets(nets))
    page.write_text(fill_page(page.read_text(), populations))
    draw_ranking(populations, page.with_name("which_margin.png"))


def main(arguments: Sequence[str] = ()) -> None:
    """Go on with the study, and write its page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", default="", help="nets whose settings hold this text: cifar10/cnn"
    )
    parser.add_argument("--budget-s", type=float, default=3600, help="start no net after this")
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--nets", type=Path, default=NETS, help="file of the records")
    parser.add_argument("--page", type=Path, default=PAGE, help="page whose tables are rewritten")
    parser.add_argument("--analyse", action="store_true", help="train nothing")
    options = parser.parse_args(arguments)
    try:
        if not options.analyse:
            run(options.nets, only=options.only, budget=options.budget_s, jobs=options.jobs)
    except nm.DataError as error:
        print(f"left out: {error}")
        return
    write_page(options.nets, options.page)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
