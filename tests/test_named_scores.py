"""Which output of a net is its scores: as of a net without the others, or a question."""

import copy
import re
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.cli import main
from tests.words import words_of

X = torch.randn(40, 5, generator=torch.Generator().manual_seed(1))
FEW = slice(0, 3)


class Own(nn.Module):
    """A net of two layers, whose forward returns what a function makes of features and scores."""

    def __init__(self, give, outputs=3):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(5, 8, bias=False), nn.Linear(8, outputs, bias=False)
        self.act, self.give = nn.Sigmoid(), give

    def forward(self, x):
        features = self.first(x).relu()
        return self.give(self, features, self.last(features))


def plain(outputs=3):
    return Own(lambda net, h, s: s, outputs)


@dataclass
class Answer:
    loss: Any
    scores: Any


Detection = namedtuple("Detection", ["boxes", "logits"])
NET = plain()
Y = NET(X).argmax(1)
CALLS = {
    "measure": lambda net, **k: nm.measure(net, (X, Y), **k).q,
    "input_margins": lambda net, **k: nm.input_margins(net, (X, Y), progress=False, **k).distances,
    "analyse": lambda net, **k: list(nm.analyse(net, (X, Y), **k).groups.items()),
    "check": lambda net, **k: nm.analyse(NET, X).check(net, (X, Y), **k).deviation,
    "certify": lambda net, **k: nm.certify(net, (X, Y), **k).relative_epsilon,
    "tangent_svm": lambda net, **k: nm.tangent_svm(net, (X, Y), **k).margin,
    "robustness": lambda net, **k: nm.robustness(
        net, (X[FEW], Y[FEW]), effort="quick", progress=False, **k
    ).upper.round(6),
    "compare": lambda net, **k: (
        nm.compare([NET, net], (X, Y), (X, Y), progress=False, **k).training[1].q
    ),
    "train": lambda net, **k: nm.train(net, (X, Y), until=nm.Epochs(1), progress=False, **k).rows[
        -1
    ]["q_min"],
    "gradient_flow": lambda net, **k: nm.gradient_flow(
        net, (X, Y), time=0.01, progress=False, **k
    ).rows[-1]["q_min"],
    "gradient_descent": lambda net, **k: nm.flow.gradient_descent(
        net, (X, Y), steps=2, rate=0.01, **k
    ).rows[-1]["q_min"],
    "regularization_path": lambda net, **k: nm.regularization_path(
        lambda: copy.deepcopy(net), (X, Y), lambdas=[0.1], starts=1, iterations=2, **k
    ).rows[0]["q_min"],
    "Watch": lambda net, **k: nm.Watch(net, (X, Y), **k).report.q,
}
LABEL_FREE = {"empirical_ntk": lambda net, **k: nm.kernels.empirical_ntk(net, X[FEW], **k)}
BESIDE = {
    "None": lambda net, h, s: (s, None),
    "a loss": lambda net, h, s: (s, s.sum()),
    "a loss before": lambda net, h, s: [s.sum(), s],
    "a dict": lambda net, h, s: {"loss": s.sum(), "out": s, "map": h[:, None], "name": "a"},
    "nested": lambda net, h, s: ((None, (s,)), {"maps": [h[..., None]], "size": 3}),
    "a record": lambda net, h, s: Answer(None, s),
    "logits beside others": lambda net, h, s: Detection(h[:, :3], s),
    "nested logits": lambda net, h, s: {"head": {"logits": s, "z": h}, "boxes": h[:, :4]},
}
BY_LABELS = {
    "features": lambda net, h, s: (h, s),
    "boxes of four": lambda net, h, s: (h[:, :4], s),
    "a value": lambda net, h, s: {"value": s[:, 0], "policy": s},
    "a dict of more": lambda net, h, s: {"embedding": h, "z": s, "box": h[:, :4]},
}

SIGNS = (plain(1)(X)[:, 0] > 0).long()
SIGMOIDS = {
    "a module": lambda net, h, s: net.act(s),
    "squeezed": lambda net, h, s: torch.sigmoid(s).squeeze(1),
    "a method, viewed": lambda net, h, s: s.sigmoid().view(-1),
    "a function": lambda net, h, s: torch.nn.functional.sigmoid(s)[:, 0],
    "expit": lambda net, h, s: torch.special.expit(s).clone(),
    "a pair": lambda net, h, s: (net.act(s), None),
}


@pytest.mark.nightly_cases("gradient_flow", "regularization_path", "robustness")
@pytest.mark.slow_cases(*(call for call in CALLS if call not in ("measure", "analyse")))
@pytest.mark.parametrize("call", CALLS)
def test_outputs_beside_scores_change_no_number(call):
    right = CALLS[call](copy.deepcopy(NET))
    for name, give in {**BESIDE, **BY_LABELS}.items():
        found = CALLS[call](Own(give))
        assert np.array_equal(np.asarray(found), np.asarray(right)), name


