"""The regularized logistic problem over measures, and the perturbed flow that solves it."""

import numpy as np
import pytest
import torch
from scipy.special import xlogy

import netmargin as nm
from netmargin.papers.wei_2018 import (
    Functional,
    Regularity,
    perturbation_schedule,
    perturbed_flow,
    regularized_logistic,
)
from netmargin.solvers import f1_logistic


def corners(n: int = 20):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def entropy(p):
    return -(xlogy(p, p) + xlogy(1 - p, 1 - p))


# The convex reference


def test_logistic_reference_of_one_sample():
    """p = min(2 lambda / |z|, 1/2), objective H(p)."""
    for length, regularization in ((1.0, 0.1), (3.0, 1e-4), (0.5, 0.2)):
        found = f1_logistic([[length]], [-1], regularization=regularization, bias=False)
        p = min(2 * regularization / length, 0.5)
        assert found.objective == pytest.approx(entropy(p), rel=1e-6)


@pytest.mark.slow
def test_logistic_reference_tends_to_the_max_margin():
    X, y = corners(12)
    optimum = nm.solvers.f1_max_margin(X, y)
    margins = [
        f1_logistic(X, y, regularization=r).normalized_margin(X, y) / optimum.margin
        for r in (1e-3, 1e-5, 1e-8)
    ]
    assert margins[0] < margins[1] < margins[2] <= 1 + 1e-9
    assert margins[2] > 0.95


# The flow


@pytest.mark.slow
@pytest.mark.nightly_cases("Dirac")
@pytest.mark.parametrize("start", ["Dirac", "half-sphere"])
def test_perturbed_flow_leaves_where_the_unperturbed_is_stuck(start):
    """To 1e-3 of the certified optimum, from one neuron, and from positive ones, |a| = b."""
    X, y = corners()
    problem = regularized_logistic(X, y, regularization=0.01)
    best = f1_logistic(X, y, regularization=0.01)
    random = np.random.default_rng(0)
    a = random.normal(size=(1 if start == "Dirac" else 100, 3))
    positions = np.column_stack([a / np.linalg.norm(a, axis=1, keepdims=True), np.ones(len(a))])
    options = {"rate": 0.2, "steps": 3000, "budget": 600}
    stuck = perturbed_flow(problem, positions, sigma=0.0, **options)
    assert stuck.values[-1] > 1.1 * best.objective
    assert (
        abs(stuck.values[-1] - stuck.values[-20]) < 1e-3 * stuck.values[-1]
    )  # it has come to rest
    free = perturbed_flow(problem, positions, sigma=1e-4, **options)
    assert best.lower_bound <= free.values.min()
    assert free.values[-1] <= 1.001 * best.objective
    end = free.end
    assert abs(end.weights.sum() + end.resting - 1) < 1e-12
    assert len(end.weights) <= 600
    assert 0 < end.dropping_error < 0.01
    measure = nm.solvers.ReLUMeasure.projected(end.positions, end.weights, bias=True)
    value = np.logaddexp(0, -y * measure.decision_function(X)).mean() + 0.01 * measure.mass
    assert value == pytest.approx(free.values[-1], rel=1e-12)


def test_unperturbed_flow_is_gradient_descent():
    X, y = corners(6)
    problem = regularized_logistic(X, y, regularization=0.05)
    start = np.random.default_rng(1).normal(size=(4, 4))
    run = perturbed_flow(problem, start, sigma=0.0, rate=0.1, steps=20, records=20)
    w = torch.tensor(start, requires_grad=True)
    Z = torch.tensor(np.hstack([X, np.ones((6, 1))]))
    for t in range(21):
        f = torch.tensor(y) * ((Z @ w[:, :-1].T).relu() @ w[:, -1] / 4)
        L = torch.nn.functional.softplus(-f).mean() + 0.05 * w.square().sum() / 4
        assert run.values[t] == pytest.approx(L.item(), rel=1e-12)
        (g,) = torch.autograd.grad(L, w)
        w = (w - 0.1 * 4 * g).detach().requires_grad_(True)  # 4: every particle has weight 1/4


def test_change_of_the_objective():
    """Lemma E.7 for one small step: d/dt L = -sigma E_rho L' + sigma E_U L' - E |v|^2."""
    X, y = corners(8)
    problem = regularized_logistic(X, y, regularization=0.05)
    random = np.random.default_rng(2)
    positions, weights = random.normal(size=(30, 4)), random.dirichlet(np.ones(30))
    sigma = 0.3
    _L, first, velocity = problem.slopes(torch.tensor(positions), torch.tensor(weights))
    errors = []
    for h in (1e-3, 5e-4):
        run = perturbed_flow(
            problem,
            positions,
            weights=weights,
            sigma=sigma,
            rate=h,
            steps=1,
            renew_every=1,
            fresh=50,
            records=1,
        )
        new = run.end.positions[30:]
        _, first_new, _ = problem.slopes(
            torch.cat([torch.tensor(positions), new]),
            torch.cat([torch.tensor(weights), torch.zeros(50).double()]),
        )
        expected = sigma * (first_new[30:].mean() - torch.tensor(weights) @ first) - torch.tensor(
            weights
        ) @ velocity.square().sum(1)
        errors.append(abs((run.values[1] - run.values[0]) / h - expected.item()))
    assert 1.6 < errors[0] / errors[1] < 2.4
    assert errors[1] < 0.01 * abs(expected.item())


