"""No certified statement is false on drawn data, and the exact judge sees one that is."""

import os
from dataclasses import replace

import numpy as np
import pytest

import netmargin as nm
from netmargin import Status, solvers
from netmargin.papers import wei_2018
from tests.exact.arrangement import largest_response, nets_attain
from tests.exact.judging import ENTRIES, draw, judge
from tests.exact.rational import separate, whole

SEED = int(os.environ.get("NETMARGIN_TEST_SEED", "0"))
INSTANCES = {
    "linear_l1": 260,
    "linear_l2": 200,
    "kernel": 300,
    "kernel_soft": 100,
    "f2": 50,
    "ntk": 50,
    "least_norm_l2": 100,
    "f1": 12,
    "narrow": 12,
    "f1_soft": 12,
    "f1_logistic": 8,
    "least_norm_l1": 8,
    "radii": 5,
    "certify": 12,
    "orders": 12,
}
"""Of each entry, up to a second each, and as many as the rows of tests/mutations need; `make
check-all` draws for ten minutes.
"""
RAISED, LOWERED = 1.005, 0.995
"""By how much a planted lie is off; radii are known to a part of 1e-3 where they are closed."""
LIES = [
    ("linear_l1", solvers, "linear_max_margin", {"margin": RAISED, "upper_bound": LOWERED}),
    ("linear_l2", solvers, "linear_max_margin", {"margin": RAISED, "upper_bound": LOWERED}),
    ("kernel", solvers, "kernel_max_margin", {"margin": RAISED, "upper_bound": LOWERED}),
    ("kernel_soft", solvers, "kernel_soft_margin", {"objective": LOWERED, "lower_bound": RAISED}),
    ("f2", solvers, "f2_max_margin", {"margin": RAISED, "upper_bound": LOWERED}),
    ("ntk", solvers, "ntk_max_margin", {"margin": RAISED, "upper_bound": LOWERED}),
    ("f1", solvers, "f1_max_margin", {"margin": RAISED, "upper_bound": LOWERED}),
    ("narrow", wei_2018, "narrow_max_margin", {"margin": RAISED, "upper_bound": LOWERED}),
    ("f1_soft", solvers, "f1_soft_margin", {"objective": LOWERED, "lower_bound": RAISED}),
    ("f1_logistic", solvers, "f1_logistic", {"objective": LOWERED, "lower_bound": RAISED}),
    ("least_norm_l1", solvers, "min_norm_interpolation", {"norm": LOWERED, "lower_bound": RAISED}),
    ("least_norm_l2", solvers, "min_norm_interpolation", {"norm": LOWERED, "lower_bound": RAISED}),
    ("radii", nm, "robustness", {"lower": RAISED, "upper": LOWERED}),
    ("certify", nm, "certify", {"epsilon": 0.9, "epsilon_lower": 1.1, "q_min": RAISED}),
]
"""Entries, what answers at them, and by what factor a number of its answer is wrong."""
FIRST = {"radii": 32}
"""From where on answers are looked at: one that is certified comes soon."""

ONCE_FALSE = [
    ("f1_logistic", 1, 714),  # units in which a sample of 1e-152 beside 1e36 is lost
    ("least_norm_l1", 1, 960),  # samples on one line to 1e-11, without a vertex in the arrangement
    ("least_norm_l1", 1, 1197),  # a critical point that rounding moves by 1e-9
    ("least_norm_l2", 1, 4357),  # coefficients beyond float64
    ("certify", 29, 157),  # a unit that is active by a denormal number
    ("kernel", 1, 10824),  # a diagonal from 1e-168 to 1e165
    ("least_norm_l1", 3, 1009),  # the largest value of a neuron is 0 to rounding
    ("f2", 2, 6757),  # a sample of 1e-171 beside 1e201, whose square underflows
    ("f2", 2, 6941),
    ("kernel_soft", 2, 144),  # NaN weights of nearly equal samples
    ("kernel_soft", 2, 940),
    ("kernel_soft", 7, 221),  # a kernel of the least float, in whose unit C is rounded
    # These tell of an allowance that a mutation takes away.
    ("least_norm_l1", 3, 41),  # a small residual that hides a large norm
    ("f2", 4, 2),  # the rounding of a norm
    ("f2", 4, 118),  # directions that are equal in 16 digits and no more
    ("f1", 4, 1052),  # the rounding of sums over cells
]
"""Instances (function, seed, index) about which something false was said, of some 200,000."""


