"""Margins in Lightning's loop: the rows, the loggers, resumed and distributed runs, bad cases."""

import csv
import subprocess
import sys
import warnings

import pytest
import torch

import netmargin as nm
from tests.docs_blocks import ROOT
from tests.integrations.nets import largest_difference, pictures

pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
from tests.integrations.lightning_run import fit, make_module  # after the skip: it needs Lightning

pytestmark = [
    pytest.mark.integrations,
    pytest.mark.filterwarnings("ignore"),  # Lightning advises on workers and loggers
]


def test_rows_are_what_measure_finds_and_the_loggers_get_them(tmp_path):
    module = make_module()
    monitor = nm.callbacks.LightningMarginMonitor(pictures(40))
    trainer = fit(module, tmp_path, monitor, epochs=3)
    rows = monitor.watch.history.rows
    assert [(row["epoch"], row["step"]) for row in rows] == [(0, 0), (1, 3), (2, 6), (3, 9)]
    report = nm.measure(module, pictures(40)).to_dict()
    assert largest_difference([{key: rows[-1][key] for key in report}], [report]) < 1e-12
    folder = monitor.watch.folder
    assert str(folder) == f"{trainer.log_dir}/margins"
    assert nm.History.load(folder / "history.jsonl").rows == rows
    assert monitor.watch.history.status is nm.Status.FINISHED
    with open(f"{trainer.log_dir}/metrics.csv") as file:
        logged = [row for row in csv.DictReader(file) if row.get("margins/q_min")]
    assert [int(row["step"]) for row in logged] == [0, 3, 6, 9]
    assert [float(row["margins/q_min"]) for row in logged] == [row["q_min"] for row in rows]
    nm.load_weights(net := make_module(seed=5).net, folder)  # "net." is taken off the names
    assert torch.equal(net[1].weight, module.net[1].weight)


def test_a_run_is_the_same_with_and_without_a_monitor(tmp_path):
    import lightning.pytorch as pl

    ends = []
    for callback in (nm.callbacks.LightningMarginMonitor(pictures(40)), pl.Callback()):
        module = make_module()
        fit(module, tmp_path / type(callback).__name__, callback, epochs=2)
        ends.append([*module.state_dict().values(), torch.rand(3)])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_without_an_epoch_there_is_no_watch_and_a_sentence_says_why(tmp_path):
    monitor = nm.callbacks.LightningMarginMonitor(pictures(40))
    fit(make_module(), tmp_path, monitor, epochs=0)
    assert not hasattr(monitor, "watch")
    with pytest.raises(AttributeError, match="no watch before training has begun.*max_epochs=0"):
        monitor.watch  # noqa: B018 (what is tested)


def test_steps_with_accumulated_gradients(tmp_path):
    monitor = nm.callbacks.LightningMarginMonitor(pictures(40), every=2, unit="step", net="net")
    fit(make_module(), tmp_path, monitor, epochs=2, n=120, accumulate_grad_batches=2)
    rows = monitor.watch.history.rows
    assert [(row["step"], row["epoch"]) for row in rows] == [
        (0, 0),
        (2, pytest.approx(4 / 6)),
        (4, pytest.approx(1 + 2 / 6)),
        (6, 2),
    ]


def test_the_last_row_is_about_the_weights_at_the_end(tmp_path):
    """Also where the steps of the run are no multiple of `every`."""
    monitor = nm.callbacks.LightningMarginMonitor(pictures(40), every=4, unit="step", net="net")
    fit(make_module(), tmp_path, monitor, epochs=2, n=120, accumulate_grad_batches=2)
    rows = monitor.watch.history.rows
    assert [row["step"] for row in rows] == [0, 4, 6]
    assert rows[-1]["epoch"] == 2


@pytest.mark.parametrize("order", [1, -1], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["StochasticWeightAveraging", "EMAWeightAveraging"])
def test_averaged_weights_have_the_last_row(tmp_path, kind, order):
    """Wherever the callback stands that puts them in."""
    import lightning.pytorch as pl

    given = ([1e-2], {"swa_epoch_start": 1}) if kind.startswith("S") else ([], {"decay": 0.9})
    averaging = getattr(pl.callbacks, kind)(*given[0], **given[1])
    monitor = nm.callbacks.LightningMarginMonitor(pictures(40), folder=tmp_path / "margins")
    module = make_module(plain=True)
    trainer = pl.Trainer(
        max_epochs=3, callbacks=[averaging, monitor][::order], **quiet(tmp_path / "logs")
    )
    trainer.fit(module, loader(60))
    saved = make_module(seed=4, plain=True)
    nm.load_weights(saved, tmp_path / "margins")
    rows, report = monitor.watch.history.rows, nm.measure(saved, pictures(40)).to_dict()
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3, 3]
    assert largest_difference([{key: rows[-1][key] for key in report}], [report]) == 0
    assert rows[-1]["normalized_margin"] != rows[-2]["normalized_margin"]
    assert torch.equal(module.net[0].weight, saved.net[0].weight)


