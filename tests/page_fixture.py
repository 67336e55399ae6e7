"""Small real pages for tests: digits, a table, texts, all of it made in seconds."""

from functools import cache

import torch
from torch import nn

import netmargin as nm
from netmargin.page.collecting import Options, collect
from netmargin.page.facts import Facts
from netmargin.page.making import make_page
from netmargin.page.payload import Page
from netmargin.page.subject import read_given


def digits_data():
    """400 digits for training and 200 held-out ones."""
    return nm.datasets.digits(limit=400), nm.datasets.digits("test", limit=200)


@cache
def digits_net(epochs: int = 150) -> tuple[nn.Module, nm.History]:
    """A small net that separates the digits, and the history of its training."""
    torch.manual_seed(0)
    net = nm.models.mlp([64, 32, 10])
    history = nm.train(net, digits_data()[0], until=nm.Epochs(epochs), progress=False)
    return net, history


@cache
def digits_records() -> tuple:
    """A certificate, radii of 40 held-out digits, and the history."""
    net, history = digits_net()
    data, (X, y) = digits_data()
    certificate = nm.certify(net, data, max_constraints=400)  # of 3,600: half a second, not five
    radii = nm.robustness(net, (X[20:60], y[20:60]), box=(0, 1), progress=False)
    return certificate, radii, history


def facts_of(subject, data=None, heldout=None, records=(), **options) -> Facts:
    """What `nm.page` collects before it writes."""
    return collect(read_given(subject, records), data, heldout, Options(**options))


@cache
def full_facts() -> Facts:
    """Everything about the digits net, beside one that is trained less."""
    data, heldout = digits_data()
    nets = {"150 epochs": digits_net()[0], "3 epochs": digits_net(3)[0]}
    return facts_of(nets, data, heldout, records=digits_records())


@cache
def full_page() -> Page:
    """The page of `full_facts`, with every section."""
    return make_page(full_facts())


@cache
def plain_page() -> Page:
    """A page of training data alone: no switch, no error, everything else missing."""
    return make_page(facts_of(digits_net()[0], digits_data()[0]))


@cache
def table_page() -> Page:
    """A page of a table with two classes and named columns."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(120, 5, generator=generator)
    y = (X[:, 0] + 0.3 * torch.randn(120, generator=generator) > 0).long()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
    nm.train(net, (X, y), until=nm.Epochs(20), progress=False)
    names = ["age", "height", "weight", "pulse", "<b>dose</b>"]
    return make_page(facts_of(net, (X, y), feature_names=names, class_names=["no", "</script>"]))


class Constant(nn.Linear):
    """A net whose scores do not depend on the input: no change flips an answer."""

    def __init__(self, inputs: int, classes: int):
        super().__init__(inputs, classes)
        with torch.no_grad():
            self.weight.zero_()
            self.bias.copy_(-torch.arange(float(classes)))


@cache
def endless_page() -> Page:
    """A page whose distances and radii are infinite, right and wrong ones."""
    (X, y), net = nm.datasets.digits(limit=40), Constant(64, 10)
    radii = nm.robustness(net, (X, y), box=(0, 1), progress=False)
    return make_page(facts_of(net, (X, y), records=[radii]))


@cache
def many_classes_page() -> Page:
    """A page of two hundred classes of two samples each, most of them wrong, held-out data too."""
    generator = torch.Generator().manual_seed(0)
    X, y = torch.randn(400, 6, generator=generator), torch.arange(400) % 200
    torch.manual_seed(0)
    names = [f"species {number}" for number in range(200)]
    return make_page(facts_of(nn.Linear(6, 200), (X, y), (X, y), class_names=names))


def flipped_digits(limit: int = 400, flips: int = 40):
    """Digits of which some labels are wrong, and which these are."""
    X, y = nm.datasets.digits(limit=limit)
    generator, y = torch.Generator().manual_seed(0), y.clone()
    rows = torch.randperm(len(y), generator=generator)[:flips]
    y[rows] = (y[rows] + torch.randint(1, 10, (flips,), generator=generator)) % 10
    return (X, y), set(rows.tolist())


@cache
def labels_page() -> Page:
    """A page of digits with wrong labels that were searched for."""
    data, _ = flipped_digits()
    found = nm.label_errors(data)
    return make_page(facts_of(digits_net()[0], data, digits_data()[1], records=found))
