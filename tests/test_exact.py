"""The judge in exact arithmetic finds what is false; `python -m tests.exact` asks it at length."""

from dataclasses import replace

import pytest

from netmargin import Status, solvers
from tests.exact.__main__ import DOORS, draw, judge

LIES = {
    "linear_max_margin": ("linear_l2", {"margin": 1.0001, "upper_bound": 0.9999}),
    "kernel_max_margin": ("kernel", {"margin": 1.0001, "upper_bound": 0.9999}),
    "kernel_soft_margin": ("kernel_soft", {"objective": 0.9999, "lower_bound": 1.0001}),
}
"""By solver: a door, and by what factor an end of its bracket is wrong."""


@pytest.mark.parametrize(
    ("solver", "end"), [(solver, end) for solver, (_, ends) in LIES.items() for end in ends]
)
def test_the_judge_sees_a_wrong_end(monkeypatch, solver, end):
    """On the first plain instance that is optimal: true as it comes, false with another end."""
    name, factors = LIES[solver]
    index = next(k for k in range(99) if judge(DOORS[name], 3, k).status == "OPTIMAL")
    assert not judge(DOORS[name], 3, index).faults
    answer = getattr(solvers, solver)

    def lie(*arguments, **options):
        found = answer(*arguments, **options)
        return replace(found, **{end: getattr(found, end) * factors[end]})

    monkeypatch.setattr(solvers, solver, lie)
    assert judge(DOORS[name], 3, index).faults


def test_the_judge_sees_samples_that_can_be_separated(monkeypatch):
    honest = solvers.linear_max_margin
    door = DOORS["linear_l1"]
    index = next(k for k in range(99) if judge(door, 3, k).status == "OPTIMAL")
    monkeypatch.setattr(
        solvers,
        "linear_max_margin",
        lambda *args, **options: replace(
            honest(*args, **options), margin=0.0, status=Status.NOT_SEPARABLE
        ),
    )
    assert "separates" in judge(door, 3, index).faults[0]


def test_an_instance_is_the_same_whenever_it_is_drawn():
    first, second = (draw(DOORS["linear_l2"], 5, 7) for _ in range(2))
    assert (first["X"] == second["X"]).all()
    assert (first["y"] == second["y"]).all()
