"""Nets compared on the same data: differences that are real are found, those of chance are not."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import torch
from scipy.stats import binomtest
from torch import nn

import netmargin as nm
from netmargin.margins.intervals import (
    ERROR,
    INPUT,
    NUMBERS,
    WEIGHTED_ERROR,
    Z,
    count_samples_that_tell,
    difference_intervals,
)
from netmargin.models import mlp
from tests.words import words_of


def linear(direction) -> nn.Module:
    """The net of the scores w . x, in float64."""
    net = nn.Linear(2, 1, bias=False).double()
    net.weight.data.copy_(torch.tensor([direction]))
    return net


@pytest.fixture(scope="module")
def plane():
    """300 training and 400 held-out points, whose labels are the sign of x_1, with noise."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(700, 2, generator=generator).double()
    y = torch.where(X[:, 0] + 0.3 * torch.randn(700, generator=generator) > 0, 1, -1)
    return (X[:300], y[:300]), (X[300:], y[300:])


NETS = {"good": linear([1.0, 0.0]), "alike": linear([3.0, 0.03]), "bad": linear([1.0, 1.0])}


def test_real_differences_are_found_and_others_are_not(plane):
    found = nm.compare(NETS, *plane, input_margins=True, progress=False)
    by_name = {(d.number, d.first, d.second): d for d in found.differences}
    for number, sign in ((ERROR, -1), (Z, 1), (WEIGHTED_ERROR, -1)):
        difference = by_name[number, "good", "bad"]
        assert difference.real
        assert sign * difference.value > 0
        assert difference.interval[0] < difference.value < difference.interval[1]
        assert not by_name[number, "good", "alike"].real
    training, heldout = (nm.measure(NETS["bad"], data) for data in plane)
    row = found.frame().loc["bad"]
    assert row["training", "wrong"] == (training.q <= 0).sum()
    assert row["held-out", "error"] == heldout.error
    assert row["held-out", "z"] == heldout.z
    assert row["held-out", "error to"] == heldout.error_interval[1]
    table = pandas.DataFrame([d.to_dict() for d in found.differences]).set_index(
        ["number", "first", "second"]
    )
    assert table.loc[(ERROR, "good", "bad"), "difference"] == by_name[ERROR, "good", "bad"].value
    # None of them fits its training data, so that input margins do not compare them.
    assert all(
        "is wrong on more than 1%" in d.note for d in found.differences if d.data == "training"
    )
    page = found.summary()
    assert page.index("ON HELD-OUT") < page.index("ON THE TRAINING")
    assert words_of(page).count("do not compare") == 3
    json.dumps(found.to_dict(), allow_nan=False)


class Mapped(nn.Module):
    """A net whose every score passes through one increasing map: it answers the same."""

    def __init__(self, net: nn.Module, increasing):
        super().__init__()
        self.net, self.increasing = net, increasing

    def forward(self, x):
        return self.increasing(self.net(x))


def test_what_a_change_of_calibration_makes_is_not_called_real(plane):
    net = NETS["good"]
    nets = {
        "net": net,
        "temperature": Mapped(net, lambda f: f / 7),
        "map": Mapped(net, lambda f: f.sign() * f.abs() ** 0.2),
    }
    found = nm.compare(nets, *plane, input_margins=True, progress=False)
    by_name = {(d.number, d.first, d.second): d for d in found.differences}
    for number in (ERROR, Z, WEIGHTED_ERROR, INPUT):
        cooled, mapped = by_name[number, "net", "temperature"], by_name[number, "net", "map"]
        assert abs(cooled.value) < 1e-12
        assert not cooled.more_than_chance
        assert mapped.more_than_chance == (number != ERROR)
        assert not mapped.real
    assert "calibration alone" in by_name[Z, "net", "map"].note
    assert "another loss" in found.summary()
    # Errors differ, and z the other way round: it does not say which net is better.
    opposed = {
        "heavy": Mapped(net, lambda f: f.sign() * f.abs() ** 6),
        "flat": Mapped(NETS["bad"], lambda f: f.sign() * f.abs() ** 0.01),
    }
    found = nm.compare(opposed, *plane, progress=False)
    error, z = (d for d in found.differences if d.number in (ERROR, Z))
    assert error.real
    assert error.value < 0
    assert z.more_than_chance
    assert z.value < 0
    assert not z.real


