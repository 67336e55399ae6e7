"""The study of what ranks nets by their test error: pairs, tau by hand, resuming, and its page."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from torch import nn

from benchmarks import which_margin
from benchmarks.nets_of_the_study import Setting, add_noise, build, fold_norms, list_settings
from benchmarks.page_of_the_study import (
    FIT,
    NUMBERS,
    ONE_SETTING,
    Population,
    fill_page,
    make_populations,
)
from benchmarks.ranking import agree, average_tau, pair_by_setting, pair_within


def plain(batch: int) -> list:
    """The setting of a net as records hold it."""
    return ["mnist", 3000, "mlp", False, 0, False, False, "sgd", False, batch]


def test_pairs_differ_in_exactly_one_setting_and_are_all_there():
    nets = [{"wide": w, "deep": d} for w, d in ((0, 0), (1, 0), (1, 1), (0, 2))]
    found = {name: pairs.tolist() for name, pairs in pair_by_setting(nets).items()}
    assert found == {"wide": [[0, 1]], "deep": [[0, 3], [1, 2]]}
    assert pair_within(nets, ["wide"]).tolist() == [[0, 3], [1, 2]]
    for data, images in (("mnist", 3000), ("cifar10", 2000)):
        design = [asdict(s) for s in list_settings() if (s.data, s.images) == (data, images)]
        pairs = pair_by_setting(design)
        for name, rows in pairs.items():
            for i, j in rows:
                assert [k for k in design[i] if design[i][k] != design[j][k]] == [name]
        assert sum(len(pairs[name]) for name in ONE_SETTING) >= 100


def test_tau_by_hand_and_against_scipy():
    errors = np.array([0.1, 0.2, 0.05])
    pairs = np.array([[0, 1], [0, 2], [1, 2]])
    # The better net of each pair is 0, 2, 2; the number names 0, 0, and nobody.
    assert agree(np.array([3.0, 1.0, 1.0]), errors, pairs).tolist() == [1, -1, 0]
    # Two draws, of which the second is right everywhere.
    draws = np.array([[3.0, 2.0], [1.0, 1.0], [1.0, 3.0]])
    assert agree(draws, errors, pairs).tolist() == [1, 0, 0.5]
    random = np.random.default_rng(0)
    errors, numbers = random.random(30), random.random(30)
    pairs = pair_within([{}] * 30, ())
    tau = average_tau([pairs], [agree(numbers, errors, pairs)[:, None]], 30)
    assert tau.pairs == 435
    assert tau.values[0] == pytest.approx(-kendalltau(numbers, errors).statistic)


def test_groups_weigh_alike_and_a_net_without_the_number_is_left_out():
    groups = [np.array([[0, 1]]), np.array([[1, 2], [2, 3], [1, 3]])]
    agreements = [np.array([[1.0]]), np.array([[-1.0], [-1.0], [np.nan]])]
    assert average_tau(groups, agreements, 4).values.tolist() == [0.0]


def test_interval_covers_the_truth_and_sees_a_real_difference():
    """Numbers are the errors of a population with known noise: tau is known from many nets."""
    random = np.random.default_rng(1)

    def draw(nets):
        errors = random.normal(size=nets)
        return errors, -errors + random.normal(size=nets), -errors + 3 * random.normal(size=nets)

    truth = kendalltau(*draw(20_000)[:2]).statistic
    covered = ahead = 0
    for _ in range(40):
        errors, good, bad = draw(60)
        pairs = pair_within([{}] * 60, ())
        columns = np.stack([agree(v, errors, pairs) for v in (good, bad, -errors)], 1)
        taus = average_tau([pairs], [columns], 60)
        low, high = taus.intervals
        covered += low[0] <= -truth <= high[0]
        ahead += taus.difference(0, 1)[1] > 0
        assert low[2] == high[2] == taus.values[2] == 1
    # An honest interval covers in 38 of 40 cases, and in fewer than 34 once in 300.
    assert covered >= 34
    assert ahead >= 20


def test_only_nets_that_fit_are_ranked():
    numbers = {"test error": 0.1, "train loss": FIT / 2}
    records = [
        {"setting": plain(batch), "numbers": numbers | {"train loss": loss}, "heldout": {}}
        for batch, loss in ((1, FIT / 2), (2, 2 * FIT), (3, FIT / 3))
    ]
    population = Population(records)
    assert (population.trained, len(population.records)) == (3, 2)
    assert population.by_setting["batch"].tolist() == [[0, 1]]
    taus = population.one_setting
    assert taus.values.shape == (len(NUMBERS),)


def test_pairs_are_clear_where_the_test_set_can_tell_them_apart():
    """At 10% error 10,000 images leave .3 points each, so .42 in a difference, and 2 of these."""
    losses = [{"test error": e, "train loss": 0.0} for e in (0.1, 0.1084, 0.1087)]
    records = [
        {"setting": plain(batch), "numbers": numbers, "heldout": {}}
        for batch, numbers in enumerate(losses)
    ]
    assert Population(records).clear_pairs.tolist() == [[0, 2]]


def test_a_killed_study_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    path, made = tmp_path / "nets.jsonl", []

    def study(setting: Setting) -> dict:
        made.append(setting)
        numbers = {"train loss": 0.01, "test error": 0.1}
        return {
            "setting": list(asdict(setting).values()),
            "epochs": 1,
            "seconds": 1.0,
            "numbers": numbers,
        }

    monkeypatch.setattr(which_margin, "study_net", study)
    only = "mnist/3000/cnn/True"
    expected = [s for s in list_settings() if only in s.key]
    which_margin.run(path, only=only, budget=60, jobs=1)
    lines = path.read_text().splitlines(keepends=True)
    # Killed while it wrote the third line.
    path.write_text("".join(lines[:2]) + lines[2][:30])
    made.clear()
    which_margin.run(path, only=only, budget=60, jobs=1)
    assert made == expected[2:]
    assert [
        Setting(*json.loads(line)["setting"]) for line in path.read_text().splitlines()
    ] == expected
    made.clear()
    path.unlink()
    which_margin.run(path, only=only, budget=-1, jobs=1)
    assert not made


@pytest.mark.parametrize("architecture", ["mlp", "cnn"])
def test_folded_norms_leave_the_function_as_it_is(architecture):
    torch.manual_seed(0)
    setting = Setting("mnist", 3000, architecture, True, 0, False, True, "sgd", False, 32)
    net, x = build(setting).double(), torch.randn(8, 1, 28, 28, dtype=torch.float64)
    for _ in range(3):
        net(3 * x + 1)  # running statistics far from 0 and 1
    folded = fold_norms(net.eval())
    assert not any(isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d) for layer in folded)
    torch.testing.assert_close(folded(x), net(x), rtol=1e-10, atol=1e-10)


def test_noise_moves_the_share_of_labels_it_says_to_other_classes():
    y = torch.arange(1000) % 10
    ten, twenty = (add_noise(y, percent) for percent in (10, 20))
    assert (ten != y).sum() == 100
    assert (twenty != y).sum() == 200
    assert ((ten != y) <= (twenty != y)).all()
    assert set(twenty.tolist()) == set(range(10))
    assert torch.equal(add_noise(y, 0), y)


def test_the_page_says_what_its_records_say():
    page = which_margin.PAGE.read_text()
    records = which_margin.read_nets(which_margin.NETS)
    assert page == fill_page(page, make_populations(records))
    # The test can fail: another record, another page.
    records[0]["numbers"]["test error"] += 0.1
    assert page != fill_page(page, make_populations(records))
