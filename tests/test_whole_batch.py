"""Training in a fixed order, and on all samples at once, where one pass measures and steps."""

import copy
import functools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import netmargin as nm
from netmargin.training import run
from netmargin.training.whole_batch import is_same_in_training


class Counted(nn.Module):
    """An MLP that counts its passes, outside of its buffers."""

    def __init__(self, widths=(10, 20, 3)):
        super().__init__()
        self.net, self.passes = nm.models.mlp(list(widths)), 0

    def forward(self, x):
        self.passes += 1
        return self.net(x)


@pytest.fixture
def data():
    torch.manual_seed(0)
    return torch.randn(60, 10), torch.arange(60) % 3


def train(net, data, **options):
    chosen = {"until": nm.Epochs(30), "batch_size": None, "shuffle": False} | options
    return nm.train(net, data, progress=False, **chosen)


@pytest.mark.parametrize("lr", [None, 0.05, nm.AnnealedLR(0.1, weight_decay=0.1)])
def test_passes_that_measure_and_step_lead_where_two_passes_do(data, monkeypatch, lr):
    """Bit for bit, through refused tries, as both run on the same samples in the same order."""
    one, two = Counted(), Counted()
    two.load_state_dict(one.state_dict())
    first = train(one, data, lr=lr)
    monkeypatch.setattr(run, "is_same_in_training", lambda model, x: False)
    second = train(two, data, lr=lr)
    assert lr is not None or max(first.column("attempts")) > 1
    for mine, theirs in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(mine, theirs)
        assert mine.grad is None
    assert first.column("q_min") == second.column("q_min")
    # One backward pass for each epoch, and one for each try; one pass for each try, and two.
    tries = sum(first.column("attempts"))
    assert first.rows[-1]["gradient_samples"] == 30 * 60
    assert second.rows[-1]["gradient_samples"] == tries * 60
    assert two.passes - one.passes > tries - 10


def test_a_fixed_order_ends_at_the_margin_of_shuffled_samples(data):
    """At a constant rate, where sums in another order are all that differs."""
    ends = []
    for shuffle in (False, True):
        torch.manual_seed(0)
        net = nm.models.mlp([10, 20, 3]).double()
        history = train(net, data, lr=0.2, until=nm.Epochs(100), shuffle=shuffle)
        ends.append(history.rows[-1]["normalized_margin"])
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)
    assert ends[0] != 0


def test_samples_keep_their_order(data):
    mine = nm.models.mlp([10, 20, 3])
    theirs = copy.deepcopy(mine)
    train(mine, data, lr=0.1, batch_size=25, until=nm.Epochs(3))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(3):
        for x, y in zip(data[0].split(25), data[1].split(25), strict=True):
            optimizer.zero_grad()
            F.cross_entropy(theirs(x), y).backward()
            optimizer.step()
    for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-7)


class Counting(Counted):
    """A net whose buffer changes with each pass."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        return super().forward(x)


@pytest.mark.parametrize(
    ("layer", "same"),
    [(nn.Identity(), True), (nn.Dropout(0.01), False), (nn.BatchNorm1d(10), False)],
)
def test_nets_that_differ_in_training_take_two_passes(data, layer, same):
    net = nn.Sequential(layer, *nm.models.mlp([10, 20, 3]))
    before = copy.deepcopy(net.state_dict())
    assert is_same_in_training(net, data[0]) == same
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name])
    history = train(net, data)
    assert history.rows[-1]["log_loss"] < history.rows[0]["log_loss"]
    assert (history.rows[-1]["gradient_samples"] == 30 * 60) == same


def test_nets_whose_buffers_count_passes_take_two(data):
    net = Counting()
    assert not is_same_in_training(net, data[0])
    assert net.count == 0


def test_a_run_in_a_fixed_order_resumes_bit_for_bit_and_is_no_other_run(data, tmp_path):
    net = nm.models.mlp([10, 20, 3])
    whole, parts = copy.deepcopy(net), copy.deepcopy(net)
    train(whole, data)
    for epochs in (11, 30):
        train(parts, data, until=nm.Epochs(epochs), checkpoint_dir=tmp_path)
    for a, b in zip(whole.parameters(), parts.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(nm.CheckpointError, match="shuffle was False, now True"):
        train(parts, data, shuffle=True, checkpoint_dir=tmp_path)


def test_a_run_from_before_there_was_a_choice_was_shuffled(data, tmp_path):
    train = functools.partial(nm.train, data=data, checkpoint_dir=tmp_path, progress=False)
    train(Counted(), until=nm.Epochs(1))
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    del state["settings"]["shuffle"]
    torch.save(state, tmp_path / "checkpoint.pt")
    with pytest.raises(nm.CheckpointError, match="shuffle was True, now False"):
        train(Counted(), until=nm.Epochs(2), shuffle=False)
    assert len(train(Counted(), until=nm.Epochs(2)).rows) == 3


def test_a_run_that_stalls_or_diverges_ends_at_its_last_accepted_epoch(data, tmp_path):
    net = nm.models.mlp([10, 20, 3])
    kept = copy.deepcopy(net)
    history = train(net, data, lr=nm.LossBasedLR(alpha=1e30, r_d=1e61))
    assert history.status == nm.Status.STALLED
    for a, b in zip(net.parameters(), kept.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(nm.DivergenceError):
        train(net, data, lr=1e30, until=nm.Epochs(9))
    assert all(bool(torch.isfinite(p).all()) for p in net.parameters())
