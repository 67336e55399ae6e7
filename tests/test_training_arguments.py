"""First guesses at training's arguments: taken where they have one meaning, else told."""

import math

import pytest
import torch
from torch import nn

import netmargin as nm
from netmargin.losses import CrossEntropy, Exponential, Logistic, Loss, as_loss

NET = nn.Linear(2, 1, bias=False)
DATA = (torch.tensor([[2.0, 1.0], [-1.0, -2.0]]), torch.tensor([1, -1]))


def train(**given):
    return nm.train(
        nn.Linear(2, 1, bias=False), DATA, **{"until": nm.Epochs(2), "progress": False} | given
    )


def ascend(**given):
    return nm.maximize_margin(
        nn.Linear(2, 1, bias=False), DATA, **{"iterations": 2, "progress": False} | given
    )


def follow(**given):
    usual = {
        "make_model": lambda: nn.Linear(2, 1, bias=False),
        "lambdas": [0.1],
        "starts": 1,
        "iterations": 2,
        "progress": False,
    }
    given = usual | given
    return nm.regularization_path(given.pop("make_model"), DATA, **given)


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({"lr": 0.1}, {"lr": nm.ConstantLR(0.1)}),
        ({"lr": 1}, {"lr": nm.ConstantLR(1.0)}),
        ({"loss": nn.CrossEntropyLoss()}, {"loss": CrossEntropy()}),
        ({"loss": nn.BCEWithLogitsLoss()}, {"loss": Logistic()}),
        ({"loss": "exponential"}, {"loss": Exponential()}),
        ({"until": (nm.Epochs(2),)}, {"until": [nm.Epochs(2)]}),
    ],
)
def test_first_guesses_with_one_meaning_are_taken(given, same):
    rows = []
    for arguments in (given, same):
        torch.manual_seed(0)
        rows.append(train(**arguments).rows)
    assert rows[0] == rows[1]


def test_one_loss_for_each_output_is_no_loss_of_a_margin():
    """With one output they are the logistic loss; with several torch sums one for each."""
    X, y = torch.randn(6, 2), torch.arange(6) % 3
    net = nn.Linear(2, 3)
    for loss in (nn.BCEWithLogitsLoss(), nn.SoftMarginLoss()):
        usual = {"loss": loss, "progress": False}
        for call in (
            lambda: nm.measure(net, (X, y), loss=loss),  # noqa: B023
            lambda: nm.train(net, (X, y), **usual),  # noqa: B023
            lambda: nm.gradient_flow(net, (X, y), time=1.0, **usual),  # noqa: B023
            lambda: nm.RelativeLoss(loss)(net(X), y),  # noqa: B023
            lambda: nm.Watch(net, (X, y), loss=loss),  # noqa: B023
            lambda: nm.regularization_path(
                lambda: nn.Linear(2, 3),
                (X, y),
                lambdas=[0.1],
                starts=1,
                **usual,  # noqa: B023
            ),
        ):
            with pytest.raises(nm.ArgumentError, match="3 outputs .*CrossEntropyLoss"):
                call()
        sign = torch.tensor([1.0, -1.0])
        found = nm.measure(nn.Linear(2, 1), (X[:2], sign), loss=loss)
        assert found.log_loss == pytest.approx(Logistic().log_sum(found.q))


WRONG = [
    (train, {"lr": 0}, "lr must be a number above 0; got 0"),
    (train, {"lr": True}, "lr must be a number, nm.LossBasedLR()"),
    (train, {"lr": math.nan}, "lr must be a number above 0"),
    (train, {"lr": nm.LossBasedLR}, "write LossBasedLR(...)"),
    (train, {"lr": torch.optim.Adam(NET.parameters())}, "Adam belongs to torch.optim"),
    (train, {"lr": torch.optim.SGD}, "SGD belongs to torch.optim"),
    (train, {"lr": lambda epoch: 0.1}, "lr must be a number, nm.LossBasedLR()"),
    (train, {"until": 5}, "write until=nm.Epochs(5)"),
    (train, {"until": -40}, "write until=nm.LogLossBelow(-40)"),
    (train, {"until": []}, "until names no stopping rule"),
    (train, {"until": None}, "until must be a stopping rule"),
    (train, {"until": nm.Separated}, "write Separated(...)"),
    (train, {"until": [nm.Epochs(2), 3]}, "until[1] must be a stopping rule"),
    (train, {"until": "100 epochs"}, "until must be a stopping rule"),
    (train, {"loss": "cross entropy"}, 'Did you mean "cross-entropy"?'),
    (train, {"loss": nn.CrossEntropyLoss}, "Write CrossEntropyLoss()"),
    (train, {"loss": nn.CrossEntropyLoss(label_smoothing=0.1)}, "label_smoothing=0.1"),
    (train, {"loss": nn.CrossEntropyLoss(weight=torch.ones(2))}, "weight=a tensor of 2 weights"),
    (train, {"loss": nn.MSELoss()}, "loss must be a loss"),
    (train, {"loss": Exponential}, "write Exponential(...)"),
    (train, {"loss": lambda q: q}, "loss must be a loss"),
    (train, {"batch_size": 2.5}, "batch_size must be a whole number"),
    (train, {"seed": -1}, "seed must be"),
    (train, {"seed": 2**64}, "seed must be"),
    (train, {"checkpoint_dir": 3}, "checkpoint_dir must be a path"),
    (train, {"checkpoint_seconds": -1}, "checkpoint_seconds must be"),
    (train, {"resume": True}, 'resume must be "auto" or "never"'),
    (train, {"progress": "yes"}, "progress must be True or False"),
    (ascend, {"temperatures": 0.1}, "temperatures must be a list"),
    (ascend, {"temperatures": [0.1, 0]}, "temperatures[1] must be a number above 0"),
    (ascend, {"temperatures": ()}, "temperatures must be a list of at least one number"),
    (ascend, {"iterations": 0}, "iterations must be"),
    (ascend, {"multiplier_steps": -1}, "multiplier_steps must be"),
    (ascend, {"radius": -0.1}, "radius, a share of the norm of the weights, must be"),
    (follow, {"lambdas": 0.1}, "lambdas must be a list"),
    (follow, {"lambdas": [0.1, math.inf]}, "lambdas[1] must be"),
    (follow, {"norm": "layer"}, 'Did you mean "layers"?'),
    (follow, {"r": 0}, "r must be"),
    (follow, {"starts": 1.5}, "starts must be"),
    (follow, {"make_model": NET}, "make_model must be a function"),
    (follow, {"make_model": nn.Linear}, "make_model() failed"),
    (follow, {"make_model": lambda: None}, "make_model() must be a torch.nn.Module"),
    (lambda margin: nm.weak_regularization(margin, n=10), {"margin": "x"}, "margin must be"),
    (lambda n: nm.weak_regularization(0.1, n=n), {"n": 2.5}, "n must be a whole number"),
    (nm.Epochs, {"count": -3}, "count must be"),
    (nm.LogLossBelow, {"log10": math.nan}, "log10 must be"),
    (nm.MarginGrowthBelow, {"epochs": 0}, "epochs must be"),
    (nm.ConstantLR, {"rate": -1}, "rate must be"),
    (nm.LossBasedLR, {"r_d": 1}, "r_d must be"),
    (nm.AnnealedLR, {"rate_drops": 0.5}, "rate_drops must be a dict"),
]


