"""The page: what its sections say equals what the records say, whatever it is given."""

import base64
import dataclasses
import io
import json
import math
import os
import re
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.linear_model import LinearRegression
from torch import nn

import netmargin as nm
from netmargin.cli import main
from netmargin.core.progress import Progress
from netmargin.figures.training import _draw_loss
from netmargin.page import measured, numbers
from netmargin.page.block import make_block
from netmargin.page.inputs import describe_inputs
from netmargin.page.making import make_page
from netmargin.page.numbers import distance, percent
from netmargin.page.overview import _mistake_tile
from netmargin.page.render import render
from netmargin.page.sampling import MOST, spread_by_distance
from netmargin.page.sprites import COLUMNS, draw_curves, make_sprites
from tests.page_fixture import (
    digits_data,
    digits_net,
    digits_records,
    facts_of,
    flipped_digits,
    full_facts,
    full_page,
    labels_page,
    plain_page,
    table_page,
)


def read_block(page) -> dict:
    """The block as a browser reads it: 1e999 is infinite there, and in Python."""
    return json.loads(make_block(page))


def texts_of(record) -> str:
    """Every text of a record and what it holds, joined."""
    if isinstance(record, str):
        return record
    if isinstance(record, dict):
        return "\n".join(map(texts_of, record.values()))
    if isinstance(record, (list, tuple)):
        return "\n".join(map(texts_of, record))
    return texts_of(vars(record)) if hasattr(record, "__dataclass_fields__") else ""


def predict(net, X):
    """The answers of a net."""
    with torch.no_grad():
        return net(X).argmax(1)


INF = math.inf
WRITTEN = {  # numbers, and how a page writes them
    numbers.round_down: {0.123456: 0.1234, INF: INF},
    numbers.distance: {0.962: "0.96", -0.0571: "−0.057", 1e-4: "<0.001", -1e-9: ">−0.001",
                       0.0: "0.00", 12345.6: "12,346", 345.67: "345.7", INF: "∞"},
    partial(numbers.distance, down=True): {0.999: "0.99", 0.0316: "0.031", 0.00099: "0.000",
                                           math.nextafter(0.1, 0): "0.09", 1.96e6: "1.9·10⁶"},
    numbers.percent: {0.1433: "14%", 1e-4: "<1%", 1 / 200: "<1%", 199 / 200: ">99%", 1.0: "100%"},
    partial(numbers.percent, decimals=1): {0.064: "6.4%", 1999 / 2000: ">99.9%"},
    numbers.power_of_ten: {-12.2: "10⁻¹²", -0.5: "0.32", -1000.0: "10⁻¹⁰⁰⁰", -INF: "0"},
    numbers.significant: {0.0321: "0.032", 1234.5: "1,234", 3.2e-7: "3.2·10⁻⁷",
                          -4.6e12: "−4.6·10¹²", 0.0: "0"},
    numbers.plain: {1.0: "1", 0.2: "0.2", -0.5: "−0.5"},
    numbers.one_digit: {0.24: 0.2, 17.0: 20.0},
}  # fmt: skip


def test_numbers_are_written_with_few_digits_and_never_better_than_they_are():
    for write, known in WRITTEN.items():
        assert {value: write(value) for value in known} == known
    assert [numbers.plural(n, "image") for n in (1, 1000)] == ["1 image", "1,000 images"]
    assert numbers.ends_of_range(-0.42421296, 2.8214867) == ("-0.425", "2.822")
    assert numbers.ends_of_range(3e-9, 255.0) == ("0", "255")


def test_the_overview_counts_what_a_plain_loop_counts():
    net, (data, (X, y)) = digits_net()[0], digits_data()
    page = full_page()
    right = int((predict(net, X) == y).sum())
    assert 0 < right < 200
    assert page.overview.lead.startswith(f"Right on {right} of 200 held-out images. Where it is")
    found = nm.input_margins(net, (X, y), progress=False)
    d = found.distances
    median = d[found.q > 0].median()
    other = torch.stack(
        [(data[0][data[1] != c] - x).norm(dim=1).min() for x, c in zip(X, y, strict=True)]
    )
    share = median / other[found.q > 0].median()
    assert (
        f"about {median:.2f} from the boundary where the answer changes: {100 * share:.0f}% of the"
        " way to the" in page.overview.lead
    )
    assert page.overview.lead.endswith("nearest training image of another class.")
    one = f"one pixel value changed by {100 * median:.0f}% of its range, or each of them by"
    assert page.overview.reading.startswith(
        f"Is that far? {median:.2f} is as long as {one} {100 * median / 8:.1f}%. It is the length"
    )
    assert page.overview.certainty == "Estimated"
    middle = float(re.search(r"is ([\d.]+)\.$", page.overview.scale)[1])
    assert middle == pytest.approx(found.q[found.q > 0].median().item(), rel=0.06)
    error, mistake, radius, quarter = page.overview.tiles
    assert (radius.certainty, radius.before) == ("Proved", "proved")
    shares = [(predict(net, X)[y == c] != c).double().mean().item() for c in range(10)]
    assert (mistake.value, mistake.certainty) == (f"“{np.argmax(shares)}”", "Measured")
    assert mistake.after == f" {percent(max(shares))} wrong"
    assert (error.value, error.certainty) == (f"{100 * (1 - right / 200):.1f}", "Measured")
    wrong = int((predict(net, data[0]) != data[1]).sum())
    assert error.text.endswith(f" Training: {wrong} of 400 wrong.")
    assert page.overview.next_step[0].startswith(f"look at the {200 - right} wrong images")
    first = np.quantile(d, 0.25)
    assert (quarter.title, quarter.value) == ("Nearest quarter", f"{first:.2f}")
    assert quarter.certainty == "Estimated"
    assert quarter.text.endswith(f"of its range, or each of them by {100 * first / 8:.1f}%.")


def test_rows_of_the_block_are_those_of_the_records():
    net, (_, heldout) = digits_net()[0], digits_data()
    certificate, radii, _ = digits_records()
    block = read_block(full_page())
    assert list(block["splits"]) == ["heldout", "training"]
    held, training = (block["splits"][key]["columns"] for key in ("heldout", "training"))
    assert held["y"] == heldout[1].tolist()
    assert held["p"] == predict(net, heldout[0]).tolist()
    found = nm.input_margins(net, heldout, progress=False)
    assert held["r"] == found.rivals.tolist()
    assert np.allclose(held["d"], found.distances, rtol=6e-4, atol=0)
    assert np.allclose(held["q"], found.q, rtol=6e-4, atol=0)
    # The radii were given without their numbers: they are found by their margins.
    known = [row for row, lower in enumerate(held["lower"]) if lower is not None]
    assert known == list(range(20, 60))
    assert np.allclose(held["lower"][20:60], radii.lower, rtol=1.1e-3)
    assert (np.array(held["lower"][20:60]) <= radii.lower).all()  # what is proved is rounded down
    assert np.allclose(held["upper"][20:60], radii.upper, rtol=6e-4)
    weights = np.zeros(400)
    for (row, _), size in zip(
        certificate.constraints.tolist(), certificate.multipliers.tolist(), strict=True
    ):
        weights[row] += size
    assert np.allclose(training["w"], weights / weights.sum(), rtol=6e-4)


@pytest.mark.parametrize("make", [full_page, plain_page, table_page])
def test_every_histogram_holds_every_sample_on_its_side(make):
    page, block = make(), read_block(make())
    edges = None
    for key, split in block["splits"].items():
        d, bars = np.array(split["columns"]["d"]), block["histograms"][key]
        wrong = np.array(split["columns"]["y"]) != np.array(split["columns"]["p"])
        low, high = np.array(bars["from"]), np.array(bars["to"])
        assert edges is None or np.array_equal(edges, low)
        edges, counts = low, np.array(bars["count"])
        assert counts.sum() == split["n"] == len(d)
        assert counts[high <= 0].sum() == wrong.sum()
        assert np.allclose(bars["share"], 100 * counts / split["n"], atol=0.01)
        # Bars between the ends hold what lies in them.
        for index in range(1, len(low) - 1):
            inside = ((d > low[index] * (1 + 1e-3)) & (d < high[index] * (1 - 1e-3))).sum()
            around = ((d >= low[index] * (1 - 1e-3)) & (d <= high[index] * (1 + 1e-3))).sum()
            if low[index] > 0:
                assert inside <= counts[index] <= around
    folded = [
        any((np.array(split.columns["d"]) < page.overview.range[0]).any() for split in page.splits)
    ]
    folded += [
        any((np.array(split.columns["d"]) > page.overview.range[1]).any() for split in page.splits)
    ]
    assert list(page.overview.folded) == folded


