"""`fit_two_layer_net`: units, copies, classes and bad input; what it minimizes is tested in
test_sliding_columns.py.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import netmargin as nm
from netmargin.bounds import share_of_best
from netmargin.errors import ArgumentError, DataError
from netmargin.result import Status
from netmargin.solvers import fit_two_layer_net
from netmargin.solvers.neurons import problem, sliding
from netmargin.solvers.neurons.activations import Activation
from netmargin.solvers.neurons.problem import bound_responses

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 3))
WORDS = np.array(["ash", "birch", "cedar"])[(3 * np.abs(X[:, 0])).astype(int).clip(0, 2)]
SIGNS = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
VALUES = np.column_stack([np.abs(X[:, 0]), X[:, 1] - 1])
CASES = [
    (SIGNS, "squared_hinge"),
    (SIGNS, "hinge"),
    (SIGNS, "hard_margin"),
    (SIGNS, "logistic"),
    (WORDS, "squared_hinge"),
    pytest.param(WORDS, "hard_margin", marks=pytest.mark.slow),
    (WORDS, "logistic"),
    (VALUES, "squared"),
    (VALUES[:, 0], "equality"),
]
IDS = [
    *("squared_hinge", "hinge", "hard_margin", "logistic"),
    *("squared_hinge, 3", "hard_margin, 3", "logistic, 3", "squared, 2", "equality"),
]


def losses_of(kind, y, F):
    """The sum of the losses of outputs F, written out once more."""
    if kind in ("squared", "equality"):
        return ((F - y) ** 2).sum() / 2 if kind == "squared" else 0.0
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) == 2:
        F = np.column_stack([np.zeros(len(F)), F])
    own = F[np.arange(len(F)), index]
    margins = own[:, None] - F
    rivals = index[:, None] != np.arange(len(classes))
    short = np.maximum(1 - margins, 0) * rivals
    match kind:
        case "squared_hinge":
            return (short**2).sum() / 2
        case "hinge":
            return short.sum()
        case "logistic":
            return (np.logaddexp.reduce(F, axis=1) - own).sum()
    return 0.0 if (margins[rivals] >= 1 - 1e-9).all() else np.inf


@pytest.mark.slow_cases("squared_hinge, 3", "equality")
@pytest.mark.parametrize(("y", "loss"), CASES, ids=IDS)
def test_the_objective_is_what_the_net_attains_and_its_network_computes(y, loss):
    fit = fit_two_layer_net(X, y, loss=loss, C=0.3, tol=0.05)
    assert fit.status in (Status.LOCALLY_OPTIMAL, Status.OPTIMAL)
    F = fit.decision_function(X)
    attained = fit.norm + 0.3 * losses_of(loss, y, F)
    assert fit.objective == pytest.approx(attained, rel=1e-9)
    assert 0 < fit.lower_bound <= fit.local_bound * (1 + 1e-9) <= fit.objective * (1 + 2e-9)
    net = fit.to_network()
    outputs = net(torch.from_numpy(X)).detach().numpy()
    assert outputs == pytest.approx(F.reshape(outputs.shape), rel=1e-9, abs=1e-12)
    weight = sum(float((p.detach() ** 2).sum()) for p in net.parameters()) / 2
    assert weight == pytest.approx(fit.norm)
    if loss in problem.OF_CLASSES:
        index = np.unique(y, return_inverse=True)[1]
        report = nm.measure(net, (X, index))
        assert report.normalized_margin == pytest.approx(fit.margin, rel=1e-6)
    assert fit.dual.shape[0] == len(X)
    assert len(fit.support) > 0


@pytest.mark.slow_cases("y1", "y2")
@pytest.mark.parametrize(
    ("y", "loss"), [(SIGNS, "squared_hinge"), (WORDS, "logistic"), (VALUES, "squared")]
)
def test_units_round_nothing_and_copies_are_weights(y, loss):
    Z = np.column_stack([X, np.ones(40)])
    options = {"loss": loss, "tol": 0.1, "bias": False}
    fit = fit_two_layer_net(Z, y, C=0.25, **options)
    # Inputs four times as long, and values twice as large: powers of 2 are no other problem.
    height = 2.0 if loss in problem.OF_TARGETS else 1.0
    far = fit_two_layer_net(4 * Z, height * y if height > 1 else y, C=0.0625 / height, **options)
    assert far.objective == fit.objective * height / 4
    assert np.array_equal(far.decision_function(4 * Z), height * fit.decision_function(Z))
    # Each sample twice, and half of them with no weight.
    twice = fit_two_layer_net(np.concatenate([Z, Z]), np.concatenate([y, y]), C=0.125, **options)
    assert twice.objective == fit.objective
    weights = np.repeat([1.0, 0.0], [25, 15])
    fewer = fit_two_layer_net(Z, y, C=0.25, sample_weight=weights, **options)
    assert fewer.objective == fit_two_layer_net(Z[:25], y[:25], C=0.25, **options).objective
    assert not fewer.dual[25:].any()


def test_a_binary_problem_is_that_of_two_outputs_up_to_root_two():
    binary = fit_two_layer_net(X, SIGNS, loss="logistic", C=np.sqrt(2), tol=1e-3)
    read = problem.Rivals((SIGNS == "yes").astype(int), 2)
    Z = np.column_stack([X, np.ones(40)])
    both = sliding.slide_columns(Z, problem.LogisticLoss(read, np.ones((40, 1))), tol=1e-3)
    assert both.objective == pytest.approx(binary.objective / np.sqrt(2), rel=2e-3)


@pytest.mark.parametrize("activation", ["relu", "abs", "linear", torch.nn.LeakyReLU(0.1)])
def test_every_activation_has_its_network(activation):
    fit = fit_two_layer_net(X, VALUES, loss="squared", activation=activation, tol=0.05)
    net = fit.to_network()
    assert net(torch.from_numpy(X)).detach().numpy() == pytest.approx(fit.decision_function(X))
    power = nm.analyse(net, torch.from_numpy(X)).order
    assert power == 2


def test_squares_have_a_network_of_their_own():
    for activation in ("squared_relu", lambda t: torch.nn.functional.leaky_relu(t, 0.5) ** 2):
        fit = fit_two_layer_net(X, SIGNS, activation=activation, tol=0.05)
        outputs = fit.to_network()(torch.from_numpy(X)).detach().numpy()[:, 0]
        assert outputs == pytest.approx(fit.decision_function(X))
        assert fit.margin == pytest.approx(
            np.where(SIGNS == "yes", outputs, -outputs).min() / fit.norm
        )


@given(
    slope=st.sampled_from([0.0, 0.1, 0.5, 1.0, -1.0, 3.0]),
    power=st.sampled_from([1, 2]),
    K=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_no_neuron_is_worth_more_than_is_proved(slope, power, K, seed):
    random = np.random.default_rng(seed)
    D = int(random.integers(1, 4))
    Z, C = random.normal(size=(6, D)), random.normal(size=(6, K))
    Z[random.random(6) < 0.2] = 0
    W = random.normal(size=(4000, D))
    W = np.concatenate([W, Z[Z.any(1)], -Z[Z.any(1)]])
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    phi = Activation(slope, power)
    found = np.linalg.norm(phi.feature(W @ Z.T) @ C, axis=1).max()
    assert found <= bound_responses(Z, C, phi)


def test_the_proved_bound_is_attained_by_one_sample():
    for phi in (Activation(0.5), Activation(-1.0), Activation(2.0, 2)):
        z, c = np.array([[3.0, 4.0]]), np.array([[2.0, 0.0]])
        exact = 2 * phi.largest * 5**phi.power
        assert bound_responses(z, c, phi) == pytest.approx(exact, rel=1e-9)


def test_a_printed_fit_names_what_its_bound_bounds():
    text = str(fit_two_layer_net([[0, 1], [1, 0], [-1, -1]], [0, 1, 2]))
    assert "lower bound of the objective" in text
    assert "local gap, by search alone" in text


def test_the_proved_bound_of_one_sample_is_its_objective():
    """The least |a| + C (5 a - 2)^2 / 2 of z = (3, 4)."""
    for C in (0.1, 1.0, 10.0):
        fit = fit_two_layer_net([[3.0, 4.0]], [2.0], loss="squared", bias=False, C=C)
        assert fit.objective == pytest.approx(0.4 - 1 / (50 * C))
        assert fit.objective * (1 - 1e-8) < fit.lower_bound <= fit.objective
    z, target = np.array([[3.0, 4.0]]), np.array([[2.0]])
    given = problem.FitProblem.of(z, target, np.ones(1), "equality", 1.0, Activation(0.0))
    for c in (0.1, 1.0, 10.0):  # before it is cut at what the net attains
        assert given.unit * given.bound_proved(np.array([[c]])) == pytest.approx(0.4)


def test_contradictions_are_named_in_the_callers_numbers():
    inputs = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 2.0], [2.0, 4.0]])
    fit = fit_two_layer_net(inputs, ["a", "b", "c", "a"], loss="hard_margin")
    assert (fit.status, fit.certified, fit.margin) == (Status.NOT_SEPARABLE, True, 0.0)
    assert "Samples 0 and 2 are equal" in fit.note
    # On one ray, without a bias.
    fit = fit_two_layer_net(inputs[[0, 1, 3]], [0, 1, 1], loss="hard_margin", bias=False)
    assert fit.status is Status.NOT_SEPARABLE
    assert fit.dual[:, 0] == pytest.approx([2 / 3, 0, 1 / 3])
    fit = fit_two_layer_net(
        [[1.0], [-1.0]], [0, 1], loss="hard_margin", bias=False, activation="abs"
    )
    assert fit.status is Status.NOT_SEPARABLE
    fit = fit_two_layer_net(inputs[[0, 2]], [0.0, 1.0], loss="equality")
    assert fit.status is Status.NOT_ATTAINABLE
    assert fit.dual.sum() == pytest.approx(0)
    # A loss takes them all the same.
    assert np.isfinite(fit_two_layer_net(inputs, ["a", "b", "c", "a"]).objective)


def test_what_no_net_separates_ends():
    fit = fit_two_layer_net(
        [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], loss="hard_margin", activation="linear"
    )
    assert (fit.status, fit.objective) == (Status.STALLED, np.inf)
    assert "squared_hinge" in fit.note


@pytest.mark.parametrize("loss", ["squared", "equality"])
def test_targets_of_0_need_no_neuron(loss):
    fit = fit_two_layer_net(X, np.zeros((40, 2)), loss=loss)
    assert (fit.objective, fit.local_gap, len(fit.neurons)) == (0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("far", "tol"), [(60, 0.2), (1e4, 0.5)])
def test_one_sample_of_a_class_and_outliers(far, tol):
    inputs = np.concatenate([X, far * X[:2]])
    fit = fit_two_layer_net(inputs, np.append(WORDS, ["oak", "elm"]), tol=tol)
    assert fit.local_gap <= tol
    assert (fit.predict(inputs)[-2:] == ["oak", "elm"]).all()


@pytest.mark.slow
def test_it_begins_with_another_fit_and_ends_on_time():
    coarse = fit_two_layer_net(X, WORDS, C=1.0, tol=1e-2)
    again = fit_two_layer_net(X, WORDS, C=1.0, tol=1e-2, start=coarse)
    assert again.objective <= coarse.objective
    late = fit_two_layer_net(X, WORDS, time_limit=0)
    assert late.status is Status.TIME_LIMIT
    with pytest.raises(DataError, match="start must be a net of 4 inputs"):
        fit_two_layer_net(X, SIGNS, start=coarse)


def test_ctrl_c_returns_the_best_so_far(monkeypatch):
    def interrupt(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(sliding._Descent, "descend", interrupt)
    fit = fit_two_layer_net(X, WORDS)
    assert fit.status is Status.INTERRUPTED
    assert fit.objective == pytest.approx(
        40
    )  # f = 0: each sample falls short of two rivals, 1/2 each


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y": SIGNS[:5]}, DataError, "40 labels"),
        ({"y": np.full(40, "yes")}, DataError, "two classes"),
        ({"y": np.full(40, np.nan)}, DataError, "NaN"),
        ({"C": 0}, ArgumentError, "C must be"),
        ({"C": np.inf}, ArgumentError, "C must be"),
        ({"C": np.ones(40)}, ArgumentError, "C must be"),
        ({"loss": "hinges"}, ArgumentError, "squared_hinge"),
        ({"activation": "gelu"}, ArgumentError, "no activation 'gelu'"),
        ({"activation": torch.nn.GELU()}, ArgumentError, "homogeneous"),
        ({"activation": torch.nn.ReLU6()}, ArgumentError, "homogeneous"),
        ({"activation": lambda t: t * t.abs()}, ArgumentError, "homogeneous"),
        ({"activation": lambda t: 2 * t}, ArgumentError, "it is 2 there"),
        ({"activation": 3}, ArgumentError, "a function of float64 tensors"),
        ({"start": X}, ArgumentError, "start must be"),
        ({"X": np.full((40, 3), 1e200)}, DataError, "beyond float64"),
        ({"X": np.full((40, 3), 1e200), "activation": "relu"}, DataError, "beyond float64"),
        ({"sample_weight": np.zeros(40)}, DataError, "zero"),
        ({"y": VALUES[:3], "loss": "squared"}, DataError, "40 finite values"),
    ],
)
def test_bad_input_is_refused_in_words(change, error, words):
    options = {"activation": "squared_relu"} if "X" in change else {}
    with pytest.raises(error, match=words):
        fit_two_layer_net(**{"X": X, "y": SIGNS, **options, **change})


def test_more_classes_than_memory_holds_are_refused(monkeypatch):
    monkeypatch.setattr("netmargin.core.memory.read_free_memory", lambda: 1e4)
    with pytest.raises(DataError, match="A net of 40 outputs on 40 samples"):
        fit_two_layer_net(X, np.arange(40))


def test_the_share_of_the_best_margin():
    best = fit_two_layer_net(X, SIGNS, loss="hard_margin", tol=0.1)
    index = np.unique(SIGNS, return_inverse=True)[1]
    net = best.to_network()
    report = nm.measure(net, (X, index))
    share = share_of_best(report, best)
    assert share.found == pytest.approx(1, rel=1e-6)
    assert share.proved == pytest.approx(best.margin / best.upper_bound)
    assert "100.0%" in share.summary()
    with torch.no_grad():
        net[-1].weight.neg_()
    wrong = share_of_best(nm.measure(net, (X, index)), best)
    assert wrong.proved == wrong.found < 0
    assert "at least  0" not in wrong.summary()
    with torch.no_grad():
        net[-1].weight.neg_()
    for wrong, words in (
        ((report, fit_two_layer_net(X, SIGNS)), "hard margin"),
        ((nm.measure(net, (X[:9], index[:9])), best), "9 samples"),
        ((nm.measure(torch.nn.Linear(3, 1, bias=False).double(), (X, index)), best), "order 2"),
    ):
        with pytest.raises(ArgumentError, match=words):
            share_of_best(*wrong)


def test_a_fit_is_saved(tmp_path):
    fit = fit_two_layer_net(X, WORDS, tol=0.1)
    again = nm.load(fit.save(tmp_path / "fit.pt"))
    assert np.array_equal(again.decision_function(X), fit.decision_function(X))
    assert again.predict(X).tolist() == fit.predict(X).tolist()
