"""The table of a report, its quasi-homogeneous and spectral rows, its held-out numbers and page."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.figures.training import _draw_histogram, _draw_margins
from netmargin.margins.normalization import solve_for_unit_norm
from netmargin.models import mlp
from tests.words import words_of

ROWS = ["global", "layers", "partial", "quasi", "bartlett", "input", "relative input"]


def net_and_data(widths, bias="all"):
    """A float64 MLP whose biases are not zero, and 40 samples, some of them misclassified."""
    torch.manual_seed(0)
    model, X = mlp(widths, bias=bias).double(), torch.randn(40, widths[0]).double()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.normal_()
        y = model(X).argmax(1)
    y[:4] = (y[:4] + 1) % widths[-1]
    return model, (X, y)


@pytest.mark.parametrize("widths", [[3, 4], [3, 6, 4], [3, 6, 5, 4], [3, 6, 5, 6, 4]])
def test_quasi_margins_do_not_move_along_their_scaling(widths):
    """psi_a multiplies weights by c^{1/L} and the biases of layer i by c^{i/L}."""
    model, data = net_and_data(widths)
    before, L = nm.measure(model, data), len(widths) - 1
    for c in (1e-3, 0.5, 1e3):
        scaled = copy.deepcopy(model)
        with torch.no_grad():
            for i, layer in enumerate(scaled[::2], 1):
                layer.weight.mul_(c ** (1 / L))
                layer.bias.mul_(c ** (i / L))
        after = nm.measure(scaled, data)
        assert after.q_min == pytest.approx(c * before.q_min, rel=1e-9)
        assert after.margins["quasi"].value == pytest.approx(
            before.margins["quasi"].value, rel=1e-9
        )
    if L > 1:  # a norm that leaves out biases does not see them move
        with torch.no_grad():
            model[-1].bias.mul_(3)
        assert nm.measure(model, data).norm == before.norm


def test_quasi_norm_is_the_way_to_the_unit_sphere():
    """At a* the scaled net has norm 1, and its smallest margin is the normalized one."""
    model, data = net_and_data([3, 6, 5, 4])
    report = nm.measure(model, data)
    with torch.no_grad():
        for i, layer in enumerate(model[::2], 1):
            layer.weight.mul_(math.exp(-report.log_norms["quasi"] / 3))
            layer.bias.mul_(math.exp(-report.log_norms["quasi"] * i / 3))
    assert sum(p.square().sum().item() for p in model.parameters()) == pytest.approx(1, rel=1e-12)
    assert nm.measure(model, data).q_min == pytest.approx(report.margins["quasi"].value, rel=1e-12)


@pytest.mark.parametrize("bias", ["none", "first"])
def test_quasi_margins_are_the_normalized_ones_where_exponents_are_equal(bias):
    report = nm.measure(*net_and_data([3, 6, 5, 4], bias))
    assert report.margins["quasi"].value == pytest.approx(report.normalized_margin, rel=1e-12)
    assert report.margins["quasi"].smoothed == pytest.approx(report.smoothed_margin, rel=1e-12)
    assert report.margins["quasi"].smoothed < report.margins["quasi"].value


def test_quasi_norms_beyond_float64():
    """||theta|| = 1e150, exponents 1e-3 and 1: a* = 150 log(10) * 1000, the other unseen."""
    a = solve_for_unit_norm([(1e-3, 1e150), (1.0, 2.0)])
    assert a == pytest.approx(150 * math.log(10) / 1e-3, rel=1e-13)
    for exponents, squares in (([0.3, 0.7, 1], [2, 1e-8, 5]), ([1, 1], [1e-300, 1e-300])):
        groups = [(k, math.sqrt(s)) for k, s in zip(exponents, squares, strict=True)]
        a = solve_for_unit_norm(groups)
        total = sum((math.exp(-a * k) * norm) ** 2 for k, norm in groups)
        assert total == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("first", "last"), [(-400, 0), (0, -400), (-600, 600), (500, 420)])
def test_weights_whose_squares_leave_float64_have_the_margins_of_their_multiples(first, last):
    """Layers times 2^a and 2^b: logs of norms move by that, and no distance moves."""
    model, data = net_and_data([3, 6, 4], "none")
    before, near = nm.measure(model.double(), data), nm.input_margins(model, data).distances
    with torch.no_grad():
        model[0].weight.mul_(2.0**first)
        model[2].weight.mul_(2.0**last)
    after = nm.measure(model, data)
    moved = after.log_norms["layers"] - before.log_norms["layers"]
    assert moved == pytest.approx((first + last) * math.log(2), rel=1e-12, abs=1e-9)
    assert after.margins["layers"].value == pytest.approx(before.margins["layers"].value, rel=1e-9)
    assert torch.allclose(nm.input_margins(model, data).distances, near, rtol=1e-9, atol=0)
    assert 0 < after.norm < math.inf


def test_quasi_margins_count_the_parameters_that_scale_and_no_others():
    model, data = net_and_data([3, 6, 4])
    analysis = nm.analyse(model, data[0])
    exponents = analysis.quasi_exponents
    blocked = replace(analysis, quasi_exponents=None, quasi_reason="of two blocks that differ")
    none = nm.measure(model, data, homogeneity=blocked)
    assert none.margins["quasi"].value is None
    assert none.margins["quasi"].note == "of two blocks that differ"
    assert not none.margins["quasi"].applies
    # With exponent 0 for the bias, which then is as good as absent, and by hand.
    fixed = replace(analysis, quasi_exponents=exponents | {"0.bias": 0})
    found = nm.measure(model, data, homogeneity=fixed)
    squares = {n: p.square().sum().item() for n, p in model.named_parameters() if n != "0.bias"}
    total = sum(
        math.exp(-2 * found.log_norms["quasi"] * float(exponents[n])) * square
        for n, square in squares.items()
    )
    assert total == pytest.approx(1, rel=1e-12)


def test_margins_stay_where_convolutions_before_a_normalization_are_rescaled():
    """Statistics are estimated again; margins that count these convolutions' sizes move."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4, 1e-300, None), nn.ReLU(),
        nn.Conv2d(4, 5, 3, bias=False), nn.BatchNorm2d(5, 1e-300, None), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3),
    ).double()  # fmt: skip
    X, y = torch.randn(30, 2, 6, 6).double(), torch.arange(30) % 3

    def estimate_and_measure():
        for norm in (model[1], model[4]):
            norm.reset_running_stats()
        with torch.no_grad():
            model.train()(X)
        return nm.measure(model.eval(), (X, y), input_margins=True)

    before = estimate_and_measure()
    with torch.no_grad():
        model[0].weight.mul_(0.1)
        model[3].weight.mul_(7)
    after = estimate_and_measure()
    for name in ("layers", "partial", "quasi", "input", "relative input"):
        torch.testing.assert_close(
            after.margins[name].per_sample, before.margins[name].per_sample, rtol=1e-9, atol=0
        )
    assert after.normalized_margin != pytest.approx(before.normalized_margin, rel=0.1)