def test_how_far_a_change_of_calibration_moves_z():
    """Between -sqrt(e / (1 - e)) and sqrt((1 - e) / e), e the error; both ends are approached."""
    terms, of_means = NUMBERS[Z]

    def z(q):
        return of_means([part.mean() for part in terms(q)])

    rng = np.random.default_rng(0)
    sign = np.where(np.arange(40) < 6, -1.0, 1.0)
    low, high = -math.sqrt(6 / 34), math.sqrt(34 / 6)
    for scale in (0.1, 1, 5):
        sizes = np.exp(scale * rng.normal(size=(100, 40)))
        assert all(low < z(sign * row) < high for row in sizes)
    assert z(np.where(sign > 0, 1.0, -1e-9)) == pytest.approx(high)
    assert z(np.where(sign > 0, 1e-9, -1.0)) == pytest.approx(low)


def test_pairing_sees_what_single_intervals_do_not():
    """Nets that differ on 12 samples: own intervals overlap, that of the difference omits 0."""
    q = np.random.default_rng(0).normal(0.5, 1, 400)
    worse = q.copy()
    worse[np.flatnonzero(q > 0)[:12]] *= -1
    first, second = (binomtest(int((net <= 0).sum()), 400).proportion_ci() for net in (q, worse))
    assert second[0] < first[1]
    low, high = difference_intervals(ERROR, [worse, q])[0, 1]
    assert 0 < low < 0.03 < high < 0.06
    for number in (ERROR, WEIGHTED_ERROR):  # shares differ by 1 at most, whatever one sample says
        ends = difference_intervals(number, [np.array([-1.0]), np.array([-2.0])])[0, 1]
        assert ends == (-1.0, 1.0)


