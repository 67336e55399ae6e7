"""The table of items of the papers: what it names is there, and its counts are those of its rows."""

import re
from collections import Counter

import pytest

from netmargin.papers.contents import list_figures
from netmargin.papers.ledger.verification import find_claims
from netmargin.theory import CLAIMS
from tests.docs_blocks import ROOT

PAGE = (ROOT / "docs/papers.md").read_text()
ITEMS = {"Lyu and Li 2019": 60, "The Ubiquity of 2-Homogeneity, 2024": 27, "Wei et al. 2018": 74}
ITEMS |= {"Wei et al. 2019": 40, "Chizat and Bach 2020": 46}
VERDICTS = ["faithful", "weakened", "toy scale only", "missing", "wrong", "background"]


NUMBERED = re.compile(
    r"\b(Theorem|Lemma|Corollar|Proposition|Definition|Claim|Remark|Assumption|Example)\w*"
    r"((?:,? (?:and |to )?(?:[A-Z]\.)?\d+(?:\.\d+)?\b(?: \([^)]*\))?)+)"
)
"""A kind of statement and its numbers, as in "Theorems 2.1 (lower half) and B.1"."""
CITED = re.compile(
    r"(Lyu and Li|Wei et al\.|Chizat and Bach|;) (20\d\d), ([^;\"]*?)(?:[;\"]|\. |$)"
)


def read_cells(text: str) -> list[list[str]]:
    """The rows of a table below its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


TABLES = {part.partition("\n")[0]: read_cells(part) for part in PAGE.split("\n## ")[1:]}


def test_every_item_has_a_row_with_a_verdict_and_what_is_left_out_a_reason():
    assert {paper: len(rows) for paper, rows in TABLES.items()} == ITEMS
    for item, _, held, verdict, reason in (row for rows in TABLES.values() for row in rows):
        assert verdict in VERDICTS, item
        assert reason or verdict == "faithful", item
        assert held != "-" or verdict != "faithful", item


def list_statements(text: str) -> set[tuple[str, str]]:
    """The statements that a text names, such as ("Lemma", "C.8")."""
    return {
        (kind, number)
        for kind, said in NUMBERED.findall(text)
        for number in re.findall(r"(?:[A-Z]\.)?\d+(?:\.\d+)?", re.sub(r"\([^)]*\)", "", said))
    }


def test_what_docstrings_and_claims_cite_is_an_item():
    """A wrong number or a lemma that is a claim in its paper stands in no table."""
    known = {
        paper: {s for row in rows for s in list_statements(row[0])}
        for paper, rows in TABLES.items()
    }
    cited, unknown = set(), set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        for short, paper in {"{W18}": "Wei et al. 2018", "{W19}": "Wei et al. 2019"}.items():
            text = text.replace(short, paper)
        text = " ".join(re.sub(r'"\s*\n\s*f?"', "", text).split())
        for author, year, said in CITED.findall(text):
            # "Wei et al. 2018, ...; 2019, ..." is one source.
            paper = f"{'Wei et al.' if author == ';' else author} {year}"
            for statement in list_statements(said) if paper in known else ():
                cited.add(statement)
                if statement not in known[paper]:
                    unknown.add((path.name, paper, *statement))
    assert len(cited) > 50
    assert not unknown


def test_the_counts_are_those_of_the_rows():
    counted = [[paper, Counter(row[3] for row in rows)] for paper, rows in TABLES.items()]
    counted.append(["all", sum((counts for _, counts in counted), Counter())])
    expected = [[name, *(counts[v] for v in VERDICTS), counts.total()] for name, counts in counted]
    head = read_cells(PAGE.partition("\n## ")[0])
    assert head == [[str(cell) for cell in row] for row in expected]


@pytest.mark.parametrize("paper", ITEMS)
def test_every_claim_figure_test_and_file_that_is_named_exists(paper):
    known = {*CLAIMS, *list_figures()}
    for _, where, held, _, _ in TABLES[paper]:
        for name in re.findall(r"`([^`]+)`", where):
            assert (ROOT / "src/netmargin" / name).is_file(), name
        for name in re.findall(r"`([^`]+)`", held):
            assert name in known or (ROOT / name).is_file(), name
        assert re.sub(r"`[^`]+`", "", where + held).strip(" ,-") == ""


@pytest.mark.parametrize("paper", ITEMS)
def test_a_lemma_of_an_appendix_is_found_by_its_number(paper):
    """`netmargin verify --list "lyu-li C.8"` names the claim that the table names."""
    start = {"Lyu": "lyu-li", "The": "two-homogeneity", "Wei": "wei", "Chi": "chizat-bach"}
    for item, _, held, _, _ in TABLES[paper]:
        claims = {name for name in held.split("`") if name in CLAIMS}
        if claims and re.match(r"Lemma|Theorem|Corollar|Claim|Proposition|Remark", item):
            for number in re.findall(r"\b[A-Z]\.\d+", item):
                found = {claim.id for claim in find_claims([f"{start[paper[:3]]} {number}"])}
                assert found & claims, number


def test_every_claim_and_figure_holds_an_item():
    named = {name for rows in TABLES.values() for row in rows for name in row[2].split("`")}
    missing = {*CLAIMS, *list_figures()} - named
    assert not missing, "docs/papers.md names no item that they hold"
