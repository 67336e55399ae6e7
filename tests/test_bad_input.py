"""What people get wrong: each is an error that names what, where and what to do."""

import os
import pickle
import re
import resource
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse
import torch
from filelock import FileLock
from torch import nn

import netmargin as nm
from netmargin.models import mlp

NET = mlp([3, 6, 2])
X, Y = torch.randn(8, 3), torch.arange(8) % 2


def with_value(value: float) -> torch.Tensor:
    changed = X.clone()
    changed[5, 1] = value
    return changed


def net_with(value: float) -> nn.Module:
    model = mlp([3, 6, 2])
    model[2].weight.data[0, 0] = value
    return model


def zero_net() -> nn.Module:
    model = mlp([3, 6, 2])
    for parameter in model.parameters():
        parameter.data.zero_()
    return model


class LoaderOfOnesOwn(torch.utils.data.DataLoader):
    """One that is read as it is: others are measured to their last row."""


empty_loader = LoaderOfOnesOwn(torch.utils.data.TensorDataset(X, Y), batch_size=20, drop_last=True)
BAD_DATA = {
    "NaN in the data": (
        (with_value(float("nan")), Y),
        "NaN or infinite values in 1 of 8 samples, first sample 5",
    ),
    "infinity in the data": ((with_value(float("inf")), Y), "first sample 5"),
    "NaN in a stream": ([(X, Y), (with_value(float("nan")), Y)], "batch 1"),
    "no samples": ((X[:0], Y[:0]), "no samples"),
    "a loader that yields nothing": (
        torch.utils.data.TensorDataset(X[:0], Y[:0]),
        "yielded nothing",
    ),
    "a loader that drops its only batch": (empty_loader, "drop_last=False"),
    "batches that are not pairs": ([X, X, X], "Batch 0 is not a pair"),
    "not data at all": (3, "pair"),
    "text": ((X, ["a"] * 8), "y cannot be read|All labels are 'a'.*class_names"),
    "labels of a regression": ((X, torch.randn(8)), "whole numbers"),
    "NaN labels": ((X, torch.full((8,), float("nan"))), "holds nan in place of a value"),
    "labels out of range": ((X, Y + 1), "takes class indices 0 to 1 as labels; found 2"),
    "more classes than outputs": ((X, torch.arange(8)), "as many outputs as there are classes"),
    "too few labels": ((X, Y[:7]), "8 samples but y has shape"),
    "one-hot labels": (
        (X, torch.nn.functional.one_hot(Y)),
        "One label per sample|one label per sample",
    ),
    "inputs of a wrong shape": ((X[:, :2], Y), "could not process a batch of shape"),
    "integer inputs": ((torch.ones(8, 3, dtype=torch.uint8), Y), "X.float"),
    "data on the meta device": ((X.to("meta"), Y), "meta"),
}
BAD_MODELS = {
    "NaN in the parameters": (net_with(float("nan")), "'2.weight' holds NaN"),
    "infinity in the parameters": (net_with(float("inf")), "'2.weight' holds NaN or infinite"),
    "a model on the meta device": (mlp([3, 2]).to("meta"), "meta"),
    "a model without parameters": (nn.Flatten(), "no parameters"),
    "all-zero parameters": (zero_net(), "All parameters are zero"),
    "scores of a wrong shape": (
        nn.Sequential(nn.Linear(3, 4), nn.Unflatten(1, (2, 2))),
        r"returned shape \(., 2, 2\) for . inputs: several rows of scores per sample",
    ),
    "too few scores": (nn.Sequential(nn.Linear(3, 4), nn.Flatten(0)), "Scores must have shape"),
}
BAD = {
    "outputs that overflow": (net_with(3e38), (X * 1e3, Y), nm.ModelError, "outputs"),
    "class indices for one output": (
        mlp([3, 1]),
        (X, torch.arange(8) % 3),
        nm.DataError,
        "one output takes labels",
    ),
    "two codings mixed": (mlp([3, 1]), (X, [-1, 0] * 4), nm.DataError, "one output takes labels"),
    "a model that returns a tuple": (
        nn.LSTM(3, 2),
        (X[:, None], Y),
        nm.ModelError,
        r"several rows of scores per sample(?s:.*)scores=lambda out: out\[0\]\[:, -1\]",
    ),
}
BAD |= {name: (NET, data, nm.DataError, said) for name, (data, said) in BAD_DATA.items()}
BAD |= {name: (net, (X, Y), nm.ModelError, said) for name, (net, said) in BAD_MODELS.items()}