@pytest.mark.slow
def test_other_functionals():
    """Squares instead of a logistic loss: the least R + mass of f = y over one sample is known."""
    problem = Functional(
        features=lambda p: p[:, 1:] * p[:, :1].relu(),  # b relu(a)
        risk=lambda f: (f - 2.0).square().sum(),
        penalty=lambda p: p.square().sum(1),
    )
    run = perturbed_flow(problem, [[0.1, -0.1]], sigma=1e-3, rate=0.05, steps=4000)
    assert run.values[-1] == pytest.approx(3.0, rel=1e-3)  # (f - 2)^2 + 2 f is least at f = 1


@pytest.mark.slow
def test_too_large_steps_are_taken_back():
    X, y = corners(6)
    problem = regularized_logistic(100 * X, y, regularization=1.0)
    with pytest.warns(UserWarning, match="back to the first with rate"):
        run = perturbed_flow(
            problem,
            np.random.default_rng(0).normal(size=(5, 4)),
            sigma=0.0,
            rate=3.0,
            steps=100,
        )
    assert run.rate < 3.0
    assert np.isfinite(run.values).all()
    assert run.values[-1] < 0.7


def test_growth_by_new_mass_is_no_divergence():
    """From the optimum with a large sigma, L grows: the flow goes on with the given rate."""
    X, y = [[1.0], [-1.0]], [1, 1]
    problem = regularized_logistic(X, y, regularization=1e-3)
    best = f1_logistic(X, y, regularization=1e-3)
    positions, weights = best.atoms * np.sqrt(best.mass), best.weights / best.mass
    options = {"weights": weights, "sigma": 0.3, "renew_every": 1}
    run = perturbed_flow(problem, positions, rate=0.05, steps=20, records=1, **options)
    fine = perturbed_flow(problem, positions, rate=0.0125, steps=80, records=80, **options)
    assert run.rate == 0.05
    assert run.values[-1] > 1.2 * run.values[0]
    assert run.values[-1] == pytest.approx(fine.values[-1], rel=0.1)


def test_schedule_follows_the_proof():
    """More accuracy takes a smaller sigma and more time, no more than the theorem says."""
    bounds = regularized_logistic(*corners(), regularization=0.1).regularity
    schedules = [perturbation_schedule(bounds, epsilon=e, start=0.7) for e in (0.2, 0.1, 0.05)]
    sigmas, times = [s.sigma for s in schedules], [s.time for s in schedules]
    assert sigmas[0] > sigmas[1] > sigmas[2] > 0
    growth = np.diff(np.log(times)) / np.log(2)
    assert (growth > 2).all()
    assert (growth < 4.8).all()  # 1 / epsilon^4 times log^2(1 / epsilon)
    with pytest.raises(ValueError, match="epsilon"):
        perturbation_schedule(bounds, epsilon=0.0, start=0.7)


def test_schedules_are_positive():
    """Of any problem: an early version gave negative times where sigma is large."""
    random = np.random.default_rng(0)
    for _ in range(500):
        M_R, C_R, B_Phi, M_Phi, b_V = 10 ** random.uniform(-4, 4, size=5)
        bounds = Regularity(
            int(random.integers(2, 6)),
            int(random.integers(1, 5)),
            M_R,
            C_R,
            B_Phi,
            M_Phi,
            b_V,
            b_V * 1.5,
            0.0,
        )
        try:
            found = perturbation_schedule(
                bounds, epsilon=10 ** random.uniform(-3, 0), start=10 ** random.uniform(-1, 2)
            )
        except ValueError:
            continue
        assert found.window >= 1
        assert found.time >= 2 * found.window


def test_bad_input():
    problem = regularized_logistic([[1.0]], [1], regularization=0.1)
    good = {"sigma": 0.1, "rate": 0.1, "steps": 2}
    for name, wrong in (
        ("sigma", {"sigma": 1.0}),
        ("sigma", {"sigma": -0.1}),
        ("rate", {"rate": 0.0}),
        ("steps", {"steps": 0}),
        ("fresh", {"fresh": 0}),
        ("sigma rate", {"sigma": 0.9, "rate": 2.0}),
    ):
        with pytest.raises(nm.ArgumentError, match=f"^{name} must be"):
            perturbed_flow(problem, [[1.0, 0.0, 1.0]], **(good | wrong))
    with pytest.raises(nm.DataError, match="positions"):
        perturbed_flow(problem, [[np.nan, 0.0, 1.0]], **good)
    with pytest.raises(nm.DataError, match=r"cannot take positions of shape \(1, 7\)"):
        perturbed_flow(problem, [[1.0] * 7], **good)
    with pytest.raises(ValueError, match="bounds are not known"):
        perturbation_schedule(None, epsilon=0.1, start=1.0)
    with pytest.raises(nm.DataError, match="weights"):
        perturbed_flow(problem, [[1.0, 0.0, 1.0]], weights=[0.5], **good)
    for make in (f1_logistic, regularized_logistic):
        with pytest.raises(nm.ArgumentError, match="regularization"):
            make([[1.0]], [1], regularization=0.0)
