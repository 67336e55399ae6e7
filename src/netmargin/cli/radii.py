"""`netmargin robustness`."""

import argparse
import json
import sys

from ..errors import DataError
from ..margins import measure
from ..training import load_weights
from ..training.checkpoint import write_atomically
from . import inputs


def robustness(options: argparse.Namespace) -> None:
    """Certified and attacked radii of saved nets, as text, JSON, CSV and curves."""
    from .. import figures
    from ..l2_robustness import RobustnessReport
    from ..l2_robustness import robustness as radii

    if len(set(options.weights)) < len(options.weights):
        raise DataError(f"The same file is named twice: {', '.join(options.weights)}.")
    model, data = inputs.model(options), inputs.data(options, limit=options.limit)
    reports: dict[str, RobustnessReport] = {}
    results: dict[str, dict] = {}
    for index, weights in enumerate(options.weights):
        load_weights(model, weights)
        reports[weights] = radii(
            model,
            data,
            box=options.box,
            attacks=() if options.certified_only else options.attacks,
            carlini_wagner_steps=options.carlini_wagner_steps,
            batch_size=options.batch_size,
            folder=options.out and options.out / f"batches-{index}",
            progress=not options.quiet,
        )
        margins = measure(model, data).to_dict()
        normalized = {name: margins[name] for name in ("normalized_margin", "layer_normalized_margin")}
        results[weights] = normalized | reports[weights].to_dict()
        if not options.json:
            shown = ", ".join(f"{name} {'none' if value is None else format(value, '.4g')}" for name, value in normalized.items())
            print(f"{weights}: {shown}\n{reports[weights].summary()}", flush=True)
    if options.out:
        write_atomically(options.out / "robustness.json", json.dumps(results, indent=2).encode())
        for index, report in enumerate(reports.values()):
            write_atomically(options.out / f"radii-{index}.csv", report.table().to_csv(index_label="sample").encode())
        drawn = figures.draw_robustness(reports, options.out)
        tables = ", ".join(f"radii-{index}.csv" for index in range(len(reports)))
        print(f"Written: {options.out}/ (robustness.json, {tables}, {', '.join(p.name for p in drawn)})", file=sys.stderr)
    if options.json:
        print(json.dumps(results, indent=2))
