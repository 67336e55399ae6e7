"""What `print` shows of every answer that a public function gives: words and a few numbers."""

import copy

import pytest
import torch

import netmargin as nm
from netmargin.core.records import Shown
from tests.docstrings import list_public

pytestmark = pytest.mark.slow

X = torch.randn(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
Y = torch.where(X[:, 0] > 0, 1, -1)
DATA, FEW = (X, Y), (X[:40], Y[:40])
K = nm.kernels.arc_cosine(X)
QUIET, BRIEF = {"progress": False}, {"time_limit": 2.0, "tol": 0.01}
LINES, CHARACTERS = 60, 6000
"""The longest is the comparison of nets: two screens."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Answers of all kinds, by what makes them: about 200 samples, or 40 where more takes long."""
    net, folder = nm.models.mlp([2, 8, 1]).double(), tmp_path_factory.mktemp("printed")
    history = nm.train(net, DATA, until=nm.Separated(), **QUIET)
    other, report = copy.deepcopy(net), nm.measure(net, DATA, input_margins=True)
    other[0].weight.data *= torch.linspace(0.5, 1.5, 16, dtype=torch.float64).reshape(8, 2)
    comparison = nm.compare([net, other], DATA, **QUIET)
    best = nm.solvers.f1_max_margin(*FEW, **BRIEF)
    width = {"width": 20, "steps": 3, "seeds": range(100)}
    runs = nm.twolayer.train_both_layers(*FEW, **width, **QUIET)
    lambdas = {"lambdas": [0.1], "iterations": 2, "starts": 1}
    brief = {"temperatures": (0.1,), "multiplier_steps": 1, "iterations": 2}
    ledger = nm.theory.verify("lyu-li/euler", quick=True, trials=[0])
    view = {"starts": 1, "iterations": 2}
    solvers, bounds = nm.solvers, nm.bounds
    found = {
        "train": history,
        "maximize_margin": nm.maximize_margin(copy.deepcopy(net), DATA, **brief, **QUIET),
        "gradient_flow": nm.gradient_flow(net, FEW, time=0.01, rtol=1e-3, **QUIET),
        "regularization_path": nm.regularization_path(lambda: copy.deepcopy(net), FEW, **lambdas),
        "measure": report,
        "margins": report.margins,
        "a margin": report.margins["global"],
        "input_margins": report.input_margins,
        "analyse": report.homogeneity,
        "compare": comparison,
        "a difference": comparison.differences[-1],
        "label_errors": nm.label_errors(DATA),
        "robustness": nm.robustness(net, DATA, effort="quick", **QUIET),
        "certify": nm.certify(net, DATA, max_constraints=50),
        "tangent_svm": nm.tangent_svm(net, DATA, max_constraints=50),
        "page": nm.page(net, FEW, out=folder / "page.html"),
        "weak_regularization": nm.weak_regularization(0.1, n=100),
        "f1_max_margin": best,
        "bracket": best.bracket,
        "balanced": best.balanced(),
        "f1_soft_margin": solvers.f1_soft_margin(*FEW, **BRIEF),
        "f1_logistic": solvers.f1_logistic(*FEW, regularization=0.1, **BRIEF),
        "f1 interpolation": solvers.min_norm_interpolation(*FEW, **BRIEF),
        "f2 interpolation": solvers.min_norm_interpolation(*FEW, norm="l2", **BRIEF),
        "fit_two_layer_net": solvers.fit_two_layer_net(*DATA, **BRIEF),
        "kernel_max_margin": solvers.kernel_max_margin(K, Y, **BRIEF),
        "kernel_soft_margin": solvers.kernel_soft_margin(K, Y, **BRIEF),
        "linear_max_margin": solvers.linear_max_margin(*DATA),
        "slackness": nm.twolayer.slackness(best, *FEW, best.dual),
        "train_both_layers": runs,
        "a snapshot": runs.snapshots[-1],
        "margin_bound": bounds.margin_bound([1.0] * 400, rademacher=0.01, largest=2.0),
        "share_of_best": bounds.share_of_best(nm.measure(net, FEW), best),
        "interclass_distance": bounds.interclass_distance(*FEW, 1, **view),
        "variation_ball": bounds.variation_ball(X, draws=2),
        "of_layers": nm.flow.SmoothnessBounds.of_layers(X, power=2),
        "verify": ledger,
        "an entry": ledger.entries[0],
        "a claim": ledger.entries[0].claim,
        "a finding": nm.theory.Finding.of(X[:, 0], "draws of a normal number"),
        "reproduce": nm.papers.reproduce("chizat-bach/fig2a", out=folder, jobs=1, **QUIET),
    }
    return found | {"a figure": found["reproduce"].figure, "a check": found["reproduce"].checks[0]}


def test_every_public_record_is_among_the_answers(answers):
    records = [kind for kind in list_public().values() if is_record(kind)]
    assert len(records) > 35
    assert set(records) - {type(answer) for answer in answers.values()} == set()


def is_record(kind):
    return isinstance(kind, type) and issubclass(kind, Shown)


def test_answers_are_printed_as_words_and_few_numbers(answers):
    for name, answer in answers.items():
        text = str(answer)
        assert text != repr(answer), name
        assert f"<{type(answer).__name__}" not in text, name
        assert len(text.splitlines()) <= LINES, name
        assert len(text) <= CHARACTERS, name
        assert not any(word in text for word in ("array(", "tensor(", "None", "\n\n\n")), name


def test_notebooks_show_what_is_printed(answers):
    for name, answer in answers.items():
        if name != "page":  # which is shown itself
            assert "<table" in answer._repr_html_(), name


def test_what_one_does_with_an_answer_comes_first(answers):
    assert str(answers["weak_regularization"]).splitlines() == [
        "A good margin by the penalty lambda ||theta||^r",
        "  lambda                       4.199e-10",
        "  its natural log              -21.6",
        "  normalized margin, at least  0.0125 (proved)",
        "    Of every net whose loss with the penalty is at most alpha times the least.",
        "  exponent c                   4.189",
    ]
    heads = {
        "tangent_svm": "  cosine of v and theta      0.",
        "interclass_distance": "  in the view found     0.",
        "slackness": "  the margin lacks at most           ",
        "variation_ball": "  at most                   0.",
        "of_layers": "  margins                           ",
        "train_both_layers": "  run  margin at the end (measured)  best (measured)  log mass",
        "a margin": "  name      global",
        "a claim": "  id         lyu-li/euler",
        "an entry": "  instances       64",
    }
    for name, head in heads.items():
        assert str(answers[name]).splitlines()[1].startswith(head), name
    assert "80 more runs: see margins" in str(answers["train_both_layers"])
    assert str(nm.Bracket(1 / 3, 0.5)) == "0.3333 to 0.5, a relative gap of 0.3333"
