"""The parser of the command line: every verb with its arguments, and help with examples."""

import argparse
import platform
import re
from importlib.metadata import version
from typing import Any, NoReturn

from ..core.arguments import suggest_word
from ..version import __version__
from . import (
    analyse,
    certify,
    compare,
    labels,
    measure,
    page,
    reproduce,
    robustness,
    solve,
    train,
    verify,
)

VERBS = {
    "measure": measure,
    "compare": compare,
    "labels": labels,
    "page": page,
    "certify": certify,
    "robustness": robustness,
    "analyse": analyse,
    "train": train,
    "solve": solve,
    "verify": verify,
    "reproduce": reproduce,
}
"""The verbs in the order of the help. Each is a module with HELP, add_arguments(parser) and
run(options), which returns an exit code or None for 0.
"""

_EXAMPLES = """
  netmargin measure net.safetensors --factory mypackage:make_model --data points.npz --heldout
  netmargin compare old.pt new.pt --factory mypackage:make_model --data points.npz --heldout
  netmargin page net.pt --factory mypackage:make_model --data train.npz --heldout test.npz
  netmargin labels --data embeddings.csv --out suspicious.csv
  netmargin analyse --factory mypackage:make_model --shape 3,32,32
  netmargin robustness net.pt --factory mypackage:make_model --data points.npz --limit 100
  netmargin train digits-mlp --until-log10-loss -40
  netmargin page runs/digits-mlp --out digits.html
  netmargin certify runs/digits-mlp/model.safetensors --factory digits-mlp --data digits
  netmargin solve linear --data points.npz --out solution.pt
  netmargin verify lyu-li/sandwich wei
  netmargin reproduce chizat-bach/fig2d --scale laptop
"""
_EXIT_CODES = (
    "exit codes: 0 done, 1 the work failed (it says why), 2 wrong usage, 130 interrupted by Ctrl-C"
)


def _tell_examples(verb: str = "") -> str:
    """The examples of a verb, or of all, and the exit codes."""
    some = [line for line in _EXAMPLES.splitlines() if f"netmargin {verb}" in line]
    return "\n".join(["examples:", *some, "", _EXIT_CODES])


class _Parser(argparse.ArgumentParser):
    """A parser that says what was meant by a word that it does not know."""

    stray = ""  # what is said of a word too many

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all words, or exit with the usage of the verb that was named."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            hint = "" if rest[0].startswith("-") else self.stray
            self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 after a message, which ends with the nearest choice if there is one."""
        found = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message)
        choices = [word.strip("' ") for word in found[2].split(",")] if found else []
        hint = suggest_word(found[1], choices) if found else ""
        super().error(f"{message}. {hint}" if hint else message)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the whole command line; parsed options hold the action as `run`."""
    form = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="netmargin",
        description="Measure, maximize and certify the margins of neural networks.",
        epilog=_tell_examples(),
        formatter_class=form,
    )
    shown = (
        f"netmargin {__version__} (torch {version('torch')}, Python {platform.python_version()})"
    )
    parser.add_argument("--version", action="version", version=shown)
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=_Parser)
    for name, verb in VERBS.items():
        epilog = "\n\n".join(filter(None, [getattr(verb, "EPILOG", ""), _tell_examples(name)]))
        sub = verbs.add_parser(
            name, help=verb.HELP, description=verb.HELP, epilog=epilog, formatter_class=form
        )
        sub.set_defaults(run=verb.run)
        sub.stray = getattr(verb, "STRAY", "")
        verb.add_arguments(sub)
    return parser
