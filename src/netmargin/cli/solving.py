"""`netmargin solve`."""

import argparse
import json
from functools import partial
from typing import Any

from ..errors import DataError
from . import inputs


def solve(options: argparse.Namespace) -> int:
    """Solve, print the bracket, and write the arrays if asked to; 1 where no answer was found."""
    import numpy as np

    from .. import solvers

    X, y = inputs.arrays(options.data)
    long = options.problem in ("f1", "interpolate")
    if options.time_limit and not long:
        raise DataError("--time-limit is for f1 and interpolate; the other problems are solved at once.")
    if options.soft and options.problem != "f1":
        raise DataError("--soft is for f1. For kernels use netmargin.estimators, or solvers.kernel_soft_margin.")
    if options.out and not options.out.absolute().parent.is_dir():
        raise DataError(f"The folder of --out {options.out} does not exist. Make it first.")
    bias = options.problem in ("f1", "f2", "interpolate") if options.bias is None else options.bias
    watched = {"time_limit": options.time_limit, "progress": not options.json} if long else {}
    solve: dict[str, Any] = {
        "f1": partial(solvers.f1_soft_margin, C=options.soft) if options.soft else solvers.f1_max_margin,
        "f2": solvers.f2_max_margin,
        "ntk": solvers.ntk_max_margin,
        "linear": solvers.linear_max_margin,
        "interpolate": solvers.min_norm_interpolation,
    }
    solution = solve[options.problem](X, y, bias=bias, **watched)
    kept = (
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
    result = {name: getattr(solution, name) for name in kept if hasattr(solution, name)} | {"status": str(solution.status)}
    result["samples it rests on"] = int((solution.dual != 0).sum())
    if hasattr(solution, "atoms"):
        result["neurons"] = len(solution.weights)
    if options.out:
        arrays: dict[str, Any] = {k: v for k, v in vars(solution).items() if isinstance(v, np.ndarray)}
        np.savez(options.out, **arrays)
    # That no function takes the values is an answer, if it is proved.
    failed = int(getattr(solution, "norm", 0.0) == np.inf and not solution.certified)
    if options.json:
        finite = {
            k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in result.items()
        }  # JSON knows no infinity
        print(json.dumps(finite | {"dual": solution.dual.tolist()}, indent=2))
        return failed
    for name, value in result.items():
        print(f"{name.replace('_', ' '):20} {value:.10g}" if isinstance(value, float) else f"{name.replace('_', ' '):20} {value}")
    return failed
