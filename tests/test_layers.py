"""The house: rooms import rooms below them, no circle of imports, and nothing inside comes through
the public door.
"""

from pathlib import Path

import grimp
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parent.parent


def test_rooms_import_rooms_below_them_and_there_is_no_circle():
    assert (
        lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
        == EXIT_STATUS_SUCCESS
    )


def test_nothing_inside_imports_through_the_public_door():
    graph = grimp.build_graph("netmargin", cache_dir=None)
    through_the_door = sorted(graph.find_modules_that_directly_import("netmargin"))
    assert not through_the_door, (
        f"{through_the_door} import `netmargin` itself. Inside the package, import the module that"
        " holds the name, relatively: `from ...datasets import parity`."
    )
