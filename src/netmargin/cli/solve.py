"""The verb `netmargin solve`: the largest margin that a class of predictors can have."""

import argparse
import math
import sys
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..result import Status
from . import INTERRUPTED, inputs
from .printing import as_json

HELP = (
    "The largest margin that two-layer nets (f1), fixed-kernel or linear classifiers can have, with"
    " a proved bound."
)
_LIMITED, _SHOWN = ("f1", "f2", "ntk", "interpolate"), ("f1", "interpolate")
"""Problems that take a time limit, and those that show progress."""
_PRINTED = (
    "margin",
    "upper_bound",
    "objective",
    "norm",
    "lower_bound",
    "hinge",
    "residual",
    "local_gap",
    "gap",
    "certified",
    "seconds",
)
"""Fields of solutions that are printed, in this order, where a solution has them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: a problem and its data."""
    parser.add_argument(
        "problem",
        choices=("f1", "f2", "ntk", "linear", "interpolate"),
        help=(
            "variation norm, arc-cosine or tangent kernel, linear; least variation norm through"
            " real values y"
        ),
    )
    parser.add_argument(
        "--data",
        required=True,
        help=".npz file with arrays X (n, d) and y (two labels, or real values)",
    )
    parser.add_argument(
        "--bias",
        action=argparse.BooleanOptionalAction,
        help="a bias that counts in the norm (default: all but linear)",
    )
    parser.add_argument(
        "--soft",
        type=inputs.positive(float),
        metavar="C",
        help="soft margin with this cost of hinge loss (f1)",
    )
    parser.add_argument(
        "--time-limit",
        type=inputs.positive(float),
        metavar="SECONDS",
        help="return the best bracket found by then (all but linear)",
    )
    parser.add_argument(
        "--out", type=Path, help="write neurons, weights and dual weights to this .npz file"
    )
    inputs.add_json(parser, "the result, dual weights included,")


def run(options: argparse.Namespace) -> int:
    """Solve, print the bracket, and write the arrays if asked to.

    Returns the exit code: 0, 1 without an answer, 130 after Ctrl-C.
    """
    import numpy as np

    from .. import solvers

    if options.time_limit and options.problem not in _LIMITED:
        raise ArgumentError(
            f"--time-limit is for {', '.join(_LIMITED)}; a linear problem is solved at once."
        )
    if options.soft and options.problem != "f1":
        raise ArgumentError(
            "--soft is for f1. For kernels use netmargin.estimators, or solvers.kernel_soft_margin."
        )
    # Before the work, which may take minutes.
    if options.out:
        inputs.require_writable(options.out)
    X, y = inputs.arrays(options.data)
    bias = options.problem != "linear" if options.bias is None else options.bias
    limited = {"time_limit": options.time_limit} if options.problem in _LIMITED else {}
    shown = {"progress": not options.json} if options.problem in _SHOWN else {}
    solve: dict[str, Any] = {
        "f1": (
            partial(solvers.f1_soft_margin, C=options.soft)
            if options.soft
            else solvers.f1_max_margin
        ),
        "f2": solvers.f2_max_margin,
        "ntk": solvers.ntk_max_margin,
        "linear": solvers.linear_max_margin,
        "interpolate": solvers.min_norm_interpolation,
    }
    solution = solve[options.problem](X, y, bias=bias, **limited, **shown)
    result = {name: getattr(solution, name) for name in _PRINTED if hasattr(solution, name)} | {
        "status": str(solution.status)
    }
    if getattr(solution, "note", ""):  # which samples contradict each other, and what to do
        result["note"] = solution.note
    result["support_size"] = int((solution.dual != 0).sum())
    if hasattr(solution, "atoms"):
        result["neurons"] = len(solution.weights)
    if options.out:
        inputs.save_arrays(
            options.out, **{k: v for k, v in vars(solution).items() if isinstance(v, np.ndarray)}
        )
    if options.json:
        print(as_json(result | {"dual": solution.dual}))
    else:
        result["samples it rests on"] = result.pop("support_size")
        for name, value in result.items():
            print(
                f"{name.replace('_', ' '):20} {value:.10g}"
                if isinstance(value, float)
                else f"{name.replace('_', ' '):20} {value}"
            )
    return _choose_exit_code(solution)


def _choose_exit_code(solution: Any) -> int:
    """The exit code for a solution; says on stderr why it is not 0."""
    if solution.status == Status.INTERRUPTED:
        print("netmargin: interrupted; this is the best bracket so far", file=sys.stderr)
        return INTERRUPTED
    # What each problem is about: solutions of interpolation have no margin, and so on.
    value = next(
        getattr(solution, name)
        for name in ("norm", "objective", "margin")
        if hasattr(solution, name)
    )
    if not solution.certified and not (math.isfinite(value) and value > 0):
        print(f"netmargin: no answer was found: {solution.status}", file=sys.stderr)
        return 1
    return 0
