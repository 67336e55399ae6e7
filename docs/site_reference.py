"""The pages of the site with every public name, from the table of them and its docstrings."""

import dataclasses
import inspect
import re
from pathlib import Path

import netmargin as nm
from netmargin.core.records import Shown

PACKAGES = {
    "bounds": "Generalization bounds",
    "callbacks": "Callbacks of training loops",
    "datasets": "Data sets",
    "estimators": "Estimators for scikit-learn",
    "figures": "Pictures",
    "flow": "Gradient flow and descent",
    "kernels": "Kernels",
    "losses": "Losses",
    "models": "Models",
    "papers": "Figures of the papers",
    "solvers": "Solvers",
    "theory": "Claims of the papers",
    "twolayer": "Two-layer nets",
}
"""The packages with a page of their own, and their titles."""
GROUPS = {
    "Margins": ("analyse", "measure", "input_margins", "compare", "MarginReport", "InputMargins"),
    "Training": ("train", "maximize_margin", "gradient_flow", "regularization_path"),
    "In your own loop": ("Watch", "RelativeLoss", "load_weights", "save_weights"),
    "On several processes": ("split_samples",),
    "Certificates and radii": ("certify", "tangent_svm", "robustness"),
    "Pages and files": ("page", "load"),
}
"""The names of netmargin itself that are looked for first; the others follow by the alphabet."""


def write_reference(folder: Path) -> None:
    """Write a page for netmargin itself, one for each package, and their table of contents."""
    folder.mkdir(exist_ok=True)
    packages = {name for name in nm.__all__ if inspect.ismodule(getattr(nm, name))}
    missing = packages ^ set(PACKAGES)
    assert not missing, f"docs/site_reference.py: {missing} without a title"
    named = [name for names in GROUPS.values() for name in names]
    groups = GROUPS | {"More": tuple(n for n in nm.__all__ if n not in {*named, *packages})}
    parts = [
        f"## {title}\n\n" + "\n".join(_describe("netmargin", name) for name in names)
        for title, names in groups.items()
    ]
    _write(folder / "netmargin.md", "# netmargin\n\n" + "\n".join(parts))
    for package, title in PACKAGES.items():
        module = getattr(nm, package)
        own = [n for n in dir(module) if _is_own(getattr(module, n, None), n, module.__name__)]
        # What netmargin itself has, too, is described there.
        names = [n for n in getattr(module, "__all__", own) if n not in nm.__all__]
        text = "\n".join(_describe(f"netmargin.{package}", name) for name in names)
        intro = f"```{{eval-rst}}\n.. automodule:: netmargin.{package}\n   :no-members:\n```\n"
        _write(folder / f"{package}.md", f"# {title}: nm.{package}\n\n{intro}\n{text}")
    pages = "\n".join(["netmargin", *PACKAGES])
    _write(folder / "index.md", f"# Reference\n\n```{{toctree}}\n{pages}\n```\n")


def prepare_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Turn docstrings, written to be read as they are, into text that Sphinx takes for such."""
    code = False
    for number, line in enumerate(lines):
        # An example ends at the next empty line.
        code = bool(line.strip()) and (code or line.lstrip().startswith(">>>"))
        if not code:
            lines[number] = _escape(line)


def _escape(line: str) -> str:
    """Norms, products and trailing underscores as they stand; what is in backticks is code."""
    parts = re.split(r"(`[^`]*`)", line)
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"(?<!\\)([|*])", r"\\\1", parts[index])
        parts[index] = re.sub(r"(\w)_(?=\W|$)", r"\1\\_", parts[index])
    return "".join(parts)


def _describe(module: str, name: str) -> str:
    """The directive for one name."""
    thing = getattr(__import__(module, fromlist=[name]), name)
    kind = "class" if inspect.isclass(thing) else "function" if callable(thing) else "data"
    kind = "exception" if kind == "class" and issubclass(thing, BaseException) else kind
    members = "\n   :members:" if kind == "class" else ""
    if inspect.isclass(thing) and issubclass(thing, Shown):  # its docstring says what fields are
        names = ", ".join(field.name for field in dataclasses.fields(thing))
        members += f"\n   :exclude-members: {names}"
    return f"```{{eval-rst}}\n.. auto{kind}:: {module}.{name}{members}\n```\n"


def _is_own(thing: object, name: str, module: str) -> bool:
    """Whether a module without a table of its names defines this public one itself."""
    return not name.startswith("_") and getattr(thing, "__module__", "") == module


def _write(path: Path, text: str) -> None:
    """Write a page where it has changed: Sphinx reads no other anew."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