def heavy_pairs(tails, n, count):
    """Margins of pairs of nets that are equal but for chance and temperature."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        common = rng.normal(size=n)
        normal = 0.8 * common + 0.6 * rng.normal(size=(2, n))
        if tails == "mirrored lognormal":
            q = 2 - np.exp(normal)
        else:
            q = 1 + normal / np.sqrt(rng.chisquare(3, size=n) / 3)
        yield q[0], 7 * q[1]


@pytest.mark.slow_cases("50", "20-mirrored")
@pytest.mark.parametrize("tails", ["mirrored lognormal", "Student's t of 3 degrees"])
@pytest.mark.parametrize("n", [20, 50])
def test_of_20_pairs_of_equal_nets_one_at_most_looks_different(tails, n):
    """Percentiles of a bootstrap leave up to 2.7 of 20 here; 23 of 300 are 5% and two deviations."""
    looks = dict.fromkeys((ERROR, Z, WEIGHTED_ERROR), 0)
    for pair in heavy_pairs(tails, n, 300):
        for number in looks:
            low, high = difference_intervals(number, pair)[0, 1]
            looks[number] += not low <= 0 <= high
    assert all(count <= 23 for count in looks.values()), looks
    assert looks[Z] >= 3  # and not because no interval leaves out anything


@pytest.mark.slow
def test_intervals_cover_what_they_say():
    """95% intervals hold the truth for about 95% of data sets; 1.5 points is a standard error."""
    generator = np.random.default_rng(0)
    held = dict.fromkeys((ERROR, Z, INPUT), 0)
    # Phi(-1) - Phi(-2), 1 - 2, and quartiles of e^q, which is a distance.
    quarter = math.exp(1 - 0.6744897501960817)
    truth = {ERROR: 0.13590512198327787, Z: -1.0, INPUT: quarter - math.e * quarter}
    for _ in range(200):
        common = generator.normal(size=150)
        first, second = 0.8 * common + 0.6 * generator.normal(size=(2, 150)) + [[1], [2]]
        for number, value in truth.items():
            pair = np.exp([first, second]) if number == INPUT else (first, second)
            low, high = difference_intervals(number, pair)[0, 1]
            held[number] += low <= value <= high
    assert all(181 <= count <= 199 for count in held.values()), held


@pytest.mark.nightly
@pytest.mark.parametrize("tails", ["normal", "mirrored lognormal", "Student's t of 3 degrees"])
def test_intervals_cover_what_they_say_in_heavy_tails(tails):
    """Of 200 pairs of equal nets, and 200 that differ, 92 to 98% of the intervals hold the truth:
    all that summaries, comparisons and pages print, of one net's error and of differences.
    """

    def draw(generator, n, apart):
        common = generator.normal(size=n)
        normal = 0.8 * common + 0.6 * generator.normal(size=(2, n))
        if tails == "mirrored lognormal":
            return 2 - np.exp(normal * np.array([[1.0], [1 - apart / 2]]))
        if tails != "normal":
            normal /= np.sqrt(generator.chisquare(3, size=n) / 3)
        return normal + np.array([[1.0], [1.0 + apart]])

    def as_distances(q):
        return np.exp(np.minimum(q, 50))

    numbers, generator = (ERROR, Z, WEIGHTED_ERROR), np.random.default_rng(0)
    held = dict.fromkeys((*numbers, INPUT, "error of one net"), 0)
    for apart in (0.0, 0.3):
        truth = {}
        for number in numbers:
            terms, of_means = NUMBERS[number]
            both = draw(np.random.default_rng(1), 2_000_000, apart)
            first, second = (of_means([part.mean() for part in terms(q)]) for q in both)
            truth[number] = first - second
        first, second = np.quantile(as_distances(both), 0.25, axis=1)
        for _ in range(200):
            q = draw(generator, 200, apart)
            for number in numbers:
                low, high = difference_intervals(number, list(q))[0, 1]
                held[number] += low <= truth[number] <= high
            low, high = difference_intervals(INPUT, list(as_distances(q)))[0, 1]
            held[INPUT] += low <= first - second <= high
            one = SimpleNamespace(q=torch.from_numpy(q[0]), n=200)
            low, high = nm.MarginReport.error_interval.fget(one)
            held["error of one net"] += low <= (both[0] <= 0).mean() <= high
    assert all(368 <= count <= 392 for count in held.values()), held


def test_an_interval_of_errors_leaves_out_0_where_the_exact_test_does():
    for more in range(1, 16):
        for fewer in range(more):
            q = np.ones((2, 300))
            q[0, :more], q[1, more : more + fewer] = -1, -1
            low, _ = difference_intervals(ERROR, list(q))[0, 1]
            p = binomtest(fewer, more + fewer).pvalue
            # The jackknife, which never makes it shorter, matters where hardly any differ.
            assert (low > 0) == (p <= 0.05), (more, fewer)


def test_intervals_are_about_the_numbers_of_a_report(plane):
    reports = [nm.measure(NETS[name], plane[1]) for name in ("good", "bad")]
    for number, values in (
        (ERROR, [r.error for r in reports]),
        (Z, [r.z for r in reports]),
        (WEIGHTED_ERROR, [r.margin_weighted_error for r in reports]),
    ):
        low, high = difference_intervals(number, [r.q.numpy() for r in reports])[0, 1]
        assert (low + high) / 2 == pytest.approx(values[0] - values[1])
        assert high - low < abs(values[0] - values[1])


def test_one_wrong_sample_of_a_hundred_is_not_more_than_one_percent():
    nets = [nn.Linear(1, 1, bias=False) for _ in range(2)]
    for weight, net in enumerate(nets, 1):
        net.weight.data.fill_(weight)
    y = torch.ones(100)
    y[3] = -1
    found = nm.compare(nets, (torch.arange(1.0, 101)[:, None], y), input_margins=True)
    assert [r.error for r in found.reports] == [0.01, 0.01]
    assert found.differences[-1].note == ""
    assert "which this net exceeds" not in " ".join(found.reports[0].summary(full=True).split())


@pytest.mark.parametrize("number", [ERROR, Z, WEIGHTED_ERROR, INPUT])
def test_no_samples_tell_a_net_from_itself(number):
    q = np.random.default_rng(0).normal(0.5, 1, size=50)
    assert difference_intervals(number, [q, q])[0, 1] == (0, 0)
    low, high = difference_intervals(ERROR, [q, 1.5 * q])[0, 1]
    assert low < 0 < high  # nets that make the same errors on these samples


def test_numbers_that_do_not_exist_are_named_as_such():
    """Scores that do not move with the input, margins that are all equal, one held-out sample."""
    flat = mlp([2, 3, 2], bias="all").double()
    with torch.no_grad():
        flat[0].weight.zero_()
        flat[2].bias.copy_(torch.tensor([1.0, 0.0]))
    data = torch.randn(5, 2), torch.zeros(5)
    heldout = [[1.0, 2.0]], [0]
    found = nm.compare([flat, flat], data, heldout, input_margins=True, progress=False)
    by_number = {d.number: d for d in found.differences}
    assert by_number[Z].value is by_number[Z].interval is None
    assert by_number[INPUT].interval is None
    assert not any(d.real for d in found.differences)
    assert found.frame().loc["net 0", ("training", "input margin 25%")] == math.inf
    json.dumps(found.to_dict(), allow_nan=False)
    assert "no difference" in found.summary()


def test_samples_alone_and_held_out_data_alone(plane):
    """One data set is enough; only what is said of it depends on what it is."""
    alone = nm.compare(NETS, plane[1], progress=False)
    heldout = nm.compare(NETS, heldout=plane[1], progress=False)
    assert [r.q.tolist() for r in alone.reports] == [r.q.tolist() for r in heldout.reports]
    assert [d.interval for d in alone.differences] == [d.interval for d in heldout.differences]
    assert (alone.kind, heldout.kind) == ("these", "held-out")
    assert alone.training == heldout.training == ()
    assert alone.verdict == heldout.verdict
    sentence = "where no net was trained on these samples"
    assert sentence in str(alone)
    assert sentence not in str(heldout)
    assert "3 nets on 400 held-out samples." in str(heldout)
    near = [
        nm.compare(NETS, *data, input_margins=True, progress=False)
        for data in ((plane[1],), (None, plane[1]), (plane[1], plane[0]))
    ]
    own = nm.input_margins(NETS["good"], plane[1], progress=False).distances.tolist()
    for found, reports in zip(
        near, (near[0].reports, near[1].reports, near[2].training), strict=True
    ):
        assert reports[0].input_margins.distances.tolist() == own
        assert "input margin 25%" in {difference.number for difference in found.differences}


def test_the_verdict_counts_errors_or_says_how_many_samples_would_do(plane):
    nets = NETS | {"again": NETS["good"]}
    found = nm.compare(nets, heldout=plane[1], progress=False)
    wrong = {
        name: int((r.q <= 0).sum()) for name, r in zip(found.names, found.reports, strict=True)
    }
    alike, bad, again = found.verdict
    best = min(wrong, key=wrong.get)
    low, high = (round(400 * e) for e in sorted(abs(e) for e in found.differences[1].interval))
    fewer = wrong["bad"] - wrong[best]
    assert best == "good"
    assert bad == f"good: {fewer} fewer errors than bad (95%: {low} to {high})."
    assert low < fewer < high
    assert alike.startswith("good and alike cannot be told apart with these samples")
    assert again.endswith("have the same margins: is it one net, given twice?")
    assert found.class_frame()["bad"].sum() == wrong["bad"]
    table = found.disagreements()
    answers = {name: r.answers for name, r in zip(found.names, found.reports, strict=True)}
    assert len(table) == int((answers["good"] != answers["bad"]).logical_or(answers["alike"] != answers["good"]).sum())  # fmt: skip
    row = table.index[0]
    assert table.loc[row, "bad"] == str(int(answers["bad"][row]))
    assert table.loc[row, "label"] == str(int(found.reports[0].labels[row]))
    assert f"Their answers differ on {len(table)} samples" in str(found)


def test_differences_are_taken_in_the_order_of_the_verdict_and_z_is_explained(plane):
    _, heldout = plane
    said = []
    for names in (("good", "bad"), ("bad", "good")):
        found = nm.compare({n: NETS[n] for n in names}, heldout=heldout, progress=False)
        assert found.verdict[0].startswith("good: ")
        said.append(words_of(found.summary()).partition("z is the mean margin")[2])
    assert said[0] == said[1]
    assert said[0].startswith(" over its standard deviation: larger is better. z: good minus bad +")
    assert "margin-weighted error: good minus bad -" in said[0]


def test_as_many_samples_as_are_named_tell_nets_apart():
    """Of 100 data sets of the size that the verdict names, about 80 show the difference."""
    rng = np.random.default_rng(0)
    share, gap = 0.1, 0.04  # of samples that one net alone gets wrong: 7% and 3%
    n = count_samples_that_tell(share, gap)
    shown = 0
    for _ in range(100):
        kinds = rng.choice(3, size=round(n), p=[0.9, 0.07, 0.03])
        first, second = np.where(kinds == 1, -1.0, 1.0), np.where(kinds == 2, -1.0, 1.0)
        low, _ = difference_intervals(ERROR, (first, second))[0, 1]
        shown += low > 0
    assert 68 <= shown <= 92  # 80, and three deviations of 4 to either side


def test_more_samples_are_asked_for_than_were_given():
    """Also of five, all of which speak for one net: the exact test asks for a sixth."""
    q = np.ones((2, 5))
    q[0] = -1
    low, high = difference_intervals(ERROR, list(q))[0, 1]
    assert low <= 0 <= high
    assert count_samples_that_tell(share=1.0, gap=1.0) == 6


def test_classes_in_which_nets_differ_are_named():
    y = torch.arange(3).repeat(40)
    scores = torch.nn.functional.one_hot(y, 3).double()
    worse = scores.clone()
    worse[(y == 1).nonzero()[:12, 0]] = torch.tensor([1.0, 0.0, 0.0]).double()
    hares, cat = (y == 2).nonzero()[:, 0], torch.tensor([1.0, 0.0, 0.0]).double()
    worse[hares[:5]], scores[hares[5]] = cat, cat  # 5 against 1 may be chance
    table = nn.Embedding.from_pretrained(scores), nn.Embedding.from_pretrained(worse)
    nets = {name: nn.Sequential(rows, nn.Flatten()) for name, rows in zip("ab", table, strict=True)}
    names = ["cat", "dog", "hare"]
    found = nm.compare(nets, heldout=(torch.arange(120), y), class_names=names, progress=False)
    assert "class dog: a gets 0 of 40 wrong, b 12: more than chance" in str(found)
    assert str(found).count("class ") == 1
    assert found.disagreements().loc[1].tolist() == ["dog", "dog", "cat"]
    scores = torch.nn.functional.one_hot(y := torch.arange(6).repeat(40), 6).double()
    worse = torch.where((torch.arange(240) < 60 + 30 * y)[:, None], scores.roll(1, 1), scores)
    table = nn.Embedding.from_pretrained(scores), nn.Embedding.from_pretrained(worse)
    nets = {name: nn.Sequential(rows, nn.Flatten()) for name, rows in zip("ab", table, strict=True)}
    told = str(nm.compare(nets, heldout=(torch.arange(240), y), progress=False))
    assert re.findall(r"class (\d): a gets 0", told) == ["5", "4", "3"]  # by their differences
    assert "3 more classes differ as clearly: see class_frame()." in told


def test_nets_of_tokens_are_compared_by_their_answers_and_behind_a_layer(plane):
    torch.manual_seed(0)
    tokens = [nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(8, 2)) for _ in range(2)]
    data = (torch.randint(0, 9, (20, 2)), torch.arange(20) % 2)
    assert nm.compare(tokens, data, progress=False).reports[0].input_margins is None
    found = nm.compare(tokens, data, input_margins=True, layer="0", progress=False)
    own = nm.input_margins(tokens[1], data, layer=tokens[1][0], progress=False)
    assert found.reports[1].input_margins.distances.tolist() == own.distances.tolist()
    alike = nm.compare(tokens, data, input_margins=True, progress=False).reports[1].input_margins
    assert alike.distances.tolist() == own.distances.tolist()
    with pytest.raises(nm.ArgumentError, match="'embedding' is no module of Sequential.* 0, 1, 2"):
        nm.compare(tokens, data, input_margins=True, layer="embedding", progress=False)
    named = nm.input_margins(tokens[1], data, layer="0", progress=False)
    assert torch.equal(named.distances, own.distances)
    for ignored in ({"layer": "0"}, {"rivals": 1}):
        with pytest.raises(nm.ArgumentError, match=f"{next(iter(ignored))}.*input_margins=True"):
            nm.compare(tokens, data, progress=False, **ignored)
    nets = {name: Mapped(net, torch.detach) for name, net in NETS.items()}
    with pytest.raises(nm.ModelError, match="no gradient"):
        nm.compare(nets, *plane, input_margins=True, progress=False)
    assert nm.compare(nets, *plane, progress=False).differences[1].real


def test_each_warning_is_given_once_with_the_nets_that_it_is_about(plane):
    nets = {
        name: Mapped(net, lambda q: torch.cat([q, -q], 1).softmax(1)) for name, net in NETS.items()
    }
    nets["plain"] = NETS["good"]
    (X, y), heldout = plane
    with pytest.warns(UserWarning, match="probabilities") as warned:
        found = nm.compare(nets, (X, y > 0), (heldout[0], heldout[1] > 0), progress=False)
    told = [str(w.message) for w in warned if "probabilities" in str(w.message)]
    assert len(told) == 1
    assert told[0].startswith("good, alike, bad: These scores are probabilities")
    assert found.warning == told[0]


def test_bad_input(plane):
    data, _ = plane

    class Redrawn:
        def __init__(self, draw):
            self.draw = draw

        def __iter__(self):
            yield self.draw(*data)

    def turn_one_class(X, y):
        """Every label stays in its place."""
        own = torch.nonzero(y == y[0])[:, 0]
        return X.index_copy(0, own, X[own[torch.randperm(len(own))]]), y

    for draw in (
        lambda X, y: (X[(order := torch.randperm(len(y)))], y[order]),
        turn_one_class,
        lambda X, y: (X + 0.01 * torch.randn_like(X), y),
    ):
        for given in ((Redrawn(draw),), (data, Redrawn(draw))):
            with pytest.raises(nm.DataError, match="shuffle=False and without augmentation"):
                nm.compare(NETS, *given, progress=False)
    same = nm.compare(NETS, Redrawn(lambda X, y: (X.numpy(), y.tolist())), progress=False)
    assert torch.equal(same.reports[0].q, nm.compare(NETS, data, progress=False).reports[0].q)
    with pytest.raises(nm.DataError, match="needs labelled data"):
        nm.compare(NETS)
    with pytest.raises(nm.DataError, match="heldout= is data as well"):
        nm.compare(NETS, data, heldout=True)
    with pytest.raises(nm.ArgumentError, match="page and nm.compare take data"):
        nm.measure(NETS["good"], data, heldout=data)
    for models in (NETS["good"], {"one": NETS["good"]}, [], "models"):
        with pytest.raises(nm.ArgumentError, match="at least two nets"):
            nm.compare(models, data, progress=False)
    with pytest.raises(nm.ModelError):
        nm.compare([NETS["good"], None], data, progress=False)
