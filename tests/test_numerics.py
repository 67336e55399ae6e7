"""What numerics must not end in: errors of others, for memory, numpy's settings or odd data."""

import copy
import pickle
import re
import sys
import warnings

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin import bounds, estimators, kernels, solvers
from netmargin.core import memory
from netmargin.papers.wei_2018 import narrow_max_margin
from netmargin.solvers.columns.master import MasterLP

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(size=(20, 3)), RNG.normal(size=(3, 3)) * 60]
X[:8] *= 10.0 ** RNG.integers(-170, 0, size=(8, 1))
Y = np.where(X[:, 0] + 0.2 * X[:, 1] > 0, 1, -1)
GRAM = X @ X.T
FAST = {"tol": 1e-2, "pricing": "local"}

CALLS = {
    "f1_max_margin": lambda: solvers.f1_max_margin(X, Y, **FAST).margin,
    "f1_soft_margin": lambda: solvers.f1_soft_margin(X, Y, **FAST).objective,
    "f1_logistic": lambda: solvers.f1_logistic(X, Y, regularization=1e-3, **FAST).objective,
    "f2_max_margin": lambda: solvers.f2_max_margin(X, Y).margin,
    "ntk_max_margin": lambda: solvers.ntk_max_margin(X, Y).margin,
    "l2": lambda: solvers.linear_max_margin(X, Y).margin,
    "l1": lambda: solvers.linear_max_margin(X, Y, norm="l1").margin,
    "kernel_max_margin": lambda: solvers.kernel_max_margin(kernels.ntk(X), Y).margin,
    "kernel_soft_margin": lambda: solvers.kernel_soft_margin(GRAM, Y, C=1e-3).objective,
    "narrow_max_margin": lambda: narrow_max_margin(X[:, :1], Y, width=2).margin,
    "least norm l1": lambda: solvers.min_norm_interpolation(X[8:], X[8:, 0], **FAST).norm,
    "least norm l2": lambda: solvers.min_norm_interpolation(X, X[:, 0], norm="l2").norm,
    "NTKClassifier": lambda: estimators.NTKClassifier(C=1e-30).fit(X, Y).predict(X).sum(),
    "ReLUKernelClassifier": lambda: estimators.ReLUKernelClassifier().fit(X, Y).predict(X).sum(),
    "VariationNormClassifier": lambda: (
        estimators.VariationNormClassifier().fit(X, Y).decision_function(X).sum()
    ),
    "VariationNormRegressor": lambda: estimators.VariationNormRegressor().fit(X, Y).predict(X)[0],
    "ntk": lambda: kernels.ntk(X).sum(),
    "arc_cosine": lambda: kernels.arc_cosine(X, bias=False).sum(),
    "NTK": lambda: kernels.NTK(bias=False)(X).sum(),
    "NTK.diag": lambda: kernels.NTK(bias=False).diag(X).sum(),
    "random_features": lambda: kernels.random_features(X, 9, bias=False).sum(),
    "kernel_ball": lambda: bounds.kernel_ball(X, bias=False, draws=3).estimate,
    "variation_ball": lambda: bounds.variation_ball(X, draws=3).estimate,
    "label_errors": lambda: nm.label_errors((X, (Y > 0).astype(int))).scores.sum().item(),
}


