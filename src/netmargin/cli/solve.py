"""The verb `netmargin solve`: the largest margin that a class of predictors can have."""

import argparse
from pathlib import Path

from ..core.files import require_writable
from ..errors import NetmarginError
from ..result import Status
from . import inputs
from .printing import as_json

HELP = "The largest margin that a class of predictors can have, with a proved bound."
_SOLVERS = {
    "f1": "f1_max_margin",
    "f2": "f2_max_margin",
    "ntk": "ntk_max_margin",
    "linear": "linear_max_margin",
    "interpolate": "min_norm_interpolation",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments: a problem, its data and options of its solver."""
    parser.add_argument("problem", choices=_SOLVERS, help="of netmargin.solvers, see there")
    parser.add_argument("--data", required=True, help=inputs.FILES)
    parser.add_argument("--bias", action=argparse.BooleanOptionalAction, help="one in the norm")
    parser.add_argument("--time-limit", type=inputs.positive(float), metavar="SECONDS")
    parser.add_argument("--out", type=Path, help="file for the solution, which nm.load reads")
    inputs.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Solve, write the solution if asked to, and print it."""
    from .. import solvers

    if options.out:
        require_writable(options.out)
    solve = getattr(solvers, _SOLVERS[options.problem])
    given = {name: getattr(options, name) for name in ("bias", "time_limit")}
    given = {name: value for name, value in given.items() if value is not None}
    solution = solve(*inputs.arrays(options.data), **given)
    if options.out:
        solution.save(options.out)
    print(as_json(vars(solution)) if options.json else solution.summary())
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt("interrupted; this is the best bracket so far")
    if not solution.certified and not solution.gap < 1:  # nothing is attained
        raise NetmarginError(f"no answer was found: {solution.status}")
