"""Nets that return probabilities are told from others, and what they are told to pass is right."""

import copy
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.nets.model import scores
from netmargin.nets.probabilities import doubt_scores
from tests.words import words_of

SIXTEEN = (torch.randn(16, 5, generator=torch.Generator().manual_seed(3)), torch.arange(16) % 4)


class Own(nn.Module):
    """A net whose forward ends as a function says."""

    def __init__(self, end, outputs=4):
        super().__init__()
        self.net, self.act, self.end = nn.Linear(5, outputs), nn.Sigmoid(), end

    def forward(self, x):
        return self.end(self, self.net(x))


def by_hand(_, z):
    """A softmax that no operation of torch computes."""
    e = (z - z.amax(1, keepdim=True)).exp()
    return e / e.sum(1, keepdim=True)


def doubted(model, x=SIXTEEN[0]):
    return doubt_scores(model, x, scores(model, x))


def linear(*end, outputs=4):
    return nn.Sequential(nn.Linear(5, outputs), *end)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (linear(nn.Softmax(1)), ["ends in a softmax", "Pass model[:-1]"]),
        (linear(nn.Sigmoid()), ["ends in a sigmoid", "Pass model[:-1]"]),
        (
            nn.Sequential(linear(nn.Softmax(1))),
            ["Let forward return the scores before the softmax"],
        ),
        (Own(lambda _, z: z.bfloat16().softmax(1).float()), ["ends in a softmax"]),
        (Own(by_hand), ["sums to 1", "predict_proba"]),
        (Own(lambda net, z: (by_hand(net, z) + z.softmax(1)) / 2), ["sums to 1"]),
        (Own(lambda _, z: z.bfloat16().softmax(1)), ["ends in a softmax"]),
        (Own(lambda net, z: by_hand(net, z).double()), ["sums to 1"]),
        (linear(nn.Softmax(1)).double(), ["ends in a softmax"]),
    ],
)
def test_probabilities_are_seen(model, words):
    x = SIXTEEN[0].to(next(model.parameters()).dtype)
    found = doubted(model, x)
    assert found.saturated
    for word in ["These scores are probabilities", *words]:
        assert word in found.text


def cut_off(_, z):
    return z.sigmoid().clamp(1e-7, 1 - 1e-7).clone()


def labelled(net):
    """The scores of a net for 16 samples, each twice, and data of which it is wrong on two."""
    x = SIXTEEN[0].repeat(2, 1)
    z = (
        net.net(x).detach().double()
        @ torch.tensor([[1.0], [-1.0, 1.0]][net.net.out_features - 1]).double()
    )
    y = (z > z.mean()).long()
    y[:2] = 1 - y[:2]
    net.net.bias.data[-1] -= z.mean()
    return z - z.mean(), (x, y)


ENDS_OF_ONE = {
    "clamped": (cut_off, 1, "the net ends in a sigmoid"),
    "of two classes": (lambda _, z: z.softmax(1)[:, 1], 2, "the net ends in a softmax"),
    "a column": (lambda _, z: z.softmax(1)[:, [1]], 2, "the net ends in a softmax"),
    "by hand": (lambda _, z: 1 / (1 + (-z).exp()), 1, "they lie from 0 to 1, and"),
    "rounded": (lambda _, z: z.sigmoid().round(), 1, "they lie from 0 to 1, and"),
    "beside others": (lambda _, z: {"p": cut_off(_, z), "loss": z.sum()}, 1, "ends in a sigmoid"),
}
CALLS_OF_ONE = {
    "measure": nm.measure,
    "streamed": lambda net, data: nm.measure(
        net, [*zip(*(part.split(8) for part in data), strict=True)]
    ),
    "compare": lambda net, data: nm.compare([linear(outputs=1), net], data, progress=False).reports[
        1
    ],
    "input_margins": partial(nm.input_margins, progress=False),
    "robustness": partial(nm.robustness, effort="quick", attacks=False, progress=False),
}


@pytest.mark.filterwarnings("ignore:The gradient of the scores")
@pytest.mark.parametrize("call", CALLS_OF_ONE)
def test_one_probability_is_read_as_log_odds(call):
    """Its sign is no decision, and an error of the sign would be a false one."""
    for name, (end, outputs, said) in ENDS_OF_ONE.items():
        net = Own(end, outputs)
        z, data = labelled(net)
        found, z = CALLS_OF_ONE[call](net, data), torch.where(data[1] > 0, z, -z)
        q = torch.as_tensor(found.q).double()
        assert torch.equal(q > 0, z > 0), name
        if name != "rounded":
            assert torch.allclose(q, z, atol=1e-4), name
        assert said in found.scores_from, name
        assert found.scores_from.count("log odds of the net's outputs") == 1


