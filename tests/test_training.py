"""Training against a plain reference, far below underflow, and through interruptions."""

import copy
import itertools
import math
import random
import subprocess
import sys
from pathlib import Path

import killed_runs
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import netmargin as nm
from netmargin.ascent.smoothed_margin import SmoothedMargin
from netmargin.losses import BY_NAME, CrossEntropy, Exponential, Logistic, Loss
from netmargin.margins import margins
from netmargin.nets.net_on_samples import NetOnSamples
from netmargin.training.relative_loss import relative_gradient


def fresh(widths=(64, 16, 10), seed=0, **options):
    torch.manual_seed(seed)
    return nm.models.mlp(widths, **options).double()


def scale_to(model: nn.Module, data, log10: float) -> None:
    """Scale a separating net so that its log10-loss is about `log10`."""
    for _ in range(3):
        report = nm.measure(model, data)
        factor = (log10 / report.log10_mean_loss) ** (1 / float(report.order))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(factor)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("outputs", [1, 4])
def test_relative_gradient_is_the_gradient(name, outputs):
    torch.manual_seed(0)
    loss, scores = BY_NAME[name], torch.randn(9, outputs, dtype=torch.float64).requires_grad_()
    y = torch.randint(outputs, (9,)) if outputs > 1 else torch.randint(2, (9,)).double() * 2 - 1
    log_scale = -2.3
    soft = margins(scores, y)[1]
    relative = torch.exp(-loss.f(soft) - log_scale).mean()
    expected = torch.autograd.grad(relative, scores)[0]
    assert torch.allclose(
        relative_gradient(loss, scores.detach(), y, log_scale), expected, rtol=1e-10
    )


def test_relative_gradient_is_shift_exact_far_below_underflow():
    """With all margins and F moved by s the gradient of the exponential loss stays."""
    scores, y = (
        torch.tensor([[3.0], [4.0], [3.5]], dtype=torch.float64),
        torch.ones(3, dtype=torch.float64),
    )
    near = relative_gradient(Exponential(), scores, y, -3.0)
    far = relative_gradient(Exponential(), scores + 2**17, y, -3.0 - 2**17)
    assert torch.equal(near, far)
    assert near.abs().max() > 0.1


def test_loss_based_training_equals_a_plain_implementation(digits):
    """Lyu and Li 2019, K.1, written with F.cross_entropy and ordinary learning rates."""
    X, y = digits
    mine, theirs = fresh(), fresh()
    history = nm.train(mine, digits, until=nm.Epochs(25), seed=3, progress=False, batch_size=50)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        alpha, last = 0.1, min(math.log(10), F.cross_entropy(theirs(X), y).item())
        before, rates = F.cross_entropy(theirs(X), y).item(), []
        while len(rates) < 25:
            start = copy.deepcopy(theirs.state_dict())
            for batch in torch.randperm(200).split(50):
                theirs.zero_grad()
                F.cross_entropy(theirs(X[batch]), y[batch]).backward()
                with torch.no_grad():
                    for p in theirs.parameters():
                        p -= alpha / last * p.grad
            after = F.cross_entropy(theirs(X), y).item()
            if after < before:
                rates.append(alpha)
                before = last = after
                alpha *= 2 ** (1 / 5)
            else:
                theirs.load_state_dict(start)
                alpha /= 2 ** (1 / 10)
    assert history.column("relative_rate")[1:] == pytest.approx(rates, rel=1e-12)
    # Some epochs were undone, or this test shows nothing.
    assert sum(history.column("attempts")) > 25
    for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(p, q, rtol=1e-7, atol=1e-10)


def test_constant_rate_equals_torch_sgd(digits):
    X, y = digits
    mine, theirs = fresh(), fresh()
    nm.train(
        mine, digits, until=nm.Epochs(3), lr=nm.ConstantLR(0.05), batch_size=None, progress=False
    )
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.05)
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(theirs(X), y).backward()
        optimizer.step()
    for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(p, q, rtol=1e-9, atol=1e-12)