@pytest.mark.slow
def test_training_records_quasi_margins(digits, tmp_path):
    torch.manual_seed(0)
    model = mlp([64, 8, 10], bias="all").double()
    history = nm.train(model, digits, until=nm.Epochs(3), progress=False)
    last, report = history.rows[-1], nm.measure(model, digits)
    assert last["quasi_normalized_margin"] == pytest.approx(report.margins["quasi"].value)
    assert report.margins["quasi"].value != pytest.approx(report.normalized_margin)
    assert last["normalized_margin"] == pytest.approx(report.normalized_margin)
    # A third picture shows them where they are others; a second histogram shows input margins.
    assert len(_draw_margins(history).axes) == 3
    plain = nm.History([row | {"quasi_normalized_margin": row["normalized_margin"]} for row in history.rows])  # fmt: skip
    assert len(_draw_margins(plain).axes) == 2
    measured = nm.measure(model, digits, input_margins=True)
    assert [len(_draw_histogram(r).axes) for r in (report, measured)] == [1, 2]
    assert len(nm.figures.draw_run(history, measured, tmp_path)) == 3


def test_spectrally_normalized_margins_by_the_formula():
    model, data = net_and_data([3, 6, 5, 4], "none")
    report = nm.measure(model, data)
    W = [layer.weight.detach().numpy() for layer in model[::2]]
    spectral = [np.linalg.svd(w)[1][0] for w in W]
    rows = [sum(np.linalg.norm(row) for row in w) for w in W]
    sums = sum((r / s) ** (2 / 3) for r, s in zip(rows, spectral, strict=True))
    row = report.margins["bartlett"]
    assert row.value == pytest.approx(report.q_min / (np.prod(spectral) * sums**1.5), rel=1e-11)
    assert row.note == ""
    with torch.no_grad():  # the report keeps the weights that it measured
        again = nm.measure(model, data)
        model[0].weight.mul_(100)
        assert again.margins["bartlett"].value == row.value
    # Nor does the size of a matrix change it, however far its squares leave float64.
    for size in (2.0**-600, 2.0**600):
        model, data = net_and_data([3, 6, 5, 4], "none")
        model.double()[0].weight.data.mul_(size)
        other = nm.measure(model, data).margins["bartlett"].value
        assert other == pytest.approx(row.value, rel=1e-6)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 4)), "found GELU"),
        (
            nn.Sequential(
                nn.Unflatten(1, (1, 3)), nn.Conv1d(1, 2, 2), nn.Flatten(), nn.Linear(4, 4)
            ),
            "found Unflatten",
        ),
        (nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(-2.0), nn.Linear(4, 4)), "found LeakyReLU"),
        (nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4)), "leaves out the biases"),
    ],
)
def test_spectral_margins_are_for_chains_of_matrices(model, why):
    row = nm.measure(model, (torch.randn(8, 3), torch.arange(8) % 4)).margins["bartlett"]
    assert why in row.note
    assert row.applies == (why == "leaves out the biases")