@pytest.mark.slow_cases("VariationNormRegressor", "f1_logistic")
@pytest.mark.parametrize("name", CALLS)
def test_numpy_told_to_raise_changes_no_answer(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = CALLS[name]()
        with np.errstate(all="raise"):
            assert CALLS[name]() == plain
            assert np.geterr()["under"] == "raise"


def test_torch_told_to_flush_denormal_numbers_changes_no_answer():
    net = torch.nn.Linear(1, 1, bias=False).double()
    torch.nn.init.ones_(net.weight)
    data, smallest = (torch.tensor([[1e-310]], dtype=torch.float64), [1]), np.array([5e-324])
    try:
        torch.set_flush_denormal(True)
        report = nm.measure(net, data)
        assert (smallest * 1.0 == 0).all()  # as the caller has it
    finally:
        torch.set_flush_denormal(False)
    assert report.q_min == 1e-310


def test_what_a_package_lists_is_one_object_wherever_it_is_read():
    for function in (solvers.f1_logistic, kernels.ntk, nm.measure, nm.label_errors):
        assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(estimators.NTKClassifier()).fit(X, Y).predict(X).shape == (23,)


def approximate(monkeypatch, centres):
    """Let `label_errors` take so many centres, as it does of many samples."""
    for module in [m for name, m in sys.modules.items() if name.startswith("netmargin.label_er")]:
        for limit in {"EXACT_UP_TO", "CENTRES"} & vars(module).keys():
            monkeypatch.setattr(module, limit, centres)


def test_labels_of_near_copies_are_judged_where_rounding_leaves_the_kernel_indefinite(monkeypatch):
    random = np.random.default_rng(0)
    one = random.normal(size=(150, 6))[:, :1]
    labels = (one[:, 0] > 0).astype(int)
    labels[:8] = 1 - labels[:8]
    approximate(monkeypatch, centres=50)
    # On one line: two points for all samples of norm 1, but for rounding.
    found = nm.label_errors((one @ random.normal(size=(1, 6)), labels))
    assert sorted(found.order[:8].tolist()) == list(range(8))


NEEDS = {  # bytes, and what takes them
    "ntk": (8 * 23**2, lambda: kernels.ntk(X)),
    "ntk of two": (8 * 23 * 5, lambda: kernels.ntk(X, X[:5])),
    "float32": (4 * 23**2, lambda: kernels.arc_cosine(X, dtype=np.float32)),
    "NTK": (8 * 23**2, lambda: kernels.NTK()(X)),
    "kernel_ball": (8 * 23**2, lambda: bounds.kernel_ball(X, draws=2)),
    "least norm": (5 * 8 * 23**2, lambda: solvers.min_norm_interpolation(X, Y, norm="l2")),
    "f2": (12 * 23**2, lambda: solvers.f2_max_margin(X, Y)),
    "label_errors": (8 * 23 * 9, lambda: nm.label_errors((X, (Y > 0).astype(int)))),
}


@pytest.mark.parametrize("name", NEEDS)
def test_a_matrix_that_does_not_fit_is_refused_and_one_that_fits_is_not(name, monkeypatch):
    approximate(monkeypatch, centres=9)
    needed, call = NEEDS[name]
    monkeypatch.setattr(memory, "read_free_memory", lambda: needed)
    call()
    monkeypatch.setattr(memory, "read_free_memory", lambda: needed - 1)
    with pytest.raises(nm.DataError, match=r"23.* GB are free\. Take "):
        call()


@pytest.mark.slow
def test_where_no_memory_can_be_read_its_end_is_said_in_words(monkeypatch):
    monkeypatch.setattr(memory, "read_free_memory", lambda: None)
    many = np.zeros((10_000_000, 1))  # 2^49 bytes for all pairs: more than addresses
    with pytest.raises(nm.OutOfMemoryError, match="does not suffice .* Take fewer samples") as told:
        kernels.ntk(many, bias=False)
    assert isinstance(told.value.__cause__, MemoryError)


K = np.eye(5) + X[:5] @ X[:5].T


@pytest.mark.parametrize(
    "solve",
    [
        lambda K: solvers.kernel_max_margin(K, [1, -1, 1, -1, 1]),
        lambda K: solvers.kernel_soft_margin(K, [1, -1, 1, -1, 1], C=1.0),
        lambda K: bounds.kernel_bound([0.5] * 5, K, largest=1.0),
    ],
)
def test_what_is_wrong_with_a_kernel_is_said_of_it(solve):
    for value, said in (
        (K[1, 3] + 1e-3, r"K is not symmetric: K\[1, 3\] is [\d.e-]+, and K\[3, 1\] is"),
        (np.nan, "K holds NaN or infinite values in 1 of . samples, first sample 1"),
        (np.inf, "K holds NaN or infinite values in 1 of . samples, first sample 1"),
    ):
        wrong = K.copy()
        wrong[1, 3] = value
        for given in (wrong, wrong.tolist(), torch.from_numpy(wrong)):
            with pytest.raises(nm.DataError, match=said):
                solve(given)
    with pytest.raises(nm.DataError, match=r"K must be the \(5, 5\) .*got \(5, 3\)"):
        solve(X[:5])
    with pytest.raises(nm.DataError, match=r"K must have shape"):
        solve(X[:5, 0])
    close = K.copy()
    close[1, 3] *= 1 + 1e-12  # rounding
    solve(close)


FLAGS = {
    "solver": lambda flag: solvers.min_norm_interpolation(X[8:], X[8:, 0], norm="l2", bias=flag),
    "linear": lambda flag: solvers.linear_max_margin(X, Y, bias=flag),
    "narrow": lambda flag: narrow_max_margin(X[:, :1], Y, width=1, bias=flag),
    "kernel": lambda flag: kernels.NTK(bias=flag)(X[8:]),
    "bound": lambda flag: bounds.kernel_ball(X, bias=flag, draws=2),
    "estimator": lambda flag: estimators.NTKClassifier(bias=flag).fit(X, Y).margin_,
    "hard": lambda flag: estimators.NTKClassifier(C=None, bias=flag).fit(X, Y).margin_,
    "sparse": lambda flag: estimators.VariationNormRegressor(bias=flag).fit(X, Y).predict(X),
}


@pytest.mark.slow_cases("sparse")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FLAGS)
def test_a_scalar_of_numpy_or_torch_is_what_it_holds(name):
    for value in (True, False):
        plain = FLAGS[name](value)
        for flag in (np.bool_(value), np.array(value), torch.tensor(value)):
            found = FLAGS[name](flag)
            if hasattr(plain, "bias"):
                assert found.bias is value
            elif isinstance(plain, bounds.Rademacher):
                assert found == plain
            else:
                assert np.array_equal(found, plain)
        for wrong in (np.int64(value), np.array([value, value]), "True", None):
            with pytest.raises(nm.ArgumentError, match="bias must be True or False; got"):
                FLAGS[name](wrong)
    norm = np.array("l1")
    assert solvers.linear_max_margin(X, Y, norm=norm).margin == CALLS["l1"]()
    with pytest.raises(nm.ArgumentError, match="dtype must be float64 or float32; got torch"):
        kernels.ntk(X, dtype=torch.float32)


