"""Input margins against closed forms and brute force, on every kind of net and data."""

import copy
import math

import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.margins.quantiles import quantiles
from netmargin.models import mlp
from tests.words import words_of


def measured(model, data, **given):
    return nm.input_margins(model, data, progress=False, **given)


class Tokens(nn.Module):
    """A net of token numbers: embeddings, one hidden layer over their mean, scores."""

    def __init__(self):
        super().__init__()
        self.embedding, self.hidden, self.head = (
            nn.Embedding(11, 6),
            nn.Linear(6, 9),
            nn.Linear(9, 4),
        )

    def forward(self, tokens):
        return self.head(torch.tanh(self.hidden(self.embedding(tokens).mean(1))))


@pytest.fixture
def trained():
    """A net that is wrong on some samples, and 30 samples of 5 classes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 5)).double()
    X = torch.randn(30, 6).double()
    y = model(X).argmax(1)
    y[:6] = (y[:6] + 1) % 5
    return model, (X, y)


@pytest.mark.parametrize("outputs", [1, 2, 7])
def test_linear_nets_are_exact(outputs):
    """Distances in closed form; at the foot points the scores of a linear net agree."""
    torch.manual_seed(0)
    model, X = nn.Linear(9, outputs).double(), torch.randn(50, 9).double()
    y = torch.randint(max(outputs, 2), (50,))
    found = measured(model, (X, y), batch_size=7)
    W, b = model.weight.detach(), model.bias.detach()
    for n in range(50):
        if outputs == 1:
            expected = [((2 * y[n] - 1) * (W[0] @ X[n] + b[0]) / W[0].norm()).item()]
            relative = [((2 * y[n] - 1) * (W[0] @ X[n] + b[0]) / (X[n] * W[0]).norm()).item()]
        else:
            others = [j for j in range(outputs) if j != y[n]]
            gaps = [(W[y[n]] - W[j], b[y[n]] - b[j]) for j in others]
            expected = [((w @ X[n] + c) / w.norm()).item() for w, c in gaps]
            relative = [((w @ X[n] + c) / (X[n] * w).norm()).item() for w, c in gaps]
            assert found.rivals[n] == others[expected.index(min(expected))]
        assert found.distances[n].item() == pytest.approx(min(expected), rel=1e-12)
        assert found.relative[n].item() == pytest.approx(min(relative), rel=1e-12)
    assert (found.headroom == math.inf).all()
    if outputs == 1:
        assert torch.equal(found.rivals, 1 - y)
    assert torch.equal(found.labels, y)


def test_smooth_nets_by_one_gradient_per_sample_and_class(trained):
    model, (X, y) = trained
    found = measured(model, (X, y), batch_size=11)
    for n in range(30):
        J = torch.autograd.functional.jacobian(lambda x: model(x[None])[0], X[n])
        s = model(X[n])
        d = {j: ((s[y[n]] - s[j]) / (J[y[n]] - J[j]).norm()).item() for j in range(5) if j != y[n]}
        assert found.distances[n].item() == pytest.approx(min(d.values()), rel=1e-12)
        assert found.rivals[n] == min(d, key=d.get)
    assert ((found.distances > 0) == (found.q > 0)).all()
    assert torch.allclose(found.q, nm.measure(model, (X, y)).q, rtol=1e-12)


def test_size_of_the_parameters_and_of_the_inputs(trained):
    """Scores times c: nothing moves. Inputs times c: distances do, relative ones do not."""
    model, (X, y) = trained
    before = measured(model, (X, y))
    louder = copy.deepcopy(model)
    with torch.no_grad():
        louder[2].weight.mul_(1e3)
        louder[2].bias.mul_(1e3)
    after = measured(louder, (X, y))
    assert torch.allclose(after.distances, before.distances, rtol=1e-12)
    scaled = copy.deepcopy(model)
    with torch.no_grad():
        scaled[0].weight.div_(4)
    farther = measured(scaled, (4 * X, y))
    assert torch.allclose(farther.distances, 4 * before.distances, rtol=1e-12)
    assert torch.allclose(farther.relative, before.relative, rtol=1e-12)


def test_few_rivals_are_exact_up_to_the_headroom():
    """Never too small; too large only where a left-out class is steeper than the headroom."""
    torch.manual_seed(0)
    model = nn.Linear(8, 40).double()
    with torch.no_grad():  # classes of very different slopes, so that some rivals are overlooked
        model.weight.mul_(torch.logspace(-1, 1, 40).double()[torch.randperm(40), None])
    X = torch.randn(60, 8).double()
    data = X, model(X).argmax(1)
    exact, few = measured(model, data, rivals=39), measured(model, data, rivals=2)
    assert (few.distances >= exact.distances).all()
    missed = few.distances > exact.distances * (1 + 1e-12)
    assert missed.any()
    W, scores = model.weight.detach(), model(X).detach()
    norms = (W[data[1]][:, None] - W[None]).norm(dim=2)
    order = scores.argsort(1, descending=True)
    seen = norms.gather(1, order[:, 1:3]).amax(1)
    left_out = norms.gather(1, order[:, 3:]).amax(1)
    assert (left_out[missed] > few.headroom[missed] * seen[missed]).all()
    sure = left_out <= few.headroom * seen
    assert sure.any()
    assert not (sure & missed).any()
    assert torch.equal(measured(model, data, rivals=100).distances, exact.distances)


def test_headroom_is_zero_where_nothing_is_known():
    """The only class looked at has a flat score; or another one has a larger score than one's own."""
    model = nn.Linear(2, 3).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]))
        model.bias.copy_(torch.tensor([1.0, 0.9, -5.0]))
    X, y = torch.tensor([[0.0, 0.0], [50.0, 0.0]]).double(), torch.tensor([0, 1])
    few = measured(model, (X, y), rivals=1)
    assert few.distances[0] == math.inf
    assert few.headroom.tolist() == [0, 0]
    assert measured(model, (X, y)).distances.tolist() == [6.0, -math.inf]


