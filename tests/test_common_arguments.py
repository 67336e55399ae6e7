"""Arguments that many functions share mean the same in each: docs/conventions.md says what, and every
docstring says it in the same words.
"""

import inspect
import re

import pytest

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
    """Pairs of a public function and a name that it shares with others."""
    for name, function in public_callables().items():
        try:
            taken = inspect.signature(function).parameters
        except ValueError:  # of C
            continue
        for argument in MEANINGS:
            if argument in taken:
                yield pytest.param(function, argument, id=f"{name}-{argument}")


@pytest.mark.parametrize(("function", "argument"), list(shared_arguments()))
def test_a_shared_argument_is_described_in_the_shared_words(function, argument):
    kind, sentence = MEANINGS[argument]
    text = inspect.getdoc(function) or ""
    found = re.search(rf"^{argument} : (.+)\n((?:    .+\n)+)", text, re.MULTILINE)
    assert found, text
    assert re.fullmatch(kind, found[1]), found[1]
    assert re.match(sentence, " ".join(found[2].split())), found[2]


def test_the_conventions_explain_every_shared_argument():
    page = (ROOT / "docs" / "conventions.md").read_text()
    table = page.split("## Arguments that many functions share")[1].split("\n## ")[0]
    explained = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]+)\|", table, re.M))))
    assert explained == set(MEANINGS)