def test_least_norms_are_proved_in_few_rounds(monkeypatch):
    """Halfway between dual weights the gap halves with each round: 41 of them here."""
    solved, solve = [], MasterLP.solve
    monkeypatch.setattr(MasterLP, "solve", lambda *args: solved.append(1) or solve(*args))
    random = np.random.default_rng(0)
    found = solvers.min_norm_interpolation(random.normal(size=(60, 1)), random.normal(size=60))
    assert found.certified
    assert len(solved) <= 25


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(
    "kind", [(torch.float32, 1.0, 1e-38, 6), (torch.float64, 1e-200, 1e-108, 13)]
)
def test_scores_too_small_for_their_type_are_said_where_they_move_margins(outputs, kind):
    dtype, inputs, least, steps = kind
    X, y = inputs * torch.randn(30, 4, dtype=dtype), torch.arange(30) % 2
    net, weights = torch.nn.Linear(4, outputs, bias=False).to(dtype), torch.randn(outputs, 4)
    for size in least * 10.0 ** -np.arange(steps):
        net.weight.data = weights.to(dtype) * size
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            found = nm.measure(net, (X, y))
        off = re.search("smallest margin, .* is known to (.*)% of itself at best", found.warning)
        assert [str(w.message) for w in heard] == [found.warning] * bool(off)
        net.weight.data = net.weight.data * 2.0**100  # in the middle of the range
        error = abs(found.q_min * 2.0**100 / nm.measure(net, (X, y)).q_min - 1)
        # A sum of four products is rounded seven times, by half a unit each.
        assert error < (4 * float(off[1]) / 100 if off else 5e-5)
    assert off