@pytest.mark.parametrize(
    ("unit", "epochs", "expected"),
    [
        ("step", 2, [0, 1 / 2, 2 / 3, 1, 4 / 3, 5 / 3, 2]),
        ("epoch", 2, [0, 1, 2]),
        ("step", 1, [0, 1 / 2, 2 / 3, 1]),
    ],
)
def test_epochs_of_streams_go_on(tmp_path, unit, epochs, expected):
    """The length of a stream is known once it has ended."""
    import lightning.pytorch as pl

    monitor = nm.callbacks.LightningMarginMonitor(pictures(40), unit=unit)
    trainer = pl.Trainer(max_epochs=epochs, callbacks=[monitor], **quiet(tmp_path))
    trainer.fit(make_module(), torch.utils.data.DataLoader(Stream(), batch_size=20))
    rows = monitor.watch.history.rows
    assert [row["epoch"] for row in rows] == pytest.approx(expected, abs=1e-6)
    assert [row["step"] for row in rows] == list(
        range(0, 3 * epochs + 1, 3 if unit == "epoch" else 1)
    )


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from zip(*pictures(60), strict=True)


def test_a_second_fit_goes_on(tmp_path):
    import lightning.pytorch as pl

    monitor = nm.callbacks.LightningMarginMonitor(pictures(40))
    module = make_module()
    trainer = pl.Trainer(max_epochs=1, callbacks=[monitor], **quiet(tmp_path))
    trainer.fit(module, loader(60))
    trainer.fit_loop.max_epochs = 2
    trainer.fit(module, loader(60))
    # With a trainer of its own, which counts anew.
    pl.Trainer(max_epochs=2, callbacks=[monitor], **quiet(tmp_path)).fit(module, loader(60))
    rows = monitor.watch.history.rows
    steps = [(row["epoch"], row["step"]) for row in rows]
    assert steps == [(0, 0), (1, 3), (2, 6), (3, 9), (4, 12)]
    assert nm.History.load(tmp_path / "margins" / "history.jsonl").rows == rows
    report = nm.measure(module, pictures(40)).to_dict()
    assert largest_difference([{key: rows[-1][key] for key in report}], [report]) == 0


def test_steps_of_two_optimizers(tmp_path):
    """The second one begins later: from then on every batch takes two steps."""
    import lightning.pytorch as pl

    class Two(type(make_module())):
        automatic_optimization = False

        def training_step(self, batch, index):
            loss = super().training_step(batch, index)
            self.manual_backward(loss)
            for optimizer in self.optimizers()[: 1 if self.trainer.global_step == 0 else 2]:
                optimizer.step()

        def configure_optimizers(self):
            layers = (self.net[0], self.net[-1])
            return [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in layers]

    torch.manual_seed(0)
    monitor = nm.callbacks.LightningMarginMonitor(pictures(40), unit="step", every=4)
    trainer = pl.Trainer(max_epochs=2, callbacks=[monitor], **quiet(tmp_path))
    trainer.fit(Two(nm.models.mlp([64, 16, 10])), loader(100))
    rows = monitor.watch.history.rows
    assert [row["step"] for row in rows] == [0, 5, 9, 13, 17, 19]
    assert [row["epoch"] for row in rows] == pytest.approx([0, 0.6, 1, 1.4, 1.8, 2])


def test_two_monitors_of_one_folder_are_refused(tmp_path):
    import lightning.pytorch as pl

    monitors = [
        nm.callbacks.LightningMarginMonitor(pictures(40), name=name, folder=str(tmp_path / "same"))
        for name in "ab"
    ]
    trainer = pl.Trainer(max_epochs=1, callbacks=monitors, **quiet(tmp_path))
    with pytest.raises(nm.ArgumentError, match="Two callbacks write to .*same. Give each a"):
        trainer.fit(make_module(), loader(60))


