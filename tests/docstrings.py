"""Validates the docstrings of all public functions and classes by numpydoc: `python -m
tests.docstrings`, part of `make lint`.

A public function says what each parameter is, what it returns, what it raises, where it comes from
("Source: paper, theorem", or "Beyond the papers"), and shows an example that runs.
"""

import importlib
import inspect
import sys

from numpydoc.validate import validate

import netmargin as nm

PACKAGES = (
    "bounds",
    "datasets",
    "estimators",
    "figures",
    "flow",
    "kernels",
    "losses",
    "models",
    "papers",
    "solvers",
    "theory",
    "twolayer",
)

CHECKS = {
    "GL03",  # no double blank lines
    "GL07",  # sections in numpydoc's order
    "GL08",  # there is a docstring
    "SS03",  # the summary ends with a period
    "PR01",  # every parameter is documented
    "PR02",  # and no other
    "PR03",  # in the order of the signature
    "PR07",  # each with a description
    "PR09",  # that is a sentence
    "RT01",  # what is returned
    "RT03",  # with a description
    "EX01",  # an example
}

OF_FUNCTIONS_ONLY = {"PR01", "PR03", "RT01", "EX01"}


def list_public() -> dict[str, object]:
    """Every public function and class of this package by its full name."""
    found = {}
    for owner in (nm, *(getattr(nm, package) for package in PACKAGES)):
        for name in getattr(owner, "__all__", [n for n in vars(owner) if not n.startswith("_")]):
            thing = getattr(owner, name)
            is_code = inspect.isfunction(thing) or inspect.isclass(thing)
            # A flat module without a table of its own is public in what it defines, not in what it
            # imports.
            listed = hasattr(owner, "__all__") or getattr(thing, "__module__", "") == owner.__name__
            if is_code and listed and thing.__module__.startswith("netmargin"):
                found[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return found


def complaints(full_name: str, thing: object) -> list[str]:
    """What numpydoc, and our own two rules, find wrong with one docstring."""
    wanted = CHECKS if inspect.isfunction(thing) else CHECKS - OF_FUNCTIONS_ONLY
    found = [text for code, text in validate(full_name)["errors"] if code in wanted]
    doc = inspect.getdoc(thing) or ""
    if inspect.isfunction(thing):
        found += [] if "Raises\n------" in doc else ["No Raises section found"]
        found += (
            []
            if "Source:" in doc or "Beyond the papers" in doc
            else ["It does not say where it comes from (Source: ...)"]
        )
    return found


def main() -> int:
    """Print every complaint; 1 if there is one."""
    wrong = 0
    for full_name, thing in sorted(list_public().items()):
        importlib.import_module(thing.__module__)
        for text in complaints(full_name, thing):
            wrong += 1
            print(f"{full_name}: {text}")
    print(f"{wrong} complaints about {len(list_public())} docstrings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