def test_every_row_has_a_value_per_sample_quantiles_and_classes():
    model, (X, y) = net_and_data([3, 6, 4])
    report = nm.measure(model, (X, y), input_margins=True)
    assert list(report.margins) == ROWS
    for name, row in report.margins.items():
        assert row.applies
        low, quarter, median = row.quantiles()
        expected = torch.quantile(
            row.per_sample, torch.tensor([0.1, 0.25, 0.5], dtype=torch.float64)
        )
        assert [low, quarter, median] == pytest.approx(expected.tolist(), rel=1e-12)
        least = quarter if "input" in name else row.per_sample.min().item()
        assert row.value == pytest.approx(least, rel=1e-12)
        own = row.per_sample[y == 1]
        assert row.by_class().loc[1, "n"] == len(own) > 2
        assert row.by_class().loc[1, "25%"] == pytest.approx(torch.quantile(own, 0.25).item())
        if "input" not in name:
            assert torch.allclose(row.per_sample / row.value, report.q / report.q_min, rtol=1e-12)
    frame = report.margins.frame()
    assert list(frame.index) == ROWS
    assert frame.loc["global", "value"] == report.normalized_margin
    assert frame.loc["layers", "smoothed"] == report.margins["layers"].smoothed
    assert frame.loc["partial", "value"] == report.margins["partial"].value
    assert set(report.margins.to_dict()) == set(ROWS)
    with pytest.raises(nm.ArgumentError, match='Did you mean "bartlett"'):
        report.margins["bartlet"]
    assert torch.equal(report.labels, y)


def test_tables_call_classes_by_their_names(tmp_path):
    import pandas

    model, (X, y) = net_and_data([3, 6, 3])
    X, y = X[y != 1], y[y != 1] % 3
    names = ["cat", "dog", "hare"]
    plain = nm.measure(model, (X, y), input_margins=True)
    series = pandas.Series(np.array(names)[y.numpy()], dtype="category")
    for given in (names, pandas.CategoricalDtype(names).categories, np.array(names)):
        report = nm.measure(model, (X, y), input_margins=True, class_names=given)
        again = nm.load(report.save(tmp_path / "report.zip"))
        for found in (report.margins["global"], again.margins["input"], report.input_margins):
            numbered = (plain.margins[found.name] if hasattr(found, "name") else found).by_class()
            numbers = y.unique().tolist()
            assert found.by_class().index.tolist() == [names[label] for label in numbers]
            assert found.by_class().to_numpy().tolist() == numbered.to_numpy().tolist()
    frame = nm.input_margins(model, (X, y), class_names=names, progress=False).frame()
    assert frame["labels"].tolist() == series.tolist()
    assert frame["rivals"].tolist() == [names[j] for j in plain.input_margins.rivals.tolist()]
    binary = nm.measure(nn.Linear(3, 1), (X, torch.tensor([-1, 1]).repeat(50)[: len(X)]), class_names=names[:2])  # fmt: skip
    assert binary.margins["global"].by_class().index.tolist() == ["cat", "dog"]
    compared = nm.compare([model, model], (X, y), (X, y), class_names=names, progress=False)
    assert {r.class_names for r in compared.training + compared.reports} == {tuple(names)}


@pytest.mark.parametrize("function", [nm.measure, nm.input_margins])
def test_names_of_classes_that_do_not_fit_are_refused(function):
    model, data = net_and_data([3, 6, 4])
    for wrong, match in (
        (["a", "b", "c"], "3 names, and the net 4 classes"),
        (["a", "b", "c", "a"], "'a' more than once"),
        ("abcd", "must be a list of names"),
        ([0, 1, 2, 3], "must be a list of names"),
    ):
        with pytest.raises(nm.ArgumentError, match=match):
            function(model, data, class_names=wrong)


