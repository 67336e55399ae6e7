"""What the documents show works: Python blocks run, and command lines are taken."""

import argparse
import re
import runpy
from unittest import mock

import pytest

import netmargin as nm
from netmargin import cli
from netmargin.theory import CLAIMS
from tests.docs_blocks import ROOT, blocks_of, commands_of, paste

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TIMED = {"README.md", "theory.md", "tour.md"}
"""Documents with blocks that take longer than seconds."""
NIGHTLY = {"cluster.md", "label-errors.md", "page.md", "theory.md", "tour.md", "training-loops.md"}
"""Documents that take long, and show what the README and other tests show too."""
OF_FRAMEWORKS = {"training-loops.md"}
"""Documents with blocks that need Lightning and transformers."""


def python_blocks(path):
    return [block for block in blocks_of(path) if block.language == "python"]


def marks_of(name):
    """Which run a document belongs to."""
    named = {"nightly": NIGHTLY, "integrations": OF_FRAMEWORKS}
    return [getattr(pytest.mark, mark) for mark, names in named.items() if name in names]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.name, marks=marks_of(path.name))
        for path in DOCUMENTS
        if python_blocks(path)
    ],
)
def test_python_blocks_run_as_they_are(path, tmp_path, monkeypatch):
    """At a prompt of their own, line by line; `python -m tests.docs_blocks` shows the times."""
    monkeypatch.chdir(tmp_path)
    pasted = []
    blocks = python_blocks(path)
    with mock.patch.dict(CLAIMS):  # one is added by docs/extending.md
        paste(blocks, lambda block, *_: pasted.append(block))
    assert pasted == blocks


def test_only_timed_documents_state_times():
    """A block that says how long it takes is in a document that is named here."""
    stated = {
        path.name
        for path in DOCUMENTS
        for block in python_blocks(path)
        if block.text.startswith("# about")
    }
    assert stated == TIMED


class Parsed(BaseException):
    """Raised in the place of the work that a command line asks for."""


COMMANDS = [(path.name, command) for path in DOCUMENTS for command in commands_of(path)]


@pytest.mark.parametrize(
    ("name", "command"),
    COMMANDS,
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_command_lines_are_ones_that_the_command_takes(name, command, monkeypatch):
    parse = argparse.ArgumentParser.parse_args

    def only_parse(self, *given, **named):
        parse(self, *given, **named)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    with pytest.raises(Parsed):
        cli.main(command)


def test_a_command_line_that_is_not_taken_is_seen():
    assert len(COMMANDS) > 10
    with pytest.raises(SystemExit):
        cli.main(["measure", "--no-such-option"])


LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|\{doc\}`[^<`]*<([^>`]+)>`")
GENERATED = ("auto_examples/", "reference/")
"""Folders that `make docs` writes."""


def anchors_of(path):
    """The anchors of the headings of a page."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    """On the site `make docs` follows all of them, with tests.site_links."""
    found = [a or b for a, b in LINK.findall(path.read_text())]
    for link in found:
        if link.startswith(("http://", "https://", *GENERATED)):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors_of(target), link


def test_the_examples_of_the_site_are_those_that_it_names():
    for path in DOCUMENTS:
        for name in re.findall(r"auto_examples/(plot_\w+)", path.read_text()):
            assert (ROOT / "examples" / f"{name}.py").exists(), name


def test_every_page_is_in_the_contents_of_the_site():
    """Sphinx warns of others, and `make docs` fails."""
    listed = set((ROOT / "docs" / "index.md").read_text().split())
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert not pages - listed


def test_every_public_name_gets_its_page_of_the_site(tmp_path):
    """A package without a title ends `make docs`, and so does a name that is gone."""
    write = runpy.run_path(str(ROOT / "docs" / "site_reference.py"))["write_reference"]
    write(tmp_path)
    text = "".join(path.read_text() for path in tmp_path.glob("*.md"))
    for name in nm.__all__:
        assert f"netmargin.{name}\n" in text, name