@pytest.mark.slow_cases("loss1", "loss0--1000-")
@pytest.mark.parametrize(("log10", "dtype"), [(-1000, torch.float64), (-1e5, torch.float32)])
@pytest.mark.parametrize("loss", [CrossEntropy(), Exponential()])
def test_training_goes_on_far_below_underflow(separated, digits, log10, dtype, loss):
    model = copy.deepcopy(separated)
    scale_to(model, digits, log10)
    history = nm.train(model.to(dtype), digits, until=nm.Epochs(20), loss=loss, progress=False)
    losses, margin = history.column("log_loss"), history.column("normalized_margin")
    assert history.rows[0]["log10_mean_loss"] == pytest.approx(log10, rel=0.01)
    assert len(losses) == 21
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))
    assert losses[-1] < losses[0] * 1.001
    assert all(math.isfinite(m) for m in margin)


@pytest.mark.slow_cases("loss0")
@pytest.mark.parametrize("loss", [Exponential(3), Logistic(3)])
def test_cubic_losses_train(separated, digits, loss):
    model = copy.deepcopy(separated)
    history = nm.train(model, digits, until=nm.Epochs(20), loss=loss, progress=False)
    losses = history.column("log_loss")
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))
    assert history.rows[-1]["smoothed_margin"] > history.rows[0]["smoothed_margin"]


def test_binary_nets_and_loaders_train():
    torch.manual_seed(0)
    X = torch.randn(40, 3)
    y = (X[:, 0] > 0).long()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(X, y), batch_size=10, shuffle=True
    )
    runs = []
    for _ in range(2):
        model = fresh((3, 8, 1), seed=1).float()
        runs.append(nm.train(model, loader, until=nm.Epochs(15), progress=False).rows)
    assert runs[0] == runs[1]
    assert runs[0][-1]["accuracy"] == 1.0


