"""Packages import packages below them, without a circle, and none imports `netmargin` itself."""

from pathlib import Path

import grimp
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parent.parent


def test_packages_import_packages_below_them_and_there_is_no_circle():
    assert (
        lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
        == EXIT_STATUS_SUCCESS
    )


def test_nothing_inside_imports_the_public_names():
    graph = grimp.build_graph("netmargin", cache_dir=None)
    importing = sorted(graph.find_modules_that_directly_import("netmargin"))
    assert not importing, (
        f"{importing} import `netmargin` itself. Inside the package, import the module that"
        " holds the name, relatively: `from ...datasets import parity`."
    )
