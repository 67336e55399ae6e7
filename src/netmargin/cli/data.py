"""The verb `netmargin data show`: samples of the distributions and image sets."""

import argparse
import sys
from collections.abc import Callable

from .. import datasets
from ..core.files import make_folder
from . import inputs
from .printing import as_json

HELP = "The papers' distributions and the image sets: what they are, a picture, samples as arrays."

_DISTRIBUTIONS: dict[str, Callable] = {
    "clusters": lambda o: datasets.clusters(o.n, o.d, k=o.k, seed=o.seed),
    "gaussian-xor": lambda o: datasets.gaussian_xor(o.n, o.d, seed=o.seed),
    "hypercube": lambda o: datasets.hypercube(o.n, o.d, seed=o.seed),
    "teacher": lambda o: datasets.teacher(o.n, o.d, units=o.units, margin=o.margin, seed=o.seed),
    "parity": lambda o: datasets.parity(o.d, o.k, o.n, seed=o.seed),
    "alternating": lambda o: datasets.alternating(o.n),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `show`, and its arguments: a data set and its parameters."""
    shown = parser.add_subparsers(metavar="show", required=True).add_parser(
        "show", help=HELP, description=HELP
    )
    shown.add_argument("name", choices=(*_DISTRIBUTIONS, *datasets.BY_NAME))
    shown.add_argument(
        "--n", type=inputs.positive(int), help="samples (default: 256; of parity all corners)"
    )
    shown.add_argument("--d", type=inputs.positive(int), default=15, help="dimension (default: 15)")
    shown.add_argument(
        "--k",
        type=inputs.positive(int),
        default=3,
        help="clusters per side; bits of the parity (default: 3)",
    )
    shown.add_argument(
        "--units", type=inputs.positive(int), default=10, help="of the teacher (default: 10)"
    )
    shown.add_argument(
        "--margin",
        type=inputs.positive(float),
        default=0.01,
        help="of the teacher, not normalized (default: 0.01)",
    )
    shown.add_argument("--seed", type=inputs.natural, default=0, help="default: 0")
    shown.add_argument("--out", type=inputs.folder, help="folder for points.npz and pictures")
    inputs.add_json(shown, "what they are")


def run(options: argparse.Namespace) -> None:
    """Draw samples, describe them, and write a picture and arrays if asked to."""
    import numpy as np

    name = options.name
    if options.out:
        make_folder(options.out)
    # Without a number, parity lists all corners of the cube.
    if options.n is None and name != "parity":
        options.n = 256
    X, y = (
        _DISTRIBUTIONS[name](options)
        if name in _DISTRIBUTIONS
        else datasets.BY_NAME[name](limit=options.n)
    )
    source = getattr(datasets, name.replace("-", "_"))
    classes, counts = np.unique(y.numpy(), return_counts=True)
    norms = X.reshape(len(X), -1).norm(dim=1)
    shown = {
        "name": name,
        # The function's own first sentence, so that there is one description only.
        "description": (source.__doc__ or "").strip().splitlines()[0],
        "samples": len(X),
        "shape": list(X.shape[1:]),
        "norms": [norms.min().item(), norms.max().item()],
        "classes": {
            str(int(label)): int(count) for label, count in zip(classes, counts, strict=True)
        },
    }
    if options.out:
        from ..drawing import draw_data

        paths = draw_data(X, y, options.out, title=name)
        inputs.save_arrays(options.out / "points.npz", X=X.numpy(), y=y.numpy())
        print(
            f"Written: {options.out}/ (points.npz, {', '.join(path.name for path in paths)})",
            file=sys.stderr,
        )
    if options.json:
        print(as_json(shown))
        return
    print(shown["description"])
    print(
        f"{len(X)} samples of shape {tuple(X.shape[1:])}, |x| from {norms.min():.4g} to"
        f" {norms.max():.4g}"
    )
    print("classes: " + ", ".join(f"{label}: {count}" for label, count in shown["classes"].items()))
