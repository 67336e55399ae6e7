"""`netmargin data show`."""

import argparse
import sys
from collections.abc import Callable

from .. import datasets
from ..errors import DataError

DRAWN: dict[str, Callable] = {
    "clusters": lambda o: datasets.clusters(o.n, o.d, k=o.k, seed=o.seed),
    "gaussian-xor": lambda o: datasets.gaussian_xor(o.n, o.d, seed=o.seed),
    "hypercube": lambda o: datasets.hypercube(o.n, o.d, seed=o.seed),
    "teacher": lambda o: datasets.teacher(o.n, o.d, units=o.units, margin=o.margin, seed=o.seed),
    "parity": lambda o: datasets.parity(o.d, o.k, o.n, seed=o.seed),
    "alternating": lambda o: datasets.alternating(o.n),
}


def show(options: argparse.Namespace) -> None:
    """Draw samples, describe them, and write a picture and arrays if asked to."""
    import numpy as np

    name = options.name
    if options.seed < 0:
        raise DataError(f"--seed must be at least 0; got {options.seed}")
    if options.n is None and name != "parity":
        options.n = 256
    X, y = DRAWN[name](options) if name in DRAWN else datasets.BY_NAME[name](limit=options.n)
    print((DRAWN_DOCS[name] if name in DRAWN else datasets.BY_NAME[name].__doc__ or "").strip().splitlines()[0])
    classes, counts = np.unique(y.numpy(), return_counts=True)
    flat = X.reshape(len(X), -1)
    print(f"{len(X)} samples of shape {tuple(X.shape[1:])}, |x| from {flat.norm(dim=1).min():.4g} to {flat.norm(dim=1).max():.4g}")
    print("classes: " + ", ".join(f"{int(c)}: {count}" for c, count in zip(classes, counts, strict=True)))
    if options.out:
        from ..figures import draw_data

        try:
            paths = draw_data(X, y, options.out, title=name)
            np.savez(options.out / "points.npz", X=X.numpy(), y=y.numpy())
        except OSError as error:
            raise DataError(f"Cannot write to {options.out}: {error.strerror}.") from error
        print(f"Written: {options.out}/ (points.npz, {', '.join(path.name for path in paths)})", file=sys.stderr)


DRAWN_DOCS = {name: getattr(datasets, name.replace("-", "_")).__doc__ or "" for name in DRAWN}
