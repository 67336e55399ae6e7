"""Inseparability is proved in exact arithmetic, or not claimed; linear margins keep their digits."""

from fractions import Fraction

import numpy as np
import pytest

from netmargin import DataError, kernels
from netmargin.estimators import NTKClassifier
from netmargin.papers.wei_2018 import narrow_max_margin
from netmargin.papers.wei_2018._narrow import list_patterns
from netmargin.result import Status
from netmargin.solvers import (
    f1_max_margin,
    f2_max_margin,
    kernel_max_margin,
    linear_max_margin,
    ntk_max_margin,
)
from netmargin.solvers.hull import find_contradiction


def exact_least(X, y, weights) -> Fraction:
    """The least y w . x as the float64 numbers are."""
    w = [Fraction(float(v)) for v in weights]
    return min(
        Fraction(float(label)) * sum(Fraction(float(a)) * b for a, b in zip(row, w, strict=True))
        for row, label in zip(X, y, strict=True)
    )


def separable(seed: int, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.sign(X[:, 0])


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_one_sample_of_another_scale_does_not_hide_the_margin(norm):
    """A sample farther along its ray binds less: the margin is that without it, or more."""
    X, y = separable(0, 20, 5)
    far = X.copy()
    far[3] *= 1e9
    found = linear_max_margin(far, y, norm=norm)
    assert found.certified
    assert found.margin == pytest.approx(linear_max_margin(X, y, norm=norm).margin, rel=1e-9)
    near = X.copy()
    near[3] *= 1e-150
    found = linear_max_margin(near, y, norm=norm)
    assert found.certified
    assert 0 < found.margin <= np.linalg.norm(near[3], 2 if norm == "l2" else np.inf)


def test_a_kernel_matrix_is_judged_by_the_samples_with_weight():
    X, y = separable(0, 20, 5)
    alone = kernel_max_margin(X @ X.T, y)
    X[3] *= 1e7
    found = kernel_max_margin(X @ X.T, y)
    assert found.certified
    assert found.margin == pytest.approx(alone.margin, rel=1e-6)
    # Margins from 3e-8 of the samples on are above what entries are rounded by.
    for angle in (1e-3, 1e-5, 1e-6, 3e-8):
        two = np.array([[1.0, angle], [1.0, -angle]])
        assert kernel_max_margin(two @ two.T, [1, -1]).status is not Status.NOT_SEPARABLE
    equal = kernel_max_margin(np.ones((2, 2)), [1, -1])
    assert (equal.status, equal.certified) == (Status.NOT_SEPARABLE, True)


def test_kernel_classifiers_find_the_margin_beside_a_huge_sample():
    X, y = separable(0, 20, 5)
    X[3] *= 1e7
    fitted = NTKClassifier(C=None, bias=False).fit(X, y)
    assert fitted.score(X, y) == 1
    assert fitted.solutions_[0].margin > 0


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("offset", [1e4, 1e5, 1e7])
def test_two_ordinary_points_are_separated_by_a_line(norm, offset):
    """w x + b, x = offset and offset + 1: the best is 1 / (2 offset + 3) in l1, exactly."""
    X, y = np.array([[offset], [offset + 1]]), [-1, 1]
    found = linear_max_margin(X, y, norm=norm, bias=True)
    assert found.status in (Status.OPTIMAL, Status.STALLED)
    best = 1 / (2 * offset + 3) if norm == "l1" else 1 / np.hypot(2, 2 * offset + 1)
    assert found.margin == pytest.approx(best, rel=1e-4)
    assert found.margin * (1 - 1e-15) <= best <= found.upper_bound * (1 + 1e-15)
    assert exact_least(np.column_stack([X, [1, 1]]), y, found.weights) >= Fraction(found.margin) * (
        1 - Fraction(1, 2**52)
    )


@pytest.mark.parametrize("seed", range(5))
def test_linear_l2_margins_of_many_samples_are_found(seed):
    X, y = separable(seed, 2000, 5)
    found = linear_max_margin(X, y)
    other = linear_max_margin(X, y, norm="l1")
    assert found.certified
    assert other.certified
    assert other.margin <= found.margin <= np.sqrt(5) * other.upper_bound


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6, 1e8])
def test_proved_ends_hold_the_optimum_of_offset_data(norm, offset):
    """A bound below another answer's exact margin would be none: each is compared with all."""
    X, y = separable(1, 20, 5)
    Z = np.column_stack([X + offset, np.ones(20)])
    found = [linear_max_margin(X + offset, y, norm=norm, bias=True, tol=t) for t in (1e-3, 1e-8)]
    exact = [exact_least(Z, y, f.weights) for f in found]
    sizes = [
        sum(abs(Fraction(float(w))) ** (2 if norm == "l2" else 1) for w in f.weights) for f in found
    ]
    for least, size in zip(exact, sizes, strict=True):
        for other in found:
            power = 2 if norm == "l2" else 1
            assert least > 0
            assert least**power <= Fraction(other.upper_bound) ** power * size
    for f, least, size in zip(found, exact, sizes, strict=True):
        assert least ** (2 if norm == "l2" else 1) >= size * Fraction(f.margin) ** (
            2 if norm == "l2" else 1
        )


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e100, 1e300])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_data_of_any_size_are_answered_in_their_units(scale, norm):
    X, y = separable(0, 20, 5)
    found, one = linear_max_margin(scale * X, y, norm=norm), linear_max_margin(X, y, norm=norm)
    assert found.certified
    assert found.margin / scale == pytest.approx(one.margin, rel=1e-9)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize(("n", "d"), [(40, 5), (150, 50), (600, 250)])
