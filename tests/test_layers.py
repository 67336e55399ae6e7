"""No package imports `netmargin` itself; `make lint` holds that each imports those below it."""

import grimp


def test_nothing_inside_imports_the_public_names():
    graph = grimp.build_graph("netmargin", cache_dir=None)
    importing = sorted(graph.find_modules_that_directly_import("netmargin"))
    assert not importing, (
        f"{importing} import `netmargin` itself. Inside the package, import the module that"
        " holds the name, relatively: `from ...datasets import parity`."
    )
