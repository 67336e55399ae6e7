"""The table of claimed ratios and the documents say the same."""

import pytest

from benchmarks.ratios import CLAIMS, SLACK, Claim, Ratio, describe
from tests.docs_blocks import ROOT


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.words)
def test_words_of_a_claim_stand_on_its_page(claim):
    page = " ".join((ROOT / claim.page).read_text().split())
    assert " ".join(claim.words.split()) in page


@pytest.mark.parametrize(
    ("ours", "holds"), [(2.0, True), (2.5, True), (2.0 * SLACK + 0.1, False), (1.5, False)]
)
def test_a_ratio_beyond_its_slack_differs(ours, holds):
    claim = Claim("docs/page.md", "2 times as long", "a peer", lambda: iter(()), ((2.0, 2.0),))
    assert ("holds" in describe(claim, 0, Ratio("fit", ours, 1.0))) is holds
