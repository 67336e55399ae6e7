"""Weights in files that other people's training wrote, of torch and of the format safetensors: read,
written, and refused with a sentence where they are hostile.
"""

import json
import os
import pickle
import struct

import pytest
import safetensors.torch
import torch
from torch import nn

import netmargin as nm
from netmargin.page.runs import read_run


def make_net(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def same(a: nn.Module, b: nn.Module) -> bool:
    other = b.state_dict()
    return all(torch.equal(value, other[name]) for name, value in a.state_dict().items())


def renamed(state: dict, prefix: str) -> dict:
    return {prefix + name: value for name, value in state.items()}


def lightning(state: dict) -> dict:
    held = renamed(state, "model.") | {"loss.weight": torch.ones(2)}
    return {
        "epoch": 4,
        "global_step": 80,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": held,
        "loops": {"fit": {"n": 1}},
    }


OPTIMIZER = {
    "state": {0: {"momentum_buffer": torch.ones(2)}},
    "param_groups": [{"lr": 0.1, "params": [0]}],
}

USUAL = {
    "a state dict": (lambda s: s, None),
    "state_dict": (lambda s: {"state_dict": s}, "under the key 'state_dict'"),
    "model_state_dict with more": (
        lambda s: {
            "epoch": 3,
            "optimizer_state_dict": OPTIMIZER,
            "model_state_dict": s,
            "loss": 0.1,
        },
        "under the key 'model_state_dict'",
    ),
    "a key of one's own": (lambda s: {"best": s, "epoch": 3}, "under the key 'best'"),
    "DataParallel": (
        lambda s: renamed(s, "module."),
        "names such as 'module.0.weight' were read as '0.weight'",
    ),
    "torch.compile": (lambda s: renamed(s, "_orig_mod."), "'_orig_mod.0.weight' were read"),
    "a compiled part": (
        lambda s: {n.replace("0.", "0._orig_mod."): v for n, v in s.items()},
        "'0._orig_mod.weight' were read as '0.weight'",
    ),
    "a module around": (lambda s: renamed(s, "model."), "'model.0.weight' were read"),
    "all at once": (
        lambda s: {"state_dict": renamed(s, "module._orig_mod.model.")},
        "'module._orig_mod.model.0.weight' were read as '0.weight'",
    ),
    "Lightning": (lightning, "1 other tensors, such as loss.weight, were left aside"),
}


@pytest.mark.parametrize("kind", USUAL)
def test_usual_checkpoints_are_unwrapped_and_said_so(tmp_path, kind, recwarn):
    wrap, said = USUAL[kind]
    torch.save(wrap(make_net().state_dict()), tmp_path / "file.pt")
    loaded = make_net(seed=1)
    nm.load_weights(loaded, tmp_path / "file.pt")
    assert same(loaded, make_net())
    messages = [str(w.message) for w in recwarn if "file.pt" in str(w.message)]
    assert (said is None and not messages) or (len(messages) == 1 and said in messages[0])


class Hostile:
    def __reduce__(self):
        return (print, ("executed",))


def spoiled(state: dict, value: float) -> dict:
    state["3.weight"] = state["3.weight"].clone()
    state["3.weight"][0, 1] = value
    return state


REFUSED = {
    "an optimizer only": (
        lambda s: {"optimizer": OPTIMIZER, "epoch": 3},
        ["'optimizer', 'epoch'", "0.weight"],
    ),
    "another net": (
        lambda s: {"encoder.weight": s["0.weight"]},
        ["belongs to another model", "'encoder.weight'"],
    ),
    "half of the layers missing": (lambda s: dict(list(s.items())[:5]), ["is missing in the file"]),
    "one layer more": (
        lambda s: {"state_dict": s | {"9.weight": torch.ones(2)}},
        ["9.weight is unknown to the model"],
    ),
    "other shapes": (
        lambda s: {"model": renamed(s | {"0.weight": torch.ones(2, 2)}, "module.")},
        ["shape (2, 2) in the file"],
    ),
    "NaN": (lambda s: spoiled(s, float("nan")), ["1 of the 8 values of 3.weight are NaN"]),
    "infinity": (
        lambda s: {"state_dict": spoiled(s, float("inf"))},
        ["1 of the 8 values of 3.weight"],
    ),
    "nothing": (lambda s: {}, ["it holds nothing"]),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_other_files_are_refused_by_what_they_hold(tmp_path, kind):
    wrap, sentences = REFUSED[kind]
    torch.save(wrap(make_net().state_dict()), tmp_path / "file.pt")
    model = make_net(seed=1)
    with pytest.raises(nm.CheckpointError) as refused:
        nm.load_weights(model, tmp_path / "file.pt")
    assert all(sentence in str(refused.value) for sentence in sentences), str(refused.value)
    assert same(model, make_net(1))


@pytest.mark.parametrize("where", ["alone", "beside the weights"])
def test_objects_that_run_code_stay_refused(tmp_path, where, capsys):
    state = {"state_dict": make_net().state_dict()} | (
        {"hyper": Hostile()} if where == "beside the weights" else {"state_dict": Hostile()}
    )
    torch.save(state, tmp_path / "file.pt")
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(state))
    for name in ("file.pt", "plain.pkl"):
        with pytest.raises(nm.CheckpointError, match="Refused|not a PyTorch file"):
            nm.load_weights(make_net(), tmp_path / name)
    assert "executed" not in capsys.readouterr().out


def test_a_flipped_bit_is_found_in_weights_and_in_the_checkpoint_of_a_run(tmp_path, digits):
    """torch reads such a file without a word: a weight of -0.02 became -6e36."""
    model = nm.models.mlp([64, 4, 10]).double()
    nm.train(model, digits, until=nm.Epochs(1), checkpoint_dir=tmp_path, progress=False)
    path = tmp_path / "checkpoint.pt"
    content = bytearray(path.read_bytes())
    content[content.find(model[0].weight.detach().numpy().tobytes()[:64]) + 7] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(nm.CheckpointError, match="check sum"):
        nm.load_weights(model, path)
    with pytest.raises(nm.CheckpointError, match="check sum"):
        nm.train(model, digits, until=nm.Epochs(2), checkpoint_dir=tmp_path, progress=False)


def test_the_checkpoint_of_a_run_holds_its_weights(tmp_path, digits, recwarn):
    model = nm.models.mlp([64, 4, 10]).double()
    nm.train(model, digits, until=nm.Epochs(1), checkpoint_dir=tmp_path, progress=False)
    other = nm.models.mlp([64, 4, 10]).double()
    nm.load_weights(other, tmp_path / "checkpoint.pt")
    assert torch.equal(model[0].weight, other[0].weight)
    assert not [w for w in recwarn if "checkpoint.pt" in str(w.message)]


def test_what_is_saved_is_loaded(tmp_path):
    net, copy = make_net(), make_net(1)
    path = nm.save_weights(net, tmp_path / "new" / "net.safetensors")
    nm.load_weights(copy, path)
    assert same(net, copy)
    assert set(safetensors.torch.load_file(path)) == set(net.state_dict())


def test_wrappers_are_taken_off(tmp_path):
    net, copy = make_net(), make_net(1)
    nm.load_weights(copy, nm.save_weights(nn.DataParallel(net), tmp_path / "a.safetensors"))
    assert same(net, copy)


def test_files_of_others_are_unwrapped(tmp_path):
    net, copy = make_net(), make_net(1)
    path = tmp_path / "a.safetensors"
    safetensors.torch.save_file({f"model.{k}": v for k, v in net.state_dict().items()}, path)
    with pytest.warns(UserWarning, match="names such as 'model"):
        nm.load_weights(copy, path)
    assert same(net, copy)


class Tied(nn.Module):
    """Two layers that are the same, and one that is a view of a larger tensor."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = self.first
        self.third = nn.Linear(3, 3)
        self.third.weight = self.first.weight
        self.fourth = nn.Linear(3, 3)
        self.fourth.weight.data = torch.randn(3, 6).T[::2]

    def forward(self, x):
        return self.fourth(self.third(self.second(self.first(x))))


def test_tied_weights_and_views(tmp_path):
    net, copy = Tied(), Tied()
    path = nm.save_weights(net, tmp_path / "a.safetensors")
    assert len(safetensors.torch.load_file(path)) == 5  # of nine names
    nm.load_weights(copy, path)
    assert same(net, copy)
    assert copy.third.weight is copy.first.weight
    untied = Tied()
    untied.third.weight = nn.Parameter(torch.randn(3, 3))
    with pytest.raises(nm.CheckpointError, match="third.weight is missing"):
        nm.load_weights(untied, path)


def write_shards(folder, net):
    """A folder as Hugging Face's `save_pretrained` writes large models."""
    state = net.state_dict()
    names = list(state)
    parts = {"a-1.safetensors": names[:3], "a-2.safetensors": names[3:]}
    for shard, held in parts.items():
        safetensors.torch.save_file({name: state[name] for name in held}, folder / shard)
    index = {"metadata": {}, "weight_map": {n: s for s, held in parts.items() for n in held}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return index


def test_shards_by_index_and_by_folder(tmp_path):
    net = make_net()
    write_shards(tmp_path, net)
    for path in (tmp_path, tmp_path / "model.safetensors.index.json"):
        copy = make_net(1)
        nm.load_weights(copy, path)
        assert same(net, copy)


@pytest.mark.parametrize("name", ["model.safetensors", "adapter.safetensors", "pytorch_model.bin"])
def test_a_folder_with_one_file(tmp_path, name):
    net, copy = make_net(), make_net(1)
    if name.endswith("bin"):
        torch.save(net.state_dict(), tmp_path / name)
    else:
        nm.save_weights(net, tmp_path / name)
    (tmp_path / "config.json").write_text("{}")
    nm.load_weights(copy, tmp_path)
    assert same(net, copy)


def test_folders_that_do_not_say_which(tmp_path):
    with pytest.raises(
        nm.CheckpointError, match="path names the folder .*, which holds no weights; looked for"
    ):
        nm.load_weights(make_net(), tmp_path)
    for name in "ab":
        nm.save_weights(make_net(), tmp_path / f"{name}.safetensors")
    with pytest.raises(nm.CheckpointError, match="holds 2 files of weights.*Give the file itself"):
        nm.load_weights(make_net(), tmp_path)


def pack(header, data=b""):
    """A file with this header, given as an object or as bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


ROW = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
HOSTILE = {
    "empty": b"",
    "cut in the length": b"\x01\x00",
    "no header": struct.pack("<Q", 0),
    "header beyond the file": struct.pack("<Q", 1000) + b"{}",
    "header of 2^63 bytes": struct.pack("<Q", 2**63) + b"{}",
    "header of no text": pack(b"\xff\xfe\x00\x01"),
    "header of no json": pack(b"{not json}"),
    "header is a list": pack([1, 2]),
    "header nests deeply": pack(b"[" * 100_000),
    "unknown type": pack({"w": ROW | {"dtype": "F3"}}, bytes(8)),
    "offsets beyond the file": pack({"w": ROW | {"data_offsets": [0, 800]}}, bytes(8)),
    "offsets go backwards": pack({"w": ROW | {"data_offsets": [8, 0]}}, bytes(8)),
    "offsets are negative": pack({"w": ROW | {"data_offsets": [-8, 0]}}, bytes(8)),
    "tensors overlap": pack({"v": ROW, "w": ROW | {"data_offsets": [4, 12]}}, bytes(12)),
    "a hole between tensors": pack({"v": ROW, "w": ROW | {"data_offsets": [16, 24]}}, bytes(24)),
    "shape of another size": pack({"w": ROW | {"shape": [3]}}, bytes(8)),
    "shape overflows": pack({"w": ROW | {"shape": [2**40, 2**40]}}, bytes(8)),
    "data after the end": pack({"w": ROW}, bytes(99)),
    "a pickle": b"\x80\x04\x95" + bytes(30),
    "a zip": b"PK\x03\x04" + bytes(30),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused_with_a_sentence(tmp_path, content):
    net = make_net()
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(nm.CheckpointError, match="damaged or no safetensors file.*Restore it"):
        nm.load_weights(net, path)
    assert same(net, make_net())


def test_missing_and_foreign_files(tmp_path):
    with pytest.raises(nm.CheckpointError, match="Cannot read.*No such file"):
        nm.load_weights(make_net(), tmp_path / "none.safetensors")
    path = nm.save_weights(nn.Linear(7, 7), tmp_path / "a.safetensors")
    with pytest.raises(nm.CheckpointError, match="belongs to another model"):
        nm.load_weights(make_net(), path)
    bad = make_net()
    bad[0].weight.data[0, 0] = float("nan")
    with pytest.raises(nm.CheckpointError, match="1 of the 12 values of 0.weight are NaN"):
        nm.load_weights(make_net(), nm.save_weights(bad, tmp_path / "b.safetensors"))


INDICES = {
    "no json": (b"{", "no index of shards"),
    "no text": (b"\xff\xfe", "no index of shards"),
    "nests deeply": (b"[" * 100_000, "no index of shards"),
    "a list": (b"[]", 'no "weight_map"'),
    "an empty map": (b'{"weight_map": {}}', 'no "weight_map"'),
    "a path upwards": (b'{"weight_map": {"w": "../x.safetensors"}}', "Refused.*trust"),
    "a path of the machine": (b'{"weight_map": {"w": "/etc/x.safetensors"}}', "Refused.*trust"),
    "a file of another kind": (b'{"weight_map": {"w": "pickle.bin"}}', "Refused.*trust"),
    "no name": (b'{"weight_map": {"w": 3}}', "Refused.*trust"),
    "a shard that is not there": (b'{"weight_map": {"w": "x.safetensors"}}', "Cannot read"),
}


@pytest.mark.parametrize(("content", "sentence"), INDICES.values(), ids=INDICES)
def test_hostile_indices_are_refused_with_a_sentence(tmp_path, content, sentence):
    (tmp_path / "model.safetensors.index.json").write_bytes(content)
    with pytest.raises(nm.CheckpointError, match=sentence):
        nm.load_weights(make_net(), tmp_path)


def test_an_index_of_other_shards(tmp_path):
    index = write_shards(tmp_path, make_net())
    index["weight_map"]["0.weight"] = "a-2.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(nm.CheckpointError, match="says that a-2.safetensors holds 0.weight"):
        nm.load_weights(make_net(), tmp_path)


def test_where_weights_cannot_be_saved(tmp_path):
    with pytest.raises(nm.ArgumentError, match=r"path must end in \.safetensors"):
        nm.save_weights(make_net(), tmp_path / "net.pt")
    with pytest.raises(nm.ArgumentError, match="path must be a path"):
        nm.save_weights(make_net(), 3)
    (tmp_path / "file").write_text("")
    with pytest.raises(nm.CheckpointError, match="Cannot write"):
        nm.save_weights(make_net(), tmp_path / "file" / "net.safetensors")


def test_the_page_of_a_run_reads_its_newest_weights(tmp_path):
    """A run that was ended, continued and killed has a checkpoint newer than its final weights."""
    old, new = make_net(), make_net(1)
    (tmp_path / "history.jsonl").write_text('{"epoch": 0}\n')
    nm.save_weights(old, tmp_path / "model.safetensors")
    torch.save(new.state_dict(), tmp_path / "checkpoint.pt")
    os.utime(tmp_path / "model.safetensors", (1, 1))
    assert same(read_run(tmp_path).load_into(make_net(2)), new)
    os.utime(tmp_path / "checkpoint.pt", (0, 0))
    assert same(read_run(tmp_path).load_into(make_net(2)), old)