def test_random_labels_are_proved_to_be_inseparable(norm, n, d):
    random = np.random.default_rng(d)
    X, y = random.normal(size=(n, d)), random.choice([-1, 1], n)
    X[: n // 2] *= 10.0 ** random.integers(-12, 12, (n // 2, 1))
    found = linear_max_margin(X, y, norm=norm)
    assert (found.status, found.certified) == (Status.NOT_SEPARABLE, True)
    assert (found.margin, found.upper_bound) == (0.0, 0.0)
    assert not found.weights.any()
    assert np.abs(found.dual * y @ X).max() <= 1e-12 * (found.dual @ np.abs(X)).max()


def test_hulls_that_miss_0_by_a_rounding_are_not_proved_to_hold_it():
    """In two and six dimensions: sums of 0 by construction, then one coordinate an ulp off."""
    touching = np.array([[1.0, 1.0], [-1.0, 2.0], [0.0, -1.0]])
    assert find_contradiction(touching) is not None
    line = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert find_contradiction(line) is not None
    line[1, 1] = 1e-300
    assert find_contradiction(line) is None
    assert find_contradiction(np.array([[1.0], [1.0]])) is None
    for seed in range(20):
        random = np.random.default_rng(seed)
        rows = random.integers(-9, 10, size=(6, 6)).astype(float)
        rows = np.vstack([rows, -rows.sum(0)])
        assert find_contradiction(rows) is not None
        # A seventh row beyond the hull of the cone: on the other side of a plane through 0 now.
        slanted = np.column_stack([rows, np.zeros(7)])
        slanted[seed % 7, 6] = 2.0**-1000
        assert find_contradiction(slanted) is None


@pytest.mark.parametrize("solve", [f2_max_margin, ntk_max_margin])
def test_kernels_that_do_not_fit_are_refused_and_late_ones_bounded(solve, monkeypatch):
    X, y = separable(0, 60, 3)
    monkeypatch.setattr("netmargin.core.memory.read_free_memory", lambda: 10_000)
    with pytest.raises(DataError, match=r"The kernel of 60 samples.*random_features"):
        solve(X, y)
    monkeypatch.undo()
    whole = solve(X, y)
    assert whole.certified
    # A kernel by rows, and time for the first ones only.
    monkeypatch.setattr("netmargin.solvers.kernel_problem._ENTRIES_AT_ONCE", 60)
    assert solve(X, y).margin == pytest.approx(whole.margin, rel=1e-6)
    late = solve(X, y, time_limit=0)
    assert (late.status, late.certified, late.margin) == (Status.TIME_LIMIT, False, 0.0)
    assert late.upper_bound >= whole.margin


@pytest.mark.parametrize("seed", [0, 3, 10])
def test_a_sample_far_longer_than_the_others_leaves_no_gap(seed):
    """The rounding of weights takes its whole margin, which is tiny beside it."""
    random = np.random.default_rng(seed)
    X, w = random.normal(size=(20, 5)), random.normal(size=5)
    y = np.sign(X @ w)
    X[3] *= 1e12
    for norm in ("l1", "l2"):
        found = linear_max_margin(X, y, norm=norm)
        assert found.certified
        assert found.gap <= 1e-9


def test_linear_margins_need_no_kernel_of_all_pairs(monkeypatch):
    """Where d is small against n."""
    monkeypatch.setattr("netmargin.solvers.linear_search.solve_kernel", None)
    X, y = separable(0, 20_000, 5)
    found = linear_max_margin(X, y)
    assert found.certified
    assert 0 < found.margin <= np.linalg.norm(X, axis=1).min()


def test_nearly_equal_directions_are_no_contradiction():
    """3 (1, .1) is rounded in float64, and 4 (1, .1) is not."""
    for steps, status in ((3, False), (4, True)):
        X, y = np.array([[1.0, 0.1], [1.0 * steps, 0.1 * steps], [0.0, 1.0]]), [1, -1, 1]
        for solve in (f1_max_margin, f2_max_margin, ntk_max_margin):
            found = solve(X, y, bias=False)
            assert (found.status is Status.NOT_SEPARABLE) == status
            assert found.certified == status
            assert found.margin <= found.upper_bound
    X, y = [[1e5], [1e5 + 1]], [-1, 1]
    attained = narrow_max_margin(X, y, 2, bias=True).margin
    assert attained > 0
    found = f1_max_margin(X, y)
    assert found.status is not Status.NOT_SEPARABLE
    assert attained <= found.upper_bound
    found = f2_max_margin(X, y)
    assert found.status is not Status.NOT_SEPARABLE
    assert found.note == ""


def test_nets_without_a_bias_fail_on_lines_of_opposite_labels_only():
    """relu(a . x) - relu(-a . x) = a . x: pairs x, -x of different labels are samples of linear
    functions, which three directions that sum to 0 contradict; pairs of one label are not.
    """
    lines = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    X = np.vstack([lines, -3 * lines])
    for solve in (f1_max_margin, f2_max_margin, ntk_max_margin):
        found = solve(X, [1, 1, 1, -1, -1, -1], bias=False)
        assert (found.status, found.margin, found.upper_bound) == (Status.NOT_SEPARABLE, 0.0, 0.0)
        assert "6 samples of `support`" in found.note
        p = found.dual * np.array([1, 1, 1, -1, -1, -1])
        K = kernels.arc_cosine(X, bias=False)
        assert abs(p @ K @ p) <= 1e-16
        for y in ([1, 1, 1, 1, -1, -1], [1, 1, -1, -1, -1, 1], [1, 1, -1, 1, 1, -1]):
            found = solve(X, y, bias=False)
            assert found.margin > 0
            assert found.certified


@pytest.mark.parametrize(
    ("X", "y", "width", "margin", "certified"),
    [
        ([[1e13, 0.0], [0.0, 1.0]], [1, -1], 2, 0.5 / (1 + 1e-13), True),
        ([[1e13, 0.0], [0.0, 1.0]], [1, 1], 1, 0.5, True),
        ([[1e300, 0.0], [0.0, 1e-300]], [1, -1], 2, 5e-301, True),
        ([[1.0, 0.0], [-1.0, 1e-13]], [1, 1], 1, 2.5e-14, False),
        ([[1.0, 0.0], [-1.0, 1e-17], [0.0, 1.0]], [1, 1, 1], 1, 2.5e-18, False),
        ([[1e308], [-1e308]], [1, -1], 2, 2.5e307, True),
        ([[5e-324]], [1], 1, 0.0, False),
    ],
)
def test_narrow_nets_are_inseparable_only_where_all_cells_are_tried(X, y, width, margin, certified):
    found = narrow_max_margin(X, y, width)
    assert found.status is not Status.NOT_SEPARABLE
    assert found.certified or not certified
    assert found.margin <= margin <= found.upper_bound
    # A multiple of a sample contradicts it.
    for far in (1e13, 1e300):
        found = narrow_max_margin([[far, 0.0], [0.0, 1.0], [0.0, 2.0]], [1, -1, 1], 2)
        assert (found.status, found.certified, found.upper_bound) == (
            Status.NOT_SEPARABLE,
            True,
            0.0,
        )


def test_all_patterns_of_a_plane_are_listed():
    """As they are at all sums of two walls; each arc lies between two, however narrow it is."""
    random = np.random.default_rng(0)
    points = [np.array([[1, 0], [-1, 1e-17], [0, 1], [1e300, 1e284], [0, 0]], dtype=float)]
    points += [random.integers(-2, 3, size=(6, 2)).astype(float) for _ in range(20)]
    for P in points:
        exact = [[Fraction(v) for v in row] for row in P.tolist()]
        walls = [(s * -q, s * p) for p, q in exact for s in (1, -1) if p or q]
        sums = [(a + c, b + d) for a, b in walls for c, d in walls]
        values = [[a * p + b * q for p, q in exact] for a, b in sums]
        # Where no sample lies on a wall, but for those at the origin.
        expected = {
            tuple(v > 0 for v in row)
            for row in values
            if all(v or not (p or q) for v, (p, q) in zip(row, exact, strict=True))
        }
        listed = [tuple(map(bool, row)) for row in list_patterns(P @ [[2.0, 0, 1], [0, 4.0, 0]])]
        assert len(listed) == len(set(listed))
        if any(a * d != b * c for a, b in walls for c, d in walls):
            assert set(listed) == expected
    with pytest.raises(DataError, match="rank 3"):
        list_patterns(np.array([[1.0, 0, 0], [0, 1, 0], [1, 1, 1e-300]]))


@pytest.mark.parametrize("size", [5e-324, 1.5e-323, 2.5e-323, 1e-310])
def test_brackets_of_the_least_floats_hold_the_margin(size):
    """|x| / 2, between two floats: ends are rounded outwards, and the judge sees them so."""
    for found in (f1_max_margin([[size]], [1], bias=False), narrow_max_margin([[size]], [1], 1)):
        assert found.status is not Status.NOT_SEPARABLE
        assert Fraction(found.margin) <= Fraction(size) / 2 <= Fraction(found.upper_bound)
        assert found.certified == (size > 1e-320)
