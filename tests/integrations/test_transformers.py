"""Margins in the loop of Hugging Face's Trainer: rows, logs, resumed and distributed runs, its files."""

import subprocess
import sys
import warnings

import pytest
import torch

import netmargin as nm
from tests.docs_blocks import ROOT
from tests.integrations.nets import largest_difference, tokens

pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")
from tests.integrations.trainer_run import make_net, make_trainer

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]


def train(folder, net, *, epochs, resume=None, watched=True, n=60, **options):
    """Train with a callback; return it, or None without, and the trainer."""
    trainer = make_trainer(folder, net, epochs=epochs, n=n)
    callback = None
    if watched:
        callback = nm.callbacks.TransformersMarginCallback(trainer, tokens(40), **options)
        trainer.add_callback(callback)
    trainer.train(resume_from_checkpoint=resume)
    return callback, trainer


def test_rows_are_what_measure_finds_and_the_log_gets_them(tmp_path):
    net = make_net()
    callback, trainer = train(tmp_path, net, epochs=3)
    rows = callback.watch.history.rows
    assert [(row["epoch"], row["step"]) for row in rows] == [(0, 0), (1, 3), (2, 6), (3, 9)]
    report = nm.measure(net, tokens(40)).to_dict()
    assert largest_difference([{key: rows[-1][key] for key in report}], [report]) < 1e-12
    assert nm.History.load(tmp_path / "margins" / "history.jsonl").rows == rows
    logged = [entry for entry in trainer.state.log_history if "margins/q_min" in entry]
    assert [entry["step"] for entry in logged] == [0, 3, 6, 9]
    assert [entry["margins/q_min"] for entry in logged] == [row["q_min"] for row in rows]


def test_a_run_is_the_same_with_and_without_a_callback(tmp_path):
    ends = []
    for watched in (True, False):
        net = make_net()
        train(tmp_path / str(watched), net, epochs=2, watched=watched)
        ends.append([*net.state_dict().values(), torch.rand(3)])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_steps(tmp_path):
    callback, _ = train(tmp_path, make_net(), epochs=2, every=2, unit="step")
    found = [(row["step"], row["epoch"]) for row in callback.watch.history.rows]
    assert found == [(0, 0), (2, 0.666667), (4, 1.333333), (6, 2)]


def test_the_last_row_is_about_the_weights_at_the_end(tmp_path):
    """Also where the steps of the run are no multiple of `every`."""
    callback, _ = train(tmp_path, make_net(), epochs=2, every=4, unit="step")
    found = [(row["step"], row["epoch"]) for row in callback.watch.history.rows]
    assert found == [(0, 0), (4, 1.333333), (6, 2)]


def test_a_resumed_run_goes_on_with_its_history(tmp_path):
    whole, _ = train(tmp_path, make_net(), epochs=4)
    resumed, _ = train(tmp_path, make_net(seed=7), epochs=4, resume=str(tmp_path / "checkpoint-6"))
    rows = resumed.watch.history.rows
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows == whole.watch.history.rows  # Trainer resumes bit for bit
    assert nm.History.load(tmp_path / "margins" / "history.jsonl").rows == rows


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    train(tmp_path, make_net(), epochs=1)
    with pytest.raises(nm.CheckpointError, match="another run"):
        train(tmp_path, make_net(), epochs=1)


def test_a_second_train_goes_on(tmp_path):
    net = make_net()
    callback, trainer = train(tmp_path, net, epochs=2)
    trainer.train()  # which counts anew
    rows = callback.watch.history.rows
    steps = [(row["epoch"], row["step"]) for row in rows]
    assert steps == [(0, 0), (1, 3), (2, 6), (3, 9), (4, 12)]
    assert nm.History.load(tmp_path / "margins" / "history.jsonl").rows == rows
    report = nm.measure(net, tokens(40)).to_dict()
    assert largest_difference([{key: rows[-1][key] for key in report}], [report]) < 1e-12


def test_nets_that_are_made_anew_have_folders_of_their_own(tmp_path):
    trainer = make_trainer(tmp_path, make_net(), epochs=1)
    seeds = iter(range(9))
    trainer.model_init = lambda: make_net(next(seeds))
    callback = nm.callbacks.TransformersMarginCallback(trainer, tokens(40))
    trainer.add_callback(callback)
    for name in ("margins", "margins-2", "margins-3"):
        trainer.train()
        rows = nm.History.load(tmp_path / name / "history.jsonl").rows
        assert [row["step"] for row in rows] == [0, 3]
        assert rows == callback.watch.history.rows


