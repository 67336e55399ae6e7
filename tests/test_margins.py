"""Margins against closed forms, brute force and exact invariances."""

import copy
import math
import pickle

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn

import netmargin as nm
from netmargin.losses import BY_NAME
from netmargin.models import mlp
from tests.words import words_of


def test_multi_class_margins_by_brute_force():
    torch.manual_seed(0)
    model, X, y = mlp([4, 9, 5]).double(), torch.randn(40, 4).double(), torch.randint(5, (40,))
    report = nm.measure(model, (X, y), batch_size=7)
    scores = model(X)
    expected = [
        min(scores[n, y[n]] - scores[n, j] for j in range(5) if j != y[n]).item() for n in range(40)
    ]
    assert report.q.tolist() == pytest.approx(expected, rel=1e-14)
    assert report.accuracy == (scores.argmax(1) == y).double().mean().item()
    assert report.log_loss == pytest.approx(
        torch.nn.functional.cross_entropy(scores, y, reduction="sum").log().item(), rel=1e-13
    )
    norms = [
        torch.cat(
            [p.detach().reshape(-1) for n, p in model.named_parameters() if n.startswith(layer)]
        ).norm()
        for layer in "02"
    ]
    assert report.norm == pytest.approx(math.hypot(*norms), rel=1e-14)
    assert report.normalized_margin == pytest.approx(min(expected) / report.norm**2, rel=1e-13)
    assert report.margins["layers"].value == pytest.approx(
        min(expected) / (norms[0] * norms[1]).item(), rel=1e-13
    )


@pytest.mark.parametrize("labels", [[1, -1, 1], [1, 0, 1], [True, False, True], [1.0, -1.0, 1.0]])
def test_binary_labels_of_every_kind(labels):
    model = nn.Linear(2, 1, bias=False).double()
    X = torch.tensor([[1.0, 2.0], [-3.0, 1.0], [0.5, 0.5]], dtype=torch.float64)
    q = nm.measure(model, (X, labels)).q
    assert torch.allclose(q, model(X)[:, 0].detach() * torch.tensor([1.0, -1.0, 1.0]))
    flat = nn.Sequential(model, nn.Flatten(0))  # shape (N,)
    assert torch.equal(nm.measure(flat, (X, labels)).q, q)


@settings(max_examples=10, deadline=None)
@given(c=st.floats(0.5, 100.0), split=st.floats(0.1, 10.0), seed=st.integers(0, 1000))
def test_normalized_margins_do_not_move_under_scaling(c, split, seed):
    torch.manual_seed(seed)
    model, data = (
        mlp([3, 6, 2], power=2).double(),
        (torch.randn(12, 3).double(), torch.arange(12) % 2),
    )
    before = nm.measure(model, data)
    scaled = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in scaled.parameters():
            parameter.mul_(c)
    after = nm.measure(scaled, data)
    assert after.q_min == pytest.approx(before.q_min * c**3, rel=1e-10)
    assert after.normalized_margin == pytest.approx(before.normalized_margin, rel=1e-10)
    with torch.no_grad():  # rebalancing layers keeps the layer product of a multi-homogeneous net
        for name, parameter in scaled.named_parameters():
            parameter.mul_(split if name.startswith("0") else split**-2)
    assert nm.measure(scaled, data).margins["layers"].value == pytest.approx(
        before.margins["layers"].value, rel=1e-9
    )


@pytest.mark.parametrize("loss", ["logistic", "logistic-cubic"])
@pytest.mark.parametrize("w", [1.5e-8, 0.1, -1.5e-8])
def test_no_rounding_lifts_a_smoothed_margin_above_the_smallest(loss, w):
    """Near 0 the cubic loss is flat: margins of 1e-8 and 1e-4 have one loss in float64."""
    net = torch.nn.Linear(1, 1, bias=False).double()
    torch.nn.init.constant_(net.weight, w)
    report = nm.measure(net, ([[1.0]], [1]), loss=loss)
    assert report.smoothed_margin <= report.normalized_margin


def test_smoothed_margins_use_the_sum_and_lie_below(separated, digits):
    for loss in BY_NAME.values():
        report = nm.measure(separated, digits, loss=loss)
        assert 0 < report.smoothed_margin < report.normalized_margin
        # Lyu and Li 2019, Lemma A.5 (a): log(1/Loss) >= f(q_min) - log N
        f = loss.f(torch.tensor(report.q_min, dtype=torch.float64)).item()
        assert -report.log_loss >= f - math.log(report.n * 9)
        assert report.smoothed_margin == pytest.approx(
            loss.inverse_link(report.log_loss) / report.norm**2, rel=1e-12
        )


