"""Records in notebooks: small tables that say what the records say, readable on any ground."""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import netmargin as nm
from netmargin.core.records import Certainty, Table
from tests.page_fixture import digits_data, digits_net, digits_records


class Cells(HTMLParser):
    """The rows of a table as lists of texts, and the styles of all elements."""

    def __init__(self, text: str):
        super().__init__()
        self.rows, self.styles, self.tags = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.styles.append(dict(attributes).get("style", ""))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows:
            self.rows[-1][-1] += data if self.rows[-1][-1] == "" else f" {data}"

    def by_name(self) -> dict[str, list[str]]:
        return {row[0]: row[1:] for row in self.rows}


def down(value: float) -> str:
    """A number below 1 and above 0.1 with four digits, rounded down, as bounds are."""
    return f"{math.floor(value * 1e4) / 1e4:.4g}"


def shown() -> dict[str, tuple]:
    """Records, and rows that their tables hold."""
    certificate, radii, history = digits_records()
    net, (data, heldout) = digits_net()[0], digits_data()
    report = nm.measure(net, heldout, input_margins=True)
    wrong = int((report.q <= 0).sum())
    comparison = nm.compare({"a": net, "<b>": digits_net(3)[0]}, data, heldout, progress=False)
    X = np.array([[2.0, 0.0], [0.0, -2.0], [3.0, 1.0]])
    solution = nm.solvers.linear_max_margin(X, np.array([1, -1, 1]))
    distances = report.input_margins.distances
    quarter = np.quantile(distances, 0.25)
    typical = distances[report.q > 0].median().item()
    return {
        "report": (
            report,
            {
                "wrong": f"{wrong} of 200, {wrong / 2:.2f}% Measured",
                "distance to the boundary": f"{typical:.4g} for a typical right sample Estimated",
            },
        ),
        "input margins": (
            report.input_margins,
            {"distance, 25% quantile": f"{quarter:.4g} Estimated"},
        ),
        "certificate": (
            certificate,
            {
                "relative epsilon": f"{certificate.relative_epsilon:.4g} Measured",
                "no multipliers give less than": f"{down(certificate.epsilon_lower / certificate.norm)} Proved",
            },
        ),
        "radii": (
            radii,
            {
                "the answer stays up to, median": f"{down(np.median(radii.lower[radii.q > 0]))} Proved"
            },
        ),
        "history": (
            history,
            {"150": f"{history.rows[-1]['log10_mean_loss']:.4g}".replace("-", "−")},
        ),
        "comparison": (
            comparison,
            {
                "margin-weighted error Measured": f"{comparison.reports[0].margin_weighted_error:.4g}"
            },
        ),
        "solution": (
            solution,
            {
                "upper bound of the margin": f"{math.ceil(solution.upper_bound * 1e3) / 1e3:.4g} Proved",
                "certified": "yes",
            },
        ),
    }


@pytest.mark.slow
def test_notebooks_show_the_numbers_of_records_with_their_labels():
    for name, (record, rows) in shown().items():
        cells = Cells(record._repr_html_())
        for head, value in rows.items():
            assert cells.by_name()[head][0] == value, name
        # The colours of text and ground are the notebook's, but for the one label that has both.
        for style in cells.styles:
            colours = re.findall(r"(?<![-\\w])(?:color|background):([^;]+)", style)
            own = set(colours) <= {"inherit", "transparent"}
            assert own or colours == ["#0b6b5d", "#fff"], style
        assert cells.tags <= {"table", "caption", "tr", "th", "td", "span", "div"}


def test_records_without_a_table_of_their_own_show_their_fields():
    net = nm.solvers.ReLUMeasure(atoms=np.ones((2, 3)), weights=np.ones(2), bias=False)
    assert net.summary().splitlines()[:3] == ["ReLUMeasure", "  atoms    2 x 3", "  weights  2"]
    assert "2 x 3</td>" in net._repr_html_()
    assert nm.History()._repr_html_()  # without rows


def test_text_is_plain_and_aligned():
    rows = [("a", ("−1", Certainty.MEASURED)), ("longer", ("–", Certainty.PROVED)), "why"]
    lines = Table("title", [*rows, ("HEAD",)], notes=["note"], warning="wrong").text().splitlines()
    expected = ["WARNING: wrong", "title", "  a       -1 (measured)", "  longer  none", "    why"]
    assert lines == [*expected, "", "HEAD", "note"]


def test_texts_of_tables_are_escaped():
    nasty = "<img src=x onerror=alert(1)>"
    table = Table(nasty, [(nasty, (nasty, Certainty.PROVED))], [nasty, nasty], [nasty])
    assert "img" not in Cells(table.html()).tags
    assert table.html().count("&lt;img") == 6
