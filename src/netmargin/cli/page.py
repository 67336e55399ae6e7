"""The verb `netmargin page`: everything about a saved run in one file for the browser."""

import argparse
from pathlib import Path
from typing import Any

from .. import datasets
from ..errors import ArgumentError
from . import inputs
from .printing import as_json

HELP = "Everything about a run in the browser, in one file: images, margins, what training reached."
EPILOG = inputs.RECIPE_LIST


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: the folder of a run, its net and data where it does not name them."""
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="folder that train wrote")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the page (default: page.html in that folder)"
    )
    inputs.add_model(parser)
    names = ", ".join(datasets.BY_NAME)
    parser.add_argument(
        "--data", help=f"training data, if not those of the run: {names}, or an .npz file"
    )
    parser.add_argument("--limit", type=inputs.positive(int), help="class-balanced subset of them")
    parser.add_argument(
        "--heldout",
        help=f"held-out data: {names} (the test part), or an .npz file (default: the test part of"
        " the data of the run, where it has one)",
    )
    parser.add_argument(
        "--record",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a certificate, radii or a comparison that its method save wrote; may be repeated",
    )
    inputs.add_json(parser, "the file and its size")


def run(options: argparse.Namespace) -> None:
    """Write the page, and say where it is."""
    from ..page import page
    from ..page.runs import read_run

    found = read_run(options.run_folder)
    out = options.out or options.run_folder / "page.html"
    inputs.require_writable(out)
    if options.factory is None:
        own = found.made_by.get("factory")
        if own is not None and ":" in own:  # somebody's code, which is named by whoever runs it
            raise ArgumentError(
                f"{found.path} was trained with the net of {own!r}. Name it: --factory {own}"
            )
        model = found.make_model()
    else:
        model = found.load_into(inputs.model(options))
    data, heldout = _read_data(options, found.made_by)
    name = options.run_folder.resolve().name
    written = page(
        {name: model}, data, heldout, out=out, records=[str(found.path), *options.record]
    )
    if options.json:
        print(as_json({"path": written.path, "bytes": written.bytes}))
    else:
        print(f"Written: {written.path} ({written.bytes / 1000:,.0f} kB). Open it in a browser.")


def _read_data(options: argparse.Namespace, made_by: dict[str, Any]) -> tuple[Any, Any]:
    """The training data and the held-out data, or None. Raises DataError, ArgumentError."""
    same = options.data is None
    options.split = made_by.get("split", "train") if same else "train"
    options.data = options.data or made_by.get("data")
    limit = options.limit or (made_by.get("limit") if same else None)
    data = inputs.data(options, limit=limit)
    name = options.heldout
    if name is None and options.split == "train" and options.data in datasets.BY_NAME:
        name = options.data
    if name is None:
        return data, None
    if name in datasets.BY_NAME:
        return data, datasets.BY_NAME[name]("test")
    X, y = inputs.arrays(name)
    return data, (X.astype("float32") if X.dtype.kind == "f" else X, y)
