"""Memory that runs out in a pass: an error of ours, which names a batch size that does."""

import copy
import re

import pytest
import torch
from torch import nn

import netmargin as nm

X = torch.randn(300, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


class Bounded(nn.Module):
    """A net for whom more than `most` samples at once are too many, forwards or backwards."""

    def __init__(self, most: int, *, backwards: bool = False):
        super().__init__()
        torch.manual_seed(0)
        self.net = nm.models.mlp([4, 10, 2], bias="none").double()
        self.most, self.backwards = most, backwards

    def forward(self, x):
        if not self.backwards:
            self.require_room(len(x))
        out = self.net(x)
        if self.backwards and out.requires_grad:
            out.register_hook(lambda gradient: self.require_room(len(gradient)))
        return out

    def require_room(self, samples: int) -> None:
        if samples > self.most:
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of"
                " 7.79 GiB of which 1.20 GiB is free."
            )


with torch.no_grad():
    DATA = (X, Bounded(300).net(X).argmax(1))

ENTRIES = {
    "measure": (200, nm.measure, {}),
    "train": (100, nm.train, {"until": nm.Epochs(1), "progress": False}),
    "input_margins": (100, nm.input_margins, {"progress": False}),
    "robustness": (100, nm.robustness, {"progress": False, "effort": "quick", "attacks": False}),
    "certify": (64, nm.certify, {}),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_batch_size_to_try_does(entry, backwards):
    used, call, options = ENTRIES[entry]
    if backwards and entry in ("measure", "robustness"):
        pytest.skip("it has no backward pass here")
    net = Bounded(used // 2, backwards=backwards)
    with pytest.raises(nm.OutOfMemoryError, match=r"tried to allocate 2.00 GiB") as caught:
        call(net, DATA, **options)
    assert f"does not suffice for {used} samples" in str(caught.value)
    (advised,) = map(int, re.findall(r"Try batch_size=(\d+)", str(caught.value)))
    assert advised == used // 4
    call(net, DATA, batch_size=advised, **options)


def test_batches_of_a_loader_are_named_by_their_own_size():
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*DATA), batch_size=120)
    for call in (nm.measure, nm.input_margins):
        with pytest.raises(nm.OutOfMemoryError, match=r"120 samples .* batch_size=30 \(that of"):
            call(Bounded(60), loader)


def test_below_a_single_sample_there_is_no_batch_size():
    with pytest.raises(nm.OutOfMemoryError, match="No batch is smaller"):
        nm.measure(Bounded(0), DATA, batch_size=1)


def test_training_measures_fewer_samples_at_once_where_it_has_to():
    rows = [
        nm.train(
            Bounded(most), DATA, batch_size=40, until=nm.Epochs(2), lr=0.01, progress=False
        ).rows
        for most in (40, 300)
    ]
    for bounded, free in zip(*rows, strict=True):
        assert bounded["log_loss"] == pytest.approx(free["log_loss"], rel=1e-12)


def test_training_is_put_back_and_saved(tmp_path):
    net = Bounded(100)
    before = copy.deepcopy(net.net.state_dict())
    history = nm.train(
        net, DATA, until=nm.Epochs(2), lr=0.01, checkpoint_dir=tmp_path / "whole", progress=False
    )
    net.net.load_state_dict(before)
    calls = iter(range(8))

    def shrink(module, inputs):
        if module.training and len(inputs[0]) > 2 and next(calls) == 5:  # in the second epoch
            module.most = 60

    handle = net.register_forward_pre_hook(shrink)
    folder = tmp_path / "run"
    with pytest.raises(nm.OutOfMemoryError, match=r"batch_size=25.*saved in .*; another batch si"):
        nm.train(net, DATA, until=nm.Epochs(2), lr=0.01, checkpoint_dir=folder, progress=False)
    handle.remove()
    net.most = 100
    assert nm.History.load(folder / "history.jsonl").rows == history.rows[:2]
    report = nm.measure(net, DATA, batch_size=100)
    assert report.log_loss == history.rows[1]["log_loss"]
    found = nm.train(net, DATA, until=nm.Epochs(2), lr=0.01, checkpoint_dir=folder, progress=False)
    assert found.rows == history.rows


def test_the_allocator_of_the_cpu_is_understood():
    class Absurd(nn.Linear):
        def forward(self, x):
            # 2^41 bytes for a sample: more than addresses from some samples on.
            return super().forward(x) + torch.empty(len(x), 2**38, dtype=torch.float64)[:, :2]

    with pytest.raises(nm.OutOfMemoryError, match=r"200 samples .*allocate \d+ bytes.*size=50"):
        nm.measure(Absurd(4, 2).double(), DATA)
    with pytest.raises(nm.OutOfMemoryError, match="a function without batch_size"):
        nm.maximize_margin(Absurd(4, 2).double(), DATA, progress=False)
