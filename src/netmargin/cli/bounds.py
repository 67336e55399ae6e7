"""The verb `netmargin bounds`: generalization bounds of the best predictors on the data."""

import argparse
import math
import warnings
from typing import Any

from ..core.deadline import Deadline
from ..errors import ArgumentError
from ..result import Status
from . import inputs
from .printing import as_json

HELP = (
    "Bounds of the test error of the best two-layer net and kernel predictor on the data, with"
    " their terms and assumptions."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: data, and what is known about their distribution."""
    parser.add_argument(
        "--data", required=True, help=".npz file with arrays X (n, d) and y (two labels)"
    )
    parser.add_argument(
        "--bias",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="a bias that counts in the norm",
    )
    parser.add_argument(
        "--radius",
        type=inputs.positive(float),
        help="bound of |x| over the distribution, with the bias (default: of the samples)",
    )
    parser.add_argument(
        "--delta",
        type=inputs.positive(float),
        default=0.05,
        help="bounds hold with probability 1 - delta (default: 0.05)",
    )
    parser.add_argument(
        "--time-limit",
        type=inputs.positive(float),
        default=60.0,
        metavar="SECONDS",
        help="for all of it (default: 60)",
    )
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print bounds of the test error of the best two-layer net and the best kernel predictor on the
    data, and how far its classes are apart in few dimensions.
    """
    import numpy as np

    from .. import bounds, kernels, solvers

    if options.delta >= 1:
        raise ArgumentError(f"--delta must be below 1; got {options.delta}")
    X, y = inputs.arrays(options.data)
    deadline, views = Deadline(options.time_limit), range(1, min(3, X.shape[1]) + 1)
    # Parts of the time: the kernel, the net, all distances together. What one does not need is
    # there for the next.
    f2 = solvers.f2_max_margin(X, y, bias=options.bias, time_limit=deadline.share(3))
    _stop_if_interrupted(f2)
    f1 = solvers.f1_max_margin(
        X, y, bias=options.bias, time_limit=deadline.share(2), progress=not options.json
    )
    _stop_if_interrupted(f1)
    _warn_of_time({"F_1": f1, "F_2": f2}, options.time_limit)
    # The bias is a coordinate of the inputs, and counts in their norm as in that of weights.
    Z = np.hstack([X, np.ones((len(X), 1))]) if options.bias else np.asarray(X, dtype=np.float64)
    longest = float(np.linalg.norm(Z, axis=1).max())
    radius, labels = options.radius or longest, np.where(np.asarray(y).reshape(-1) > 0, 1, -1)
    found = {}
    if f1.margin > 0:
        q = labels * f1.decision_function(X)
        found["the best two-layer net (Wei et al. 2018, Theorem 3.1)"] = bounds.two_layer_bound(
            q, Z, radius=radius, delta=options.delta
        )
    if f2.margin > 0:
        largest, K = radius / math.sqrt(2 * Z.shape[1]), kernels.arc_cosine(X, bias=options.bias)
        q = labels * f2.decision_function(K)
        found["the best kernel predictor, F_2 (Lemma 3.4)"] = bounds.kernel_bound(
            q, K, largest=largest, delta=options.delta
        )
    both = len(set(labels.tolist())) == 2
    distances = {}
    for r in views if both else ():
        limit = deadline.share(len(views) - r + 1)
        distances[r] = bounds.interclass_distance(X, y, r, time_limit=limit)
        _stop_if_interrupted(distances[r])
    if any(d.status is Status.TIME_LIMIT for d in distances.values()):
        warnings.warn(
            f"the search for the best views was stopped at its part of --time-limit"
            f" {options.time_limit:g}; brackets of distances are valid, and can improve with a"
            " higher limit",
            UserWarning,
            stacklevel=2,
        )
    if options.json:
        result = {
            "margins": {"f1": f1.margin, "f1_upper_bound": f1.upper_bound, "f2": f2.margin},
            "radius": radius,
            "bounds": [_describe_bound(name, bound) for name, bound in found.items()],
            "interclass_distance": {r: [d.distance, d.upper_bound] for r, d in distances.items()},
        }
        print(as_json(result))
        return
    _print_results(f1, f2, options.radius, radius, found, distances)


def _stop_if_interrupted(found: Any) -> None:
    """Raise KeyboardInterrupt where Ctrl-C ended a search: it is meant for all of them."""
    if found.status is Status.INTERRUPTED:
        raise KeyboardInterrupt


def _warn_of_time(solutions: dict[str, Any], limit: float) -> None:
    """Warn where a search for a margin was stopped by the time limit."""
    late = [name for name, found in solutions.items() if found.status is Status.TIME_LIMIT]
    if late:
        warnings.warn(
            f"the search for the margin of {' and of '.join(late)} was stopped at its part of"
            f" --time-limit {limit:g}; bounds are of the best found by then, and can improve with a"
            " higher limit",
            UserWarning,
            stacklevel=3,
        )


def _describe_bound(name: str, bound: Any) -> dict:
    """The entry of a bound for JSON."""
    return {
        "of": name,
        "value": bound.value,
        "vacuous": bound.vacuous,
        "terms": [{"term": term, "value": value} for term, value in dict(bound.terms).items()],
        "assumptions": list(bound.assumptions),
    }


def _print_results(
    f1: Any, f2: Any, given: float | None, radius: float, found: dict, distances: dict
) -> None:
    """Print margins, the radius where none was given, bounds and distances, for a reader."""
    print(f"margins: F_1 {f1.margin:.6g} (at most {f1.upper_bound:.6g}), F_2 {f2.margin:.6g}")
    if not given:
        print(
            f"radius {radius:.4g}: that of the samples; give --radius if the distribution reaches"
            " further"
        )
    if not found:
        print(
            "No net and no kernel predictor separates these samples, so there is no margin to bound"
            " an error by."
        )
        print(f1.note)
    for name, b in found.items():
        print(f"\ntest error of {name}: {b.summary()}")
    for r, d in distances.items():
        print(
            f"\nclasses are {d.distance:.4g} apart in the best {r}-dimensional view found (at most"
            f" {d.upper_bound:.4g})",
            end="",
        )
    print()
