"""The papers' folders, listed nowhere else: `claims_*.py` hold claims, other modules figures."""

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.arguments import suggest_word
from ..errors import ArgumentError

# What all papers share, without a figure or claim of their own.
_ENGINES = ("gallery", "ledger")
_CLAIMS = "claims_"
_LISTS = {
    "claim": "`netmargin verify --list WORDS` searches what claims say and cite; docs/papers.md has"
    " every item of the papers.",
    "figure": "`netmargin reproduce --list` says more; claims are for `netmargin verify`.",
}
"""Where to look for one of a kind."""


def list_figures() -> tuple[str, ...]:
    """List the figures and tables of the papers that can be reproduced. Beyond the papers.

    An id is read off the place of its module: `lyu_li/fig1.py` holds "lyu-li/fig1".

    Returns
    -------
    tuple of str
        The ids in alphabetical order.

    Raises
    ------
    ImportError
        If a paper's folder cannot be read as a package.

    Examples
    --------
    >>> import netmargin as nm
    >>> [id for id in nm.papers.list_figures() if id.startswith("wei-2018/")]
    ['wei-2018/fig1', 'wei-2018/fig2', 'wei-2018/fig3', 'wei-2018/gap', 'wei-2018/table1']
    """
    modules = [found for found in _list_modules() if not found[1].startswith(_CLAIMS)]
    return tuple(f"{paper}/{name}".replace("_", "-") for paper, name in modules)


def choose(kind: str, wanted: Iterable[str], ids: Sequence[str]) -> list[str]:
    """The ids that are wanted, one by one, by their papers, or as "all". Raises ArgumentError."""
    words = [*ids, *dict.fromkeys(id.split("/")[0] for id in ids), "all"]
    for id in wanted:
        require_known(kind, id, ids, words)
    return [id for id in ids if {"all", id, id.split("/")[0]} & set(wanted)]


def require_known(kind: str, id: Any, ids: Sequence[str], words: Sequence[str]) -> None:
    """Raise ArgumentError where an id is none of the words; say which ids its paper has."""
    if isinstance(id, str) and id in words:
        return
    papers = list(dict.fromkeys(known.split("/")[0] for known in ids))
    paper = str(id).split("/")[0]
    own = [known for known in ids if known.startswith(f"{paper}/")]
    said = f"The ids are {', '.join(own)}." if own else f"The ids begin with {', '.join(papers)}."
    if kind == "claim" and id in list_figures():
        said = f"It is a figure: `netmargin reproduce {id}`."
    guess = suggest_word(id, words)
    guess += " " * bool(guess)
    raise ArgumentError(f"There is no {kind} {id!r}. {guess}{said} {_LISTS[kind]}")


def import_figure(id: str) -> ModuleType:
    """Import the module of a figure that `list_figures` lists."""
    paper, _, name = id.replace("-", "_").partition("/")
    return importlib.import_module(f"{__package__}.{paper}.{name}")


def import_claims() -> None:
    """Import every module with claims, so that each registers its own."""
    for paper, name in _list_modules():
        if name.startswith(_CLAIMS):
            importlib.import_module(f"{__package__}.{paper}.{name}")


def _list_modules() -> list[tuple[str, str]]:
    """List (paper, module) for every public module in the folder of a paper."""
    here = Path(__file__).parent
    papers = [found.name for found in pkgutil.iter_modules([str(here)]) if found.ispkg]
    return [
        (paper, module.name)
        for paper in papers
        if paper not in _ENGINES
        for module in pkgutil.iter_modules([str(here / paper)])
        if not module.name.startswith("_")
    ]
