"""Labels that number the classes otherwise than the net are recognized, and no others."""

import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.margins.mistakes import find_renumbering

CLASSES = torch.arange(5).repeat(20)
ANSWERS = torch.cat([CLASSES[:-6], (CLASSES[-6:] + 1) % 5])  # six of a hundred are wrong
SIGNS = torch.arange(100) % 2
CYCLE = torch.tensor([1, 2, 0, 3, 4])
CASES = {
    "label - 1, 6 of": (CLASSES + 1, ANSWERS),
    "label + 1, 6 of": (CLASSES, ANSWERS + 1),
    "2 as 4, 4 as 2, 6 of": (torch.tensor([0, 1, 4, 3, 2])[CLASSES], ANSWERS),
    "0 as 2, 1 as 0, 2 as 1, 6 of": (CYCLE[CLASSES], ANSWERS),
    "0 as 1, 1 as 0, 10 of": (SIGNS, torch.cat([SIGNS[:10], 1 - SIGNS[10:]])),
}


@pytest.mark.parametrize("said", CASES)
def test_other_numbers_of_the_classes_are_named(said):
    assert f"with {said} 100 are wrong" in find_renumbering(*CASES[said], str)


def test_ordinary_mistakes_are_no_other_numbers():
    generator = torch.Generator().manual_seed(0)
    for classes, n in ((2, 40), (2, 400), (3, 60), (10, 1000)):
        labels, answers = (torch.randint(classes, (n,), generator=generator) for _ in "ab")
        assert not find_renumbering(labels, answers, str)
        assert not find_renumbering(labels, torch.zeros_like(labels), str)
    assert not find_renumbering(CLASSES, ANSWERS, str)


def test_reports_and_pages_say_it_within_one_screen(tmp_path):
    net = nn.Linear(5, 5, bias=False)
    net.weight.data.copy_(torch.eye(5))
    X, y = torch.eye(5).repeat(8, 1), torch.arange(5).repeat(8)
    shifted = X[y < 4], y[y < 4] + 1
    said = nm.measure(net, shifted, input_margins=True, heldout=True).summary()
    assert "with label - 1, 0 of 32 are wrong" in " ".join(said.split())
    assert len(said.splitlines()) <= 12
    words = [("no", "yes", "maybe", "often", "never")[c] for c in y]  # not in the alphabet's order
    with pytest.warns(UserWarning, match="The labels are text"):
        said = " ".join(nm.measure(net, (X, words)).summary().split())
    assert "with maybe as 2, never as 4, no as 0, yes as 1, 0 of 40 are wrong" in said
    page = nm.page(net, None, shifted, out=tmp_path / "page.html")
    assert "with label - 1, 0 of 32 are wrong" in page.path.read_text()