def test_every_module_returns_to_its_mode(digits):
    model = nn.Sequential(
        nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 10, bias=False)
    ).double()
    model[1].eval()
    first, second = nm.measure(model, digits), nm.measure(model, digits)
    assert [m.training for m in model] == [True, False, True, True]
    assert torch.equal(first.q, second.q)  # dropout is off while measuring


def test_biases_beyond_the_first_layer_are_ignored_and_this_is_said():
    torch.manual_seed(0)
    model = mlp([3, 8, 6, 2], bias="all").double()
    with torch.no_grad():
        model[2].bias.fill_(100.0)
    report = nm.measure(model, (torch.randn(10, 3), torch.arange(10) % 2))
    counted = [p for n, p in model.named_parameters() if n not in ("2.bias", "4.bias")]
    assert report.norm == pytest.approx(math.sqrt(sum(p.square().sum().item() for p in counted)))
    assert report.order == 3
    assert "Order 3 with the later biases '2.bias', '4.bias' ignored" in words_of(
        report.summary(full=True)
    )


def test_partial_margin_of_a_net_with_layer_norm():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 1, bias=False)
    ).double()
    report = nm.measure(model, (torch.randn(8, 3), torch.arange(8) % 2))
    square = sum(p.square().sum().item() for n, p in model.named_parameters() if n[0] in "34")
    assert report.order is None
    assert report.normalized_margin is None
    assert report.margins["layers"].value is None
    assert report.margins["partial"].value == pytest.approx(report.q_min / square)
    X = torch.randn(8, 3).double()
    right = nm.measure(model, (X, (model(X)[:, 0] > 0).long()))
    assert "(norm of all weights)^L none, see below" in words_of(right.summary(full=True))


def test_partial_margin_with_a_negative_exponent_does_not_move_under_scaling():
    class Divided(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.t = (
                nn.Linear(3, 5, bias=False),
                nn.Linear(5, 1, bias=False),
                nn.Parameter(torch.ones(1)),
            )

        def forward(self, x):
            return self.b(self.a(x).relu()) / self.t

    torch.manual_seed(0)
    model, data = Divided().double(), (torch.randn(8, 3), torch.arange(8) % 2)
    before = nm.measure(model, data)
    assert before.homogeneity.groups == {"t": -1, "a": 1, "b": 1}
    with torch.no_grad():
        model.a.weight.mul_(10)
        model.b.weight.mul_(10)
    assert nm.measure(model, data).margins["partial"].value == pytest.approx(
        before.margins["partial"].value
    )


def test_support_and_one_sample():
    model = nn.Linear(1, 1, bias=False).double()
    model.weight.data.fill_(1.0)
    report = nm.measure(model, ([[3.0], [1.005], [1.0], [1.2]], [1, 1, 1, 1]))
    assert report.support.tolist() == [2, 1]
    assert (report.near_support(0.01), report.near_support(0.5)) == (2, 3)
    assert nm.measure(model, ([[3.0]], [1])).normalized_margin == pytest.approx(3.0)


def test_a_float32_net_is_measured_in_float64_after_its_scores():
    model = nn.Linear(1, 2, bias=False)
    model.weight.data.copy_(torch.tensor([[1e8], [1.0]]))
    report = nm.measure(model, ([[1.0]], [0]))
    assert report.q.dtype is torch.float64
    assert report.q_min == 1e8 - 1.0  # not a float32


def reports_of_a_large_net() -> dict[str, object]:
    """What is said of a net of a million parameters on five samples."""
    torch.manual_seed(0)
    model, X = mlp([500, 2000, 2]).double(), torch.randn(5, 500).double()
    assert sum(p.numel() for p in model.parameters()) > 1e6
    with torch.no_grad():
        data = X, model(X).argmax(1)
    homogeneity = nm.analyse(model, X)
    return {
        "measure": nm.measure(model, data),
        "analyse": homogeneity,
        "certify": nm.certify(model, data),
        "tangent_svm": nm.tangent_svm(model, data),
        "robustness": nm.robustness(model, data, attacks=False, progress=False),
    }


@pytest.mark.slow
def test_a_pickled_report_holds_no_net_and_says_the_same():
    for name, report in reports_of_a_large_net().items():
        pickled = pickle.dumps(report)
        assert len(pickled) < 20_000, f"{name}: {len(pickled):,} bytes"
        back = pickle.loads(pickled)
        assert repr(back) == repr(report), name
        assert back.summary() == report.summary() if hasattr(report, "summary") else True