def test_input_margins_of_a_report_are_those_of_the_function():
    model, data = net_and_data([3, 6, 4])
    found = nm.input_margins(model, data, batch_size=7, progress=False)
    for report in (
        nm.measure(model, data, batch_size=7, input_margins=True),
        nm.measure(model, data, input_margins=found),
    ):
        assert torch.equal(report.margins["input"].per_sample, found.distances)
        assert torch.equal(report.margins["relative input"].per_sample, found.relative)
    without = nm.measure(model, data).margins["input"]
    assert not without.applies
    assert "input_margins=True" in without.note
    assert without.per_sample is without.quantiles() is without.by_class() is None
    few = nm.input_margins(model, (data[0][:3], data[1][:3]), progress=False)
    with pytest.raises(nm.ArgumentError, match="holds 3 samples, and the data 40"):
        nm.measure(model, data, input_margins=few)
    with pytest.raises(nm.ArgumentError, match="input_margins must be True or False"):
        nm.measure(model, data, input_margins="yes")


def test_norms_beyond_float64_keep_their_margins():
    """||theta||^L of 80 layers with weights of 1e3 is 1e240 80^40 = 1e316."""
    model = nn.Sequential(*[nn.Linear(1, 1, bias=False) for _ in range(80)]).double()
    with torch.no_grad():
        for layer in model:
            layer.weight.fill_(1e3)
    row = nm.measure(model, ([[1e-3], [-2e-3]], [1, 1])).margins["global"]
    assert row.per_sample.tolist() == pytest.approx([1e-3 * 80**-40, -2e-3 * 80**-40], rel=1e-9)
    assert row.value == pytest.approx(-2e-3 * 80**-40, rel=1e-9)


def test_an_answer_given_is_the_answer_found():
    model, data = net_and_data([3, 6, 4])
    given = nm.measure(model, data, homogeneity=nm.analyse(model, data[0]))
    assert given.to_dict() == nm.measure(model, data).to_dict()


def test_numbers_for_held_out_data():
    model = nn.Linear(1, 1, bias=False).double()
    model.weight.data.fill_(1.0)
    report = nm.measure(model, ([[3.0], [5.0], [-2.0], [0.0]], [1, 1, 1, 1]))
    q = np.array([3.0, 5.0, -2.0, 0.0])
    assert report.error == 0.5
    assert report.z == pytest.approx(q.mean() / q.std(), rel=1e-12)
    assert report.margin_weighted_error == pytest.approx(0.2, rel=1e-12)
    low, high = report.error_interval  # each end leaves 2.5% to the other side
    from scipy.stats import binom

    assert binom.sf(1, 4, low) == pytest.approx(0.025)
    assert binom.cdf(2, 4, high) == pytest.approx(0.025)
    assert replace(report, q=1e200 * report.q).z == pytest.approx(report.z)
    assert nm.measure(model, ([[3.0], [3.0]], [1, 1])).z is None


def test_the_page_groups_what_blocks():
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(5, 5), nn.GELU()) for _ in range(27)]
    model = nn.Sequential(*blocks, nn.Linear(5, 3)).double()
    X, y = torch.randn(30, 5).double(), torch.arange(30) % 3
    report = nm.measure(model, (X, y), input_margins=True)
    page = report.summary(full=True)
    assert len(report.homogeneity.blockers) == 27
    assert page.count("blocked by") == 1
    assert "27 modules (0.1, 1.1, ..., 26.1): GELU is not homogeneous" in words_of(page)
    assert f"{report.margins['input'].value:.4g}" in page
    assert f"{report.z:.4g}" in page
    assert all(len(line) <= 110 for line in page.splitlines())


KINDS = {None: ("", 1), True: ("held-out ", 1), False: ("training ", 0)}


