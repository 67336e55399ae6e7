"""A watch in a loop of one's own: the margins of `measure`, and a run that is the same without."""

import json
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import netmargin as nm
from tests.docs_blocks import ROOT


def make_net(seed=0):
    """A net with BatchNorm and dropout, whose mode and randomness matter."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 16, bias=False),
        torch.nn.BatchNorm1d(16),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(16, 10),
    )


@pytest.fixture(scope="module")
def few():
    return nm.datasets.digits(limit=60)


def train(net, data, epochs, watch=None, seed=1):
    """A loop that draws its batches and its dropout from the global generator."""
    torch.manual_seed(seed)
    loader = DataLoader(TensorDataset(*data), batch_size=20, shuffle=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        if watch:
            watch.step()


def test_rows_are_what_measure_finds(few, tmp_path):
    net = make_net()
    watch = nm.Watch(net, few, folder=tmp_path)
    before = nm.measure(net, few).to_dict()
    train(net, few, 3, watch)
    rows = watch.history.rows
    assert [(row["epoch"], row["step"]) for row in rows] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    for row, report in ((rows[0], before), (rows[-1], nm.measure(net, few).to_dict())):
        assert {key: row[key] for key in report} == report
    assert torch.equal(watch.report.q, nm.measure(net, few).q)
    assert nm.History.load(tmp_path / "history.jsonl").rows == rows


def test_held_out_data_are_watched_beside_training_data(few, tmp_path):
    """Their rows are what `measure` finds, the run stays the same, and the page says what is best."""
    heldout = nm.datasets.digits("test", limit=40)
    loader = DataLoader(TensorDataset(*heldout), batch_size=8, shuffle=True)
    plain, watched = make_net(), make_net()
    train(plain, few, 3)
    watch = nm.Watch(watched, few, heldout=loader, folder=tmp_path)
    train(watched, few, 3, watch)
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), watched.parameters(), strict=True))  # fmt: skip
    last, found = watch.history.rows[-1], nm.measure(watched, heldout)
    assert last["heldout_accuracy"] == found.accuracy
    assert last["heldout_log10_mean_loss"] == pytest.approx(found.log10_mean_loss, rel=1e-6)
    rows = watch.history.rows
    for best, said in ((1.0, "a checkpoint from there"), (0.0, "right at the end")):
        for row in rows:
            row["heldout_accuracy"] = best if row is rows[1] else 0.5
        written = nm.page(watched, few, heldout, records=[watch.history], out=tmp_path / "a.html")
        text = written.path.read_text()
        assert said in text
        assert ("a checkpoint from there" in text) == (best == 1.0)
        assert "held-out right" in text
    with pytest.raises(nm.DataError, match="only once"):
        nm.Watch(watched, few, heldout=iter(loader))


@pytest.mark.parametrize("kind", ["pair", "loader", "the loader of the run", "dict"])
def test_a_run_is_the_same_with_and_without_a_watch(few, kind):
    """Weights, modes, gradients and what is drawn next."""
    ends = []
    for watched in (False, True):
        net = make_net()
        generator = torch.Generator().manual_seed(5)
        loader = DataLoader(TensorDataset(*few), 20, shuffle=True, generator=generator)
        data = {
            "pair": few,
            "loader": DataLoader(TensorDataset(*few), 20, shuffle=True),
            "the loader of the run": loader,
            "dict": {"input": few[0], "labels": few[1]},
        }[kind]
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(1)
        watch = nm.Watch(net, data) if watched else None
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            for x, y in loader:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(net(x), y).backward()
                optimizer.step()
            if watch:
                watch.step()
        drawn = torch.rand(3).tolist(), np.random.rand(), random.random()
        gradients = [p.grad.clone() for p in net.parameters()]
        ends.append((drawn, *net.state_dict().values(), *gradients, net.training))
    for without, with_watch in zip(*ends, strict=True):
        same = torch.equal if isinstance(without, torch.Tensor) else lambda a, b: a == b
        assert same(without, with_watch)


def test_every_other_step_is_looked_at(few):
    watch = nm.Watch(make_net(), few, every=3)
    rows = [watch.step() for _ in range(7)]
    assert [row and row["step"] for row in rows] == [None, None, 3, None, None, 6, None]
    assert watch.history.column("epoch") == [0, 3, 6]


def test_the_last_row_describes_the_weights_that_are_saved(few, tmp_path):
    """Also where the steps are no multiple of `every`."""
    net = make_net()
    watch = nm.Watch(net, few, every=10, folder=tmp_path)
    for _ in range(25):
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.mul_(1.01)
        watch.step()
    watch.finish()
    watch.finish()  # a second time adds nothing
    assert nm.History.load(tmp_path / "history.jsonl").column("step") == [0, 10, 20, 25]
    saved = make_net()
    nm.load_weights(saved, tmp_path / "model.safetensors")
    row = {"epoch": 25, "step": 25, **nm.measure(saved, few).to_dict()}
    assert watch.history.rows[-1] == row


@pytest.mark.parametrize("average", [True, False])
def test_weights_that_change_after_the_last_step_have_a_row(few, tmp_path, average):
    """As averages of weights do, which are put in at the end."""
    net = make_net()
    watch = nm.Watch(net, few, folder=tmp_path)
    train(net, few, 2, watch)
    if average:
        other = make_net(seed=3).state_dict()
        for name, value in net.named_parameters():
            value.data = 0.5 * (value.data + other[name])
    watch.finish()
    watch.finish()
    rows = watch.history.rows
    assert [row["step"] for row in rows] == [0, 1, 2, 2][: 3 + average]
    saved = make_net(seed=5)
    nm.load_weights(saved, tmp_path / "model.safetensors")
    assert rows[-1] == {"epoch": 2, "step": 2, **nm.measure(saved, few).to_dict()}
    assert nm.History.load(tmp_path / "history.jsonl").rows == rows


@pytest.mark.parametrize("first", [20, 40])
def test_two_watches_of_one_folder_leave_it_whole(few, tmp_path, first):
    """The first one is told, whichever of their rows is longer."""
    net, parts = make_net(), [tuple(part[:n] for part in few) for n in (first, 60 - first)]
    one, two = (nm.Watch(net, part, folder=tmp_path) for part in parts)
    with pytest.warns(UserWarning, match="history.jsonl was changed by somebody else"):
        one.step()
    assert len(one.history) == 2
    for _ in range(2):
        two.step()
        one.step()
    assert nm.History.load(tmp_path / "history.jsonl").rows == two.history.rows


def test_a_look_says_where_it_stands(few):
    watch = nm.Watch(make_net(), few)
    assert watch.look(epoch=2.9999999999, step=30)["epoch"] == 3
    assert watch.look(epoch=10 / 3, step=33)["epoch"] == 3.333333
    assert watch.look(epoch=4, step=33) is None  # the same step again
    assert watch.history.column("step") == [0, 30, 33]


def test_a_killed_run_goes_on_with_its_history(few, tmp_path):
    whole = nm.Watch(make_net(), few, folder=tmp_path / "whole")
    train(whole.model, few, 2, whole)
    saved = json.loads(json.dumps(whole.state_dict()))  # plain values
    weights = {name: value.clone() for name, value in whole.model.state_dict().items()}
    train(whole.model, few, 2, whole, seed=2)
    net = make_net(seed=9)
    net.load_state_dict(weights)
    resumed = nm.Watch(net, few, folder=tmp_path / "whole", state=saved)
    assert len(nm.History.load(tmp_path / "whole" / "history.jsonl")) == 3
    train(net, few, 2, resumed, seed=2)
    assert resumed.history.rows == whole.history.rows
    assert nm.History.load(tmp_path / "whole" / "history.jsonl").rows == whole.history.rows


def test_somebody_elses_history_is_left_alone(few, tmp_path):
    watch = nm.Watch(make_net(), few, folder=tmp_path)
    watch.step()
    text = (tmp_path / "history.jsonl").read_text()
    with pytest.raises(nm.CheckpointError, match=r"another run \(2 rows\).*state"):
        nm.Watch(make_net(), few, folder=tmp_path)
    other = nm.Watch(make_net(seed=4), few).state_dict()
    with pytest.raises(nm.CheckpointError, match="another run"):
        nm.Watch(make_net(), few, folder=tmp_path, state=other)
    assert (tmp_path / "history.jsonl").read_text() == text


def test_a_history_of_no_work_is_replaced(few, tmp_path):
    for _ in range(2):
        nm.Watch(make_net(), few, folder=tmp_path)
    assert len(nm.History.load(tmp_path / "history.jsonl")) == 1


def test_a_model_that_changes_is_analysed_anew(few):
    net = make_net()
    watch = nm.Watch(net, few)
    assert watch.history.rows[0]["order"] == 2
    net[2] = torch.nn.Sigmoid()
    assert watch.step()["order"] is None
    net[4] = torch.nn.Linear(16, 10, bias=False)
    assert watch.step()["norm"] == nm.measure(net, few).norm


def test_a_look_that_fails_is_said_once_and_the_run_goes_on(few, tmp_path):
    net = make_net()
    watch = nm.Watch(net, few, folder=tmp_path)
    good = net[4].weight.data.clone()
    net[4].weight.data.fill_(float("nan"))
    with pytest.warns(UserWarning, match="failed at step 1.*NaN.*Training goes on") as said:
        assert watch.step() is None
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert watch.step() is None
        net[4].weight.data.copy_(good)
        assert watch.step()["step"] == 3
    assert nm.History.load(tmp_path / "history.jsonl").column("step") == [0, 3]


def test_rows_that_could_not_be_written_come_with_the_next(few, tmp_path):
    watch = nm.Watch(make_net(), few, folder=tmp_path)
    file = tmp_path / "history.jsonl"
    whole = file.read_bytes()
    file.unlink()
    file.mkdir()
    with pytest.warns(UserWarning, match="Cannot write"):
        watch.step()
    file.rmdir()
    file.write_bytes(whole + b'{"epoch": 1, "st')  # what a full disk leaves
    watch.step()
    assert nm.History.load(file).column("step") == [0, 1, 2]


class Sometimes(torch.nn.Linear):
    """A net that raises an error of its own in its third forward pass in evaluation mode."""

    fails = False

    def forward(self, x):
        if self.fails:
            raise KeyError("of the caller's own")
        return super().forward(x)


def test_an_error_of_the_callers_own_does_not_end_training(few):
    net = Sometimes(64, 10)
    watch = nm.Watch(net, few)
    net.fails = True
    with pytest.warns(UserWarning, match="of the caller's own"):
        watch.step()


def test_a_keyboard_interrupt_is_no_failure(few, monkeypatch):
    watch = nm.Watch(make_net(), few)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.nn.Linear, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watch.step()


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"data": iter([])}, nm.DataError, "read only once.*DataLoader"),
        ({"data": ([[1.0]], [1, 2])}, nm.DataError, "one label per"),
        ({"model": None}, nm.ModelError, "must be a torch.nn.Module"),
        ({"every": 0}, nm.ArgumentError, "every must be a whole number of at least 1"),
        ({"loss": "no such loss"}, nm.ArgumentError, "loss must be"),
        ({"folder": 3}, nm.ArgumentError, "folder must be a path"),
        ({"folder": "/proc/none"}, nm.CheckpointError, "Cannot write /proc/none"),
        ({"state": [1]}, nm.ArgumentError, "state must be what the state_dict"),
        ({"state": {"calls": 1, "rows": [3]}}, nm.ArgumentError, "state must be"),
        ({"state": {"calls": -1, "rows": []}}, nm.ArgumentError, "calls"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_what_cannot_be_watched_is_refused_at_the_start(few, change, error, sentence):
    given = {"model": make_net(), "data": few} | change
    with pytest.raises(error, match=sentence):
        nm.Watch(given.pop("model"), given.pop("data"), **given)


def test_the_share_of_one_process_is_refused(few):
    dataset = TensorDataset(*few)
    sampler = DistributedSampler(dataset, num_replicas=2, rank=0)
    with pytest.raises(nm.DataError, match="DistributedSampler"):
        nm.Watch(make_net(), DataLoader(dataset, 20, sampler=sampler))


def test_noise_is_said_at_the_start(few):
    class Noisy(torch.nn.Linear):
        def forward(self, x):
            return torch.nn.functional.dropout(super().forward(x), 0.5)

    with pytest.warns(UserWarning, match="noisy.*single draws"):
        nm.Watch(Noisy(64, 10), few)


def test_a_page_of_a_watched_run(few, tmp_path, capsys):
    """The folder of a watch is one that `netmargin page` reads."""
    from netmargin import cli

    torch.manual_seed(0)
    net = nm.models.mlp([64, 256, 10])
    watch = nm.Watch(net, few, folder=tmp_path / "run")
    train(net, few, 2, watch)
    watch.finish()
    assert watch.history.status is nm.Status.FINISHED
    copy = nm.models.mlp([64, 256, 10])
    nm.load_weights(copy, tmp_path / "run" / "model.safetensors")
    assert torch.equal(copy[0].weight, net[0].weight)
    cli.main(["page", str(tmp_path / "run"), "--factory", "digits-mlp", "--data", "digits"])
    assert '"epoch":[0,1,2]' in (tmp_path / "run" / "page.html").read_text()


TWO_PROCESSES = """
import sys, torch, torch.distributed as dist
import netmargin as nm