@pytest.mark.parametrize(
    ("call", "given", "sentence"),
    WRONG,
    ids=[f"{index}-{sentence}" for index, (_, _, sentence) in enumerate(WRONG)],
)
def test_others_are_answered_by_a_sentence(call, given, sentence):
    with pytest.raises((nm.ArgumentError, nm.DataError)) as refused:
        call(**given)
    assert sentence in str(refused.value), str(refused.value)


def doubled(q):
    return 2 * q


BROKEN = {
    "f_prime is wrong at margin 0.37: it gives 1": Loss(doubled, torch.ones_like, lambda x: x / 2),
    "it gives -2": Loss(doubled, lambda q: -2 * torch.ones_like(q), lambda x: x / 2),
    "g is wrong at margin 0.37": Loss(doubled, lambda q: 2 * torch.ones_like(q), doubled),
    "f_prime is wrong at margin -0.37": Loss(
        lambda q: q + 0.1 * q.clamp(max=0), torch.ones_like, lambda x: x
    ),
    "f falls at margin": Loss(lambda q: -q, lambda q: -torch.ones_like(q), lambda x: -x),
    "f_prime must map a float64 tensor": Loss(doubled, lambda q: 2.0, lambda x: x / 2),
    "f must map a float64 tensor": Loss(
        lambda q: doubled(q).float(), torch.ones_like, lambda x: x / 2
    ),
    "f must map a float64 tensor to a float64 tensor of the same shape": Loss(
        lambda q: q.sum(), torch.ones_like, lambda x: x
    ),
    "f raised AttributeError": Loss(lambda q: q.no_such_thing, torch.ones_like, lambda x: x),
    "f is NaN at margin 0.37": Loss(lambda q: torch.sqrt(q - 1), torch.ones_like, lambda x: x),
}


@pytest.mark.parametrize("sentence", BROKEN)
@pytest.mark.parametrize("call", [train, follow, as_loss])
def test_a_loss_that_contradicts_itself_is_refused_at_first_use(sentence, call):
    with pytest.raises(nm.ArgumentError) as refused:
        call(loss=BROKEN[sentence])
    assert sentence in str(refused.value), str(refused.value)


class WrongSlope(Exponential):
    """A subclass that overrides one formula only, wrongly."""

    def log_slope(self, q):
        return super().log_slope(q) + 0.1


def test_subclasses_are_checked_and_right_losses_pass_once():
    with pytest.raises(nm.ArgumentError, match="log_slope is wrong"):
        as_loss(WrongSlope())
    calls = []

    def f(q):
        calls.append(1)
        return q**3

    cubic = Loss(f, lambda q: 3 * q**2, lambda x: torch.sign(x) * x.abs() ** (1 / 3))
    assert as_loss(cubic) is cubic
    seen = len(calls)
    assert as_loss(cubic) is cubic
    assert len(calls) == seen  # checked once
    shifted = Loss(
        lambda q: torch.log1p(q) * q,
        lambda q: torch.log1p(q) + q / (1 + q),
        _inverse,
        name="undefined below -1",
    )
    assert as_loss(shifted) is shifted


def _inverse(x):
    """Of q log(1 + q), by bisection."""
    low, high = torch.zeros_like(x), torch.full_like(x, 1e4)
    for _ in range(80):
        middle = (low + high) / 2
        above = torch.log1p(middle) * middle > x
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return low