@pytest.mark.parametrize("heldout", KINDS)
@pytest.mark.parametrize("right", [True, False])
def test_a_report_prints_one_screen_that_says_what_the_samples_are(heldout, right):
    model, (X, y) = net_and_data([3, 6, 4])
    X, y = (X[4:], y[4:]) if right else (X, y)
    report = nm.measure(model, (X, y), heldout=heldout, input_margins=True)
    screen, (kind, interval) = str(report), KINDS[heldout]
    assert screen == report.summary()
    assert len(screen.splitlines()) <= 12
    assert screen.startswith(f"Margins of {len(y)} {kind}samples\n")
    assert screen.count("error of new data") == interval
    assert ("if the net was not trained" in screen) == (heldout is None)
    typical = report.input_margins.distances[report.q > 0].median().item()
    assert f"{typical:.4g} for a typical right sample" in screen
    assert "norm" not in screen.replace("summary(full=True): every margin, what normalizes it", "")
    assert ("normalized_margin" in repr(report)) == right
    training = "These are training samples" in report.summary(full=True)
    assert training == (heldout is False)
    with pytest.raises(nm.ArgumentError, match="heldout"):
        nm.measure(model, (X, y), heldout="test")
    with pytest.raises(nm.ArgumentError, match="full"):
        report.summary(full="yes")


def test_the_page_writes_out_its_quotients_and_says_why_a_smoothed_margin_is_negative():
    model, (X, y) = net_and_data([3, 6, 4])
    right = nm.measure(model, (X[4:], y[4:]))
    page = words_of(right.summary(full=True))
    assert right.q_min > 0 > right.smoothed_margin
    counted = math.sqrt(sum(p.square().sum().item() for n, p in model.named_parameters() if n != "2.bias"))  # fmt: skip
    assert f"(norm of all weights)^2 {right.q_min / counted**2:.6g}" in page
    assert f"every bias counted {right.margins['quasi'].value:.6g}" in page
    total = math.exp(right.log_loss)
    assert f"add up to less than 0.693, the loss of one at margin 0; now they add up to {total:.3g}" in page  # fmt: skip
    assert "Wrong samples" not in page
    wrong = words_of(nm.measure(model, (X, y)).summary(full=True))
    assert "Wrong samples: 4 of 40" in wrong
    assert "norm of all weights" not in wrong
    with torch.no_grad():
        model[-1].weight.mul_(1e4)
        model[-1].bias.zero_()
    far = nm.measure(model, (X, model(X).argmax(1)))
    assert far.smoothed_margin > 0
    assert "add up to" not in far.summary(full=True)
    plain, data = net_and_data([3, 6, 4], bias="none")  # nothing is left out, and shown twice
    assert "every bias counted" not in nm.measure(plain, data).summary(full=True)


def test_the_page_of_a_net_without_any_normalized_margin():
    class Bounded(nn.Linear):
        def forward(self, x):
            return torch.tanh(super().forward(x).sigmoid())

    torch.manual_seed(0)
    page = words_of(
        nm.measure(Bounded(3, 3), (torch.randn(9, 3), torch.arange(9) % 3)).summary(full=True)
    )
    assert "there is no normalized margin. Follow the loss" in page
    assert "blocked by the model itself: sigmoid" in page
    assert "q_min /" not in page
    assert "Order of homogeneity" not in page


def test_the_page_names_the_classes_with_the_largest_errors():
    model = nn.Linear(3, 3, bias=False).double()
    model.weight.data = torch.eye(3).double()
    X = torch.eye(3).double().repeat(10, 1)
    y = X.argmax(1)
    y[:2], y[3], y[5] = torch.tensor([1, 0]), 1, 1  # wrong: 1 of 0's 9, 3 of 1's 12, none of 2's
    names = ["cat", "dog", "hare"]
    found = "most errors dog: 3 of 12, cat: 1 of 9 most frequent mistake dog taken for cat: 2 of 12"
    assert found in words_of(str(nm.measure(model, (X, y), class_names=names)))
    numbered = words_of(str(nm.measure(model, (X, y))))
    assert found.replace("dog", "1").replace("cat", "0") in numbered
    assert "mistake" not in str(nm.measure(model, (X, X.argmax(1))))
    y = X.argmax(1)
    y[:2] = torch.tensor([1, 2])
    found = "most frequent mistake 1 taken for 0: 1 of 10, as often as 1 other"
    assert found in words_of(str(nm.measure(model, (X, y))))


def test_the_page_shows_the_margin_that_idle_weights_do_not_change():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7, bias=False), nn.LayerNorm(7), nn.ReLU(), nn.Linear(7, 3))
    X = torch.randn(9, 5)
    data = X, model(X).argmax(1)
    report = nm.measure(model, data)
    assert f"(norm of what scales)^2 {report.margins['partial'].value:.6g}" in words_of(
        report.summary(full=True)
    )
    assert "does not change the scores" in report.summary(full=True)
    net = mlp([5, 7, 3])
    whole = nm.measure(net, (X, net(X).argmax(1))).summary(full=True)
    assert "norm of all weights" in whole
    assert "what scales" not in whole
    assert "does not change the scores" not in whole
