"""The kept records of figures that take hours belong to today's figures and bear them out."""

import json
from pathlib import Path

import pytest

from netmargin.papers import SCALES
from netmargin.papers.gallery.figure import figure

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = [json.loads(file.read_text()) for file in sorted(DOCS.glob("long-runs/*.json"))]
CASES = [(id, record) for record in RECORDS for id in record["figures"]]


@pytest.mark.parametrize(("id", "record"), CASES, ids=[f"{id}-{r['scale']}" for id, r in CASES])
def test_the_record_of_a_figure(id, record):
    known, scale = figure(id), record["scale"]
    settings = known.scales[scale]
    assert scale not in SCALES
    assert record["settings"] == settings
    runs = known.runs(settings)
    rows = [row for run in runs for row in record["rows"] if run.items() <= row.items()]
    assert len(rows) == len(runs)
    pages = (DOCS / "gallery.md").read_text() + (DOCS / "long-runs.md").read_text()
    for check in known.check(settings, rows):
        assert check.holds, check.sentence
        assert check.sentence in pages
    assert len(known.draw(settings, rows).axes) > 0


def test_the_last_level_of_the_paper_is_reached():
    deep = next(record for record in RECORDS if record["scale"] == "deep")
    row = next(row for row in deep["rows"] if row["rate"] == "loss-based")
    assert [look["level"] for look in row["looks"] if look["level"]] == [
        -10,
        -15,
        -20,
        -120,
        -881.5,
    ]
    assert row["log10_loss"] <= -881.5
    assert row["curve"]["log10_loss"][-1] <= -881.5


def test_a_table_without_the_ascent():
    """The paper's own CNN is not ascended: that would take longer than its training."""
    table, deep = figure("lyu-li/table1"), RECORDS[0]
    (run,) = table.runs(table.scales["wide"])
    rows = [row for row in deep["rows"] if run.items() <= row.items()]
    assert all(found.holds for found in table.check(deep["settings"], rows))
    shown = [
        cell.get_text().get_text()
        for cell in table.draw(deep["settings"], rows).axes[0].tables[0].get_celld().values()
    ]
    assert "model-5" in shown
    assert "maximize_margin" not in shown