def test_two_callbacks_need_two_names(tmp_path):
    trainer = make_trainer(tmp_path, make_net(), epochs=1, n=60)
    callbacks = [nm.callbacks.TransformersMarginCallback(trainer, tokens(n)) for n in (20, 40)]
    for callback in callbacks:
        trainer.add_callback(callback)
    with pytest.raises(nm.ArgumentError, match="Two callbacks write to .*name='margins-2'"):
        trainer.train()
    callbacks[1].name = "margins-2"
    trainer.train()
    for callback in callbacks:
        rows = nm.History.load(tmp_path / callback.name / "history.jsonl").rows
        assert [row["step"] for row in rows] == [0, 3]
        assert rows == callback.watch.history.rows


@pytest.mark.parametrize(("every", "expected"), [(1, [0, 1, 2]), (2, [0, 2])])
def test_epochs_of_streams_are_counted(tmp_path, every, expected):
    """The Trainer itself takes all its steps for one epoch of data without a length."""

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            batch = tokens(60)
            yield from ({key: part[i] for key, part in batch.items()} for i in range(60))

    trainer = make_trainer(tmp_path, make_net(), epochs=1)
    trainer.args.max_steps, trainer.train_dataset = 6, Stream()
    callback = nm.callbacks.TransformersMarginCallback(trainer, tokens(40), every=every)
    trainer.add_callback(callback)
    trainer.train()
    assert [row["epoch"] for row in callback.watch.history.rows] == expected


@pytest.mark.nightly
def test_two_processes_give_the_rows_of_one(tmp_path):
    for processes in (1, 2):
        command = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
        command += ["--standalone", "-m", "tests.integrations.trainer_run"]
        subprocess.run(
            [sys.executable, *command, str(tmp_path / str(processes))],
            check=True,
            cwd=ROOT,
            timeout=300,
        )
    one, two = (
        nm.History.load(tmp_path / str(processes) / "margins" / "history.jsonl").rows
        for processes in (1, 2)
    )
    assert [row["step"] for row in one] == [0, 3, 6, 9]
    assert largest_difference(one, two) < 1e-5  # float32 sums in another order


def test_a_look_that_fails_is_said_once_and_the_run_goes_on(tmp_path):
    net = make_net()
    trainer = make_trainer(tmp_path, net, epochs=3)
    callback = nm.callbacks.TransformersMarginCallback(trainer, tokens(40))
    trainer.add_callback(callback)

    def fail(module, inputs):
        if hasattr(callback, "watch") and not module.training:  # after the first look
            raise RuntimeError("out of memory, say")

    net.bert.embeddings.register_forward_pre_hook(fail)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        trainer.train()
    assert trainer.state.global_step == 9
    assert sum("Watching the margins failed" in str(w.message) for w in said) == 1


@pytest.mark.parametrize("size", ["50GB", "10KB"])
def test_folders_of_pretrained_models(tmp_path, size):
    net, copy = make_net(), make_net(seed=3)
    net.save_pretrained(tmp_path, max_shard_size=size)
    shards = len(list(tmp_path.glob("*.safetensors")))
    assert shards == 1 if size == "50GB" else shards > 2
    nm.load_weights(copy, tmp_path)
    for name, value in net.state_dict().items():
        assert torch.equal(value, copy.state_dict()[name])
    # The body alone finds itself under its prefix.
    nm.load_weights(body := make_net(seed=4).bert, tmp_path)
    assert torch.equal(body.pooler.dense.weight, net.bert.pooler.dense.weight)


def test_what_we_save_transformers_reads(tmp_path):
    net = make_net()
    net.config.save_pretrained(tmp_path)
    nm.save_weights(net, tmp_path / "model.safetensors")
    copy = type(net).from_pretrained(tmp_path)
    assert torch.equal(copy.classifier.weight, net.classifier.weight)


def test_bad_arguments(tmp_path):
    trainer = make_trainer(tmp_path, make_net(), epochs=1)
    with pytest.raises(nm.ArgumentError, match='unit must be "epoch" or "step"'):
        nm.callbacks.TransformersMarginCallback(trainer, tokens(40), unit="batch")
    trainer.add_callback(nm.callbacks.TransformersMarginCallback(trainer, iter([])))
    with pytest.raises(nm.DataError, match="read only once"):
        trainer.train()
