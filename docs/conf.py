"""How Sphinx builds the site: `make docs`."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

from site_reference import prepare_docstring, write_reference  # noqa: E402

project, author = "netmargin", "the authors of netmargin"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "numpydoc",
]
html_theme, html_title, html_show_copyright = "furo", "netmargin", False
html_static_path: list[str] = []
html_extra_path = ["../examples/runs"]  # the page that an example wrote
exclude_patterns = ["data", "gallery/*.md"]
default_role = "code"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
numpydoc_show_class_members = False
autodoc_default_options = {  # what scikit-learn adds to its classes links to its own site
    "exclude-members": "set_fit_request, set_score_request, set_predict_request"
}
autodoc_typehints = "none"  # docstrings say them
copybutton_prompt_text = ">>> "
copybutton_exclude = ".linenos, .gp, .go"
nitpicky = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(__init__|hypercube|logit_scale|quasi_margin)\.py",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "show_memory": False,
    "remove_config_comments": True,
}


def setup(app):
    """Write the reference of every public name before Sphinx looks for pages."""
    app.connect("builder-inited", lambda app: write_reference(Path(app.srcdir) / "reference"))
    # Before numpydoc, which reads sections.
    app.connect("autodoc-process-docstring", prepare_docstring, priority=100)
