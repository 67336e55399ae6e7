"""Proofs by falling targets: no bound of a node, a tree or a run is below what is there."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin.solvers.columns import falling_targets, neuron_search
from netmargin.solvers.columns.falling_targets import FallingTargets
from netmargin.solvers.columns.neuron_search import NeuronSearch
from netmargin.solvers.columns.options import Options
from netmargin.solvers.columns.sparse_weights import SparseWeights
from netmargin.solvers.neurons.activations import RELU, Activation
from netmargin.solvers.neurons.samples import respond
from netmargin.solvers.neurons.search import search_neurons
from netmargin.solvers.pricing import target_tree
from netmargin.solvers.pricing.arrangement import Arrangement
from netmargin.solvers.pricing.node_bound import Nodes, SignedTerms
from netmargin.solvers.pricing.node_descent import NodeDescent
from netmargin.solvers.pricing.target_tree import Outcome, TargetTree, _make_root, _split
from netmargin.solvers.regularized import f1_squared

FOREVER = Options(tol=1e-6, deadline=np.inf, pricing="complete", seed=0)


def draw_problem(random, D=None, n=None):
    """Points and coefficients of either sign."""
    D = D or int(random.integers(2, 11))
    n = n or int(random.integers(3, 25))
    X = random.normal(size=(n, D)) * random.uniform(0.2, 2, (n, 1))
    c = random.normal(size=n) * random.uniform(0, 1, n)
    c[0] = abs(c[0]) + 0.1
    return X, c


def decide(nodes, terms, w, random):
    """Children of the root that contain w, with some samples decided and multipliers at random."""
    for sample in random.permutation(terms.positive)[: random.integers(0, terms.positive + 1)]:
        nodes.branch = torch.full((1,), int(sample))
        inside = int(float(terms.XP[sample] @ w) < 0)
        nodes = _split(nodes).select(slice(inside, inside + 1))
    return nodes


def randomize(nodes, random):
    """Any multipliers that are allowed."""
    draw = lambda t: torch.from_numpy(random.normal(size=tuple(t.shape)))  # noqa: E731
    nodes.scale = torch.where(nodes.side == 0, draw(nodes.scale), draw(nodes.scale).abs())
    b, a = draw(nodes.b), draw(nodes.a)
    size = torch.from_numpy(random.uniform(0, 1, tuple(a.shape)))
    a = a.clamp(-1, 1) * size
    nodes.a, nodes.b = a, b / b.norm(dim=1, keepdim=True) * (1 - a.abs())[:, None]
    return nodes


def best_inside(terms, nodes, w, random):
    """The largest value that an ascent from w reaches without leaving the node."""
    side, best = nodes.side[0], float(terms.values(w[None])[0])
    length = 0.5
    for _ in range(60):
        tried = w + length * torch.from_numpy(random.normal(size=(64, len(w))))
        tried /= tried.norm(dim=1, keepdim=True)
        values = terms.values(tried)
        values[((tried @ terms.XP.T) * side < 0).any(1)] = -np.inf
        top = int(values.argmax())
        if values[top] > best:
            w, best = tried[top], float(values[top])
        else:
            length *= 0.8
    return best


def check_nodes(count, seed):
    random = np.random.default_rng(seed)
    for _ in range(count):
        X, c = draw_problem(random)
        terms = SignedTerms(X, c)
        w = torch.from_numpy(random.normal(size=X.shape[1]))
        w /= w.norm()
        nodes = decide(_make_root(terms), terms, w, random)
        best = best_inside(terms, nodes, w, random)
        wild = randomize(dataclasses.replace(nodes), random)
        above = terms.form_quadratics(wild)
        mu = torch.linalg.eigvalsh(above.matrix)[:, -1].clamp_min(0) + random.uniform(0.01, 1)
        # Whatever w is taken for the solution, the bound holds.
        for guess in (w, torch.from_numpy(random.normal(size=X.shape[1]))):
            assert float(terms.judge(above, mu, guess[None])[0]) >= best
        # After some steps, and with the target just below the value that is there.
        solver = NodeDescent(terms, max(best, 1e-3) * (1 - 1e-9))
        for steps in (3, 12, 60):
            nodes = solver.descend(nodes, steps, 5e-3 * solver._target)
            if best > 1e-3:
                assert len(nodes) == 1
                assert float(nodes.bound[0]) >= best
            if not len(nodes):
                break


def test_node_bounds_are_above_what_an_ascent_in_the_node_reaches():
    check_nodes(60, seed=0)


@pytest.mark.parametrize("log_tau", [38.0, 90.0, 700.0, 900.0, -900.0, np.nan])
@pytest.mark.parametrize("mu", [0.0, 1e-300, 1e20, np.inf, np.nan])
def test_multipliers_out_of_all_proportion_prove_nothing_false_and_end_nothing(log_tau, mu):
    random = np.random.default_rng(0)
    for _ in range(4):
        X, c = draw_problem(random)
        c[0] = abs(c[0]) + 0.1
        terms = SignedTerms(X, c)
        best = Arrangement(X).price_neurons(c).values.max() if X.shape[1] < 3 else 0.0
        nodes = _make_root(terms)
        nodes.scale[:, 0], nodes.mu[:] = log_tau, mu  # whose eigenvalues hide what is added to them
        left = NodeDescent(terms, 0.9 * best).descend(nodes, 9, 1e-3)
        assert not (left.bound < best).any()


@pytest.mark.nightly
def test_a_thousand_node_bounds_are_above_what_an_ascent_in_the_node_reaches():
    check_nodes(1000, seed=1)


def test_a_bound_counts_every_rounding():
    """The bound of a sum whose only term is its maximum, from multipliers at the optimum."""
    for size in (1e-6, 1.0, 1e6):
        terms = SignedTerms(np.array([[size, 0.0]]), np.array([1.0]))
        nodes = _make_root(terms)
        nodes.side[:] = 1.0
        for multiplier in (0.0, 0.5):
            nodes.scale[:] = multiplier
            above = terms.form_quadratics(nodes)
            length = above.linear.norm(dim=1)
            bound = float(terms.judge(above, length / 2, above.linear / length)[0])
            assert size * (1 + multiplier + 1e-14) < bound < size * (1 + multiplier + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_trees_agree_with_the_whole_arrangement(seed):
    random = np.random.default_rng(seed)
    X, c = draw_problem(random, D=int(random.integers(2, 4)))
    best = Arrangement(X).price_neurons(c).upper_bound
    tree = TargetTree(X, c, 0.999 * best)
    # Never proved: refuted, or a leaf stays above the target.
    outcome = tree.grow(np.inf)
    if outcome is Outcome.REFUTED:
        assert abs(respond(X, c, tree.neuron[None], RELU)[0]) > 0.999 * best
        assert np.linalg.norm(tree.neuron) == pytest.approx(1)
    else:
        assert tree.upper_bound >= best * (1 - 1e-9)
    tree = TargetTree(X, c, 1.02 * best)
    assert tree.grow(np.inf) is Outcome.PROVED
    assert best <= tree.upper_bound < 1.03 * best
    assert tree.share == pytest.approx(1)


def test_leaves_that_stay_above_the_target_are_the_bound(monkeypatch):
    """Where no point above the target is met, nothing refutes it."""
    monkeypatch.setattr(SignedTerms, "values", lambda self, W: -W.new_ones(len(W)))
    X, c = draw_problem(np.random.default_rng(0), D=3, n=8)
    best = Arrangement(X).price_neurons(c).upper_bound
    tree = TargetTree(X, c, 0.9 * best)
    assert tree.grow(np.inf) is Outcome.PROVED
    assert best * (1 - 1e-9) <= tree.upper_bound < 1.05 * best


@pytest.mark.parametrize(
    ("trees", "seed"),
    [
        pytest.param(12, 5, marks=pytest.mark.slow),
        pytest.param(200, 6, marks=pytest.mark.nightly),
    ],
)
def test_no_bound_of_a_tree_is_below_what_long_ascents_reach(trees, seed):
    random = np.random.default_rng(seed)
    for _ in range(trees):
        X, c = draw_problem(random, n=int(random.integers(10, 40)))
        starts = random.normal(size=(1000, X.shape[1]))
        _, values = search_neurons(X, c, starts, count=4, steps=300)
        best = float(np.abs(values).max())
        for excess in (0.5, 0.1, -1e-6):
            tree = TargetTree(X, c, (1 + excess) * best)
            outcome = tree.grow(np.inf, most_nodes=3000)
            if outcome is Outcome.PROVED:
                assert tree.upper_bound >= best
            if outcome is Outcome.REFUTED:
                assert abs(respond(X, c, tree.neuron[None], RELU)[0]) > tree.upper_bound


def test_a_tree_that_is_stopped_goes_on(monkeypatch):
    """By a limit, or by Ctrl-C, after which no node counts as closed that was not."""
    random = np.random.default_rng(3)
    X, c = random.normal(size=(70, 8)), random.normal(size=70)
    _, values = search_neurons(X, c, random.normal(size=(200, 8)), count=1)
    target = 1.02 * abs(values[0])
    whole, parts = TargetTree(X, c, target), TargetTree(X, c, target)
    assert whole.grow(np.inf) is Outcome.PROVED

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    for limit in (0, 1):
        with monkeypatch.context() as patched:
            patched.setattr(NodeDescent, "descend", interrupted)
            with pytest.raises(KeyboardInterrupt):
                parts.grow(np.inf)
        parts.grow(np.inf, most_nodes=limit)
    shares = []
    while parts.grow(np.inf, most_nodes=1) is Outcome.UNFINISHED:
        shares.append(parts.share)
    assert len(shares) > 1
    assert shares == sorted(shares)
    assert (parts.nodes, parts.share) == (whole.nodes, pytest.approx(1))
    assert TargetTree(X, c, target).grow(0.0) is Outcome.UNFINISHED


def test_sparse_weights_keep_their_level_or_the_least_one():
    random = np.random.default_rng(0)
    responses = random.uniform(-0.2, 1, (30, 200))
    target, even = np.ones(30), np.full(30, 1 / 30)
    level = float(np.abs(responses.T @ even).max())
    program = SparseWeights(target, np.inf, even, level)
    weights, reached = program.solve(responses, 1.5 * level)
    assert reached == pytest.approx(1.5 * level)
    program.sharpen(weights)
    sparser, _ = program.solve(responses, 1.5 * level)
    tight, least = program.solve(responses, 1e-3 * level)
    for p, bound in ((weights, 1.5 * level), (sparser, 1.5 * level), (tight, least)):
        assert p.min() >= 0
        assert p @ target == pytest.approx(1, abs=1e-12)
        assert np.abs(responses.T @ p).max() <= bound * (1 + 1e-5)
    assert np.count_nonzero(sparser) <= np.count_nonzero(weights) < 30
    assert 1e-3 * level < least <= level * (1 + 1e-6)
    # A unit of slack that costs 2 allows no weight above 2 levels.
    capped, reached = SparseWeights(target, 2.0, even, level).solve(responses, 0.1)
    assert capped.max() <= 2 * reached * (1 + 1e-6)


@pytest.fixture
def by_targets(monkeypatch):
    """The tree at the best dual weights does next to nothing, whatever the problem."""
    monkeypatch.setattr(neuron_search, "_NEAR", 1.0)
    monkeypatch.setattr(neuron_search, "_MOST_WORK", 1.0)
    monkeypatch.setattr("netmargin.solvers.pricing.bounds.QUICK_WORK", 1.0)


RANDOM = np.random.default_rng(1)
X, Y = RANDOM.normal(size=(24, 7)), RANDOM.choice([-1, 1], 24)
SOLVERS = {
    "f1_max_margin": lambda **o: nm.solvers.f1_max_margin(X, Y, **o),
    "f1_soft_margin": lambda **o: nm.solvers.f1_soft_margin(X, Y, C=0.7, **o),
    "f1_logistic": lambda **o: nm.solvers.f1_logistic(X[:8], Y[:8], regularization=0.05, **o),
    "f1_squared": lambda **o: f1_squared(X[:9], X[:9, 0] * X[:9, 1], regularization=0.1, **o),
    "interpolation": lambda **o: nm.solvers.min_norm_interpolation(
        X[:16], X[:16, 0] * X[:16, 1], **o
    ),
}


@pytest.mark.slow_cases("interpolation", "f1_soft_margin", "f1_squared", "f1_max_margin")
@pytest.mark.parametrize("name", SOLVERS)
def test_targets_bracket_the_optimum_of_every_problem(name, request):
    """The tree at the best dual weights proves the optimum; targets come near it from outside."""
    sharp = SOLVERS[name](tol=1e-4)
    assert sharp.certified
    request.getfixturevalue("by_targets")
    found = SOLVERS[name](tol=1e-4)
    bracket, optimum = found.bracket, sharp.bracket
    assert bracket.lower <= optimum.upper * (1 + 1e-9)
    assert bracket.upper >= optimum.lower * (1 - 1e-9)
    assert bracket.upper < 1.25 * bracket.lower
    end = "upper" if name == "f1_max_margin" else "lower"
    words = getattr(found, f"{end}_bound_from")
    assert words.startswith(f"{np.count_nonzero(found.dual)} of {len(found.dual)} samples carry it")
    assert words.endswith(" nodes")


def make_targets(options, n=24, D=6):
    random = np.random.default_rng(2)
    Z = random.normal(size=(n, D))
    Z /= np.linalg.norm(Z, axis=1).max()
    y = random.choice([-1.0, 1.0], n)
    targets = FallingTargets(Z, y, np.ones(n), options)
    _, values = search_neurons(Z, y / n, random.normal(size=(50, D)), count=1)
    return targets, np.full(n, 1 / n), abs(values[0])


@pytest.mark.slow
def test_targets_fall_and_say_how_far_they_are(monkeypatch):
    monkeypatch.setattr(falling_targets, "_AUTO_NODES", 1500)
    monkeypatch.setattr(falling_targets, "_LEAST_SECONDS", 0.1)
    # A report, however fast trees end.
    monkeypatch.setattr(falling_targets, "_SECONDS_BETWEEN", 0.005)
    targets, even, value = make_targets(dataclasses.replace(FOREVER, pricing="auto"))
    targets.begin(even, value / 3, np.eye(6))
    proofs, lines = [], []
    targets.improve(
        upper=2 * value,
        lower=value / 3,
        tol=1e-3,
        offer=lambda *proof: proofs.append(proof),
        report=lines.append,
    )
    bounds = [largest for _, largest, _ in proofs]
    assert len(bounds) > 1
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] < 2 * value
    assert targets.nodes < 1.2 * falling_targets._AUTO_NODES
    for dual, largest, _ in proofs[-1:]:
        c = dual * targets.signs
        _, values = search_neurons(
            targets._Z, c, np.random.default_rng(0).normal(size=(500, 6)), count=1
        )
        assert abs(values[0]) <= largest
        assert dual.sum() == pytest.approx(1, abs=1e-12)
    assert any("of the tree closed, about" in line and "nodes" in line for line in lines)


def test_targets_of_terms_that_cancel_count_the_rounding_of_their_linear_part():
    """6 times the first sample is the second one, but for 2 ulps, which products round to 0."""
    Z, centre = np.array([[0.7, 0.0], [4.199999999999999, 0.0]]), np.array([6.0, 1.0])
    exact = float(6 * Fraction(Z[0, 0]) - Fraction(Z[1, 0]))
    assert exact > 4e-16
    assert centre @ (Z[:, 0] * [1, -1]) == 0
    signs, offered = np.array([1.0, -1.0]), []
    options = dataclasses.replace(FOREVER, activation=Activation(1 - 1e-6))
    targets = FallingTargets(Z, signs, np.ones(2), options, sparse=False)
    targets.begin(centre, 1e-17, np.eye(2))
    targets.improve(
        upper=1e-12,
        lower=1e-17,
        tol=1e-6,
        offer=lambda _, largest, proof: offered.append(largest),
        report=lambda _: None,
    )
    assert exact < min(offered) < 1e-12


def test_targets_stop_at_the_deadline():
    targets, even, value = make_targets(dataclasses.replace(FOREVER, deadline=0.0))
    targets.begin(even, value / 3, np.eye(6))
    targets.improve(upper=2 * value, lower=0.0, tol=1e-3, offer=pytest.fail, report=pytest.fail)
    assert targets.nodes == 0


def test_a_search_that_proves_nothing_has_all_of_the_time(monkeypatch):
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    local = dataclasses.replace(FOREVER, deadline=1000.0, pricing="local")
    ends = lambda options: NeuronSearch(np.eye(2), options)._search_ends  # noqa: E731
    assert ends(local) == 1000
    assert 0 < ends(dataclasses.replace(local, pricing="auto")) < 500


def test_weights_whose_targets_are_refuted_are_chosen_again(monkeypatch):
    """Without local search, all neurons that the program learns come from trees."""
    monkeypatch.setattr(
        FallingTargets, "_search_at", lambda *_, **__: (np.zeros((0, 6)), np.zeros(0))
    )
    targets, even, value = make_targets(dataclasses.replace(FOREVER, pricing="auto"))
    targets.begin(even, value / 2, np.eye(6))
    targets.improve(
        upper=2 * value,
        lower=value / 3,
        tol=1e-3,
        offer=lambda *proof: None,
        report=lambda line: None,
    )
    assert len(targets.neurons) > 6


def test_nodes_are_selected_and_joined():
    terms = SignedTerms(*draw_problem(np.random.default_rng(0)))
    root = _make_root(terms)
    pair = Nodes.join([root, root])
    assert (len(pair), len(pair.select(slice(1))), len(Nodes.join([pair]))) == (2, 1, 2)


def test_threads_do_not_change_what_is_proved(monkeypatch):
    """Bit for bit, in a tree that is proved and in one that is refuted, of some rounds each."""
    monkeypatch.setattr(target_tree, "_BATCH", 2)
    random = np.random.default_rng(3)
    X, c = random.normal(size=(70, 8)), random.normal(size=70)
    _, values = search_neurons(X, c, random.normal(size=(200, 8)), count=1)
    for excess, outcome in ((0.02, Outcome.PROVED), (-0.001, Outcome.REFUTED)):
        target = (1 + excess) * float(abs(values[0]))
        one, two = (TargetTree(X, c, target, threads) for threads in (1, 2))
        assert one.grow(np.inf) is two.grow(np.inf) is outcome
        assert one.nodes == two.nodes > 30
        assert (one.upper_bound, one.share) == (two.upper_bound, two.share)
        if outcome is Outcome.PROVED:
            assert one.share == pytest.approx(1)
        else:
            assert np.array_equal(one.neuron, two.neuron)


@pytest.mark.slow
def test_threads_do_not_change_a_bracket(request, monkeypatch):
    request.getfixturevalue("by_targets")
    # Weights are chosen until none is missing, whatever the clock says.
    monkeypatch.setattr(falling_targets, "_LEAST_SECONDS", np.inf)
    one, two = (SOLVERS["f1_max_margin"](tol=1e-2, n_jobs=n_jobs) for n_jobs in (None, 2))
    assert one.bracket == two.bracket
    assert one.upper_bound_from == two.upper_bound_from
    assert np.array_equal(one.dual, two.dual)
