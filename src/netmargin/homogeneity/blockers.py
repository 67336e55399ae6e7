"""What keeps a net from being homogeneous, one line for each kind."""

import re
from collections.abc import Iterable

from .vocabulary import Blocker

_SHOWN_MODULES = 3
"""Modules that a line about many names, as a deep net has dozens of the same kind."""


def group_blockers(blockers: Iterable[Blocker]) -> list[str]:
    """One text for each kind of blocker, with the number of modules and the names of some."""
    kinds: dict[str, list[Blocker]] = {}
    for blocker in blockers:
        # The name of a parameter is all that differs within a kind.
        kinds.setdefault(re.sub(r"\bbias '[^']*'", "its bias", blocker.reason), []).append(blocker)
    texts = []
    for reason, alike in kinds.items():
        # A module may have several parameters of one kind.
        modules = list(dict.fromkeys(blocker.module or "the model itself" for blocker in alike))
        where = ", ".join(modules)
        if len(modules) > _SHOWN_MODULES:
            where = ", ".join([*modules[: _SHOWN_MODULES - 1], "...", modules[-1]])
        if len(modules) > 1:
            where = f"{len(modules)} modules ({where})"
        instead = " or ".join(dict.fromkeys(blocker.replacement for blocker in alike))
        # Of a single one the name of its parameter can be told.
        told = alike[0].reason if len(alike) == 1 else reason
        texts.append(f"{where}: {told}. Instead: {instead}")
    return texts
