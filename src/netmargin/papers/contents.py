"""What the papers' folders hold: a claim or a figure is found by being there, and listed nowhere
else.

Each paper has a folder. Its modules `claims_*.py` register claims (`ledger.claim`). Every other
module whose name does not begin with an underscore is a figure or table and defines `FIGURE`
(`gallery.figure`).
"""

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

_ENGINES = ("gallery", "ledger")
_CLAIMS = "claims_"


def list_figures() -> tuple[str, ...]:
    """Ids of all figures and tables, such as "lyu-li/fig1", in alphabetical order."""
    return tuple(
        f"{_spell(paper)}/{_spell(name)}"
        for paper, name in _list_modules()
        if not name.startswith(_CLAIMS)
    )


def import_figure(id: str) -> ModuleType:
    """The module of a figure that `list_figures` lists."""
    paper, _, name = id.replace("-", "_").partition("/")
    return importlib.import_module(f"{__package__}.{paper}.{name}")


def import_claims() -> None:
    """Import every module with claims, so that each registers its own."""
    for paper, name in _list_modules():
        if name.startswith(_CLAIMS):
            importlib.import_module(f"{__package__}.{paper}.{name}")


def _list_modules() -> list[tuple[str, str]]:
    """(paper, module) for every public module in the folder of a paper."""
    here = Path(__file__).parent
    papers = [found.name for found in pkgutil.iter_modules([str(here)]) if found.ispkg]
    return [
        (paper, module.name)
        for paper in papers
        if paper not in _ENGINES
        for module in pkgutil.iter_modules([str(here / paper)])
        if not module.name.startswith("_")
    ]


def _spell(name: str) -> str:
    """A module's name as ids spell it."""
    return name.replace("_", "-")