def quiet(folder):
    """Options of a trainer that writes nothing but rows."""
    silent = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    return {"default_root_dir": folder, "accelerator": "cpu", **dict.fromkeys(silent, False)}


def loader(n):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*pictures(n)), batch_size=20)


def test_a_resumed_run_goes_on_with_its_history(tmp_path):
    whole = nm.callbacks.LightningMarginMonitor(pictures(40), folder=tmp_path / "margins")
    fit(make_module(), tmp_path, whole, epochs=4)
    # Killed after its fourth epoch, and resumed from the checkpoint of its second.
    resumed = nm.callbacks.LightningMarginMonitor(pictures(40), folder=tmp_path / "margins")
    checkpoint = tmp_path / "epoch=1.ckpt"
    fit(make_module(seed=7), tmp_path, resumed, epochs=4, ckpt_path=checkpoint)
    rows = resumed.watch.history.rows
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[:3] == whole.watch.history.rows[:3]
    assert nm.History.load(tmp_path / "margins" / "history.jsonl").rows == rows
    # In a folder of its own the whole history comes along.
    again = nm.callbacks.LightningMarginMonitor(pictures(40))
    fit(make_module(seed=8), tmp_path / "b", again, epochs=4, ckpt_path=checkpoint)
    assert [row["epoch"] for row in again.watch.history.rows] == [0, 1, 2, 3, 4]
    # Real checkpoints of Lightning are read, prefix and all.
    nm.load_weights(net := make_module(seed=9).net, checkpoint)
    nm.load_weights(module := make_module(seed=9), checkpoint)
    assert torch.equal(net[1].weight, module.net[1].weight)


def test_a_checkpoint_from_before_the_monitor(tmp_path):
    import lightning.pytorch as pl

    fit(make_module(), tmp_path, pl.Callback(), epochs=2)
    monitor = nm.callbacks.LightningMarginMonitor(pictures(40))
    fit(make_module(), tmp_path, monitor, epochs=3, ckpt_path=tmp_path / "epoch=1.ckpt")
    assert [row["epoch"] for row in monitor.watch.history.rows] == [3]


@pytest.mark.nightly
def test_two_processes_give_the_rows_of_one(tmp_path):
    for processes in (1, 2):
        command = ["-m", "tests.integrations.lightning_run", str(tmp_path / f"{processes}")]
        subprocess.run(
            [sys.executable, *command, str(processes)],
            check=True,
            cwd=ROOT,
            timeout=300,
        )
    one, two = (
        nm.History.load(tmp_path / f"{processes}" / "margins" / "history.jsonl").rows
        for processes in (1, 2)
    )
    assert [row["step"] for row in one] == [0, 3, 6, 9]
    assert largest_difference(one, two) < 1e-5  # float32 sums in another order


def test_a_look_that_fails_is_said_once_and_the_run_goes_on(tmp_path):
    module = make_module()
    monitor = nm.callbacks.LightningMarginMonitor(pictures(40))

    def fail(net, inputs):
        if hasattr(monitor, "watch") and not net.training:  # after the first look
            raise RuntimeError("out of memory, say")

    module.net.register_forward_pre_hook(fail)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trainer = fit(module, tmp_path, monitor, epochs=4)
    assert trainer.current_epoch == 4
    told = [str(w.message) for w in said if "Watching the margins failed" in str(w.message)]
    assert len(told) == 1
    assert "out of memory, say" in told[0]


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"data": iter([])}, nm.DataError, "read only once"),
        ({"folder": "/proc/none"}, nm.CheckpointError, "Cannot write /proc/none"),
        ({"loss": "hinge"}, nm.ArgumentError, "loss must be"),
    ],
)
def test_what_cannot_be_watched_ends_the_run_before_it_begins(tmp_path, options, error, sentence):
    monitor = nm.callbacks.LightningMarginMonitor(**({"data": pictures(40)} | options))
    with pytest.raises(error, match=sentence):
        fit(make_module(), tmp_path, monitor, epochs=1)


def test_what_no_watch_knows_is_refused_at_once():
    with pytest.raises(TypeError, match="'validation'"):
        nm.callbacks.LightningMarginMonitor(pictures(40), validation=pictures(20))


def test_bad_rhythms():
    with pytest.raises(nm.ArgumentError, match='unit must be "epoch" or "step"'):
        nm.callbacks.LightningMarginMonitor(pictures(40), unit="batch")
    with pytest.raises(nm.ArgumentError, match="every must be"):
        nm.callbacks.LightningMarginMonitor(pictures(40), every=0)