@pytest.mark.parametrize(("size", "away"), [(1e-160, 0), (1e-13, 0), (1e30, 0), (1, 1e5)])
def test_inputs_of_any_size_and_place_have_the_same_overview(size, away):
    torch.manual_seed(0)
    X, net = torch.randn(120, 5).double(), nn.Linear(5, 3).double()
    y = (net(X) + 0.3 * torch.randn(120, 3)).argmax(1)
    usual = make_page(facts_of(net, (X, y))).overview
    with torch.no_grad():
        net.weight /= size
        net.bias -= net.weight @ torch.full((5,), float(away)).double()
    page = make_page(facts_of(net, (size * X + away, y)))
    other, bars = page.overview, page.overview.histograms["training"]
    assert other.lead.rpartition(": ")[2] == usual.lead.rpartition(": ")[2]
    assert other.lead.endswith("% of the way to the nearest sample of another class.")
    assert bars["count"] == usual.histograms["training"]["count"]
    assert np.allclose(np.array(bars["to"]) / size, usual.histograms["training"]["to"])
    # Of the nearest quarter some are wrong, which may be far from the boundary.
    d, wrong = np.array(page.splits[0].columns["d"]), page.overview.tiles[-1].text
    assert (np.abs(d) <= np.quantile(d, 0.25)).mean() < 0.24
    assert wrong.startswith("of the boundary, or on its wrong side;")


def test_nearest_images_and_classes_say_what_is_there():
    page, block = full_page(), read_block(full_page())
    held = {
        name: np.array(c)
        for name, c in block["splits"]["heldout"]["columns"].items()
        if c[0] is not None
    }
    wrong = held["y"] != held["p"]
    limit = float(f"{np.median(held['d'][~wrong]) / 4:.0e}")
    near = int((~wrong & (held["d"] < limit)).sum())
    assert near > 1
    assert page.nearest.takeaway["heldout"].startswith(
        f"On the wrong side: {wrong.sum()}. Right, but within {limit:g} of the boundary: {near}."
    )
    assert page.nearest.takeaway["training"].startswith("On the wrong side: 0.")
    assert page.nearest.below["heldout"] == limit
    pairs, said = block["pairs"]["heldout"], page.classes.takeaway["heldout"]
    d, y = (np.array(page.splits[0].columns[name]) for name in "dy")
    for label, *quantiles in zip(*page.classes.rows["heldout"].values(), strict=True):
        own = d[y == label]
        assert quantiles[1:] == pytest.approx(np.quantile(own, [0.1, 0.25, 0.5, 0.75, 0.9]))
        assert quantiles[0] == len(own)
    for name, others in (("rival", held["r"]), ("mistake", np.where(wrong, held["p"], -1))):
        wanted = [
            [int(((held["y"] == i) & (others == j)).sum()) for j in range(10)] for i in range(10)
        ]
        assert pairs[name] == wanted
        i, j = np.unravel_index(np.argmax(wanted), (10, 10))
        word = "next to" if name == "rival" else "taken for"
        assert f"“{i}” {word} “{j}” ({np.max(wanted)} " in said
    medians = [np.median(held["d"][held["y"] == label]) for label in range(10)]
    assert said.startswith(
        f"By the median, class “{np.argmin(medians)}” lies closest to the boundary"
        f" ({min(medians):.2f})."
    )
    assert np.allclose(block["classes"]["heldout"]["median"], medians, rtol=1e-3)
    assert page.classes.takeaway["training"].endswith("There is no mistake.")
    assert page.classes.not_mistakes["heldout"].endswith(
        f": {200 - wrong.sum()} of 200 are answered correctly."
    )


def test_radii_are_counted_and_the_estimate_is_calibrated_by_them():
    net, (_, (X, y)) = digits_net()[0], digits_data()
    _, radii, _ = digits_records()
    page, block = full_page(), read_block(full_page())["change"]
    assert page.change.data == "40 of the 200 held-out images"
    safe, flipped = np.sort(radii.lower)[19], np.sort(radii.upper)[19]
    assert (radii.lower >= safe).sum() >= 20 <= (radii.upper <= flipped).sum()
    # What is proved is rounded down.
    assert (
        f"it is proved that no change below {math.floor(100 * safe) / 100:.2f} flips the answer;"
        f" half are flipped by a change of {flipped:.2f} or less that was found"
        in page.change.takeaway
    )
    assert page.change.takeaway.endswith("What lies between is open.")
    assert {tag.certainty: tag.text for tag in page.change.tags}["Proved"] == "lower curve"
    curve = {name: np.array(column) for name, column in block["nets"][0]["curve"].items()}
    lower, upper = (np.array(block["nets"][0][end]) for end in ("lower", "upper"))
    for x, proved, flipped in zip(curve["x"], curve["proved"], curve["flipped"], strict=True):
        assert proved == pytest.approx(100 * (lower > x).mean(), abs=0.0051)
        assert flipped == pytest.approx(100 * (upper <= x).mean(), abs=0.0051)
    assert (curve["proved"] + curve["flipped"] <= 100 + 1e-9).all()
    assert block["nets"][0]["wrong"] == int((predict(net, X[20:60]) != y[20:60]).sum())
    d = nm.input_margins(net, (X[20:60], y[20:60]), progress=False).distances.numpy()
    ratios = (d / np.where(radii.upper > 0, radii.upper, 1))[radii.upper > 0]
    calibration = page.change.notes[1]
    assert f"On the {len(ratios)} images that are right" in calibration
    assert f"in the median {np.median(ratios):.2f} times the smallest flip found" in calibration
    assert calibration.endswith(f"too low for {(ratios < 1).sum()}.")


def test_examined_samples_are_spread_over_all_and_say_what_they_say_of_the_rest():
    net, (data, (X, y)) = digits_net()[0], digits_data()
    d = nm.input_margins(net, (X, y), progress=False).distances
    rows = spread_by_distance(d, 20)
    ranks = np.argsort(np.argsort(d.numpy(), kind="stable"))[rows.numpy()]
    assert sorted(ranks) == list(range(5, 200, 10))  # the middle one of each of twenty groups
    radii = nm.robustness(net, (X[rows], y[rows]), box=(0, 1), effort="quick", progress=False)
    change = make_page(facts_of(net, data, (X, y), records=radii)).change
    assert change.data == "20 of the 200 held-out images"
    points = 98 * math.sqrt(180 / (20 * 199))
    assert 20 < points < 22
    assert change.notes[0] == (
        "What is proved is proved of these 20 alone. They were taken evenly in the order of"
        " estimated distance, so a share of them is that of all 200 within about"
        f" {points:.0f} percentage points (95%)."
    )
    assert change.nets[0].samples == "the 20 examined images"
    # Somebody else chose these.
    assert "They are not spread over all" in full_page().change.notes[0]


def test_shares_of_evenly_chosen_samples_are_near_those_of_all():
    """The share of correlated radii above a size, from 20 of 400: within 21 points 19 times of 20."""
    generator = torch.Generator().manual_seed(0)
    misses = 0
    for _ in range(200):
        d = torch.randn(400, generator=generator)
        radii = d + torch.randn(400, generator=generator)
        share = (radii[spread_by_distance(d, 20)] > 0.3).float().mean() - (
            radii > 0.3
        ).float().mean()
        misses += bool(share.abs() > 0.98 * math.sqrt(380 / (20 * 399)))
    assert misses <= 10


def test_no_curve_proves_more_than_its_radii_however_many_there_are():
    torch.manual_seed(0)
    X, net = torch.randn(500, 5), nm.models.mlp([5, 16, 3])
    data = X, net(X).argmax(1)
    radii = nm.robustness(net, data, effort="quick", attacks=False, progress=False)
    change = read_block(make_page(facts_of(net, data, records=[radii])))["change"]
    curve = {name: np.array(column) for name, column in change["nets"][0]["curve"].items()}
    sizes = np.linspace(0, change["largest"], 3001)[:-1]
    said = curve["proved"][np.searchsorted(curve["x"], sizes, side="right") - 1]
    true = 100 * (radii.lower > sizes[:, None]).mean(1)
    assert len(curve["x"]) == 300 < len(np.unique(radii.lower))
    assert ((true - said > -0.0051) & (true - said < 1)).all()  # shares have four digits, too


