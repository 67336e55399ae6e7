"""Some random sets of the benchmark of weak regularization: the exact minimizer is reached."""

import pytest

from benchmarks import weak_regularization


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("ReLU, l2", 2),  # 4% above from most starts
        ("ReLU, l2", 11),  # 23% above from most starts
        ("ReLU, l_infinity", 0),
        ("linear, 2 layers, l1", 0),
        ("linear, 3 layers, l2", 4),
        ("linear, 4 layers, linf", 8),
    ],
)
def test_the_best_start_is_within_1_percent_of_the_exact_minimizer(kind, seed, monkeypatch):
    # On the second set one start in some twenty ends there, another one on each machine.
    monkeypatch.setattr(weak_regularization, "STARTS", 100)
    row = weak_regularization.KINDS[kind](seed)
    assert row.close
    assert row.exact.bound <= row.exact.objective * (1 + 1e-9)
    assert row.exact.objective <= row.exact.bound * (1 + 1e-4)
    assert row.excess > -1e-6  # no net is below the bound
    assert row.margin <= row.exact.best * (1 + 1e-6)