@pytest.mark.slow
def test_a_page_reads_one_probability_as_log_odds(tmp_path):
    net = Own(ENDS_OF_ONE["by hand"][0], 1)
    page = nm.page(net, labelled(net)[1], out=tmp_path / "page.html")
    assert "Right on 30 of 32" in words_of(page.path.read_text())
    assert "log odds of the net&#39;s outputs" in page.path.read_text()


@pytest.mark.parametrize(
    ("end", "word"),
    [
        (lambda _, z: 100 * z.sigmoid(), "below"),
        (lambda _, z: z.abs(), "below"),
        (lambda _, z: nn.functional.logsigmoid(z), "above"),
        (lambda _, z: 0 * z, None),
        (lambda _, z: z.sigmoid() * 100 - 50, None),
    ],
)
def test_one_score_that_never_changes_its_sign_is_warned_of(end, word):
    """As percentages do; where all labels are alike nothing can be said."""
    net = Own(end, 1)
    _, data = labelled(net)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        report = nm.measure(net, data)
        found = nm.input_margins(net, data, progress=False)
        alike = nm.measure(net, (data[0], torch.ones(32)))
    said = f"The only score is never {word} 0"
    for text in (report.warning, found.warning, str(warned[0].message) if warned else ""):
        assert text.startswith(said) if word else "The only score" not in text
    if word:
        middle = net(data[0]).mean().item()
        shifted = nm.measure(net, data, scores=lambda out: out - middle)
        assert shifted.warning == alike.warning == ""


@pytest.mark.parametrize("call", ["measure", "input_margins"])
def test_a_net_that_is_not_trained_may_have_scores_of_one_sign(call):
    """It gives all samples one class so far; nothing is to be subtracted, and nothing is said."""
    found, heads = 0, (lambda net, z: z / 9, lambda net, z: z)
    for seed in range(12):
        torch.manual_seed(seed)
        x, y = torch.randn(40, 5), torch.arange(40) % 2
        net = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), Own(heads[seed % 2], 1))
        net[2].net.bias.data += 0.5
        found += bool((net(x) > 0).all() or (net(x) < 0).all())
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "The only score")
            assert "The only score" not in CALLS_OF_ONE[call](net, (x, y)).warning
        with pytest.warns(UserWarning, match="The only score is never below 0"):
            CALLS_OF_ONE[call](nn.Sequential(net, nn.Softplus()), (x, y))
    assert found >= 6


def test_a_net_amid_its_training_is_warned_of():
    """Its scores may lie in [0, 1] for an epoch, and are trained as they are."""
    net = Own(ENDS_OF_ONE["by hand"][0], 1)
    _, data = labelled(net)
    with pytest.warns(UserWarning, match="The only score is never below 0"):
        watch = nm.Watch(net, data)
    with pytest.warns(UserWarning, match="The only score is never below 0"):
        history = nm.train(net, data, until=nm.Epochs(1), progress=False)
    assert (watch.report.saturated, history.scores_from) == (True, "")


def test_scores_of_a_homogeneous_net_are_no_probabilities():
    """Though they lie in [0, 1], for example as weights were drawn."""
    net = nn.Linear(5, 1, bias=False)
    x = (
        torch.linspace(0.1, 0.9, 32)[:, None]
        * net.weight.detach()
        / net.weight.detach().norm() ** 2
    )
    with pytest.warns(UserWarning, match="The only score is never below 0"):
        report = nm.measure(net, (x, x.norm(dim=1) > x.norm(dim=1).median()))
    assert (report.error, report.saturated) == (0.5, False)
    with pytest.warns(UserWarning, match="The only score is never below 0"):
        found = nm.input_margins(net, (x, report.labels), progress=False)
    assert torch.equal(found.q, report.q)


@pytest.mark.parametrize(
    "end", [lambda _, z: z.log_softmax(1), lambda _, z: z - z.logsumexp(1, keepdim=True)]
)
def test_margins_of_log_probabilities_hold(end):
    """Differences of logs of probabilities are those of scores: said, but not warned of."""
    model = Own(end)
    found = doubted(model)
    assert "logs of probabilities" in found.text
    assert not found.saturated
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = nm.measure(model, SIXTEEN, input_margins=True)
    plain = nm.measure(model.net, SIXTEEN, input_margins=True)
    assert torch.allclose(report.q, plain.q, atol=1e-5)
    assert torch.allclose(report.input_margins.distances, plain.input_margins.distances, atol=1e-4)
    assert abs(report.log_loss - plain.log_loss) < 1e-5
    assert report.summary().startswith("WARNING: These scores are logs of probabilities")