def test_same_seed_same_run_and_the_callers_randomness_is_kept(digits):
    state, settings = torch.get_rng_state(), {"until": nm.Epochs(5), "progress": False}
    of_numpy, of_python = np.random.get_state()[1].copy(), random.getstate()
    lr = nm.LossBasedLR()
    runs = [nm.train(fresh(), digits, seed=seed, lr=lr, **settings).rows for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    torch.set_rng_state(state)
    first = torch.randn(3)
    torch.set_rng_state(state)
    nm.train(fresh(seed=torch.initial_seed()), digits, until=nm.Epochs(1), progress=False)
    torch.set_rng_state(state)
    assert torch.equal(first, torch.randn(3))
    assert lr.alpha == 0.1
    nm.train(
        fresh((64, 10)),
        killed_runs.KINDS["numpy's global generator"](digits),
        until=nm.Epochs(1),
        progress=False,
    )
    nm.train(
        fresh((64, 10)),
        killed_runs.KINDS["Python's global generator"](digits),
        until=nm.Epochs(1),
        progress=False,
    )
    assert (np.random.get_state()[1] == of_numpy).all()
    assert random.getstate() == of_python


def test_annealed_decay_equals_torch_sgd(tmp_path, digits):
    """Rates and decays that fall, across an interruption, are torch.optim.SGD's."""
    X, y = digits[0][:200].double(), digits[1][:200]
    lr = nm.AnnealedLR(0.1, weight_decay=0.05, rate_drops={2: 0.5}, decay_drops={3: 0.1})
    model, reference = fresh(), fresh()
    options = {"lr": lr, "batch_size": None, "checkpoint_dir": tmp_path, "progress": False}
    nm.train(model, (X, y), until=nm.Epochs(3), **options)
    resumed = fresh()
    nm.train(resumed, (X, y), until=nm.Epochs(6), **options)
    for epoch in range(6):
        rate, decay = 0.1 * (0.5 if epoch >= 2 else 1), 0.05 * (0.1 if epoch >= 3 else 1)
        optimizer = torch.optim.SGD(reference.parameters(), lr=rate, weight_decay=decay)
        optimizer.zero_grad()
        F.cross_entropy(reference(X), y).backward()
        optimizer.step()
    for ours, theirs in zip(resumed.parameters(), reference.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-10, atol=1e-14)
    with pytest.raises(ValueError, match="weight_decay must be"):
        nm.AnnealedLR(0.1, weight_decay=11.0)
    with pytest.raises(ValueError, match=r"decay_drops\[3\] must be"):
        nm.AnnealedLR(0.1, decay_drops={3: 2.0})


def test_a_run_goes_on_with_its_own_loss_only(tmp_path):
    """Two losses of a user's own have one name, and compute different numbers."""

    def run(slope, epochs):
        loss = Loss(lambda q: slope * q, lambda q: torch.full_like(q, slope), lambda x: x / slope)
        data = ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
        net = nn.Linear(2, 1, bias=False)
        return nm.train(
            net, data, loss=loss, until=nm.Epochs(epochs), checkpoint_dir=tmp_path, progress=False
        )

    run(1.0, 2)
    assert len(run(1.0, 4)) == 5
    with pytest.raises(nm.CheckpointError, match=r"loss was user loss with .*f\(1\) = 1,.* = 3,"):
        run(3.0, 6)


@pytest.mark.slow_cases("True")
@pytest.mark.parametrize("with_dropout", [False, True])
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, digits, with_dropout):
    def make():
        model = fresh()
        return (
            nn.Sequential(model[0], nn.ReLU(), nn.Dropout(0.2), model[2]) if with_dropout else model
        )

    settings = {"progress": False, "checkpoint_seconds": 0.0, "batch_size": 30}
    whole = make()
    history = nm.train(
        whole, digits, until=nm.Epochs(12), checkpoint_dir=tmp_path / "whole", **settings
    )

    calls = 0

    def interrupt(module, inputs):
        nonlocal calls
        calls += module.training
        if module.training and calls == 40:
            raise KeyboardInterrupt

    parts = make()
    parts.register_forward_pre_hook(interrupt)
    with pytest.raises(nm.Interrupted, match="the same call goes on from there") as interrupted:
        nm.train(parts, digits, until=nm.Epochs(12), checkpoint_dir=tmp_path / "parts", **settings)
    done = interrupted.value.history.rows
    assert 0 < len(done) < 13
    # The unfinished epoch was undone.
    assert nm.measure(parts, digits).log_loss == done[-1]["log_loss"]
    resumed = make()
    again = nm.train(
        resumed, digits, until=nm.Epochs(12), checkpoint_dir=tmp_path / "parts", **settings
    )
    assert again.rows == history.rows
    assert (tmp_path / "parts/history.jsonl").read_bytes() == (
        tmp_path / "whole/history.jsonl"
    ).read_bytes()
    assert all(
        torch.equal(a, b)
        for a, b in zip(resumed.state_dict().values(), whole.state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("moment", ["before the row", "after the row", "while copying the weights"])
def test_interruption_between_two_epochs_loses_neither(tmp_path, digits, monkeypatch, moment):
    whole = nm.train(fresh(), digits, until=nm.Epochs(8), progress=False)
    method = {
        "before the row": "append",
        "after the row": "append",
        "while copying the weights": "_copy_state",
    }[moment]
    owner = nm.training.history_file.HistoryFile if method == "append" else nm.training.run.Run
    original, calls = getattr(owner, method), []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) != 4:
            return original(*arguments)
        if moment == "after the row":
            original(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, method, interrupted)
    with pytest.raises(nm.Interrupted):
        nm.train(fresh(), digits, until=nm.Epochs(8), checkpoint_dir=tmp_path, progress=False)
    assert (
        nm.train(fresh(), digits, until=nm.Epochs(8), checkpoint_dir=tmp_path, progress=False).rows
        == whole.rows
    )
    assert nm.History.load(tmp_path / "history.jsonl").rows == whole.rows


@pytest.mark.slow_cases("loss1-6.0")
@pytest.mark.parametrize(("loss", "scale"), [(Exponential(), 30.0), (Exponential(3), 6.0)])
def test_steep_losses_start_from_their_own_value(digits, loss, scale):
    model = fresh()
    with torch.no_grad():
        model[2].weight.mul_(scale)
    history = nm.train(model, digits, until=nm.Epochs(3), loss=loss, progress=False)
    assert history.rows[0]["log10_mean_loss"] > 20
    assert history.rows[-1]["log10_mean_loss"] < history.rows[0]["log10_mean_loss"]


def test_frozen_parts_stay_as_they_are(digits):
    model = nn.Sequential(
        nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 10, bias=False)
    ).double()
    model[1].eval()
    model[0].weight.requires_grad_(False)
    frozen, statistics = model[0].weight.clone(), model[1].running_mean.clone()
    nm.train(model, digits, until=nm.Epochs(2), progress=False)
    assert torch.equal(frozen, model[0].weight)
    assert torch.equal(statistics, model[1].running_mean)
    with pytest.raises(nm.ModelError, match="Unfreeze"):
        nm.train(model.requires_grad_(False), digits, until=nm.Epochs(2), progress=False)