@pytest.mark.parametrize("name", BAD)
def test_measure_and_train_refuse(name):
    model, data, error, message = BAD[name]
    with pytest.raises(error, match=message):
        nm.measure(model, data)
    before = [p.clone() for p in model.parameters()]
    with pytest.raises(error, match=message):
        nm.train(model, data, until=nm.Epochs(1), progress=False)
    if not any(p.is_meta for p in model.parameters()):
        assert all(torch.equal(a, b, ) or a.isnan().any() for a, b in zip(before, model.parameters(), strict=True))  # fmt: skip


@pytest.mark.parametrize("count", [1, 5])
def test_one_class_is_measured_but_not_trained(count):
    data = (X[:count], torch.ones(count))
    assert nm.measure(NET, data).n == count
    with pytest.raises(nm.DataError, match="at least two classes"):
        nm.train(NET, data, until=nm.Epochs(1), progress=False)


def test_a_generator_cannot_be_trained_on():
    with pytest.raises(nm.DataError, match="read only once"):
        nm.train(NET, ((X, Y) for _ in range(2)), until=nm.Epochs(1), progress=False)


class RunsCode:
    def __reduce__(self):
        return os.system, ("touch hostile",)


def run(folder, epochs=2, model=None, data=(X, Y), **options):
    torch.manual_seed(0)
    return nm.train(
        model or mlp([3, 6, 2]),
        data,
        until=nm.Epochs(epochs),
        checkpoint_dir=folder,
        progress=False,
        **options,
    )


