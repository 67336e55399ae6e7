"""`netmargin robustness`."""

import argparse
import json
import sys

from ..training import load_weights
from ..training.checkpoint import write_atomically
from . import inputs


def robustness(options: argparse.Namespace) -> None:
    """Certified and attacked radii of a saved net, as text, JSON, CSV and a curve."""
    from .. import figures
    from ..l2_robustness import robustness as radii

    model = inputs.model(options)
    load_weights(model, options.weights)
    report = radii(
        model,
        inputs.data(options, limit=options.limit),
        box=options.box,
        attacks=() if options.certified_only else options.attacks,
        carlini_wagner_steps=options.carlini_wagner_steps,
        batch_size=options.batch_size,
        folder=options.out and options.out / "batches",
        progress=not options.quiet,
    )
    if options.out:
        write_atomically(options.out / "robustness.json", json.dumps(report.to_dict(), indent=2).encode())
        write_atomically(options.out / "radii.csv", report.table().to_csv(index_label="sample").encode())
        drawn = figures.draw_robustness({"": report}, options.out)
        print(f"Written: {options.out}/ (robustness.json, radii.csv, {', '.join(p.name for p in drawn)})", file=sys.stderr)
    print(json.dumps(report.to_dict(), indent=2) if options.json else report.summary())