class Counting(nn.Module):
    """A net that counts its steps in a buffer that is not saved, and in extra state."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10, bias=False).double()
        self.register_buffer("steps", torch.zeros(()), persistent=False)
        self.counted = {"steps": 0}

    def forward(self, x):
        if self.training:
            self.steps += 1
            self.counted["steps"] += 1
        return self.layer(x)

    def get_extra_state(self):
        return self.counted

    def set_extra_state(self, state):
        self.counted = state


def test_undo_and_resume_cover_every_buffer_and_extra_state(tmp_path, digits):
    runs = []
    for stops in ((8,), (3, 8)):
        folder = tmp_path / str(len(stops))
        for epochs in stops:
            torch.manual_seed(0)
            model = Counting()
            history = nm.train(
                model,
                digits,
                until=nm.Epochs(epochs),
                checkpoint_dir=folder,
                lr=nm.LossBasedLR(alpha=50.0),
                progress=False,
            )
        runs.append((history.rows, model.steps.item()))
        assert model.counted == {"steps": model.steps.item()}
    assert runs[0] == runs[1]
    assert sum(history.column("attempts")) > 8
    assert runs[0][1] == 8 * 2  # two batches in each accepted epoch


@pytest.mark.slow_cases(
    "worker", "persistent", "numpy", "Python's", "generator of the batch", "generator of the loader"
)
@pytest.mark.parametrize("kind", killed_runs.KINDS)
def test_runs_on_every_kind_of_loader_resume_or_are_told_beforehand(
    tmp_path, digits, kind, recwarn
):
    """Loaders with own samplers, data that draw from global generators, had not resumed."""

    def train(epochs, folder):
        data = killed_runs.KINDS[kind]((digits[0][:100], digits[1][:100]))
        options = {"lr": killed_runs.rate_for(kind), "checkpoint_dir": folder, "progress": False}
        return nm.train(fresh(), data, until=nm.Epochs(epochs), **options).rows

    whole = train(5, tmp_path / "whole")
    told = [str(w.message) for w in recwarn if "not bit for bit" in str(w.message)]
    if kind in killed_runs.TOLD:
        assert told
    else:
        assert not told
        for epochs in (2, 5):
            parts = train(epochs, tmp_path / "parts")
        assert parts == whole


def test_data_that_draw_from_elsewhere_than_the_saved_run_are_refused(tmp_path, digits, capsys):
    kinds = killed_runs.KINDS
    options = {"checkpoint_dir": tmp_path}
    nm.train(fresh(), kinds["generator of the sampler"](digits), until=nm.Epochs(1), **options)
    assert "state that lies deeper starts anew" in capsys.readouterr().err
    with pytest.raises(nm.CheckpointError, match=r"data.sampler.generator"):
        nm.train(fresh(), kinds["loader"](digits), until=nm.Epochs(2), **options)


def test_a_finished_run_can_be_extended(tmp_path, digits):
    for epochs in (3, 6):
        history = nm.train(
            fresh(), digits, until=nm.Epochs(epochs), checkpoint_dir=tmp_path, progress=False
        )
    assert history.rows == nm.train(fresh(), digits, until=nm.Epochs(6), progress=False).rows
    assert nm.History.load(tmp_path / "history.jsonl").rows == history.rows
    assert list(history.frame()["epoch"]) == list(range(7))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "kinds"),
    [
        (1, ["generator of the sampler", "numpy's global generator"]),
        pytest.param(3, list(killed_runs.KINDS), marks=pytest.mark.nightly),
    ],
)
def test_runs_killed_at_random_moments_resume_bit_for_bit(tmp_path, kills, kinds):
    script = Path(__file__).with_name("killed_runs.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path, str(kills), *kinds],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    count = kills * len(kinds)
    assert f"{count} of {count} identical or told beforehand" in done.stdout, done.stdout


def test_stopping_rules():
    rows = [
        {"epoch": e, "log10_mean_loss": -1.0 * e, "normalized_margin": 1 - 0.5**e}
        for e in range(12)
    ]
    assert nm.Epochs(11).reached(rows)
    assert not nm.Epochs(12).reached(rows)
    assert nm.LogLossBelow(-10.5).reached(rows)
    assert not nm.LogLossBelow(-11.0).reached(rows)
    assert nm.LogLossBelow(-31.0).epochs_left(rows) == pytest.approx(20)
    assert nm.MarginGrowthBelow(0.01, epochs=4).reached(rows)
    assert not nm.MarginGrowthBelow(0.01, epochs=8).reached(rows)
    with pytest.raises(nm.NotHomogeneousError, match="analyse"):
        nm.MarginGrowthBelow().reached([rows[0] | {"normalized_margin": None}])


@pytest.mark.slow
def test_a_stalled_run_says_so():
    """Equal points with opposite labels: nothing lowers the loss below log 2."""
    X = torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=torch.float64)
    history = nm.train(
        nn.Linear(2, 1, bias=False).double(),
        (X, [1, -1]),
        until=nm.LogLossBelow(-1),
        progress=False,
    )
    assert history.status is nm.Status.STALLED
    assert "stalled" in history.message
    assert history.rows[-1]["log_loss"] == pytest.approx(math.log(2 * math.log(2)))


class Steep(nn.Module):
    """Scores (w . x)^13 and 0: those of float32 overflow long before the weights."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([0.5, 0.5]))

    def forward(self, x):
        return torch.stack([(x @ self.w) ** 13, torch.zeros(len(x))], 1)


