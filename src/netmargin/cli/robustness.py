"""The verb `netmargin robustness`: certified and attacked radii of saved nets."""

import argparse
from typing import Any

from ..core.files import make_folder, write_atomically
from ..errors import ArgumentError
from ..radii.chain_radii import EFFORTS
from ..result import Status
from . import inputs
from .printing import as_json, in_shell_words, say_written

HELP = "How far inputs must move in L2 to be misclassified: certified and attacked radii of nets."
EPILOG = inputs.RECIPE_LIST
_NORMALIZED = ("normalized_margin", "layer_normalized_margin")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: saved nets, data, and what to run."""
    several = "files with state dicts or checkpoints, such as one net at several times"
    parser.add_argument("weights", nargs="+", help=several)
    inputs.add_model(parser)
    inputs.add_samples(parser)
    inputs.add_options(
        parser,
        ("--box LOW HIGH", float, "range of the inputs, such as 0 1 for images (default: all)"),
        ("--certified-only", bool, "no attacks"),
        ("--effort", EFFORTS, "which certificates to try", "standard"),
        ("--tol", inputs.positive(float), "share of a radius that may be left open", 1e-3),
        ("--time-limit SECONDS", inputs.positive(float), "of each file's proofs (default: none)"),
        ("--batch-size", inputs.positive(int), "samples attacked at once", 100),
        ("--out", inputs.folder, "folder for results and curves"),
        ("--quiet", bool, "no progress line"),
    )
    inputs.add_json(parser, "the result, with medians of the right samples,")


def run(options: argparse.Namespace) -> None:
    """Print certified and attacked radii of saved nets; write them if asked to."""
    from .. import figures
    from ..margins import measure
    from ..radii import RobustnessReport, robustness as radii
    from ..training import load_weights

    if len(set(options.weights)) < len(options.weights):
        raise ArgumentError(f"The same file is named twice: {', '.join(options.weights)}.")
    if options.out:
        make_folder(options.out)
    model, data = inputs.model(options), inputs.data(options, limit=options.limit)
    reports: dict[str, RobustnessReport] = {}
    results: list[dict[str, Any]] = []
    # One net for all files: they must be of one architecture, whose radii can be compared.
    for weights in options.weights:
        load_weights(model, weights)
        reports[weights] = radii(
            model,
            data,
            box=options.box,
            attacks=not options.certified_only,
            effort=options.effort,
            tol=options.tol,
            time_limit=options.time_limit,
            batch_size=options.batch_size,
            progress=not options.quiet,
        )
        margins = measure(model, data).to_dict()
        normalized = {name: margins[name] for name in _NORMALIZED}
        results.append({"weights": weights} | normalized | reports[weights].to_dict())
        if not options.json:
            print(f"{weights}\n{in_shell_words(reports[weights].summary())}", flush=True)
        if reports[weights].status is Status.INTERRUPTED:  # meant for the nets to come, too
            break
    if options.out:
        write_atomically(options.out / "robustness.json", as_json(results).encode())
        tables = [options.out / f"radii-{index}.csv" for index in range(len(reports))]
        for path, report in zip(tables, reports.values(), strict=True):
            write_atomically(path, report.frame().to_csv(index_label="sample").encode())
        drawn = figures.draw_robustness(reports, options.out)
        say_written(options.out, "robustness.json", *tables, *drawn)
    if options.json:
        print(as_json(results))
    if reports[weights].status is Status.INTERRUPTED:
        raise KeyboardInterrupt("interrupted; nothing is kept without --out")