class Attention(nn.Module):
    """A softmax in the middle of a net, whose memory the scores may take over."""

    def __init__(self):
        super().__init__()
        self.net, self.softmax = nn.Linear(5, 4), nn.Softmax(1)

    def forward(self, x):
        z = self.net(x)
        return torch.sigmoid(-4 - (self.softmax(z) * z).relu()) * 0.25


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (Attention(), SIXTEEN[0]),
        (linear(nn.Sigmoid(), nn.Linear(4, 4)), SIXTEEN[0]),
        (Own(lambda _, z: (z.sigmoid_() * 2).sub_(1)), SIXTEEN[0]),
        (Own(lambda _, z: z.tanh().abs()), SIXTEEN[0]),
        (Own(lambda _, z: (z - 9).clamp(0, 1)), SIXTEEN[0]),
        (Own(lambda _, z: -z.abs()), SIXTEEN[0]),
        (Own(lambda _, z: z.abs() / 9, 1), SIXTEEN[0]),
        (nn.Identity(), torch.eye(4).repeat(4, 1)),
        (nn.Identity(), torch.tensor([[0.25, 0.75], [0.5, 0.5]])),
        (nn.Identity(), torch.zeros(16, 1)),
        (nn.Identity(), torch.ones(16, 4) / 4 + 1e-5),
    ],
)
def test_no_false_alarms(model, x):
    assert doubted(model, x) == ("", False)


def test_watching_the_last_operation_changes_nothing():
    """The net, its hooks and torch's generators are as before."""
    model = Own(lambda _, z: nn.functional.dropout(z, 0.5, training=True).softmax(1))
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    outputs = model(SIXTEEN[0])
    torch.set_rng_state(state)
    assert doubt_scores(model, SIXTEEN[0], outputs).saturated
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


@pytest.fixture(scope="module")
def nets():
    """A net that fits 16 points of the plane, and the same net with a softmax behind it."""
    torch.manual_seed(0)
    net = linear()
    return {"scores": net, "probabilities": nn.Sequential(*net, nn.Softmax(1))}


def test_every_summary_warns(nets):
    model = nets["probabilities"]
    with pytest.warns(UserWarning, match="These scores are probabilities"):
        report = nm.measure(model, SIXTEEN, input_margins=True)
    with pytest.warns(UserWarning, match="These scores are probabilities"):
        distances = nm.input_margins(model, SIXTEEN, progress=False)
    with pytest.warns(UserWarning, match="These scores are probabilities"):
        radii = nm.robustness(model, SIXTEEN, effort="quick", attacks=False, progress=False)
    with pytest.warns(UserWarning, match="These scores are probabilities"):
        watch = nm.Watch(model, SIXTEEN)
    with pytest.warns(UserWarning, match="These scores are probabilities"):
        nm.train(copy.deepcopy(model), SIXTEEN, until=nm.Epochs(1), progress=False)
    head = "WARNING: These scores are probabilities: the net ends in a softmax."
    for record in (report, distances, radii, watch.report, report.input_margins):
        assert record.summary().startswith(head)
        assert "Pass model[:-1]" in words_of(record.summary())
    passed = nm.measure(model[:-1], SIXTEEN)
    assert passed.warning == ""
    assert torch.equal(passed.q, nm.measure(nets["scores"], SIXTEEN).q)


@pytest.mark.filterwarnings("ignore:.*These scores are probabilities")
def test_a_net_does_not_differ_from_itself_with_a_softmax(nets):
    """Sizes of margins are compared between scores only; errors are the same."""
    rng = np.random.default_rng(0)
    heldout = torch.tensor(rng.normal(size=(300, 5)), dtype=torch.float32)
    labels = nets["scores"](heldout).argmax(1)
    labels[:60] = (labels[:60] + 1) % 4
    found = nm.compare(nets, SIXTEEN, (heldout, labels), input_margins=True, progress=False)
    assert not any(difference.real for difference in found.differences)
    binary = nn.Linear(5, 1)
    labels = (binary(heldout)[:, 0] > 0).long()
    cut, percent = Own(cut_off, 1), Own(lambda _, z: 100 * z.sigmoid(), 1)
    cut.net = percent.net = binary
    nets_of_one = {"score": binary, "sigmoid": cut, "percent": percent}
    few = (heldout[:60], labels[:60])
    with pytest.warns(UserWarning, match="The only score is never below 0"):
        of_one = nm.compare(nets_of_one, few, (heldout, labels), progress=False)
    assert [report.error == 0 for report in of_one.reports] == [True, True, False]
    assert not any(difference.real for difference in of_one.differences[:1])
    others = [difference for difference in found.differences if difference.number != "error"]
    assert len(others) == 3
    assert all("probabilities returns probabilities" in difference.note for difference in others)
    assert found.summary().startswith("WARNING: probabilities: These scores are probabilities")
