"""The ledger: all claims are there, all hold, and every one of them can fail."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin.cli import main
from netmargin.papers.ledger.pages import failure, loose, row, write_markdown
from netmargin.papers.wei_2018 import claims_path
from netmargin.theory import CLAIMS, Claim, Finding, Trial, verify


def half_plane(n: int, d: int, *, seed: int):
    """Labels that a kernel learns as well as a net."""
    X = torch.tensor(np.random.default_rng(seed).normal(size=(n, d)))
    return X[X[:, 0].abs() > 0.5], torch.sign(X[X[:, 0].abs() > 0.5, 0]).long()


def other_kernel(X, *, bias: bool):
    return nm.kernels.arc_cosine(X, bias=bias) + 0.02 * np.eye(len(X))


# A sign, a factor or a hypothesis of every claim, broken; and the trials that are to notice.
BROKEN = [
    ("lyu-li/euler", {"order_factor": 1.0001}, range(3)),
    ("lyu-li/euler", {"order_factor": 1.0001}, [3]),  # at kinks
    ("lyu-li/euler", {"less": 0.9999}, range(3)),
    ("lyu-li/sandwich", {"log_n": 0.999}, range(8)),
    ("lyu-li/smoothed-monotone", {"summed": False}, range(35, 100, 7)),
    ("lyu-li/smoothed-monotone", {"sign": -1.0}, range(4)),
    ("lyu-li/smoothed-monotone", {"sign": -1.0}, [4]),  # along the flow
    ("lyu-li/key-lemma", {"factor": 1.001}, range(7)),
    ("lyu-li/norm-growth", {"order_factor": 1.0001}, range(3)),
    ("lyu-li/multiclass", {"factor": 1.001}, range(7)),
    ("lyu-li/multiclass", {"order_factor": 1.0001}, range(3)),
    ("lyu-li/multihomogeneous", {"factor": 1.001}, range(7)),
    ("lyu-li/multihomogeneous", {"exponent_factor": 1.001}, range(7)),
    ("lyu-li/multihomogeneous", {"factor": 1.001}, range(28, 35)),  # cross-entropy
    ("lyu-li/gd-monotone", {"relative": 1e9}, [0]),
    ("lyu-li/gd-monotone", {"relative": 3e3}, [1]),  # between opposed points
    ("lyu-li/gd-key-lemma", {"relative": 1e8}, range(3)),
    ("lyu-li/gd-key-lemma", {"growth": 1 + 2e-8}, [1]),
    ("lyu-li/gd-key-lemma", {"factor": 3.0}, range(3)),
    ("lyu-li/gd-key-lemma", {"speed": 100.0}, range(3)),
    ("lyu-li/gd-rates", {"lower": 12.0}, [2]),
    ("lyu-li/gd-rates", {"upper": 0.5}, [0]),
    ("lyu-li/gd-rates", {"exponent": 0.3}, [0]),
    ("lyu-li/gd-rates", {"approach": 0.9}, [0]),
    ("lyu-li/gd-rates", {"approach": -1.0}, [2]),
    ("lyu-li/gd-limit", {"turn": 0.2}, [0]),
    ("lyu-li/gd-limit", {"turn": -1.0}, [0]),
    ("lyu-li/gd-limit", {"angle": 0.1}, [4]),
    ("lyu-li/gd-limit", {"angle": -1.0}, [4]),
    ("lyu-li/gd-limit", {"epsilon": 0.05}, [4]),
    ("lyu-li/gd-limit", {"falls": 100.0}, [3]),
    ("lyu-li/loss-growth", {"K_factor": 0.4}, [0]),
    ("lyu-li/loss-growth", {"exponent": 2.5}, [0]),
    ("lyu-li/rates", {"lower": 1.1}, [0]),
    ("lyu-li/rates", {"upper": 0.9}, [0]),
    ("lyu-li/rates", {"exponent": 0.3}, [0]),
    ("lyu-li/kkt-limit", {"rates": 3.0}, [0]),
    ("lyu-li/kkt-lemma", {"epsilon": 0.999}, range(14)),
    ("lyu-li/kkt-lemma", {"epsilon": -1.0}, range(14)),
    ("lyu-li/kkt-lemma", {"delta": 0.3}, [49]),
    ("lyu-li/kkt-finite-time", {"start": 0.5, "window": 0.01}, range(2)),
    ("lyu-li/kkt-finite-time", {"epsilon": 0.5}, [1]),
    ("lyu-li/kkt-finite-time", {"epsilon": 0.7}, [6]),  # of q^3
    ("lyu-li/kkt-finite-time", {"epsilon": -1.0}, [1]),
    ("lyu-li/kkt-finite-time", {"delta": -1.0}, [1]),
    ("lyu-li/angle-integral", {"factor": 1.001}, range(4)),
    ("lyu-li/angle-integral", {"factor": 2.0}, [4]),  # along the flow
    ("lyu-li/ntk-svm", {"order_factor": 1.01}, [0]),
    ("lyu-li/ntk-svm", {"radius": 0.0}, [0]),
    ("lyu-li/mexican-hat", {"exponent": 4}, [0]),
    ("lyu-li/mexican-hat", {"speed": 1.001}, [0]),
    ("lyu-li/velocity", {"factor": 0.999}, [0]),
    ("lyu-li/velocity", {"factor": -1.0}, [0]),
    ("lyu-li/margin-falls", {"share": 1.1}, [0]),
    ("wei/max-margin-path", {"weakest": 1e-12}, [0]),
    ("wei/max-margin-path", {"others": 0.99}, [0]),
    ("wei/max-margin-path", {"share": 1.01}, [0]),
    ("wei/max-margin-path", {"ball": 0.9}, [0]),
    ("wei/max-margin-path", {"ball": -1.0}, [0]),
    ("wei/path-accuracy", {"stronger": 1e7}, range(3)),
    ("wei/path-accuracy", {"guarantee": 4.0}, range(3)),
    ("wei/width-monotone", {"from_width": -1}, range(2)),
    ("wei/width-monotone", {"more": 0.01}, [1]),
    ("wei/l1-equivalence", {"factor": 2.0001}, [0]),
    ("wei/l1-equivalence", {"neurons": 1}, range(8)),
    ("wei/l1-duality", {"factor": 1.0001}, [0]),
    ("wei/l1-duality", {"sign": -1.0}, [0]),
    ("wei/l1-duality", {"scale": 1.0001}, [0]),
    ("wei/kernel-margin-bound", {"factor": 0.99}, [8]),
    ("wei/dependent-neurons", {"negative": -0.999}, range(3)),
    ("wei/xor-cancellation", {"claim": 0.99}, [0]),
    ("wei/xor-cancellation", {"population": 0.44}, [0]),
    ("wei/xor-cancellation", {"population": -0.448}, [0]),
    ("wei/xor-cancellation", {"moment": 1.5}, [0]),
    ("wei/four-neurons", {"factor": 1.0001}, [0]),
    ("wei/net-beats-kernel", {"draw": half_plane}, [0]),
    ("wei/regression-limit", {"factor": 2.1}, [0]),
    ("wei/regression-limit", {"objective": 0.98}, [0]),
    ("wei/regression-limit", {"objective": -1.0}, [0]),
    ("wei/kernel-regression-norm", {"factor": 1.1}, range(3)),
    ("wei/kernel-regression-norm", {"across": 1.8}, [5]),
    ("wei/kernel-regression-norm", {"kernel": other_kernel}, range(3)),
    ("wei/bounds-hold", {"complexity": 0.04}, [0]),
    ("wei/complexities", {"factor": 0.2}, [0]),
    ("wei/complexities", {"factor": 0.99}, [0]),  # a constant
    ("wei/regularized-bound", {"factor": 0.99}, [1]),
    ("wei/regularized-bound", {"share": 0.01}, [0]),
    ("wei/regularized-bound", {"factor": 0.99}, [0]),  # least norms
    ("wei/regularized-bound", {"factor": -1.0}, [1]),
    ("wei/regularized-bound", {"complexity": 0.07}, [0]),
    ("wei/regularized-bound", {"complexity": 0.08}, [1]),
    ("wei/regression-gap", {"exponent": 0.3}, [0]),
    ("wei/regression-gap", {"norm": 1.1}, [0]),
    ("wei/flow-assumptions", {"factor": 0.99}, range(3)),
    ("wei/flow-assumptions", {"factor": -1.0}, range(3)),
    ("wei/flow-assumptions", {"jump": 1e12}, [0]),
    ("wei/flow-lemmas", {"growth": 0.05}, [0]),
    ("wei/flow-lemmas", {"curvature": 0.99}, [0]),
    ("wei/flow-lemmas", {"moved": 0.2}, [0]),
    ("wei/flow-lemmas", {"steep": 0.7}, [0]),
    ("wei/flow-lemmas", {"sigma": 0.0}, [0]),
    ("wei/flow-lemmas", {"lead": 0.5}, [0]),
    ("wei/flow-lemmas", {"speed": 50.0}, [0]),
    ("wei/flow-lemmas", {"left": 0.99}, [0]),
    ("wei/flow-lemmas", {"fallen": 1e5}, [0]),
    ("wei/perturbed-flow", {"renewal": 1.01}, range(2, 8)),
    ("wei/perturbed-flow", {"renewal": -1.0}, range(2, 8)),
    ("wei/perturbed-flow", {"speed": 4.01}, [0, 24]),
    ("wei/perturbed-flow", {"noise_share": 0.99}, [2, 7]),
    ("wei/perturbed-flow", {"gradient": 0.5}, range(0, 25, 8)),
    ("wei/perturbed-flow", {"gradient": -1.0}, range(0, 25, 8)),
    ("wei/perturbed-flow", {"noise_share": -1.0}, [2, 7]),
    ("wei/flow-optimum", {"renewal": 0.0}, [0]),
    ("wei/flow-optimum", {"share": -0.01}, [3]),
    ("wei/flow-rates", {"growth": 3.0}, [0]),
    ("wei/flow-rates", {"accuracy": 0.05}, [0]),
    ("wei/flow-rates", {"dimension": 0.02}, [0]),
    ("wei/flow-rates", {"order": 2.0}, [0]),
    ("wei/noisy-descent", {"sigma": 0.0}, [0]),
    ("wei/noisy-descent", {"within": 1e-4}, [0]),
    ("wei/mass-growth", {"speed": 4.01}, range(3)),
    ("wei/mass-growth", {"halves": 0.5}, [0]),
    ("wei/mass-growth", {"growth": 8.0}, [3]),
    ("wei/margin-gap", {"exponent": 0.2}, [0]),
    ("wei/margin-gap", {"lemma": 0.5}, [0]),
    ("wei/margin-gap", {"kernel": 0.03}, [0]),
    ("wei/margin-gap", {"kernel": -1.0}, [0]),
    ("wei/hypercube-error-split", {"quarter": 1.02}, range(3)),
    ("wei/second-differences", {"lower": 1.001}, range(3)),
    ("wei/second-differences", {"upper": 0.9}, range(6)),
    ("wei/degree-four", {"below": 1.01}, [0]),
    ("wei/degree-four", {"above": 0.99}, [0]),
    ("wei/degree-four", {"fourth": 2.0}, [0]),
    ("wei/power-correlation", {"pairs": 0.5}, [0]),
    ("wei/power-correlation", {"odd": 0.1}, [0]),
    ("wei/quadratic-moment", {"products": 2.0}, [0]),
    ("wei/quadratic-moment", {"level": 1.1}, range(3)),
    ("wei/quadratic-moment", {"least": 0.2}, [0]),
    ("wei/monomial-tail", {"growth": 0.5}, [0]),
    ("wei/monomial-tail", {"growth": -1.0}, [0]),
    ("wei/no-kernel-predictor", {"samples": 2.0}, [1]),
    ("wei/no-kernel-predictor", {"share": 100.0}, [0]),
    ("wei/kernel-thresholds", {"many": 0.25}, [0]),
    ("chizat-bach/f1-limit", {"width": 2}, range(2)),
    ("chizat-bach/f1-limit", {"width": 1}, [1]),  # one neuron stays one
    ("chizat-bach/f1-limit", {"factor": 0.9}, range(2)),
    ("chizat-bach/f1-limit", {"factor": 0.9}, [2]),  # a population
    ("chizat-bach/infinite-width", {"exponent": 0.35}, [0]),
    ("chizat-bach/many-directions", {"factor": 0.99}, [0]),
    ("chizat-bach/many-directions", {"least": 1.001}, [0]),
    ("chizat-bach/slackness", {"factor": 0.99}, [1, 3, 4]),
    ("chizat-bach/slackness", {"factor": 0.99}, [2, 5]),  # populations
    ("chizat-bach/mirror-rate", {"share": 0.1}, range(8)),
    ("chizat-bach/output-rate", {"share": 0.2}, range(8)),
    ("chizat-bach/norm-equivalence", {"factor": 2.0001}, [0]),
    ("chizat-bach/projected-flow", {"reaction": 4.001}, [0]),
    ("chizat-bach/population-soft-min", {"quadratic": 0.49}, [0]),
    ("chizat-bach/population-soft-min", {"moved": 0.99}, [0]),
    ("chizat-bach/population-soft-min", {"rate": 1.01}, [0]),
    ("chizat-bach/population-field", {"turn": 2.8}, [0]),
    ("chizat-bach/population-field", {"field": 0.9}, [0, 8]),
    ("chizat-bach/population-field", {"field": -1.0}, [0, 8]),
    ("chizat-bach/population-field", {"twice": 2.001}, range(1, 4)),
    ("chizat-bach/normalized-soft-min", {"log_n": 0.99}, [3]),
    ("chizat-bach/normalized-soft-min", {"spread": 4.01}, range(2)),
    ("chizat-bach/balance", {"factor": 1.001}, [1]),
    ("chizat-bach/balance", {"factor": 3.0}, [0]),
    ("chizat-bach/soft-min", {"log_n": 0.99}, range(1, 6)),
    ("chizat-bach/soft-min", {"sign": -1.0}, range(1, 6)),
    ("chizat-bach/soft-min", {"rate": 1.01}, [1]),
    ("chizat-bach/soft-min", {"total": 1.01}, [0]),
    ("chizat-bach/growth", {"factor": 2.01}, [3]),
    ("chizat-bach/growth", {"total": 0.99}, [3]),
    ("chizat-bach/growth", {"share": 5.0}, [0]),
    ("chizat-bach/interclass", {"shift": -0.5}, [0]),
    ("chizat-bach/superlevel-mass", {"growth": 4.3}, [0]),
    ("chizat-bach/superlevel-mass", {"outside": 3.0}, [2]),
    ("chizat-bach/superlevel-mass", {"near": 1e9}, [3]),
    ("chizat-bach/interclass-bound", {"complexity": 0.4}, [0]),
    ("two-homogeneity/mirror-equivalence", {"factor": 1.999}, [0]),
    ("two-homogeneity/mirror-equivalence", {"factor": 1.999}, [1]),  # the flow
    ("two-homogeneity/implicit-bias", {"divergence": 0.99}, [0]),
    ("two-homogeneity/implicit-bias", {"eighth": 0.16}, [0]),
    ("two-homogeneity/logistic-control", {"growth": 1.99}, [2]),
    ("two-homogeneity/logistic-control", {"r_factor": 0.1}, range(3)),
    ("two-homogeneity/margin-lower-bound", {"divergence": 0.5}, range(5)),
    ("two-homogeneity/margin-lower-bound", {"half": 0.51}, range(2, 5)),
    ("two-homogeneity/partial-monotone", {"order": 1.001}, [0]),
    ("two-homogeneity/partial-monotone", {"order": 1.001}, [20]),  # a head of order 1
    ("two-homogeneity/partial-monotone", {"order": 1.001}, [60]),  # a head of order 3
    ("two-homogeneity/partial-limits", {"bound": 2.0}, [0]),
    ("two-homogeneity/partial-limits", {"limit": 0.9}, [1]),
    ("two-homogeneity/partial-monotone", {"sign": -1.0}, range(5)),
    ("two-homogeneity/early-margin", {"guarantee": 64.0}, [0, 1]),
    ("two-homogeneity/early-margin", {"power": 1.2}, [3]),
    ("two-homogeneity/late-margin", {"share": 2.0}, [0]),
    ("two-homogeneity/late-margin", {"reach": 1e-5}, [3]),
    ("two-homogeneity/feature-drift", {"factor": 0.1}, [0]),
    ("two-homogeneity/subsampling", {"tau_factor": 50.0}, range(3)),
    ("two-homogeneity/subsampling", {"quarter": 1.01}, range(3)),
    ("two-homogeneity/kl-facts", {"samples": 0.99}, range(1, 4)),
    ("two-homogeneity/kl-facts", {"attained": 1e-6}, [0]),
    ("two-homogeneity/kl-facts", {"eighth": 1.0}, range(4)),
    ("two-homogeneity/kl-facts", {"twice": 0.9}, [0]),
    ("two-homogeneity/kl-facts", {"half": 0.501}, [0]),
    ("two-homogeneity/parity-margin", {"factor": 1.0001}, [1]),
    ("two-homogeneity/parity-margin", {"exponent": 0.5}, [0]),
    ("two-homogeneity/parity-flow", {"share": 1.0}, [0]),
    ("two-homogeneity/parity-error", {"samples": 16}, [0]),
    ("two-homogeneity/parity-error", {"rate": 6.0}, [1]),
    ("two-homogeneity/parity-error", {"per_dimension": 1}, [3]),
    ("two-homogeneity/parity-error", {"rise": 1.0}, [3]),
]


def test_every_claim_has_a_row_that_breaks_it():
    """A claim that is no longer found leaves a row behind; a new one lacks its row."""
    assert {id for id, _, _ in BROKEN} == set(CLAIMS)
    assert all(
        claim.statement and claim.source and claim.hypotheses and claim.because
        for claim in CLAIMS.values()
    )


@pytest.mark.slow
@pytest.mark.nightly_cases(
    "lyu-li/angle-integral",
    "two-homogeneity/feature-drift",
    "two-homogeneity/margin-lower-bound",
    "two-homogeneity/logistic-control",
    "lyu-li/gd-rates",
    "lyu-li/gd-limit",
    "lyu-li/kkt-finite-time",
    "lyu-li/rates",
    "lyu-li/smoothed-monotone",
    "two-homogeneity/early-margin",
    "two-homogeneity/parity-error",
    "two-homogeneity/parity-flow",
    "wei/mass-growth",
    "wei/max-margin-path",
    "wei/net-beats-kernel",
    "wei/perturbed-flow",
    "wei/regression-limit",
    "wei/hypercube-error-split",
    "wei/margin-gap",
)
@pytest.mark.parametrize("id", CLAIMS)
def test_claims_hold(id):
    """And each printed error is shown, with its counterexample; a claim says how sharp it is."""
    entry = CLAIMS[id].examine(quick=True)
    assert entry.instances > 0
    assert entry.holds, "\n".join(failure(entry))
    assert all(violation > entry.claim.tolerance and at for _, violation, at in entry.refuted)
    assert entry.slack or entry.claim.sharpen in ("identity", "monotone", "trend")


@pytest.mark.slow_cases(
    "chizat-bach/f1-limit",
    "chizat-bach/infinite-width",
    "chizat-bach/interclass",
    "chizat-bach/mirror-rate",
    "chizat-bach/output-rate",
    "chizat-bach/slackness",
    "chizat-bach/superlevel-mass",
    "lyu-li/angle-integral factor1",
    "lyu-li/kkt-finite-time",
    "lyu-li/kkt-limit",
    "lyu-li/ntk-svm",
    "lyu-li/rates",
    "lyu-li/smoothed-monotone sign1",
    "two-homogeneity/early-margin",
    "two-homogeneity/feature-drift",
    "two-homogeneity/late-margin",
    "two-homogeneity/partial-limits",
    "two-homogeneity/logistic-control",
    "two-homogeneity/margin-lower-bound",
    "two-homogeneity/mirror-equivalence factor1",
    "two-homogeneity/parity-error",
    "two-homogeneity/parity-flow",
    "wei/flow-lemmas",
    "wei/flow-optimum",
    "wei/flow-rates",
    "wei/hypercube-error-split",
    "wei/kernel-thresholds",
    "wei/l1-equivalence neurons",
    "wei/margin-gap",
    "wei/mass-growth",
    "wei/net-beats-kernel",
    "wei/no-kernel-predictor",
    "wei/noisy-descent",
    "wei/perturbed-flow",
    "wei/regression-limit",
    "chizat-bach/growth",
    "wei/width-monotone",
    "lyu-li/gd-limit",
    "lyu-li/gd-monotone relative0",
    "lyu-li/gd-rates",
    "two-homogeneity/subsampling quarter",
    "lyu-li/gd-key-lemma factor",
    "lyu-li/gd-key-lemma growth",
    "wei/kernel-regression-norm kernel",
)
@pytest.mark.nightly_cases(
    "chizat-bach/mirror-rate share",
    "chizat-bach/output-rate share",
    "lyu-li/kkt-finite-time start",
    "lyu-li/kkt-limit rates",
    "lyu-li/rates",
    "lyu-li/smoothed-monotone sign1",
    "wei/regression-limit factor",
    "wei/regression-limit objective1",
    "two-homogeneity/parity-error",
    "wei/net-beats-kernel draw",
    # Of claims of which another row is slow alone.
    "chizat-bach/f1-limit factor1",
    "lyu-li/gd-rates upper",
    "lyu-li/kkt-finite-time epsilon1",
    "lyu-li/ntk-svm radius",
    "wei/flow-optimum share",
    "wei/flow-rates accuracy",
    "wei/flow-rates dimension",
    "wei/flow-rates growth",
    "wei/mass-growth growth",
    "wei/no-kernel-predictor samples",
    "wei/noisy-descent sigma",
)
@pytest.mark.parametrize(
    ("id", "constants", "trials"), BROKEN, ids=[f"{id} {next(iter(c))}" for id, c, _ in BROKEN]
)
def test_a_broken_claim_fails(id, constants, trials):
    entry = CLAIMS[id].examine(trials=trials, **constants)
    assert entry.instances > 0
    assert not entry.holds
    assert re.fullmatch(rf"netmargin verify {id} --trial \d+ --seed 0", entry.command)


def made(violations, tolerance: float = 0.5) -> Claim:
    """A claim of two quick trials and nine, whose violations depend on the trial."""
    check = lambda trial: Finding.of(violations(trial), f"setting {trial.number}")  # noqa: E731
    return Claim("x/y", "-", "-", "-", tolerance, "-", 2, 9, check)


@pytest.mark.parametrize("above", [2, 3])
def test_no_more_than_two_paths_may_end_above_the_certified_net(monkeypatch, above):
    """Paths whose nets have .6% more than the least norm, which 1% would allow, then with it."""
    problem: dict[str, float] = {}
    paths = []

    def solve(X, y, norm):
        problem["least"] = nm.solvers.min_norm_interpolation(X, y, norm=norm).norm
        return SimpleNamespace(norm=problem["least"])

    def follow(make, X, y, *, lambdas, starts, seed, iterations):
        size = 2 * problem["least"] * (1.006 if len(paths) < above else 1.0) * np.ones(len(lambdas))
        columns = {"norm": size**0.5, "log_objective": np.log(size * np.array(lambdas))}
        paths.append(SimpleNamespace(column=columns.__getitem__))
        return paths[-1]

    monkeypatch.setattr(claims_path, "min_norm_interpolation", solve)
    monkeypatch.setattr(claims_path, "interpolation_path", follow)
    entry = CLAIMS["wei/regression-limit"].examine(trials=[3])
    assert (len(paths), entry.holds) == (3, above == 2)
    assert entry.setting == f"8 points in 1 dimensions, {above} paths left out"


def test_a_printed_error_that_cannot_be_shown_makes_its_claim_fail():
    assert sum(len(claim.refutations) for claim in CLAIMS.values()) >= 30
    true = made(lambda trial: 0.0, 0.0)
    true.printed("2 = 2")(lambda: Finding.of(0.0, "everywhere"))
    entry = true.examine()
    assert not entry.holds
    assert "was not refuted" in "\n".join(failure(entry))


def test_numbers_that_are_shown_as_0_have_no_minus():
    shown = f"{-1e-9:.4f}, {-0.0:g}, {-0.011:.3f}, 1e-0, m^{-0.5}"
    for found in (Finding.of([-0.0], shown, shown), Finding.of_one([-0.0, -1], shown, shown)):
        assert found.setting == found.measured == "0.0000, 0, -0.011, 1e-0, m^-0.5"
        assert len(found.violations) == 1
    assert len(Finding.of_one([], "nothing").violations) == 0


def test_entries_of_claims_that_fail():
    """The first violated instance, not the worst; NaN violates; no instance proves nothing."""
    claim = made(lambda trial: [0.0, trial.number - 1.0])
    assert claim.examine(quick=True).holds
    entry = claim.examine(seed=4)
    assert (entry.worst, entry.instances, entry.holds) == (7.0, 18, False)
    assert entry.counterexample == "trial 2, instance 1: setting 2; violated by 1"
    assert entry.command == "netmargin verify x/y --trial 2 --seed 4"
    assert claim.examine(trials=[2]).counterexample == entry.counterexample
    assert made(lambda trial: np.nan).examine().worst == np.inf
    assert not made(lambda trial: []).examine().holds


def promising(check, ascent: int = 0, **sharpen) -> Claim:
    """A claim of five trials, with the constants that make its promises."""
    return Claim("x/y", "-", "-", "-", 1e-9, "-", 1, 5, check, sharpen, ascent)


def test_slack_is_the_factor_by_which_a_promise_can_be_stronger():
    """Trial k has the value k + 1: below 10 there is room for 2, above 1/4 for 4."""

    def check(trial, *, least=0.25, most=10.0, never=1e-13):
        x = trial.number + 1.0
        violations = [least - x, x - most, never - 1]
        return Finding.of(violations, "-", ratio=7.0 * x, attained=1.0)

    entry = promising(check, least=1, most=-1, never=1).examine()
    found = {slack.promise: slack for slack in entry.slack}
    assert 4 / 1.01 < found["least"].factor <= 4
    assert 2 / 1.01 < found["most"].factor <= 2
    assert (found["ratio"].factor, found["attained"].factor) == (7.0, 1.0)
    assert (found["never"].factor, found["never"].searched) == (1e12, "5 trials and 0 mutations")
    assert [found[name].sharpest.number for name in ("least", "most")] == [0, 4]
    page = write_markdown([entry], "-")
    assert re.search(r"<br>slack 3.9\d \(least\)<br>slack 1.9\d \(most\)<br>", page)
    assert "<br>slack 1e+12 (never): nothing sharper in 5 trials" in page
    assert " 1 " in row(entry)
    assert [line.partition("; ")[0] for line in loose(entry)] == [
        "x/y: slack 1e+12 (never): nothing sharper in 5 trials and 0 mutations"
    ]
    shown = entry.to_dict()["slack"]
    assert json.loads(json.dumps(shown))[2]["factor"] == 1e12
    # Neither where the claim fails nor for constants of one's own.
    assert promising(check, most=-1).examine(most=6.0).slack == ()
    assert made(lambda trial: 1.0).examine().slack == ()


def test_ascent_finds_sharper_instances_and_violations():
    """The sum of six uniform numbers, at most 6: five trials come to 4, mutations closer."""

    def check(trial, *, most=12.0):
        total = trial.random.random(6).sum()
        return Finding.of(total - most, "six numbers", closed=most / total)

    alone, climbed = (promising(check, ascent, most=-1).examine() for ascent in (0, 200))
    for first, better in zip(alone.slack, climbed.slack, strict=True):
        assert first.factor > 2.6 > 2.3 > better.factor > 2 / 1.01
        assert better.searched == "5 trials and 200 mutations"
        assert better.sharpest.lineage
    assert climbed.instances > alone.instances == 5
    # A mutation that violates the claim is a counterexample, with the line that repeats it.
    broken = promising(lambda trial, most=5.0: check(trial, most=most), 200, most=-1).examine()
    assert not broken.holds
    assert broken.worst > 0
    where = re.search(r"check\(nm.theory.(.*)\)", broken.command).group(1)
    assert f"{where}, instance 0" in broken.counterexample


def test_mutations_draw_a_share_anew():
    parent, child = Trial(3), Trial(3, lineage=(1,))
    kept = parent.random.normal(size=1000) == child.random.normal(size=1000)
    assert 0 < kept.mean() < 1
    assert child.random.normal() == child.random.normal()
    assert child.torch_random.initial_seed() != parent.torch_random.initial_seed()
    for lineage in [(k,) for k in range(1, 20)]:  # what depends on each other stays together
        random = Trial(3, lineage=lineage).random
        assert abs(random.dirichlet(np.ones(4)).sum() - 1) < 1e-12
        assert len(set(random.choice(9, 9, replace=False))) == 9
        assert set(random.choice([-1, 1], 30)) == {-1, 1}


def test_trials_are_those_of_their_seed():
    assert Trial(3).random.random() == Trial(3).random.random() != Trial(3, seed=1).random.random()
    found = [CLAIMS["lyu-li/key-lemma"].check(Trial(3, seed)).violations for seed in (0, 0, 1)]
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_pages():
    ids = ["lyu-li/euler", "lyu-li/sandwich", "two-homogeneity/kl-facts"]
    ledger = verify(ids, quick=True, jobs=1)
    page = ledger.markdown()
    assert all(id in page for id in ids)
    assert "3 of 3 claims hold" in page
    assert "<br>*Instances:*" in ledger.markdown()
    assert "&lt;br" not in ledger.markdown()
    assert all(
        line.count(" | ") == 3 for line in ledger.markdown().splitlines() if line.startswith("| `")
    )
    shown = json.loads(json.dumps(ledger.to_dict(), allow_nan=False))
    assert shown["holds"]
    assert len(shown["claims"]) == 3
    assert ledger.summary().endswith(ledger.conclusion())


def test_the_committed_page_is_of_these_claims():
    """Of a full run, `netmargin verify --markdown docs/ledger.md`, to run anew after changes."""
    page = (Path(__file__).parents[1] / "docs/ledger.md").read_text()
    assert "full run" in page
    examined = re.findall(r"^\| `([^`]+)` \| .*\| holds:", page, re.MULTILINE)
    assert f"{len(examined)} of {len(examined)} claims hold" in page
    assert set(examined) <= set(CLAIMS)
    for id in examined:
        assert CLAIMS[id].statement in html.unescape(page.replace("\\|", "|"))
    for name in [
        "lyu-li/euler",
        "lyu-li/sandwich",
        "lyu-li/smoothed-monotone",
        "lyu-li/key-lemma",
        "lyu-li/norm-growth",
        "lyu-li/multiclass",
        "lyu-li/multihomogeneous",
        "lyu-li/kkt-lemma",
        "lyu-li/angle-integral",
        "lyu-li/mexican-hat",
        "wei/l1-duality",
        "wei/kernel-margin-bound",
        "chizat-bach/norm-equivalence",
        "chizat-bach/projected-flow",
        "chizat-bach/balance",
        "chizat-bach/soft-min",
        "two-homogeneity/mirror-equivalence",
        "two-homogeneity/partial-monotone",
        "two-homogeneity/kl-facts",
    ]:
        found = re.search(r"in ([\d,]+) instances", page.split(f"| `{name}` |")[1])
        assert int(found.group(1).replace(",", "")) >= 10_000, name


@pytest.mark.slow
def test_command_line(tmp_path, capsys):
    page = ["--markdown", str(tmp_path / "l.md")]
    assert main(["verify", "lyu-li/euler", "chizat-bach/soft-min", "--quick", *page]) == 0
    shown = capsys.readouterr().out
    assert "2 of 2 claims hold" in shown
    assert re.search(r"lyu-li/euler +\d+ .* holds", shown)
    assert "soft-min" in (tmp_path / "l.md").read_text()
    assert main(["verify", "two-homogeneity/kl-facts", "--trial", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claims"][0]["instances"] == 256
    assert main(["verify", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(CLAIMS)
    assert main(["verify", "--list", "Lemma C.8"]) == 0
    assert capsys.readouterr().out.startswith("lyu-li/kkt-lemma ")
    assert main(["verify", "lyu-li/nothing"]) == 2
    said = capsys.readouterr()
    assert "There is no claim 'lyu-li/nothing'" in said.err
    assert not said.out  # no head of a table without rows


def test_a_failing_claim_on_the_command_line(monkeypatch, capsys):
    monkeypatch.setitem(CLAIMS, "x/y", made(lambda trial: 1.0))
    assert main(["verify", "x/y"]) == 1
    assert "repeat it with: netmargin verify x/y --trial 0 --seed 0" in capsys.readouterr().out


@pytest.mark.slow
def test_processes_find_what_one_finds():
    ids = ["lyu-li/euler", "lyu-li/sandwich", "wei/l1-duality"]
    one, two = (verify(ids, quick=True, jobs=jobs) for jobs in (1, 2))
    assert [entry.claim for entry in two] == [CLAIMS[id] for id in ids]
    assert [entry.worst for entry in two] == [entry.worst for entry in one]


def test_interruption_keeps_the_entries(monkeypatch):
    def interrupted(trial):
        raise KeyboardInterrupt

    monkeypatch.setitem(CLAIMS, "x/y", made(interrupted))
    found = verify(["lyu-li/sandwich", "x/y"], quick=True, jobs=1)
    assert found.status is nm.Status.INTERRUPTED
    assert [entry.claim.id for entry in found] == ["lyu-li/sandwich"]


@pytest.mark.slow
def test_claims_are_listed_in_one_order_whichever_was_imported_first():
    last = "netmargin.papers.two_homogeneity.claims_parity"
    code = f"import {last}; from netmargin.theory import CLAIMS; print(*CLAIMS)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == list(CLAIMS)
    papers = [id.partition("/")[0] for id in CLAIMS]
    assert papers == sorted(papers)