rank, world, store, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
if world > 1:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
torch.manual_seed(0)
X, y = nm.datasets.digits(limit=64)
net = nm.models.mlp([64, 16, 10]).double()
X = X.double()
wrapped = torch.nn.parallel.DistributedDataParallel(net) if world > 1 else net
watch = nm.Watch(wrapped, (X, y), folder=folder)
criterion = nm.RelativeLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for start in range(0, 64, 16):
        part = slice(start + rank, start + 16, world)
        optimizer.zero_grad()
        criterion(wrapped(X[part]), y[part]).backward()
        optimizer.step()
    criterion.rescale()
    row = watch.step()
    assert (row is None) == (rank > 0)
watch.finish()
print(criterion.log_scale)
"""


@pytest.mark.nightly
def test_two_processes_give_the_rows_of_one(tmp_path):
    scales = []
    for world in (1, 2):
        store, folder = tmp_path / f"store{world}", tmp_path / f"run{world}"
        commands = [
            [sys.executable, "-c", TWO_PROCESSES, str(rank), str(world), str(store), str(folder)]
            for rank in range(world)
        ]
        started = [
            subprocess.Popen(c, stdout=subprocess.PIPE, text=True, cwd=ROOT) for c in commands
        ]
        scales += [float(process.communicate(timeout=300)[0]) for process in started]
        assert not any(process.returncode for process in started)
    assert scales == pytest.approx([scales[0]] * 3, abs=1e-9)
    one, two = (
        nm.History.load(tmp_path / f"run{world}" / "history.jsonl").rows for world in (1, 2)
    )
    assert len(one) == len(two) == 4
    for a, b in zip(one, two, strict=True):
        assert b == pytest.approx(a, rel=1e-9)


def test_frameworks_that_are_missing_or_of_another_version():
    """Of a framework without the class, the callback can be read and not made."""
    from netmargin.callbacks.frameworks import find_base, require_base

    assert find_base(("no_such_framework", "json"), "JSONDecoder") is json.JSONDecoder
    for modules in (("no_such_framework",), ("json",)):
        base = find_base(modules, "Callback")
        assert base is object
        with pytest.raises(nm.MissingLibraryError, match=r"needs Lightning.*\[integrations\]"):
            require_base(base, "Lightning")
    with pytest.raises(AttributeError, match="no_such_callback"):
        nm.callbacks.no_such_callback  # noqa: B018


def test_callbacks_say_how_to_install_what_they_need(few, monkeypatch):
    """Whatever is installed here."""
    from netmargin.callbacks import lightning, transformers

    monkeypatch.setattr(lightning, "_Callback", object)
    monkeypatch.setattr(transformers, "_Callback", object)
    with pytest.raises(nm.MissingLibraryError, match="needs Lightning"):
        nm.callbacks.LightningMarginMonitor(few)
    with pytest.raises(nm.MissingLibraryError, match="needs transformers"):
        nm.callbacks.TransformersMarginCallback(None, few)


def test_a_watch_prints_held_out_samples_and_the_epoch_to_go_back_to():
    rows = [
        {
            "epoch": e,
            "step": e,
            "accuracy": 0.9,
            "log10_mean_loss": -e / 10,
            "normalized_margin": -1.0,
        }
        | {"heldout_accuracy": 0.5 + e / 10, "heldout_log10_mean_loss": loss}
        for e, loss in enumerate((0.3, 0.1, 0.2))
    ]
    said = " ".join(nm.History(rows).summary().split())
    assert "smallest at epoch 1, and most were right at epoch 2, 70.0%." in said
    rows[1]["heldout_accuracy"] = 0.8
    again = " ".join(nm.History(rows).summary().split())
    assert "right at epoch 1, 80.0%: a checkpoint from there may serve better" in again
    assert "right of these (measured)" in said
    # Some samples are wrong.
    assert "normalized margin" not in said
    assert "in the net's scores" not in said  # nothing says by how much
    history = nm.History([row | {"q_min": row["epoch"] - 3.5} for row in rows])
    said = " ".join(history.summary().split())
    assert (
        "10.00% of the samples are wrong at the end, the worst by 1.5 in the net's scores" in said
    )
    assert "Normalized margins are shown once all are right." in said
    assert "smallest margin (measured)" in said
    assert " -3.5 " in said
    assert "More steps" not in said
    for stuck in (
        nm.History([*history.rows[:-1], history.rows[-1] | {"q_min": -0.0}]),
        nm.History(history.rows, status=nm.Status.STALLED),
    ):
        said = " ".join(stuck.summary().split())
        assert "More steps will not help: look for equal inputs with different labels" in said
        assert "-0 " not in said
        assert "worst by -" not in said
    tiny = nm.History([*history.rows[:-1], history.rows[-1] | {"q_min": -1.5e-46}])
    assert "worst by 1.5e-46 in" in " ".join(tiny.summary().split())
    assert "q_min=-1.5" in repr(history)
    assert "normalized_margin" not in repr(history)
    history.rows[-1]["normalized_margin"] = None  # as of nets that have none
    assert "Normalized" not in history.summary()
    history.rows[-1] |= {"accuracy": 1, "q_min": 0.75}
    assert "smallest margin" in history.summary()
    assert "normalized margin" not in history.summary()
    history.rows[-1] |= {"accuracy": 1, "q_min": 0.5, "normalized_margin": 0.25}
    said = " ".join(history.summary().split())
    assert "normalized margin (measured)" in said
    assert "wrong at the end" not in said
    assert "smallest margin" not in said
    assert "normalized_margin=0.25" in repr(history)
