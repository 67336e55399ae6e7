"""Arguments that many functions share are described in the words of docs/conventions.md."""

import inspect
import re

from tests.docs_blocks import ROOT
from tests.test_seeds import public_callables

MEANINGS = {
    # name: (its type, the sentence)
    "seed": (r"int, default [01]", r"Seed of "),
    "seeds": (r"sequence of int, default \(0,\)", r"Seeds of "),
    "tol": (
        r"float, default [0-9.e-]+",
        r"(Relative gap|Gap) .*up to which (the status|complete|a radius)",
    ),
    "time_limit": (r"float, (optional|default 5.0)", r"Seconds after which "),
    "progress": (r"bool, default (True|False)", r"Whether to show .* as they come"),
    "folder": (r"str(, Path or None, default None| or Path)", r"Folder for "),
    "checkpoint_dir": (r"str or path, optional", r"Folder for "),
    "out": (
        r'str or Path(, default "(runs/reproduce|page.html)")?',
        r"(Folder (for all|that `reproduce`)|The file to write) ?",
    ),
}


def shared_arguments():
    """Public functions by name, with an argument that others have as well."""
    for name, function in public_callables().items():
        try:
            taken = inspect.signature(function).parameters
        except ValueError:  # of C
            continue
        for argument in MEANINGS:
            if argument in taken:
                yield name, function, argument


def description_of(function, argument):
    """The type and the text of an argument in a docstring, or in one that it refers to."""
    text = inspect.getdoc(function) or ""
    found = re.search(rf"^{argument} : (.+)\n((?:    .+\n)+)", text, re.MULTILINE)
    if found:
        return found[1], " ".join(found[2].split())
    named = {name.rpartition(".")[2]: other for name, other in public_callables().items()}
    for name in re.findall(r"`(\w+)`", text):
        other = named.get(name)
        if other not in (None, function) and re.search(
            rf"^{argument} : ", inspect.getdoc(other) or "", re.MULTILINE
        ):
            return description_of(other, argument)
    raise AssertionError(f"{argument} is not described in\n{text}")


def test_shared_arguments_are_described_in_the_shared_words():
    for name, function, argument in shared_arguments():
        kind, sentence = MEANINGS[argument]
        shown, text = description_of(function, argument)
        assert re.fullmatch(kind, shown), (name, argument)
        assert re.match(sentence, text), (name, argument)


def test_the_conventions_explain_every_shared_argument():
    page = (ROOT / "docs" / "conventions.md").read_text()
    table = page.split("## Arguments that many functions share")[1].split("\n## ")[0]
    explained = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]+)\|", table, re.M))))
    assert explained == set(MEANINGS)