def test_flips_are_shown_before_and_after_with_their_difference():
    net, (_, (X, y)) = digits_net()[0], digits_data()
    _, radii, _ = digits_records()
    flips = full_page().change.flips
    upper = np.where(radii.upper > 0, radii.upper, np.inf)
    found = np.sort(upper[np.isfinite(upper)])
    sizes = [found[0], found[round((len(found) - 1) / 2)], found[-1]]
    names = ("the smallest", "the middle one", "the largest")
    assert [flip.size for flip in flips] == [
        f"{distance(size)}, {name}" for size, name in zip(sizes, names, strict=True)
    ]
    row = 20 + int(np.argmin(upper))
    assert flips[0].title == f"held-out image {row}"
    change = radii.flips[row - 20].reshape(8, 8) - X[row].double().numpy().reshape(8, 8)
    before, after, difference = (read_picture(uri) for uri, _ in flips[0].pictures)
    assert np.allclose(before, 255 * X[row].reshape(8, 8), atol=0.51)
    assert np.allclose(after - before, 255 * change, atol=1.1)
    assert np.allclose(difference, 127.5 * (1 + change / np.abs(change).max()), atol=0.51)
    assert f"up to {100 * np.abs(change).max():.0f}% of the range" in flips[0].pictures[2][1]
    z = net(torch.from_numpy(radii.flips[row - 20])[None].float())[0]
    assert flips[0].answers[0] == str(int(y[row]))
    assert int(flips[0].answers[1]) in z.topk(2).indices.tolist()
    assert flips[0].answers[1] != flips[0].answers[0]


def test_flips_of_a_table_name_the_inputs_that_change_most():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(30, 5, generator=generator)
    data, net = (X, (X[:, 1] > 0).long()), nn.Linear(5, 2)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0, -1.0, 0, 0.1, 0], [0, 1.0, 0, 0, 0]]))
        net.bias.zero_()
    radii = nm.robustness(net, data, progress=False)
    names = ["age", "height", "weight", "pulse", "dose"]
    flip = make_page(facts_of(net, data, records=radii, feature_names=names)).change.flips[1]
    assert [name for name, *_ in flip.inputs][:2] == ["height", "pulse"]
    assert not flip.pictures
    assert flip.answers in (("0", "1"), ("1", "0"))


def read_picture(uri: str) -> np.ndarray:
    """The pixels of a data URI."""
    data = base64.b64decode(uri.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(data)), dtype=float)


def test_support_training_and_scaling_follow_their_records():
    certificate, _, history = digits_records()
    page, block = full_page(), read_block(full_page())
    weights = np.sort(np.array(page.splits[1].columns["w"]))[::-1]
    half = int(np.argmax(np.cumsum(weights) >= 0.5)) + 1
    assert page.support.takeaway.startswith(
        f"Of 400 training images {len(certificate.support)} carry the decision (support vectors),"
        f" and {half} of them half of it. The net is "
    )
    assert page.support.gauge == certificate.relative_epsilon
    assert ("provisional" in page.support.takeaway) == (certificate.relative_epsilon > 0.1)
    assert page.support.heaviest[0].row == int(np.argmax(page.splits[1].columns["w"]))
    left = f"{100 * certificate.relative_epsilon:.0f}% of the length of the weights is left"
    assert left in page.support.rebuilt
    accuracy = history.column("accuracy")
    first = next(e for e in range(len(accuracy)) if all(a == 1 for a in accuracy[e:]))
    assert page.training.separated == block["training"]["separated"] == first > 0
    margins = history.column("normalized_margin")
    assert page.training.takeaway.startswith(
        f"All training images have been right since epoch {first}."
    )
    assert f"from {margins[first]:.2g} to {margins[-1]:.2g}" in page.training.takeaway
    assert page.scaling.takeaway.startswith("All of them: doubling these weights multiplies ")
    assert "score by 4 and changes no answer" in page.scaling.takeaway
    assert page.scaling.layers == str(nm.analyse(digits_net()[0], digits_data()[1][0][:20]))


def test_several_nets_are_compared_and_only_real_differences_are_said():
    page = full_page()
    assert page.comparison.takeaway.startswith("150 epochs: ")
    assert page.comparison.takeaway.endswith("150 epochs is better than 3 epochs (95%).")
    assert [net.here for net in page.comparison.nets] == [True, False]
    # Bars are errors between the ends of their intervals, on one scale with as much room on its left
    # as on its right.
    (first, second), reports = page.comparison.nets, full_facts().comparison.reports
    known = np.array([[r.error_interval[0], r.error, r.error_interval[1]] for r in reports])
    bars = np.array([first.error.bar, second.error.bar])
    assert bars.min() == pytest.approx(100 - bars.max())
    unit = (bars.max() - bars.min()) / (known.max() - known.min())
    assert np.allclose(bars - bars.min(), unit * (known - known.min()))
    q = nm.measure(digits_net(3)[0], digits_data()[1]).q
    assert page.comparison.nets[1].z.value == distance((q.mean() / q.std(correction=0)).item())
    assert page.comparison.nets[1].wrong == str(
        int((predict(digits_net(3)[0], digits_data()[0][0]) != digits_data()[0][1]).sum())
    )
    net, (data, heldout) = digits_net()[0], digits_data()
    several = {"150": net, "3": digits_net(3)[0], "same": net, "1": digits_net(1)[0]}
    found = nm.compare(several, data, heldout, input_margins=True, progress=False)
    page = make_page(facts_of(several, data, heldout, records=found))
    ends = [
        next(
            d.interval
            for d in found.differences
            if (d.data, d.number, d.first, d.second) == ("held-out", "error", "150", other)
        )
        for other in ("3", "1")
    ]
    amounts = [f"{-100 * high:.1f} to {-100 * low:.1f}" for low, high in ends]
    verdicts = [row.error.verdict for row in page.comparison.nets]
    assert verdicts == [
        "",
        f"worse by {amounts[0]} points",
        "not clearly different",
        f"worse by {amounts[1]} points",
    ]
    said = [*found.verdict, "By margin score 150 is better than 3 and 1 (95%)."]
    assert page.comparison.takeaway == " ".join(said)
    page = full_page()
    same = make_page(facts_of({"a": net, "b": net}, data, heldout))
    assert same.comparison.takeaway.endswith("is it one net, given twice?")
    assert same.comparison.nets[1].z.verdict == "not clearly different"
    for cell in (page.comparison.nets[0].error, page.comparison.nets[1].error):
        low, at, high = cell.bar
        assert 0 <= low <= at <= high <= 100
    assert page.links[0].id == "compare"
    assert "nm.robustness" in same.absent  # no record is there, and none is invented
    assert same.change is same.support is same.training is None


def test_samples_to_which_nets_give_different_answers_are_marked_and_shown():
    net, (data, (X, y)) = digits_net()[0], digits_data()
    nets = {"150": net, "same": net, "3": digits_net(3)[0]}
    page = make_page(facts_of(nets, data, (X, y)))
    own, other = predict(net, X), predict(nets["3"], X)
    columns = page.splits[0].columns
    expected = [None if a == b else b for a, b in zip(own.tolist(), other.tolist(), strict=True)]
    assert columns["o"] == expected
    differ = [row for row, answer in enumerate(expected) if answer is not None]
    assert all(columns["image"][row] is not None for row in differ)
    text = render(page)
    assert "give different answers" in text
    assert 'value="other"' in text
    alike = render(make_page(facts_of({"a": net, "b": net}, data, (X, y))))
    assert "give different answers" not in alike


def test_a_net_is_not_called_better_for_what_calibration_can_make():
    net, (data, heldout) = digits_net()[0], digits_data()
    nets = {"150": net, "flat": nn.Sequential(net, nn.Softsign())}  # the same answers
    comparison = make_page(facts_of(nets, data, heldout)).comparison
    assert comparison.takeaway.endswith("they make as many errors.")
    assert "calibration alone" in comparison.notes[0]
    assert comparison.nets[1].error.verdict == "not clearly different"
    assert comparison.nets[1].z.verdict == "differs, perhaps by calibration alone"
    nets = {"150": net, "3": digits_net(3)[0]}
    found = nm.compare(nets, data, heldout, progress=False)
    unclear = [
        dataclasses.replace(d, note="not so") if d.number == "z" else d for d in found.differences
    ]
    given = dataclasses.replace(found, differences=type(found.differences)(unclear))
    comparison = make_page(facts_of(nets, data, heldout, records=given)).comparison
    assert comparison.takeaway == " ".join(found.verdict)
    assert "one can be clear where the bars of both nets overlap" in comparison.notes[0]