def test_without_labels_a_function_reads_what_is_the_only_one_and_asks_else():
    for call in LABEL_FREE.values():
        for give in BESIDE.values():
            assert np.array_equal(call(Own(give)), call(NET))
        for give in BY_LABELS.values():
            with pytest.raises(nm.ModelError, match="Several outputs of the model may be its"):
                call(Own(give))
        assert np.array_equal(call(Own(BY_LABELS["features"]), scores=1), call(NET))


def test_classes_without_samples_leave_the_only_output_with_enough_columns():
    """Labels 0 to 3 of five classes: three boxes have too few columns."""
    net = Own(lambda net, h, s: {"boxes": h[:, :3], "z": s}, 5)
    report = nm.measure(net, (X, torch.arange(40) % 4))
    assert report.scores_from == "['z'] of the net's outputs"


@pytest.mark.slow
def test_two_outputs_that_fit_are_asked_about():
    """A wrong one would be a silent wrong number; `scores` names the right one, in every form."""
    pair = Own(lambda net, h, s: {"boxes": h[:, :3], "heads": (s, h[:, 3:6])})
    for call, function in CALLS.items():
        with pytest.raises(nm.ModelError) as raised:
            function(copy.deepcopy(pair))
        said = str(raised.value)
        assert re.search(r"'boxes' of shape \(\d+, 3\), \('heads', 0\) of", said), call
        named = function(copy.deepcopy(pair), scores=("heads", 0))
        assert np.array_equal(np.asarray(named), np.asarray(function(copy.deepcopy(NET)))), call
    two = Own(lambda net, h, s: (-s, s))
    assert torch.equal(nm.measure(two, (X, Y), scores=-1).q, nm.measure(NET, (X, Y)).q)
    for scores in (("heads", 0), lambda out: out["heads"][0]):
        assert torch.equal(nm.measure(pair, (X, Y), scores=scores).q, nm.measure(NET, (X, Y)).q)
    batches = [(X[:20], Y[:20]), (X[20:], Y[20:])]
    assert nm.measure(Own(BY_LABELS["features"]), batches).accuracy == 1
    # What is read only once has lost its first batch, and would have fewer samples.
    with pytest.raises(nm.ModelError, match="Several outputs"):
        nm.measure(Own(BY_LABELS["features"]), iter(batches))
    with pytest.raises(nm.ModelError, match="The model ends in a sigmoid"):
        nm.measure(Own(SIGMOIDS["a module"], 1), iter([(X[:20], SIGNS[:20]), (X[20:], SIGNS[20:])]))


@pytest.mark.parametrize(
    ("scores", "error", "words"),
    [
        (3, nm.ModelError, "scores=3 is no tensor among the outputs of the net, which are 0, 1."),
        ("logits", nm.ModelError, "scores='logits' is no tensor"),
        (lambda out: None, nm.ModelError, "is no tensor among the outputs of the net"),
        (1.5, nm.ModelError, "scores=1.5 is no tensor"),
        ((), nm.ModelError, "scores=() is no tensor"),
    ],
)
def test_names_of_no_output_are_refused(scores, error, words):
    with pytest.raises(error, match=re.escape(words)):
        nm.measure(Own(BY_LABELS["features"]), (X, Y), scores=scores)


def test_a_net_with_one_output_has_it_read_whatever_is_named():
    """So that nets that return more, and less, can be compared by one name; no row is taken."""
    for scores in (0, "logits"):
        assert torch.equal(nm.measure(NET, (X, Y), scores=scores).q, nm.measure(NET, (X, Y)).q)


@pytest.mark.slow
def test_every_report_says_which_output_was_read(tmp_path):
    net, data = Own(BY_LABELS["features"]), (X, Y)
    reports = [
        nm.measure(net, data),
        nm.input_margins(net, data, progress=False),
        nm.analyse(net, data),
        nm.certify(net, data),
        nm.robustness(net, (X[FEW], Y[FEW]), progress=False),
        nm.compare([net, NET], data, progress=False),
        nm.train(net, data, until=nm.Epochs(1), progress=False),
        nm.Watch(net, data).report,
    ]
    for report in [*reports, nm.load(reports[0].save(tmp_path / "report"))]:
        assert report.scores_from == "[1] of the net's outputs", report
        assert "scores [1] of the net's outputs" in words_of(report.summary())
        assert "[1] of the net&#x27;s outputs" in report._repr_html_()
    page = nm.page(net, data, out=tmp_path / "page.html")
    assert "scores: [1] of the net&#39;s outputs" in page.path.read_text()
    alone = nm.measure(NET, data)
    assert (alone.scores_from, "scores  " in alone.summary()) == ("", False)


def test_the_net_that_was_given_stays_as_it_is():
    net = Own(BY_LABELS["features"])
    before, attributes = copy.deepcopy(net.state_dict()), set(vars(net))
    nm.measure(net, (X, Y), scores=1)
    assert set(vars(net)) == attributes
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    nm.train(net, (X, Y), until=nm.Epochs(1), progress=False)
    assert not torch.equal(net.last.weight, before["last.weight"])  # trained in place