@pytest.fixture(autouse=True)
def endless_second(monkeypatch):
    """No answer is cut short by its time limit, which a busy machine reaches sooner."""
    monkeypatch.setattr("time.monotonic", lambda: 0.0)


@pytest.mark.parametrize(("entry", "seed", "index"), ONCE_FALSE)
def test_nothing_false_is_said_again(entry, seed, index):
    assert not judge(ENTRIES[entry], seed, index).faults


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_statement_is_false(entry):
    verdicts = [judge(ENTRIES[entry], SEED, index) for index in range(INSTANCES[entry])]
    false = {k: verdict.faults for k, verdict in enumerate(verdicts) if verdict.faults}
    assert not false, f"python -m tests.exact --only {entry} --seed {SEED} --index {min(false)}"
    assert sum(verdict.certified for verdict in verdicts) > len(verdicts) / 5


@pytest.mark.parametrize(("entry", "place", "name", "lies"), LIES)
def test_the_judge_sees_a_wrong_number(monkeypatch, entry, place, name, lies):
    """Of the first certified answer in which they are not 0: true as it comes, false with a lie."""
    answer, seen = getattr(place, name), []

    def listen(*arguments, **options):
        seen.append(answer(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(place, name, listen)
    for index in range(FIRST.get(entry, 0), 200):
        seen.clear()
        verdict = judge(ENTRIES[entry], 3, index)
        told = verdict.certified and not verdict.faults
        if told and all(1e-9 < np.max(getattr(seen[0], field)) < np.inf for field in lies):
            break
    for field, factor in lies.items():
        lie = replace(seen[0], **{field: getattr(seen[0], field) * factor})
        monkeypatch.setattr(place, name, lambda *arguments, answer=lie, **options: answer)
        assert judge(ENTRIES[entry], 3, index).faults


def test_the_judge_sees_samples_that_can_be_separated(monkeypatch):
    honest = solvers.linear_max_margin
    entry = ENTRIES["linear_l1"]
    index = next(k for k in range(99) if judge(entry, 3, k).status == "OPTIMAL")

    def refuse(*arguments, **options):
        found = honest(*arguments, **options)
        return replace(found, margin=0.0, status=Status.NOT_SEPARABLE)

    monkeypatch.setattr(solvers, "linear_max_margin", refuse)
    assert "separates" in judge(entry, 3, index).faults[0]


@pytest.mark.slow
def test_the_judge_sees_an_order_that_is_wrong(monkeypatch):
    entry, honest = ENTRIES["orders"], nm.analyse
    index = next(k for k in range(99) if judge(entry, 3, k).status == "HOMOGENEOUS")

    def miscount(*arguments):
        found = honest(*arguments)
        return replace(found, order=found.order + 1)

    monkeypatch.setattr(nm, "analyse", miscount)
    assert judge(entry, 3, index).faults


def test_exact_answers_in_closed_form():
    """Separation or weights that add up to 0; neurons on two axes; values on a line."""
    w, p = separate(whole([[1.0, 1e-300], [-1.0, 1e-300]])[0])
    assert p is None
    assert w[1] > 0
    w, p = separate(whole([[1.0, 2.0], [-3.0, -6.0]])[0])
    assert w is None
    assert p[0] == 3 * p[1] > 0
    assert largest_response(whole(np.eye(3))[0], whole([3.0, 4.0, -9.0])[0]) == 81
    assert largest_response(whole(np.eye(3))[0], whole([3.0, 4.0, 12.0])[0]) == 169
    line = whole([[1.0, 2.0], [-1.0, -2.0], [2.0, 4.0]])[0]
    assert nets_attain(line, whole([1.0, 5.0, 2.0])[0])
    assert not nets_attain(line, whole([1.0, 5.0, 3.0])[0])


def test_all_neurons_are_visited():
    """The arrangement in three dimensions finds what all subsets of on, off and border find."""
    random = np.random.default_rng(0)
    for _ in range(40):
        Z = random.integers(-3, 4, (random.integers(1, 5), random.integers(1, 4))).astype(object)
        c = random.integers(-4, 5, len(Z)).astype(object)
        wide = np.hstack([Z, np.zeros((len(Z), 3), dtype=object)])
        assert largest_response(Z, c) == largest_response(wide, c)


def test_an_instance_is_the_same_whenever_it_is_drawn():
    first, second = (draw(ENTRIES["linear_l2"], 5, 7) for _ in range(2))
    assert (first["X"] == second["X"]).all()
    assert (first["y"] == second["y"]).all()