def test_hostile_and_damaged_checkpoints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(tmp_path)
    good = (tmp_path / "checkpoint.pt").read_bytes()
    damaged = {
        "hostile": pickle.dumps(RunsCode(), protocol=2),
        "truncated": good[: len(good) // 2],
        "text": b"hello",
        "empty": b"",
        "odd pickles": b"\x80\x02.",
        "more odd pickles": b"\x80\x02\x85.",
    }
    for content in damaged.values():
        (tmp_path / "checkpoint.pt").write_bytes(content)
        with pytest.raises(nm.CheckpointError, match="checkpoint.pt"):
            run(tmp_path, 4)
        with pytest.raises(nm.CheckpointError, match="checkpoint.pt"):
            nm.load_weights(mlp([3, 6, 2]), tmp_path / "checkpoint.pt")
        assert (tmp_path / "checkpoint.pt").read_bytes() == content
    torch.save({"model": RunsCode()}, tmp_path / "zip.pt")
    with pytest.raises(nm.CheckpointError, match="could run code"):
        nm.load_weights(mlp([3, 6, 2]), tmp_path / "zip.pt")
    torch.save(mlp([3, 6, 2]), tmp_path / "whole.pt")
    with pytest.raises(nm.CheckpointError, match="state_dict"):
        nm.load_weights(mlp([3, 6, 2]), tmp_path / "whole.pt")
    torch.save([torch.ones(2)], tmp_path / "list.pt")
    with pytest.raises(nm.CheckpointError, match="not a state dict"):
        nm.load_weights(mlp([3, 6, 2]), tmp_path / "list.pt")
    with pytest.raises(nm.CheckpointError, match="No such file"):
        nm.load_weights(mlp([3, 6, 2]), tmp_path / "absent.pt")
    assert not (tmp_path / "hostile").exists()
    torch.save({"netmargin_format": 1, "model": 3}, tmp_path / "checkpoint.pt")
    with pytest.raises(nm.CheckpointError, match="not a checkpoint of a netmargin run"):
        run(tmp_path, 4)
    (tmp_path / "checkpoint.pt").write_bytes(good)
    assert len(run(tmp_path, 4)) == 5


def test_a_checkpoint_of_another_run_is_left_alone(tmp_path):
    run(tmp_path)
    saved = (tmp_path / "checkpoint.pt").read_bytes()
    with pytest.raises(nm.CheckpointError, match="model was"):
        run(tmp_path, model=mlp([3, 7, 2]))
    with pytest.raises(nm.CheckpointError, match="seed was 0, now 1"):
        run(tmp_path, seed=1)
    with pytest.raises(nm.CheckpointError, match="data was"):
        run(tmp_path, data=(X + 1, Y))
    with pytest.raises(nm.CheckpointError, match="already holds a run"):
        run(tmp_path, resume="never")
    with pytest.raises(
        nm.CheckpointError,
        match=r"size mismatch for 0.weight.*\[6, 3\].*\[7, 3\]",
    ):
        nm.load_weights(mlp([3, 7, 2]), tmp_path / "checkpoint.pt")
    with pytest.raises(nm.CheckpointError, match="Unexpected key.*2.weight"):
        nm.load_weights(mlp([3, 2]), tmp_path / "checkpoint.pt")
    assert (tmp_path / "checkpoint.pt").read_bytes() == saved
    (tmp_path / "history.jsonl").write_text("")
    with pytest.raises(nm.CheckpointError, match="shorter than its checkpoint says"):
        run(tmp_path, 4)


@contextmanager
def files_limited_to(size: int):
    """Writing more than `size` bytes to any file fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.nightly_cases("6000")
@pytest.mark.slow
@pytest.mark.parametrize(("width", "which"), [(6, "history.jsonl"), (6000, "checkpoint.pt")])
def test_a_full_disk_loses_nothing_saved(tmp_path, width, which):
    def go_on(folder, epochs):
        torch.manual_seed(0)
        return run(folder, epochs, mlp([3, width, 2]))

    whole = go_on(tmp_path / "whole", 60)
    go_on(tmp_path / "run", 30)
    saved = (tmp_path / "run/checkpoint.pt").read_bytes()
    room = (tmp_path / "run/history.jsonl").stat().st_size + 1000
    room = room if which == "history.jsonl" else len(saved) // 2
    with (
        files_limited_to(room),
        pytest.raises(nm.CheckpointError, match=f"Cannot write.*{which}.*Free some space"),
    ):
        go_on(tmp_path / "run", 60)
    assert (tmp_path / "run/checkpoint.pt").read_bytes() == saved
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        ".lock",
        "checkpoint.pt",
        "history.jsonl",
    ]
    assert go_on(tmp_path / "run", 60).rows == whole.rows


def test_an_unwritable_folder_is_found_before_training_starts(tmp_path):
    (tmp_path / "file").write_text("in the way")
    model = mlp([3, 6, 2])
    before = model[0].weight.clone()
    with pytest.raises(nm.CheckpointError, match="choose a writable folder"):
        nm.train(
            model,
            (X, Y),
            until=nm.Epochs(2),
            checkpoint_dir=tmp_path / "file" / "run",
            progress=False,
        )
    assert torch.equal(before, model[0].weight)


def test_two_processes_do_not_train_in_one_folder(tmp_path):
    run(tmp_path)
    saved = (tmp_path / "history.jsonl").read_bytes()
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(nm.CheckpointError, match="Another process is training in"),
    ):
        run(tmp_path, epochs=4)
    assert (tmp_path / "history.jsonl").read_bytes() == saved
    assert run(tmp_path, epochs=4).rows[-1]["epoch"] == 4


def test_history_with_a_torn_last_line(tmp_path):
    history = run(tmp_path, 3)
    with open(tmp_path / "history.jsonl", "a") as file:
        file.write('{"epoch": 4, "log1')
    assert nm.History.load(tmp_path / "history.jsonl").rows == history.rows
    assert len(run(tmp_path, 5)) == 6
    (tmp_path / "other.jsonl").write_text("not json\n")
    with pytest.raises(nm.CheckpointError, match="not a history"):
        nm.History.load(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    "make",
    [lambda: nm.ConstantLR(0), lambda: nm.LossBasedLR(alpha=-1), lambda: mlp([3, 2], bias="some")],
)
def test_wrong_settings(make):
    with pytest.raises(ValueError, match="must|need"):
        make()


def test_wrong_arguments():
    for size in (0, -5):
        with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1"):
            nm.measure(NET, (X, Y), batch_size=size)
        with pytest.raises(ValueError, match="batch_size must be a whole number of at least 1"):
            nm.train(NET, (X, Y), batch_size=size, progress=False)
    with pytest.raises(ValueError, match="no stopping rule"):
        nm.train(NET, (X, Y), until=[], progress=False)


def test_a_history_without_its_checkpoint_is_not_overwritten(tmp_path):
    run(tmp_path)
    (tmp_path / "checkpoint.pt").unlink()
    before = (tmp_path / "history.jsonl").read_bytes()
    with pytest.raises(nm.CheckpointError, match="another run.*no checkpoint"):
        run(tmp_path)
    assert (tmp_path / "history.jsonl").read_bytes() == before


def test_a_loss_that_is_undefined_at_a_margin_says_so():
    loss = nm.losses.Loss(
        torch.sqrt, lambda q: 0.5 / torch.sqrt(q), torch.square, name="e^{-sqrt q}"
    )
    with pytest.raises(nm.ModelError, match="e.{-sqrt q} is not defined at margin -"):
        nm.measure(NET, (X, Y), loss=loss)
    assert "only margins above that" in str(loss.check_b3())


def test_a_model_that_cannot_be_copied_says_so():
    net = mlp([3, 6, 2])
    net.rows = (row for row in X)
    for entry in (nm.certify, lambda *given: nm.gradient_flow(*given, time=1.0)):
        with pytest.raises(nm.ModelError, match="cannot be copied: TypeError.*generators"):
            entry(net, (X, Y))


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        (lambda *given, **named: nm.label_errors(*given[1:], **named), "label_errors((X, y))"),
        (nm.measure, "measure(model, (X, y))"),
        (nm.analyse, "analyse(model, (X, y))"),
        (nm.input_margins, "input_margins(model, (X, y))"),
        (nm.certify, "certify(model, (X, y))"),
        (nm.tangent_svm, "tangent_svm(model, (X, y))"),
        (nm.robustness, "robustness(model, (X, y))"),
        (nm.train, "train(model, (X, y))"),
        (nm.maximize_margin, "maximize_margin(model, (X, y))"),
        (nm.gradient_flow, "gradient_flow(model, (X, y))"),
        (nm.flow.gradient_descent, "gradient_descent(model, (X, y))"),
        (nm.regularization_path, "regularization_path(make_model, (X, y))"),
        (nm.Watch, "Watch(model, (X, y))"),
    ],
)
def test_samples_come_as_one_pair(entry, shown):
    """`nm.measure(net, X, y)` said that measure() takes 2 positional arguments."""
    net = mlp([3, 4, 2])
    for call in (lambda: entry(net, X, Y), lambda: entry(net, X, y=Y)):
        with pytest.raises(nm.ArgumentError, match=re.escape(f"as one pair: {shown}.")):
            call()


def test_labels_that_will_not_do_are_named_and_no_others():
    ten = torch.nn.Linear(3, 10)
    labels = torch.arange(len(X)) % 10
    labels[5] = 1_000_001
    with pytest.raises(nm.DataError, match="found 1000001. Recode"):
        nm.measure(ten, (X, labels))
    with pytest.raises(nm.DataError, match="found 10, 11, 12, 13, 14, 15, 16, 17 and 2 more. Rec"):
        nm.measure(ten, (torch.zeros(20, 3), torch.arange(20)))


@pytest.mark.slow
def test_warnings_point_at_the_callers_line():
    class Noisy(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) + torch.rand(len(x), 2)

    for entry in (nm.measure, nm.Watch, nm.input_margins, nm.train):
        with pytest.warns(UserWarning, match="noisy|single draws") as found:
            entry(Noisy(3, 2), (X, Y))
        assert {warned.filename for warned in found} == {__file__}


def test_images_whose_channels_are_last_or_missing_are_told_so():
    def net(channels):
        return nn.Sequential(nn.Conv2d(channels, 2, 3), nn.Flatten(), nn.LazyLinear(2))

    images, labels = torch.rand(8, 6, 6, 3), torch.arange(8) % 2
    for channels, X, said in ((3, images, "X.permute"), (1, images[..., 0], "X[:, None]")):
        model = net(channels)
        right = eval(said + "(0, 3, 1, 2)" * (channels == 3))
        model(right)
        with pytest.raises(nm.DataError, match=re.escape(said)):
            nm.measure(model, (X, labels))
        assert nm.measure(model, (right, labels)).n == 8


def test_a_place_that_cannot_be_written_is_not_called_full(tmp_path):
    report = nm.measure(NET, (X, Y))
    with pytest.raises(nm.CheckpointError, match="Check the path and its permissions") as raised:
        report.save("/proc/x.pt")
    assert "space" not in str(raised.value)


def test_text_and_sparse_matrices_are_told_how_to_be_numbers():
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 2
    solve, sparse = nm.solvers.linear_max_margin, scipy.sparse.csr_matrix(X)
    with pytest.raises(nm.DataError, match=r"np\.unique\(y, return_inverse=True\)"):
        solve(X, np.where(y > 0, "cat", "dog"))
    for call in (nm.label_errors, lambda data: solve(*data)):
        with pytest.raises(nm.DataError, match=r"Pass X\.toarray\(\)"):
            call((sparse, y))


def test_labels_that_begin_at_one_are_told_so():
    net, X = nm.models.mlp([4, 8, 3]), torch.randn(9, 4)
    with pytest.raises(nm.DataError, match="begin at 1: give y - 1"):
        nm.measure(net, (X, torch.arange(9) % 3 + 1))
    with pytest.raises(nm.DataError, match="Recode them"):
        nm.measure(net, (X, torch.arange(9) % 4))
