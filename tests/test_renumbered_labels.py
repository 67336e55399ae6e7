"""Labels that number the classes otherwise than the net are recognized, and no others."""

import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.margins.mistakes import doubt_split, find_renumbering

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


def test_a_net_at_chance_has_other_inputs_or_labels():
    always_0 = nn.Linear(5, 5)
    torch.nn.init.zeros_(always_0.weight)
    always_0.bias.data.copy_(torch.eye(5)[0])
    for heldout in (None, False, True):
        said = nm.measure(always_0, (torch.eye(5)[CLASSES], CLASSES), heldout=heldout).summary()
        assert "make sure that inputs are scaled as in training" in " ".join(said.split())


def test_a_swap_of_training_and_heldout_samples_is_seen_beyond_chance():
    of = {n: torch.arange(100) < n for n in (0, 5, 9, 10)}
    # Of two hundred samples of which ten are wrong all are in one half by 0.08%, of nine by 0.18%.
    said = "0 of 100 held-out samples are wrong, and 10 of 100 training samples"
    assert doubt_split(of[10], of[0]).startswith(said)
    for training, heldout in ((9, 0), (10, 5), (0, 10), (0, 0)):
        assert not doubt_split(of[training], of[heldout])
    net = nn.Linear(5, 5, bias=False)
    net.weight.data.copy_(torch.eye(5))
    X = torch.eye(5)[CLASSES]
    training, heldout = (X, (CLASSES + of[10].long()) % 5), (X + 1e-3, CLASSES)
    found = nm.compare({"a": net, "b": net}, training, heldout, progress=False)
    told = " ".join(found.summary().split())
    assert "a: 0 of 100 held-out samples are wrong, and 10 of 100 training" in told
    assert "swapped" not in nm.compare([net, net], heldout, training, progress=False).summary()


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