def test_scores_that_overflow_to_minus_infinity_are_no_classes_that_are_not_offered():
    """Where a step went too far the label's score can be -inf, and all others finite."""
    X, y = torch.tensor([[1.0, 0.0], [0.5, 0.0]]), [1, 0]  # the step for the first one turns w
    with pytest.raises(nm.DivergenceError, match="put back"):
        nm.train(model := Steep(), (X, y), until=nm.Epochs(1), lr=nm.ConstantLR(1e8))
    assert model.w.tolist() == [0.5, 0.5]
    with pytest.raises(nm.ClassNotOfferedError, match="sample 0 is 0"):
        nm.measure(Steep(), (-1e4 * X, [0, 1]))


def test_divergence_puts_the_model_back(digits):
    model = fresh(power=3).float()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(nm.DivergenceError, match="put back"):
        nm.train(model, digits, until=nm.Epochs(5), lr=nm.ConstantLR(1e12), progress=False)
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())
    # The loss-based rule undoes such epochs by itself.
    history = nm.train(
        model, digits, until=nm.Epochs(1), lr=nm.LossBasedLR(alpha=1e12), progress=False
    )
    assert history.rows[1]["attempts"] > 1
    assert math.isfinite(history.rows[1]["log_loss"])
    assert all(torch.isfinite(p).all() for p in model.parameters())


ASCENDED = {
    "ReLU": lambda: nm.models.mlp([64, 24, 10]),
    "squared ReLU": lambda: nm.models.mlp([64, 24, 10], power=2),
    "three layers": lambda: nm.models.mlp([64, 24, 24, 10]),
    "linear": lambda: nn.Linear(64, 10, bias=False),
    "float64": lambda: nm.models.mlp([64, 24, 10]).double(),
}