BINARY_CALLS = {
    "measure": lambda net: nm.measure(net, (X, SIGNS)).q,
    "input_margins": lambda net: nm.input_margins(net, (X, SIGNS), progress=False).distances,
    "analyse": lambda net: list(nm.analyse(net, X).groups.values()),
    "certify": lambda net: nm.certify(net, (X, SIGNS)).relative_epsilon,
    "robustness": lambda net: nm.robustness(net, (X[FEW], SIGNS[FEW]), progress=False).upper.round(
        6
    ),
    "train": lambda net: nm.train(net, (X, SIGNS), until=nm.Epochs(1), progress=False).rows[-1][
        "q_min"
    ],
    "empirical_ntk": lambda net: nm.kernels.empirical_ntk(net, X[FEW]),
}


@pytest.mark.nightly_cases("robustness")
@pytest.mark.slow_cases("certify", "train")
@pytest.mark.parametrize("call", BINARY_CALLS)
def test_one_output_behind_a_sigmoid_is_read_as_log_odds(call):
    """Its sign is no decision; what goes into the sigmoid is, with no digit lost at 1 - 1e-40."""
    right = BINARY_CALLS[call](plain(1))
    for name, give in SIGMOIDS.items():
        found = BINARY_CALLS[call](Own(give, 1))
        assert np.array_equal(np.asarray(found), np.asarray(right)), name


def test_statistics_of_a_net_in_training_stay_as_they_are():
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 1), nn.Sigmoid())
    before = copy.deepcopy(net.state_dict())
    answer = nm.analyse(net, X)
    assert answer.scores_from.startswith("log odds")
    assert answer.check(net, X).deviation < 1
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


@pytest.mark.slow
def test_a_sequential_without_its_sigmoid_keeps_its_proofs():
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    y = (net(X)[:, 0] > 0).long()
    right, found = (
        nm.robustness(given, (X[FEW], y[FEW]), effort="quick", progress=False)
        for given in (net, nn.Sequential(*net, nn.Sigmoid()))
    )
    assert np.array_equal(found.lower, right.lower)
    assert found.lower.min() > 0
    assert found.scores_from.startswith("log odds: what goes into the sigmoid")
    net[-1].weight.data *= 1e4  # probabilities are 1 in float32, and their logs gone
    q = nm.measure(nn.Sequential(*net, nn.Sigmoid()), (X, y)).q
    assert torch.equal(q, nm.measure(net, (X, y)).q)


@pytest.mark.filterwarnings("ignore:These scores are probabilities")
def test_a_sigmoid_that_is_no_end_stays():
    gated = Own(lambda net, h, s: s * torch.sigmoid(s), 1)
    assert torch.equal(nm.measure(gated, (X, SIGNS)).q, (2.0 * SIGNS - 1) * gated(X)[:, 0].detach())
    both = Own(lambda net, h, s: torch.sigmoid(s - torch.sigmoid(h[:, :1])), 1)
    inner = Own(lambda net, h, s: s - torch.sigmoid(h[:, :1]), 1)
    assert torch.equal(nm.measure(both, (X, SIGNS)).q, nm.measure(inner, (X, SIGNS)).q)
    changed = Own(lambda net, h, s: torch.sigmoid(s).mul_(0.5), 1)
    halves = torch.sigmoid(plain(1)(X)[:, 0]).detach() / 2
    assert torch.equal(nm.measure(changed, (X, SIGNS)).q, (2.0 * SIGNS - 1) * halves)


def test_the_criterion_reads_outputs_by_the_labels_or_asks():
    right = nm.RelativeLoss()
    right(NET(X), Y)
    for name in ("features", "boxes of four", "a dict of more"):
        criterion = nm.RelativeLoss()
        criterion(Own(BY_LABELS[name])(X), Y)
        assert criterion.log_loss == right.log_loss, name
    with pytest.raises(nm.ModelError, match=r"Several outputs of the model .* Pass that one.$"):
        nm.RelativeLoss()((NET(X), -NET(X)), Y)


def two_heads():
    """A net for the command line, both of whose outputs would do."""
    return Own(lambda net, h, s: {"boxes": h[:, :3], "logit": s})


def test_the_command_line_names_an_output(tmp_path, capsys):
    nm.save_weights(two_heads(), tmp_path / "net.safetensors")
    np.savez(tmp_path / "data.npz", X=X.numpy(), y=Y.numpy())
    words = ["measure", f"{tmp_path}/net.safetensors", "--data", f"{tmp_path}/data.npz"]
    words += ["--factory", "tests.test_named_scores:two_heads"]
    assert main(words) == 1
    assert "Several outputs of the model may be its scores: 'boxes'" in capsys.readouterr().err
    assert main([*words, "--scores", "logit"]) == 0
    said = words_of(capsys.readouterr().out)
    assert "scores ['logit'] of the net's outputs wrong 0 of" in said