def test_each_net_is_measured_once_and_compared_as_nm_compare_does(monkeypatch):
    data, heldout = digits_data()
    nets = {"150": digits_net()[0], "3": digits_net(3)[0]}
    how = {"input_margins": True, "batch_size": measured.AT_ONCE, "progress": False}
    found, calls = nm.compare(nets, data, heldout, **how), []
    real = measured.measure
    monkeypatch.setattr(measured, "measure", lambda *a, **o: calls.append(a[0]) or real(*a, **o))
    facts = facts_of(nets, data, heldout)
    assert calls == [nets["150"]] * 2 + [nets["3"]] * 2  # held-out and training data
    assert facts.comparison.frame().equals(found.frame())
    assert facts.comparison.differences == found.differences


def test_one_line_tells_how_far_a_page_has_come(tmp_path, monkeypatch, capsys):
    """Of four passes of two batches each, with the time left of the whole."""
    monkeypatch.setattr("netmargin.core.progress._LOG_EVERY_SECONDS", -1.0)
    X, y = nm.datasets.digits(limit=300)
    nets = {name: torch.nn.Linear(64, 10) for name in "ab"}
    shares, draw = [], Progress.draw

    def watch(self, done, left, line):
        if self._part is None:
            shares.append(done / (done + left))
        draw(self, done, left, line)

    monkeypatch.setattr(Progress, "draw", watch)
    nm.page(nets, (X[:150], y[:150]), (X[150:], y[150:]), out=tmp_path / "page.html")
    lines = capsys.readouterr().err.splitlines()
    assert shares == [0, 0, 1 / 8, 1 / 4, 1 / 4, 3 / 8, 1 / 2, 1 / 2, 5 / 8, 3 / 4, 3 / 4, 7 / 8]
    assert len(lines) == len(shares)
    assert all(line.startswith("page: ") for line in lines)
    assert lines[-1].startswith("page: training samples of b, batch 2 of 2  0:00:0")


def test_every_link_leads_to_a_place_of_the_page():
    radii = digits_records()[1]
    for page in (full_page(), plain_page(), make_page(facts_of(radii))):
        tags = Parts(render(page)).tags
        ids = {attributes.get("id") for _, attributes in tags}
        links = [attributes["href"] for tag, attributes in tags if tag == "a"]
        assert len(links) > 2
        assert {link.removeprefix("#") for link in links} <= ids


def test_wrong_labels_are_those_of_their_record():
    (X, y), wrong = flipped_digits()
    net, found = digits_net()[0], nm.label_errors((X, y))
    page = make_page(facts_of(net, (X, y), digits_data()[1], records=found))
    labels, frame = page.labels, found.frame(50)
    worst = found.order[:50].tolist()
    assert [label.row for label in labels.worst] == worst
    assert len(wrong & set(worst)) > 30
    assert [label.caption for label in labels.worst[:3]] == [
        f"{row.given}, rather {row.suggested}" for row in frame[:3].itertuples()
    ]
    sure = round(float(found.wrong[found.order][:50].sum()))
    assert labels.takeaway == (
        f"About {found.count} of 400 labels are wrong, at most {found.count_at_most} (95%"
        f" confidence). Of the 50 below about {sure} are."
    )
    assert labels.lines[7][0] == str(worst[7])
    assert labels.lines[49][4] == percent(found.wrong[worst[49]].item())
    assert not any("100%" in label.number for label in labels.worst)  # an estimate
    answers = predict(net, X[worst])
    kept, other = (int((answers == of[worst]).sum()) for of in (found.given, found.suggested))
    assert kept < other
    said = f"net answers {kept} as they are labelled and {other} as is suggested."
    assert any(note.endswith(said) for note in labels.notes)
    columns = read_block(page)["splits"]["training"]["columns"]
    assert columns["s"] == found.suggested.tolist()
    assert np.allclose(columns["f"], found.scores, rtol=6e-4)
    assert np.allclose(columns["e"], found.wrong, rtol=6e-4)
    assert "s" not in read_block(page)["splits"]["heldout"]["columns"]
    link = next(link for link in page.links if link.id == "labels")
    assert link.verdict == f"at most {found.count_at_most} wrong"


def test_the_next_step_is_the_one_that_what_is_known_leads_to():
    net, (data, heldout) = digits_net()[0], digits_data()
    shifted = make_page(facts_of(net, (data[0], (data[1] + 1) % 10)))  # labels are one too large
    assert "numbered otherwise than the outputs: with 0 as 9" in shifted.overview.next_step[0]
    assert shifted.overview.next_step[1] == ""
    assert full_page().overview.next_step[1] == "wrong"
    assert labels_page().overview.next_step[1] == "labels"
    assert "held-out data" in plain_page().overview.next_step[0]  # all training samples are right
    right = (heldout[0], predict(net, heldout[0]))
    assert "compare nets" in make_page(facts_of(net, data, right)).overview.next_step[0]
    swapped = make_page(facts_of(net, heldout, data)).overview.next_step[0]
    wrong = int((right[1] != heldout[1]).sum())
    said = (
        f"0 of {len(data[1])} held-out samples are wrong, and {wrong} of {len(right[1])} training"
    )
    assert swapped.startswith(said)
    for scale in (1, 2, 4, 1 / 4, 255):  # others than standardized inputs differ by
        facts = facts_of(net, data, (scale * heldout[0], heldout[1]))
        said = make_page(facts).overview.next_step[0]
        assert said.startswith("scale inputs alike: entries are") == (scale not in (1, 2)), scale
    tail = heldout[0].clone()
    tail[:9] *= 1e6  # a few samples are no other scale
    assert "alike" not in make_page(facts_of(net, data, (tail, heldout[1]))).overview.next_step[0]


def test_wrong_labels_that_cannot_be_counted_are_in_order_all_the_same():
    data, net = digits_data()[0], digits_net()[0]
    found = nm.label_errors(data)
    none = dataclasses.replace(found, share=0.0, wrong=found.wrong * 0, conflicts=((3, 8),))
    page = make_page(facts_of(net, data, records=none))
    assert page.labels.takeaway == none.verdict
    assert f"at most {none.count_at_most} are wrong" in page.labels.takeaway
    assert "there may be none" in page.labels.takeaway
    assert "%" not in "".join(map(texts_of, page.labels.worst))
    assert "e" not in page.splits[0].columns
    assert any(
        "Equal images with different labels, such as 3 and 8: 1 group." in note
        for note in page.labels.notes
    )
    names = [f"digit {k}" for k in range(10)]
    named = make_page(facts_of(net, data, records=found, class_names=names))
    assert named.labels.worst[0].caption.startswith("digit ")
    # The record alone has no images to look at, and yet its table.
    alone = make_page(facts_of(found))
    assert (alone.labels.worst, len(alone.labels.lines)) == ((), 50)


def test_wrong_labels_are_called_by_the_names_of_their_record():
    (X, y), _ = flipped_digits()
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    found, net = nm.label_errors((X, [words[c] for c in y])), digits_net()[0]
    assert found.class_names == tuple(sorted(words))
    expected = make_page(facts_of(found)).labels.lines
    row = int(found.order[0])
    assert expected[0][:2] == (str(row), words[y[row]])
    # The page numbers the classes otherwise: they are told by name.
    assert make_page(facts_of(found, class_names=words)).labels.lines == expected
    assert make_page(facts_of(net, (X, y), records=found, class_names=words)).labels.lines == (
        expected
    )
    with pytest.raises(nm.ArgumentError, match="number the classes as eight, five.*anew with"):
        facts_of(found, class_names=["null", *words[1:]])


@pytest.mark.slow
def test_wrong_labels_of_other_data_are_refused_and_those_of_many_samples_have_their_images():
    (X, y), _ = flipped_digits(1400, 140)
    found, net = nm.label_errors((X, y)), digits_net()[0]
    for other in ((X, y.flip(0)), (X[:500], y[:500])):
        with pytest.raises(nm.ArgumentError, match="The label errors are about 1400 samples"):
            facts_of(net, other, records=found)
    page = make_page(facts_of(net, (X, y), records=found))
    images = page.splits[0].columns["image"]
    assert sum(image is not None for image in images) == MOST
    assert all(images[label.row] is not None for label in page.labels.worst)
    # Labels of two classes may be signs.
    signs = torch.where(y < 5, -1, 1)
    page = make_page(facts_of(nn.Linear(64, 1), (X, signs), records=nm.label_errors((X, signs))))
    assert set(page.splits[0].columns["s"]) == {0, 1}


def test_about_explains_what_is_on_the_page_and_nothing_else():
    data, heldout = digits_data()
    net, (certificate, radii, history) = digits_net()[0], digits_records()
    everything = dict(full_page().about)
    assert {"Normalized margin", "Share, support vector"} <= set(everything)
    assert everything["Intervals"].endswith("whichever is wider.")
    terms = dict(make_page(facts_of(net, data, heldout, records=[radii])).about)
    assert {"Proved radius", "Rival", "Intervals"} <= set(terms)
    assert not {"Normalized margin", "Share, support vector"} & set(terms)
    assert list(dict(make_page(facts_of(history)).about)) == ["Normalized margin", "Made by"]
    assert "Share, support vector" in dict(make_page(facts_of(certificate)).about)