@pytest.mark.nightly_cases("float64", "squared", "three", "linear")
@pytest.mark.slow
@pytest.mark.parametrize("name", ASCENDED)
def test_a_margin_ascent_keeps_the_norm_and_training_goes_on_from_it(digits, name):
    """A norm of 18.7 had become 1.41; training from there turned the margin negative."""
    digits = digits[0][:80], digits[1][:80]
    torch.manual_seed(0)
    net = ASCENDED[name]()
    nm.train(net, digits, until=nm.LogLossBelow(-3.5), progress=False)
    before = nm.measure(net, digits)
    ascent = nm.maximize_margin(net, digits, iterations=30, progress=False)
    after = nm.measure(net, digits)
    assert after.norm == pytest.approx(before.norm, rel=1e-6)
    assert after.normalized_margin > before.normalized_margin
    assert ascent.report.to_dict() == after.to_dict()  # of the net as returned, in its own dtype
    assert "as it was" in ascent.message
    history = nm.train(net, digits, until=nm.Epochs(10), progress=False)
    margins = history.column("normalized_margin")
    assert min(margins) > 0.6 * margins[0]
    assert margins[-1] > before.normalized_margin
    # From alpha = 0.1 down the first epoch took up to 109 tries, each of them a pass over the data.
    assert history.rows[1]["attempts"] < 35


@pytest.mark.parametrize(
    ("scale", "force"),
    [(0.25, 0.3 + 2.0 * (1 - 0.25)), (3.0, 0.0), (1.0, 0.3)],
    ids=["violated", "slack", "tight"],
)
def test_multipliers_grow_where_a_margin_is_below_one(scale, force):
    """(lambda + penalty (1 - s))_+ at lambda = 0.3 and penalty 2, on a linear net of margin s."""
    net = nn.Linear(2, 1, bias=False).double()
    net.weight.data = torch.tensor([[scale, 0.0]]).double()
    x, y = torch.tensor([[1.0, 0.0]]).double(), torch.tensor([1])
    smoothed = SmoothedMargin(NetOnSamples(net, (x, y)), nm.analyse(net, x), False)
    multipliers = torch.full((1, 1), 0.3).double()
    assert smoothed.forces(multipliers, 2.0).item() == pytest.approx(force)