def test_token_nets_are_measured_at_their_embeddings():
    torch.manual_seed(0)
    model, X = Tokens().double(), torch.randint(11, (12, 5))
    y = model(X).argmax(1)
    found = measured(model, (X, y), layer=model.embedding)
    for alike in (
        measured(model, (X, y)),
        nm.measure(model, (X, y), input_margins=True).input_margins,
    ):
        assert torch.equal(alike.distances, found.distances)
        assert alike.layer == found.layer == "embedding"
    told = nm.measure(model, (X, y), input_margins=True).summary()
    assert "for a typical right sample, in the output of 'embedding'" in " ".join(told.split())
    after = nn.Sequential(model.hidden, nn.Tanh(), model.head)

    class FromEmbeddings(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = after

        def forward(self, embedded):
            return self.net(embedded.mean(1))

    expected = measured(FromEmbeddings(), (model.embedding(X).detach(), y))
    assert torch.allclose(found.distances, expected.distances, rtol=1e-12)
    assert torch.allclose(found.relative, expected.relative, rtol=1e-12)
    assert not model.embedding._forward_hooks


def test_token_nets_with_a_bag_are_measured_at_it(tmp_path):
    torch.manual_seed(0)
    model, X = nn.Sequential(nn.EmbeddingBag(11, 6), nn.Linear(6, 2)).double(), torch.arange(60)
    X = X.reshape(12, 5) % 11
    y = model(X).argmax(1)
    found, after = measured(model, (X, y)), measured(model[1], (model[0](X).detach(), y))
    assert found.layer == "0"
    assert torch.equal(found.distances, after.distances)
    made = nm.page(model, (X, y), out=tmp_path / "page.html", progress=False).path.read_text()
    assert "in the output of 0" in made
    assert "step from one token" not in made


def test_the_model_and_the_data_stay_as_they_are(trained):
    model, (X, y) = trained
    net = nn.Sequential(model, nn.Dropout(0.5), nn.BatchNorm1d(5).double(), nn.ReLU(inplace=True))
    net.train()
    net[2].eval()
    X = X.clone().requires_grad_()
    state, kept = copy.deepcopy(net.state_dict()), X.detach().clone()
    with torch.no_grad():
        first = measured(net, (X, y))
    with torch.inference_mode():
        second = measured(net, (X, y))
    assert torch.equal(first.distances, second.distances)  # dropout is off
    assert [m.training for m in net] == [True, True, False, True]
    assert all(torch.equal(net.state_dict()[name], value) for name, value in state.items())
    assert all(p.grad is None and p.requires_grad for p in net.parameters())
    assert X.grad is None
    assert torch.equal(X, kept)


def test_streams_and_a_forward_that_works_in_place(trained):
    model, (X, y) = trained
    whole = measured(model, (X, y))
    stream = measured(model, ((X[i : i + 4], y[i : i + 4]) for i in range(0, 30, 4)))
    assert torch.allclose(stream.distances, whole.distances, rtol=1e-12)

    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = model

        def forward(self, x):
            return self.net(x.mul_(2).div_(2))

    kept = X.clone()
    assert torch.equal(measured(InPlace(), (X, y)).distances, whole.distances)
    assert torch.equal(X, kept)


def test_flat_scores_are_infinitely_far_from_a_boundary():
    model = mlp([2, 3, 2], bias="all").double()
    with torch.no_grad():
        model[0].weight.zero_()
        model[2].bias.copy_(torch.tensor([1.0, 0.0]))
    found = measured(model, (torch.randn(4, 2), [0, 0, 0, 1]))
    assert found.distances.tolist() == [math.inf] * 3 + [-math.inf]
    assert found.quantiles() == (-math.inf, -math.inf, math.inf)
    assert found.to_dict()["distances"]["50%"] is None
    found.summary()


def test_quantiles_are_those_of_torch_and_take_infinities():
    values = torch.randn(101, dtype=torch.float64)
    levels = (0.0, 0.13, 0.25, 0.5, 1.0)
    expected = torch.quantile(values, torch.tensor(levels, dtype=torch.float64))
    assert quantiles(values, levels) == pytest.approx(expected.tolist(), rel=1e-12)


def test_by_class_and_frame(trained):
    model, data = trained
    found = measured(model, data)
    table = found.by_class()
    own = found.distances[data[1] == 2]
    assert table.loc[2, "n"] == len(own)
    assert table.loc[2, "50%"] == pytest.approx(own.median().item() if len(own) % 2 else own.sort().values[len(own) // 2 - 1 : len(own) // 2 + 1].mean().item())  # fmt: skip
    assert found.frame()["distances"].tolist() == found.distances.tolist()


def test_the_right_samples_that_are_nearest_to_a_wrong_answer_are_named(trained):
    model, data = trained
    found = measured(model, data)
    right = [n for n in range(found.n) if found.q[n] > 0]
    rows = sorted(right, key=lambda n: found.distances[n].item())[:3]
    said = ", ".join(f"{n} ({found.distances[n].item():.4g})" for n in rows)
    report = nm.measure(model, data, input_margins=found)
    for text in (found.summary(), report.summary()):
        assert f"nearest right samples {said} (estimated)" in " ".join(text.split())
    none_right = measured(model, (data[0], (model(data[0]).argmax(1) + 1) % 5))
    assert "nearest right" not in none_right.summary()


class Detached(nn.Linear):
    def forward(self, x):
        return super().forward(x.detach()).detach()


class Root(nn.Linear):
    def forward(self, x):
        return super().forward(x.abs().sqrt() * x)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.table = nn.Linear(3, 3), nn.Embedding(4, 3)

    def forward(self, x):
        return self.layer(self.layer(x)) + self.table.weight[0]


X, Y = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
TWICE = Twice()


@pytest.mark.parametrize(
    ("model", "data", "given", "error", "match"),
    [
        (nn.Linear(3, 3), (X.long(), Y), {}, nm.DataError, r"X\.float\(\)"),
        (Detached(3, 3), (X, Y), {}, nm.ModelError, "carry no gradient"),
        (Root(3, 3), (torch.zeros(6, 3), Y), {}, nm.ModelError, "NaN or infinite, first for sam"),
        (TWICE, (X, Y), {"layer": TWICE.layer}, nm.ArgumentError, "ran 2 times"),
        (TWICE, (X, Y), {"layer": TWICE.table}, nm.ArgumentError, "ran 0 times"),
        (TWICE, (X, Y), {"layer": nn.Linear(3, 3)}, nm.ArgumentError, "does not hold this Linear"),
        (TWICE, (X, Y), {"layer": 3}, nm.ArgumentError, "layer must be a module"),
        (TWICE, (X, Y), {"layer": "lair"}, nm.ArgumentError, "'lair' is no module of"),
        (TWICE, (X, Y), {"rivals": 0}, nm.ArgumentError, "rivals must be"),
        (TWICE, (X * math.nan, Y), {}, nm.DataError, "NaN"),
    ],
)
def test_bad_input(model, data, given, error, match):
    with pytest.raises(error, match=match):
        measured(model, data, **given)


def test_a_noisy_model_is_measured_with_a_warning():
    class Noisy(nn.Linear):
        def forward(self, x):
            return super().forward(nn.functional.dropout(x, 0.5))

    with pytest.warns(UserWarning, match="single draws"):
        measured(Noisy(3, 3), (X, Y))


def test_of_many_classes_ten_rivals_are_looked_at_everywhere():
    """By default above 20 classes; the reports say so, and `rivals` says otherwise."""
    torch.manual_seed(0)
    net, x, y = nn.Linear(6, 24, bias=False), torch.randn(12, 6), torch.arange(12)
    z, w = net(x).double(), net.weight.double()
    exact = [
        min(
            ((z[n, y[n]] - z[n, j]) / (w[y[n]] - w[j]).norm()).item()
            for j in range(24)
            if j != y[n]
        )
        for n in range(12)
    ]
    ten = nm.input_margins(net, (x, y), rivals=10, progress=False)
    few = {
        "input_margins": nm.input_margins(net, (x, y), progress=False),
        "measure": nm.measure(net, (x, y), input_margins=True).input_margins,
        "compare": nm.compare([net, net], (x, y), input_margins=True, progress=False)
        .reports[0]
        .input_margins,
    }
    every = {
        "input_margins": nm.input_margins(net, (x, y), rivals=23, progress=False),
        "measure": nm.measure(net, (x, y), input_margins=True, rivals=23).input_margins,
        "compare": nm.compare([net] * 2, (x, y), input_margins=True, rivals=23, progress=False)
        .reports[0]
        .input_margins,
    }
    for call, found in every.items():
        assert torch.equal(few[call].distances, ten.distances), call
        assert found.distances.tolist() == pytest.approx(exact, rel=1e-5), call
        assert (few[call].left_out[:20], found.left_out) == ("Only the rivals with", ""), call
    assert bool((few["measure"].distances >= every["measure"].distances).all())
    for said in (
        nm.measure(net, (x, y), input_margins=True).summary(full=True),
        nm.compare([net] * 2, (x, y), input_margins=True, progress=False).summary(),
    ):
        assert "Only the rivals with the highest scores" in words_of(said)
    twenty = nn.Linear(6, 20, bias=False)
    assert nm.input_margins(twenty, (x, y), progress=False).left_out == ""