def test_what_was_not_asked_for_is_one_line_at_the_end():
    page = plain_page()
    assert page.absent.startswith("Not on this page, since not asked for: errors on held-out data")
    for added in ("heldout", "label_errors", "robustness", "certify", "nm.train", "nm.compare"):
        assert added in page.absent
    assert page.absent in Parts(render(page)).shown
    assert full_page().absent.endswith("not asked for: wrong labels (nm.label_errors, --labels).")
    assert not make_page(facts_of(digits_records()[1])).absent


def test_one_word_for_support_vectors_leads_to_their_section():
    page = full_page()
    shown = Parts(render(page)).shown
    link = next(link for link in page.links if link.id == "support")
    assert link.title == "Support vectors"
    assert "Which training images are the support vectors?" in shown
    assert "support vectors (nm.certify, --certificate)" in plain_page().absent


def test_the_range_of_images_holds_every_value_of_them():
    X, y = digits_data()[0]
    net = nn.Sequential(nn.Flatten(), digits_net()[0])
    X = ((X - 0.4242) / 0.3081).reshape(-1, 1, 8, 8)
    page = make_page(facts_of(net, (X, y)))
    assert X.min() >= -1.377
    assert X.max() <= 1.869
    assert page.overview.axis.unit == "L2; pixel values −1.377 to 1.869"


class Parts(HTMLParser):
    """The tags of a page, and what it shows and runs."""

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.scripts, self.shown, self._inside = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._inside = tag if tag in ("script", "style") else self._inside
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        self._inside = None if tag == self._inside else self._inside

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._inside is None:
            self.shown.append(data)

    def block(self) -> dict:
        """The JSON block with the rows."""
        blocks = [
            json.loads(text)
            for head, text in self.scripts
            if head.get("type") == "application/json"
        ]
        return next(block for block in blocks if "splits" in block)


NASTY = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", '"><b>&amp;</b>')


def test_html_in_names_labels_and_files_is_text(tmp_path):
    (X, y), heldout = nm.datasets.digits(limit=40), nm.datasets.digits("test", limit=20)
    names = [f"{NASTY[i % 3]}{i}" for i in range(10)]
    net = nm.models.mlp([64, 8, 10])
    tokens = nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(8, 10))
    pages = {
        "names": nm.page(
            {NASTY[0]: net, NASTY[1]: net},
            (X, y),
            heldout,
            out=tmp_path / f"{NASTY[1]}.html",
            class_names=names,
        ),
        "texts": nm.page(
            tokens,
            (y[:, None].repeat(1, 2) % 9, y),
            out=tmp_path / "texts.html",
            texts=[NASTY[i % 3] for i in range(40)],
        ),
        "columns": nm.page(
            net,
            (X, y),
            out=tmp_path / "columns.html",
            feature_names=[f"{NASTY[i % 3]}{i}" for i in range(64)],
        ),
    }
    plain = Parts(nm.page(net, (X, y), heldout, out=tmp_path / "plain.html").path.read_text())
    for name, written in pages.items():
        parts = Parts(written.path.read_text())
        assert len(parts.scripts) == len(plain.scripts)
        assert not any(
            "alert" in text
            for head, text in parts.scripts
            if head.get("type") != "application/json"
        )
        assert not any(
            "onerror" in attributes or attributes.get("src") for _, attributes in parts.tags
        )
        assert (
            "default-src 'none'"
            in parts.tags[[t for t, _ in parts.tags].index("meta") :].__repr__()
        )
        # And yet they are there, as text.
        block = parts.block()
        if name == "names":
            assert block["names"] == names
            assert any(f"“{name}”" in "".join(parts.shown) for name in names)
            assert NASTY[0] in parts.shown[:40]
        else:
            assert any(NASTY[1] in text for text in block["splits"]["training"]["columns"]["text"])


def test_a_page_of_a_thousand_images_is_small_and_loads_nothing(tmp_path):
    generator = torch.Generator().manual_seed(0)
    data = os.environ.get("NETMARGIN_DATA")
    if data:
        X, y = nm.datasets.mnist(limit=1000)
        held = nm.datasets.mnist("test", limit=1000)
    else:  # blobs compress worse than strokes do
        X = (
            torch.rand(1000, 1, 7, 7, generator=generator)
            .repeat_interleave(4, 2)
            .repeat_interleave(4, 3)
        )
        y, held = torch.arange(1000) % 10, None
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    written = nm.page(net, (X, y), held, out=tmp_path / "page.html")
    assert written.bytes == written.path.stat().st_size < 1_500_000
    parts = Parts(written.path.read_text())
    for _, attributes in parts.tags:
        for name in ("src", "href"):
            assert not re.match(r"(https?:)?//", attributes.get(name) or ""), attributes
    split = parts.block()["splits"]["training"]
    assert split["n"] == len(split["columns"]["d"]) == 1000
    assert sorted(split["columns"]["image"])[-1] == (1999 if held else 999)


@pytest.mark.parametrize(
    ("shape", "kind"), [((8, 8), "png"), ((8, 6, 3), "webp"), ((300, 200), "png")]
)
def test_sprites_hold_the_images_in_their_cells(shape, kind):
    values = torch.linspace(0, 1, 90)
    images = values.reshape(-1, *[1] * len(shape)).expand(90, *shape) * 50 - 10
    found = make_sprites([images[:60], images[60:]], -10, 40)
    assert max(found.width, found.height) <= 64
    head, data = found.uris[0].split(",")
    assert head == f"data:image/{kind};base64"
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("L"), dtype=float)
    assert pixels.shape == (3 * found.height, COLUMNS * found.width)
    for cell in (0, 39, 40, 89):
        row, column = divmod(cell, COLUMNS)
        own = pixels[row * found.height :, column * found.width :][: found.height, : found.width]
        assert abs(own.mean() - 255 * cell / 89) < 10  # 16 levels, 80% quality