class NormalizedFeatures(nn.Module):
    """A net whose first layer scales nothing."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 4, bias=False, dtype=torch.float64)
        self.last = nn.Linear(4, 1, bias=False, dtype=torch.float64)

    def forward(self, x):
        z = self.first(x)
        return self.last(torch.relu(z / z.norm(dim=1, keepdim=True)))


def test_the_square_is_of_the_parameters_that_the_outputs_scale_with():
    """At a feasible point L sum lambda s = ||theta||^2, also beside a layer of degree 0."""
    torch.manual_seed(0)
    net, data = NormalizedFeatures(), ([[2.0, 1.0], [-1.0, -2.0]], [1, -1])
    x, y = torch.tensor(data[0]).double(), torch.tensor(data[1])
    nm.train(net, (x, y), until=nm.Epochs(30), progress=False)
    scored = NetOnSamples(net, (x, y))
    smoothed = SmoothedMargin(scored, nm.analyse(net, x), True)
    assert smoothed.square().item() == net.last.weight.square().sum().item()
    smoothed.feasible()
    assert torch.equal(scored.twin.first.weight, net.first.weight)
    q = smoothed.margins() * torch.exp(smoothed.log_norm())
    found = (smoothed.softmax_multipliers(0.1)[:, 0] * q).sum()
    assert found.item() == pytest.approx(scored.twin.last.weight.square().sum().item())


@pytest.mark.slow
def test_a_fresh_net_gets_a_norm_from_which_training_keeps_it_separated(digits):
    digits = digits[0][:80], digits[1][:80]
    torch.manual_seed(0)
    net = nn.Linear(64, 10, bias=False)
    ascent = nm.maximize_margin(net, digits, iterations=30, progress=False)
    assert nm.measure(net, digits).log_loss < CrossEntropy().log_threshold
    assert "as it was" not in ascent.message
    assert min(nm.train(net, digits, until=nm.Epochs(10), progress=False).column("q_min")) > 0


@pytest.mark.slow
def test_an_ascent_at_a_small_norm_says_what_training_would_do(digits):
    digits = digits[0][:80], digits[1][:80]
    torch.manual_seed(0)
    net = nm.models.mlp([64, 24, 10])
    nm.train(net, digits, until=nm.LogLossBelow(-2), progress=False)
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(0.3)
    norm = nm.measure(net, digits).norm
    ascent = nm.maximize_margin(net, digits, iterations=30, progress=False)
    assert ascent.report.norm == pytest.approx(norm, rel=1e-6)
    factor = float(ascent.message.split("multiply the parameters by ")[1].split()[0])
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(factor)
    assert nm.measure(net, digits).log_loss < CrossEntropy().log_threshold


def test_the_first_rate_is_the_papers_from_random_weights_and_the_polyak_step_from_a_separated_net(
    digits,
):
    assert (
        nm.train(fresh(), digits, until=nm.Epochs(1), progress=False).rows[0]["gradient_samples"]
        == 0
    )
    digits = digits[0][:30], digits[1][:30]
    net = nn.Linear(64, 10, bias=False).double()
    nm.train(net, digits, until=nm.LogLossBelow(-3), progress=False)
    report = nm.measure(net, digits)
    assert report.log_loss < CrossEntropy().log_threshold
    outputs = net(digits[0])
    loss = F.cross_entropy(outputs, digits[1])
    square = torch.autograd.grad(loss, net.weight)[0].square().sum()
    # Of the mean loss divided by itself, as one step of rate alpha / loss sees it.
    polyak = (loss * loss / square).item()
    rule = nm.LossBasedLR(alpha=100.0 * polyak)
    seen = []
    rule_begin = type(rule).begin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            nm.LossBasedLR,
            "begin",
            lambda self, *told: (rule_begin(self, *told), seen.append(self.alpha)),
        )
        nm.train(net, digits, until=nm.Epochs(0), lr=rule, batch_size=None, progress=False)
    assert seen == [pytest.approx(polyak, rel=1e-9)]


def test_denormals_are_flushed_only_while_training(digits):
    tiny = torch.tensor([5e-324], dtype=torch.float64)
    nm.train(fresh(), digits, until=nm.Epochs(1), progress=False)
    assert (tiny * 1.0).item() > 0


def test_no_reported_margin_takes_a_denormal_number_for_0():
    X = torch.tensor([[2.0, 1.0], [-1.0, -2.0], [2e-310, 1e-310]], dtype=torch.float64)
    data, net = (X, torch.tensor([1, -1, 1])), fresh((2, 1), bias="none")
    torch.nn.init.ones_(net[0].weight)
    history = nm.train(net, data, until=nm.Epochs(1), progress=False)
    assert history.rows[-1]["q_min"] == nm.measure(net, data).q_min > 0
    ascent = nm.maximize_margin(net, data, iterations=5, progress=False)
    assert ascent.report.q_min == nm.measure(net, data).q_min > 0
    assert "no certificate: The inputs, or a layer, are too small" in ascent.message
    options = {"lambdas": [0.01], "starts": 1, "iterations": 5, "progress": False}
    path = nm.regularization_path(lambda: fresh((2, 1), bias="none"), data, **options)
    net.load_state_dict(path.states[0.01])
    assert path.rows[-1]["q_min"] == nm.measure(net, data).q_min > 0
    options = {"width": 20, "steps": 10, "bias": False, "progress": False}
    assert nm.twolayer.train_both_layers(*data, **options).margins[-1] > 0


class Gone:
    """A stream whose reader has gone."""

    def isatty(self):
        return False

    def write(self, text):
        raise BrokenPipeError

    flush = write


@pytest.mark.parametrize("stream", [None, Gone()], ids=["closed", "without a reader"])
def test_progress_without_a_standard_error_is_shown_nowhere(digits, monkeypatch, stream):
    """Services and pythonw have none."""
    monkeypatch.setattr("netmargin.core.progress._LOG_EVERY_SECONDS", -1.0)
    monkeypatch.setattr("sys.stderr", stream)
    model = nm.models.mlp([64, 4, 10]).double()
    assert len(nm.train(model, digits, until=nm.Epochs(2), progress=True)) == 3