def test_many_samples_keep_their_numbers_and_show_the_images_that_matter():
    generator = torch.Generator().manual_seed(0)
    n = 3000
    X, y = torch.rand(n, 16, generator=generator), torch.randint(0, 3, (n,), generator=generator)
    facts = facts_of(nn.Linear(16, 3), (X, y))
    page = make_page(facts)
    columns = page.splits[0].columns
    assert len(columns["d"]) == n
    shown = np.array([cell is not None for cell in columns["image"]])
    assert shown.sum() == MOST
    nearest = np.argsort(np.abs(columns["d"]), kind="stable")[: MOST // 2]
    assert shown[nearest].all()
    assert [cell for cell in columns["image"] if cell is not None] == list(range(MOST))
    assert "1,000 of 3,000 images" in texts_of(page.about)
    counts = page.overview.histograms["training"]["count"]
    assert sum(counts) == n


CASES = {
    "one class": (lambda X, y: (X[y == 3], y[y == 3]), "All training images are of class “3”"),
    "two samples": (lambda X, y: (X[:2], y[:2]), "right on"),
    "one sample": (lambda X, y: (X[:1], y[:1]), "right on"),
    "more wrong": (lambda X, y: (X[30:], y[30:] * (y[30:] > 1)), "Compare labels and classes"),
    "all wrong": (lambda X, y: (X[y > 0], y[y > 0]), "On the wrong side: 72."),
    "no gradient": (lambda X, y: (X, y), "at no finite distance from the boundary"),
    "a thousand classes": (lambda X, y: (X, y * 100), "right on"),
    "rectangles": (lambda X, y: (X.reshape(-1, 1, 16, 4), y), "right on"),
    "odd range": (lambda X, y: (X * 300 + 5, y), "Their values, 5 to 305, are shown"),
    "seven channels": (
        lambda X, y: (X[:, :63].reshape(-1, 7, 3, 3), y),
        "Of 7 channels the first three",
    ),
    "whole numbers": (lambda X, y: ((X * 16).to(torch.uint8), y), "the model holds no embedding"),
}


class Odd(nn.Module):
    """A net that takes anything, and always says 0 more or less."""

    def __init__(self, inputs: int, classes: int, slope: float):
        super().__init__()
        self.last = nn.Linear(inputs, classes)
        with torch.no_grad():
            self.last.weight.mul_(0)
            self.last.weight[0, 0] = slope
            self.last.bias.copy_((torch.arange(classes) == 0) * 10.0)

    def forward(self, x):
        return self.last(x.float().flatten(1))


@pytest.mark.parametrize("name", CASES)
def test_odd_data_make_a_page_that_says_so(name):
    cut, said = CASES[name]
    X, y = cut(*nm.datasets.digits(limit=80))
    classes = 1000 if "thousand" in name else 10
    net = Odd(X[0].numel(), classes, 0.0 if name == "no gradient" else 0.3)
    page = make_page(facts_of(net, (X, y), (X, y)))
    text = texts_of(page)
    if name == "all wrong":
        assert page.classes.not_mistakes["heldout"].startswith("All are wrong: the rival is often")
        assert page.overview.scale == ""
    if name == "whole numbers":
        assert page.overview.axis.name == "score margin"
        assert page.overview.tiles[0].title == "Held-out error"
    assert said.lower() in (text + page.overview.lead).lower()
    assert not re.search(r"\bnan\b|\binf\b|−0\.00\b|\b1 images\b", text), text
    block = read_block(page)
    if name == "no gradient":  # no distance is finite: there is no picture of them
        assert not page.overview.histograms
        assert not page.classes.drawn
    else:
        assert sum(block["histograms"]["heldout"]["count"]) == len(X)
    assert "nan" not in make_block(page).lower()


def once(*batch):
    """A stream that can be read once."""
    yield batch


def refuse(X, y, net, folder):
    """What no page is made of, and a word of why."""
    certificate, _, history = digits_records()
    own = digits_net()[0]
    return {
        "data is a generator, which can be read only once": ((net, once(X, y)), {}),
        "heldout is a generator": ((net, (X, y), once(X, y)), {}),
        "data: .* without labels": ((net, X), {}),
        "heldout: .* without labels": ((net, (X, y), X), {}),
        "needs labelled data": ((net,), {}),
        "got int": ((3,), {}),
        "got list": (([],), {}),
        "the scikit-learn estimator LinearRegression. Copy": ((LinearRegression(),), {}),
        "NaN or infinite": ((nn.Sequential(net, Nothing()), (X, y)), {}),
        "certificate is about 400 samples": ((own, (X, y)), {"records": certificate}),
        "more than one History": ((net, (X, y)), {"records": [history, history]}),
        "records must hold": ((net, (X, y)), {"records": [3]}),
        "one text for each sample": ((net, (X, y)), {"texts": ["a"]}),
        "texts must hold": ((net, (X, y)), {"texts": 5}),
        "feature_names has 1 names": ((net, (X, y)), {"feature_names": ["a"]}),
        "class_names": ((net, (X, y)), {"class_names": ["a"]}),
        "Data without a model": ((history, (X, y)), {}),
        "is a folder; give the name of a file": ((net, (X, y)), {"out": folder}),
        "Cannot write": ((net, (X, y)), {"out": folder / "file" / "page.html"}),
    }


class Nothing(nn.Module):
    """Scores that are no numbers."""

    def forward(self, x):
        return x * math.nan


def test_texts_of_a_wrong_number_are_refused_before_any_work():
    class Untouched(nn.Linear):
        def forward(self, x):
            raise AssertionError("the net was called")

    with pytest.raises(nm.ArgumentError, match="one text for each sample"):
        nm.page(Untouched(3, 2), (torch.zeros(4, 3), [0, 1, 0, 1]), texts=["a"])


def test_what_cannot_be_shown_is_refused_by_name(tmp_path):
    X, y = nm.datasets.digits(limit=20)
    (tmp_path / "file").write_text("")
    net = nm.models.mlp([64, 4, 10])
    for said, (arguments, options) in refuse(X, y, net, tmp_path).items():
        with pytest.raises(nm.NetmarginError, match=said):
            nm.page(*arguments, **({"out": tmp_path / "never.html"} | options))
    assert not (tmp_path / "never.html").exists()


def test_records_alone_make_a_page(tmp_path):
    certificate, radii, history = digits_records()
    saved = certificate.save(tmp_path / "certificate.zip")
    net, (data, heldout) = digits_net()[0], digits_data()
    for subject, section in (
        (certificate, "support"),
        (str(saved), "support"),
        (radii, "change"),
        (history, "training"),
        (nm.compare([net, digits_net(3)[0]], data, heldout, progress=False), "comparison"),
    ):
        page = make_page(facts_of(subject))
        assert getattr(page, section) is not None
        assert page.overview is None
        assert not page.splits
        assert nm.page(subject, out=tmp_path / "page.html").bytes < 800_000
    assert (
        nm.page([certificate, history], out=tmp_path / "page.html").title
        == "KKTCertificate, History"
    )


def test_radii_without_proof_or_attack_never_show_a_radius_of_zero():
    _, radii, _ = digits_records()
    data, heldout = digits_data()
    unproved = dataclasses.replace(radii, no_lower="the net is recurrent", lower=radii.lower * 0)
    page = make_page(facts_of(digits_net()[0], data, heldout, records=[unproved]))
    assert page.change.no_proof == "Nothing is proved here: the net is recurrent"
    assert "Proved" not in {tag.certainty for tag in page.change.tags}
    assert "lower" not in page.splits[0].columns
    assert not any("Radius" in tile.title for tile in page.overview.tiles)
    alone = dataclasses.replace(radii, attacks=False, upper=np.where(radii.q > 0, np.inf, 0.0))
    page = make_page(facts_of(digits_net()[0], data, heldout, records=[alone]))
    assert "open" in page.change.takeaway
    assert "upper" not in page.splits[0].columns
    assert not page.change.attacked
    tile = page.overview.tiles[2]
    assert (tile.title, tile.before, tile.after) == ("Radius, 40 examined images", "proved", "")
    assert tile.value == distance(np.sort(radii.lower)[19], down=True)


def test_what_was_proved_quickly_says_what_proves_more():
    data, (X, y) = digits_data()
    radii = digits_records()[1]
    page = make_page(facts_of(digits_net()[0], data, (X, y), records=[radii]))
    assert len(page.change.notes) == 2
    flip = distance(np.sort(radii.upper)[19])
    assert page.overview.tiles[2].after == f" / flip found {flip}"
    assert page.overview.tiles[2].text == (
        "Median, wrong ones as 0: for half of them no smaller change (in L2) flips the answer."
        " The truth lies between."
    )
    for changed, said in (
        ({"effort": "quick"}, 'effort="standard") proves more.'),
        ({"no_chain": "it pools."}, "Lipschitz constants alone: it pools."),
    ):
        given = dataclasses.replace(radii, **changed)
        page = make_page(facts_of(digits_net()[0], data, (X, y), records=[given]))
        assert page.change.notes[2].endswith(said)


def test_infinite_radii_are_told_in_words():
    _, radii, _ = digits_records()
    data, heldout = digits_data()
    right = radii.q > 0
    endless = np.where(right, np.inf, 0.0)
    given = dataclasses.replace(radii, lower=endless, upper=endless)
    page = make_page(facts_of(digits_net()[0], data, heldout, records=[given]))
    safe, wrong = int(right.sum()), int((~right).sum())
    assert wrong == 1
    assert page.change.takeaway == (
        f"For {safe} of 40 examined images it is proved that no change (values stay within 0 to 1)"
        f" flips the answer; a change that does was found for 0 of 40 (wrong without any change:"
        f" {wrong}). Nothing is open."
    )
    text = texts_of(dataclasses.replace(page, splits=()))
    assert "∞" not in text


def test_a_bound_that_rounds_to_nothing_is_not_said():
    data = digits_data()[0]
    certificate = digits_records()[0]
    for share, said in ((0.4, True), (0.0004, False)):
        given = dataclasses.replace(certificate, epsilon_lower=share * certificate.norm)
        tags = make_page(facts_of(digits_net()[0], data, records=[given])).support.tags
        assert any("no other shares" in tag.text for tag in tags) == said


@pytest.mark.slow
def test_a_run_is_shown_by_its_folder(tmp_path, capsys):
    folder = tmp_path / "run"
    train = f"train digits-mlp --limit 60 --epochs 3 --quiet --out {folder}"
    assert main(train.split()) == 0
    capsys.readouterr()
    assert main(["page", str(folder), "--radii", "5", "--certificate", "--json"]) == 1
    assert "samples have a margin that is not positive" in capsys.readouterr().err
    assert main(["page", str(folder), "--radii", "5", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    parts = Parts(Path(written["path"]).read_text())
    assert Path(written["path"]) == folder / "page.html"
    net = nm.models.mlp([64, 256, 10])
    nm.load_weights(net, folder / "model.safetensors")
    X, y = nm.datasets.digits("test")
    right = int((predict(net, X) == y).sum())
    assert f"Right on {right} of 359 held-out images." in " ".join(parts.shown)
    assert f"netmargin page {folder} --radii 5 --json with netmargin" in "".join(parts.shown)
    assert parts.block()["splits"]["training"]["n"] == 60
    assert parts.block()["training"]["epoch"] == [0, 1, 2, 3]
    # In Python by the folder alone.
    assert nm.page(folder, out=tmp_path / "page.html").title == "run"
    for name in ("model.safetensors", "checkpoint.pt"):
        (folder / name).unlink()
    assert main(["page", str(folder)]) == 1
    said = capsys.readouterr().err
    assert "holds a history, but no weights" in said
    assert (
        nm.page(nm.History.load(folder / "history.jsonl"), out=tmp_path / "page.html").title
        == "History"
    )
    (folder / "history.jsonl").unlink()
    assert main(["page", str(folder)]) == 1
    assert "is not the folder of a run" in capsys.readouterr().err


def test_a_run_is_not_compared_with_itself(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in (["a", "--compare", "a"], ["a", "--compare", "b", "--compare", "./b"]):
        assert main(["page", *words]) == 2
        assert "names a net that is on the page already" in capsys.readouterr().err


def test_samples_that_are_equal_are_found_on_the_page():
    """An image that is twice in the data, and one that was examined twice, are told by their row;
    other samples of the same margins are not taken for them.
    """
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    X, y = torch.randn(40, 6), torch.arange(40) % 3
    X[11], y[11] = X[5], y[5]

    def link(rows):
        rows = torch.tensor(rows)
        radii = nm.robustness(
            net, (X[rows], y[rows]), effort="quick", attacks=False, progress=False
        )
        (linked,) = facts_of(net, (X, y), records=radii).radii
        return linked.split, None if linked.rows is None else linked.rows.tolist()

    assert link([5, 30, 11]) == ("training", [5, 30, 11])
    assert link([2, 30, 2]) == ("training", [2, 30, 2])
    near = nm.robustness(net, (X[:2], y[:2]), effort="quick", attacks=False, progress=False)
    near = dataclasses.replace(near, q=near.q[0] * np.array([1, 1 + 1e-6]))
    (linked,) = facts_of(net, (X, y), records=near).radii
    assert linked.split == ""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_radii_are_linked_by_margins_in_float64_whatever_the_net_computes_in(dtype):
    net = nn.Linear(1, 1, bias=False).to(dtype)
    net.weight.data.fill_(1)
    X = torch.tensor([[-3.0], [1], [1 + 1e-8], [2], [4]], dtype=torch.float64)
    quick = {"effort": "quick", "attacks": False, "progress": False}
    for rows in ([2], [2, 0, 1], [4, 3]):
        radii = nm.robustness(net, (X[rows], X[rows, 0].sign()), **quick)
        (linked,) = facts_of(net, (X, X[:, 0].sign()), records=radii).radii
        assert (linked.split, linked.rows.tolist()) == ("training", rows)
    # Another sample, of nearly the same margin, is not taken for one of the page.
    radii = nm.robustness(net, (X[3:4] * (1 + 5e-5), [1]), **quick)
    page = make_page(facts_of(net, (X, X[:, 0].sign()), records=radii))
    assert page.change.data == "1 sample, not among those of this page"


def test_the_picture_and_the_page_say_the_same_epoch():
    """From it on all samples are right: not the first one after which they are wrong again."""
    margins = [-1.0, 0.5, -0.1, 0.2, 0.3]
    rows = [
        {
            "epoch": epoch,
            "q_min": q,
            "accuracy": 1.0 if q > 0 else 0.9,
            "log10_mean_loss": -float(epoch),
            "log_loss": -2.0 * epoch,
            "normalized_margin": q,
        }
        for epoch, q in enumerate(margins)
    ]
    history = nm.History(rows)
    page = make_page(facts_of(history))
    assert history.separated == page.training.separated == 3
    assert "right since epoch 3" in page.training.takeaway
    (axis,) = _draw_loss(history).axes
    assert axis.get_legend().get_texts()[0].get_text() == "from epoch 3 on all samples are correct"
    assert nm.History(rows[:3]).separated is None
    assert nm.History(rows[1:2]).separated == 1
    assert nm.History().separated is None


@pytest.mark.filterwarnings("ignore:These scores are probabilities")
def test_probabilities_are_said_at_the_head_and_have_no_distances(monkeypatch):
    net, (data, heldout) = digits_net()[0], digits_data()
    behind = nn.Sequential(*net, nn.Softmax(1))
    with monkeypatch.context() as patched:  # nor are any computed
        patched.setattr("netmargin.margins.measurement.find_boundaries", None)
        page = make_page(facts_of(behind, data, heldout))
    assert page.warning.startswith("These scores are probabilities: the net ends in a softmax.")
    assert page.warning.endswith("Pass model[:-1], the same net without its softmax.")
    html = render(page)
    assert html.index('id="warning"') < html.index('id="overview"')
    assert "distance" not in page.overview.lead
    assert page.overview.axis.name == "score margin"
    page = make_page(facts_of({"scores": net, "probabilities": behind}, data, heldout))
    assert page.warning.startswith("probabilities: These scores are probabilities")
    error, z = page.comparison.nets[1].error, page.comparison.nets[1].z
    assert (error.verdict, z.verdict) == ("not clearly different", "not compared")
    assert page.comparison.takeaway.endswith("they make as many errors.")
    assert full_page().warning == ""


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(tmp_path):
    X, y = nm.datasets.digits(limit=20)
    written = nm.page(nm.models.mlp([64, 4, 10]), (X, y), out=tmp_path / "page.html")
    frame = Parts(written._repr_html_())
    (tag, attributes), *others = frame.tags
    assert tag == "iframe"
    assert not others
    assert attributes["srcdoc"] == written.path.read_text()
    assert "allow-same-origin" not in attributes["sandbox"]


def test_ties_are_wrong_and_lie_left_of_the_boundary():
    X, y = nm.datasets.digits(limit=20)
    net = nn.Linear(64, 10, bias=False)
    with torch.no_grad():
        net.weight.zero_()
        net.weight[0, 0] = 1.0  # of a pixel that is always dark: all scores are equal
    page = make_page(facts_of(net, (X, y)))
    bars = page.overview.histograms["training"]
    assert sum(n for n, end in zip(bars["count"], bars["to"], strict=True) if end <= 0) == 20
    assert page.overview.lead == "Right on none of 20 images."


def history_of(margins, accuracies=None, name="normalized_margin"):
    """A history with these margins, epoch by epoch."""
    accuracies = accuracies or [1.0] * len(margins)
    return nm.History(
        [
            {"epoch": e, "log10_mean_loss": -12.2, "accuracy": a, name: m}
            for e, (m, a) in enumerate(zip(margins, accuracies, strict=True))
        ]
    )


TOLD = {
    "not separated": (
        history_of([-1.0, -0.5], [0.5, 0.9]),
        "10.0% of the training samples are still wrong.",
    ),
    "separated": (
        history_of([0.005] + [0.030 + 0.0001 * k for k in range(21)]),
        "since epoch 0. Since then the normalized margin has gone from 0.0050 to 0.032.",
    ),
    "just separated": (  # a margin near 0 to begin with makes any ratio
        history_of([-1.0, 1e-6, 0.01], [0.9, 1.0, 1.0]),
        "since epoch 1. Since then the normalized margin has gone from 1.0·10⁻⁶ to 0.010.",
    ),
    "no margin": (
        history_of([None] * 3),
        "since epoch 0.",
    ),
}


def test_a_history_of_any_loop_counts_the_samples_that_were_watched(tmp_path):
    net, (X, y) = nm.models.mlp([64, 8, 10]), digits_data()[0]
    watch = nm.Watch(net, (X[:50], y[:50]), folder=tmp_path / "run")
    for epoch in (0.5, 2.0):
        with torch.no_grad():
            net[0].bias.add_(0.1)
        watch.look(epoch=epoch, step=int(10 * epoch))
    watch.finish()
    wrong = int((predict(net, X[:50]) != y[:50]).sum())
    for records in (tmp_path / "run", str(tmp_path / "run" / "history.jsonl")):
        found = make_page(facts_of(net, (X, y), records=[records])).training
        assert found.takeaway == f"Still wrong: {wrong} of the 50 images of the watch."
        assert found.data == "the 50 images of the watch"
        assert found.rows["epoch"] == [0, 0.5, 2.0]


def test_the_ascent_is_advised_only_where_it_takes_the_net():
    certificate, data = digits_records()[0], digits_data()[0]
    assert certificate.relative_epsilon > 0.3
    assert full_page().support.next_step == "nm.maximize_margin(model, data)"
    # Not to what refuses the net: its stored statistics do not follow the ascent.
    normed = torch.nn.Sequential(
        torch.nn.Linear(64, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 10)
    ).eval()
    assert make_page(facts_of(normed, data, records=[certificate])).support.next_step == ""


@pytest.mark.parametrize("name", TOLD)
def test_how_far_training_has_come_is_told_by_its_history(name):
    history, said = TOLD[name]
    found = make_page(facts_of(history)).training
    assert said in found.takeaway
    # Margins of nets that are wrong somewhere are negative: there is no picture of them.
    assert found.has_margin == (name not in ("not separated", "no margin"))


def test_what_ties_weights_to_their_size_is_said_layer_by_layer():
    block = nn.Sequential(nn.Linear(64, 64), nn.GELU())
    found = make_page(facts_of(nn.Sequential(block, nn.Linear(64, 10)), digits_data()[0])).scaling
    assert found.takeaway == (
        "Only “1” can be scaled freely. What ties the rest to its size: 1 place."
    )
    assert "GELU is not homogeneous. Instead: nn.ReLU or a power of it" in found.layers


@pytest.mark.filterwarnings("ignore:These scores are probabilities")
@pytest.mark.parametrize("kind", ["one wrong sample", "softmax", "tokens"])
def test_no_normalized_margin_is_shown_where_it_says_nothing(kind):
    net, (X, y) = digits_net()[0], digits_data()[0]
    assert "normalized margin" in " ".join(Parts(render(full_page())).shown).lower()
    if kind == "softmax":
        net = nn.Sequential(*net, nn.Softmax(1))
    elif kind == "tokens":
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        net = nn.Sequential(nn.Embedding(20, 8), layer, nn.Flatten(), nn.Linear(48, 3)).eval()
        X = torch.randint(20, (60, 6))
        y = net(X).argmax(1)  # all of them are right
    else:
        y = y.clone()
        y[7] = (y[7] + 1) % 10
    watch = nm.Watch(net, (X, y))
    for epoch in range(3):
        watch.look(epoch=epoch, step=epoch)
    watch.finish()
    page = make_page(facts_of(net, (X, y), records=[watch.history]))
    assert page.training is not None
    assert "normalized margin" not in " ".join(Parts(render(page)).shown).lower()


def test_many_classes_are_listed_by_their_largest_pairs():
    X, y = nm.datasets.digits(limit=100)
    net = nn.Linear(64, 60)
    page = make_page(facts_of(net, (X, 3 * y), (X, 3 * y)))
    pairs = page.classes.pairs["heldout"]["mistake"]
    answers = predict(net, X)
    counts = {}
    for label, answer in zip((3 * y).tolist(), answers.tolist(), strict=True):
        if label != answer:
            counts[label, answer] = counts.get((label, answer), 0) + 1
    assert pairs["count"] == sorted(counts.values(), reverse=True)[:20]
    found = zip(pairs["label"], pairs["other"], pairs["count"], strict=True)
    assert all(counts[label, other] == n for label, other, n in found)
    assert "ten classes" in dict(page.about)["Rival"]


def test_nets_of_inputs_by_name_are_compared_like_others():
    class Sum(nn.Linear):
        def forward(self, left, right):
            return super().forward(left + right)

    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(50, 6, generator=generator) for _ in range(2))
    data = {"left": left, "right": right, "labels": (left[:, 0] > 0).long()}
    nets = {"one": Sum(6, 2), "two": Sum(6, 2)}
    page = make_page(facts_of(nets, data, data))
    wrong = [int((predict_sum(net, left + right) != data["labels"]).sum()) for net in nets.values()]
    assert [row.wrong for row in page.comparison.nets] == list(map(str, wrong))
    assert f"Right on {50 - wrong[0]} of 50" in page.overview.lead


def predict_sum(net, x):
    """The answers of a linear layer."""
    with torch.no_grad():
        return (x @ net.weight.T + net.bias).argmax(1)


def test_radii_of_several_nets_stand_side_by_side_with_those_of_the_page_first():
    _, radii, _ = digits_records()
    data, heldout = digits_data()
    nets = {"mine": digits_net()[0], "other": digits_net(3)[0]}
    given = {"other": dataclasses.replace(radii, lower=radii.lower / 2), "mine": radii}
    page = make_page(facts_of(nets, data, heldout, records=given))
    assert [net.name for net in page.change.nets] == ["mine", "other"]
    assert page.change.takeaway.startswith("“mine”: For half of 40 examined images")
    assert sum(page.change.nets[0].lower) > sum(page.change.nets[1].lower) > 0
    known = [row for row, r in enumerate(page.splits[0].columns["lower"]) if r is not None]
    assert known == list(range(20, 60))
    with pytest.raises(nm.ArgumentError, match="radii of 'another'"):
        facts_of(nets, data, heldout, records={"another": radii})


def test_signals_are_drawn_as_curves(tmp_path):
    """Every column of a picture holds the values of its part of the signal, and no other."""
    times = torch.linspace(0, 1, 640)
    waves = torch.sin(2 * torch.pi * torch.tensor([1.0, 2.0, 5.0])[:, None] * times)
    drawn = draw_curves(waves)
    assert drawn.shape == (3, 40, 64)
    for wave, picture in zip(waves, drawn, strict=True):
        level = 39 * (wave - wave.min()) / (wave.max() - wave.min())
        for column, part in enumerate(level.reshape(64, 10)):
            rows = 39 - torch.nonzero(picture[:, column])[:, 0]
            assert abs(rows.max() - part.max()) < 1
            assert abs(rows.min() - part.min()) < 1
            assert len(rows) == rows.max() - rows.min() + 1
    both = draw_curves(torch.stack([waves[0], -waves[0]])[None])[0]  # two channels, one picture
    assert torch.equal(both, (drawn[0] + drawn[0].flip(0) > 0).float())
    short = draw_curves(torch.arange(16.0)[None])[0]  # a line without gaps
    assert bool(short.any(0).all())
    assert bool(short.any(1).all())
    net = nn.Sequential(nn.Flatten(), nn.LazyLinear(3))
    page = nm.page(net_of(net, waves), (waves, [0, 1, 2]), out=tmp_path / "page.html")
    text = page.path.read_text()
    assert "Each signal is drawn from its least to its largest value" in text
    assert "--sprite-0: url(data:image/png" in text
    assert 'aria-pressed="true">Curves</button>' in text


def net_of(net, x):
    net(x)
    return net


@pytest.mark.parametrize(
    ("X", "noun"),
    [
        (torch.randn(20, 2, 100).cumsum(-1), "signal"),
        (torch.randn(20, 100).cumsum(-1), "signal"),
        (torch.randn(20, 1, 16), "signal"),
        (torch.randn(20, 1, 15), "sample"),
        (torch.randn(20, 30, 100), "sample"),
        (torch.randn(200, 30), "sample"),
        (torch.randn(200, 30) * torch.arange(30.0) + 5, "sample"),
        (torch.rand(20, 8, 8), "image"),
    ],
)
def test_tables_and_images_are_no_signals(X, noun):
    assert describe_inputs([X], None, None, None).noun == noun


def test_a_net_above_chance_is_not_told_to_check_its_labels():
    net, (X, _) = digits_net()[0], digits_data()[0]
    answers, random = net(X).argmax(1), torch.Generator().manual_seed(0)
    others = (answers + torch.randint(1, 10, answers.shape, generator=random)) % 10
    for share, step in ((0.4, "look at the"), (0.0, "one answer for all")):
        right = torch.rand(len(X), generator=random) < share
        page = make_page(facts_of(net, (X, torch.where(right, answers, others))))
        assert page.overview.next_step[0].startswith(step)
        (said,) = page.classes.takeaway.values()
        assert "lies farthest on the wrong side" in said


def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    made, net = [], digits_net()[0]
    hook = net.register_forward_hook(lambda *_: made.append(1))
    for out in (tmp_path / "file" / "page.html", tmp_path):
        with pytest.raises(nm.NetmarginError, match=r"Cannot write|is a folder"):
            nm.page(net, digits_data()[0], out=out)
    hook.remove()
    assert not made


def test_classes_that_tie_for_the_weakest_are_counted():
    labels, answers = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([1, 0, 1, 2, 2, 2])
    split = SimpleNamespace(labels=labels, answers=answers, wrong=labels != answers)
    facts = SimpleNamespace(names=SimpleNamespace(of=str), noun="image")
    text = _mistake_tile(facts, split).text
    assert text.startswith("1 of 2 images wrong, as large a share as in 1 other. The most frequent")
