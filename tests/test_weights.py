"""Weights in files that others wrote: read, written, and refused where they are hostile."""

import argparse
import base64
import json
import os
import pickle
import struct

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn
from torch.nn.utils import prune

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
    "half of the layers missing": (
        lambda s: dict(list(s.items())[:5]),
        ['Missing key(s) in state_dict: "1.running_var"'],
    ),
    "one layer more": (
        lambda s: {"state_dict": s | {"9.weight": torch.ones(2)}},
        ['Unexpected key(s) in state_dict: "9.weight"', "pass strict=False"],
    ),
    "other shapes": (
        lambda s: {"model": renamed(s | {"0.weight": torch.ones(2, 2)}, "module.")},
        ["size mismatch for 0.weight", "that the file was saved from."],
    ),
    "NaN": (lambda s: spoiled(s, float("nan")), ["Parameter '3.weight' holds NaN"]),
    "infinity": (
        lambda s: {"state_dict": spoiled(s, float("inf"))},
        ["Parameter '3.weight' holds NaN or infinite"],
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


def test_a_net_that_is_compiled_in_part_reads_plain_names(tmp_path):
    net, copy = make_net(), make_net(1)
    copy[0] = torch.compile(copy[0])
    with pytest.warns(UserWarning, match=r"'0.(weight|bias)' were read as '0._orig_mod"):
        nm.load_weights(copy, nm.save_weights(net, tmp_path / "a.safetensors"))
    assert torch.equal(copy[0]._orig_mod.weight, net[0].weight)
    nm.load_weights(third := make_net(2), nm.save_weights(copy, tmp_path / "b.safetensors"))
    assert same(net, third)


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
    with pytest.raises(nm.CheckpointError, match='Missing key.*"third.weight"'):
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
    with pytest.raises(nm.CheckpointError, match="damaged or no safetensors file.*restore it"):
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
    with pytest.raises(nm.CheckpointError, match="Parameter '0.weight' holds NaN"):
        nm.load_weights(make_net(), nm.save_weights(bad, tmp_path / "b.safetensors"))


def test_files_are_read_by_what_they_hold_or_called_so(tmp_path):
    net, copy = make_net(), make_net(1)
    nm.save_weights(net, tmp_path / "a.safetensors").rename(tmp_path / "a.pt")
    nm.load_weights(copy, tmp_path / "a.pt")
    assert same(net, copy)
    arrays = {name: value.numpy() for name, value in net.state_dict().items()}
    for held in (arrays, {"model": net.state_dict(), "accuracy": np.float64(0.9)}):
        torch.save(held, tmp_path / "b.pt")
        with pytest.raises(
            nm.CheckpointError, match=r"holds arrays or numbers of numpy.*float\("
        ) as e:
            nm.load_weights(copy, tmp_path / "b.pt")
        assert "damaged" not in str(e.value)


def test_other_weights_in_a_file_that_fit_are_named(tmp_path):
    net, copy, average = make_net(), make_net(1), make_net(2)
    path = tmp_path / "a.pt"
    torch.save({"model": net.state_dict(), "model_ema": average.state_dict(), "lr": {}}, path)
    other = r"the weights under 'model_ema' fit the model, too: torch.save\(torch.load\(path\)\['model_ema"
    with pytest.warns(UserWarning, match=f"found under the key 'model'; {other}"):
        nm.load_weights(copy, path)
    assert same(net, copy)
    wider = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
    torch.save({"model": wider.state_dict(), "model_ema": average.state_dict()}, path)
    with pytest.raises(nm.CheckpointError, match=f"size mismatch.*{other}"):
        nm.load_weights(copy, path)


PLAIN = {
    "pruned": (lambda net: prune.l1_unstructured(net, "weight", 2), "prune.remove"),
    "new weight_norm": (nn.utils.parametrizations.weight_norm, "remove_parametrizations"),
    "old weight_norm": (nn.utils.weight_norm, "remove_weight_norm"),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", PLAIN)
def test_weights_that_are_written_as_several_tensors(tmp_path, kind, bias):
    rewrite, undo = PLAIN[kind]
    plain, other = (nn.Sequential(nn.Linear(3, 2, bias=bias)) for _ in range(2))
    rewrite(other[0])
    torch.save(other.state_dict(), tmp_path / "other.pt")
    torch.save(plain.state_dict(), tmp_path / "plain.pt")
    with pytest.raises(
        nm.CheckpointError, match=rf"\.{undo} undoes that in its net before it is saved"
    ):
        nm.load_weights(plain, tmp_path / "other.pt")
    with pytest.raises(
        nm.CheckpointError, match=rf"\.{undo} undoes that in the model before loading"
    ):
        nm.load_weights(other, tmp_path / "plain.pt")
    older = nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 2, bias=bias)))
    if kind == "new weight_norm":
        with pytest.raises(nm.CheckpointError, match=f"{undo}.*remove_weight_norm"):
            nm.load_weights(older, tmp_path / "other.pt")


INDICES = {
    "no json": (b"{", "no index of shards"),
    "no text": (b"\xff\xfe", "no index of shards"),
    "nests deeply": (b"[" * 100_000, "no index of shards"),
    "a list": (b"[]", 'no "weight_map"'),
    "an empty map": (b'{"weight_map": {}}', 'no "weight_map"'),
    "a path upwards": (b'{"weight_map": {"w": "../x.safetensors"}}', "Refused.*trust"),
    "a path of the machine": (b'{"weight_map": {"w": "/etc/x.safetensors"}}', "Refused.*trust"),
    "a file of another kind": (b'{"weight_map": {"w": "pickle.pkl"}}', "Refused.*trust"),
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


class Renamed(nn.Module):
    """A module whose names were others once: `old.weight` and `old.bias`."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self._register_load_state_dict_pre_hook(self._rename)

    def _rename(self, state, prefix, *_):
        for part in ("weight", "bias"):
            if f"{prefix}old.{part}" in state:
                state[f"{prefix}layer.{part}"] = state.pop(f"{prefix}old.{part}")

    def forward(self, x):
        return self.layer(x)


class Versioned(nn.Module):
    """A module that keeps its weight transposed since version 2, and reads version 1 still."""

    _version = 2

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3))

    def _load_from_state_dict(self, state, prefix, metadata, *rest):
        if metadata.get("version", 1) < 2:
            state[f"{prefix}weight"] = state[f"{prefix}weight"].T
        super()._load_from_state_dict(state, prefix, metadata, *rest)

    def forward(self, x):
        return x @ self.weight


class Scaled(nn.Module):
    """A module whose scale is no tensor of its own, but extra state."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.register_buffer("steps", torch.tensor(3))
        self.register_buffer("mask", torch.tensor([True, False]))

    def get_extra_state(self):
        return self.scale

    def set_extra_state(self, state):
        self.scale = state

    def forward(self, x):
        scale = self.scale
        scale = scale["scale"] if isinstance(scale, dict) else scale
        return x * (scale if isinstance(scale, torch.Tensor) else len(scale) * 5)


def norm_by(function, seed):
    torch.manual_seed(seed)
    return nn.Sequential(function(nn.Linear(3, 2)), nn.ReLU())


def lazy_net(seed, filled):
    torch.manual_seed(seed)
    net = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU(), nn.Linear(4, 2))
    if filled:
        net(torch.ones(2, 3))
    return net.eval()


OWN_FORMS = {
    "BatchNorm without its counter": (
        lambda seed, _: make_net(seed).eval(),
        lambda state: {name: v for name, v in state.items() if "num_batches" not in name},
    ),
    "the older weight_norm": (
        lambda seed, old: norm_by(
            nn.utils.weight_norm if old else nn.utils.parametrizations.weight_norm, seed
        ),
        lambda state: state,
    ),
    "names changed by a hook": (
        lambda *_: nn.Sequential(Renamed()),
        lambda state: {name.replace("layer", "old"): value for name, value in state.items()},
    ),
    "lazy": (lazy_net, lambda state: state),
    "a form of its own, with its version": (lambda *_: Versioned(), lambda state: state),
    "extra state": (
        lambda seed, _: nn.Sequential(nn.Linear(3, 2), Scaled(b"1" * (seed + 1))),
        lambda state: state,
    ),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize("wrapped", [False, True], ids=["", "wrapped"])
@pytest.mark.parametrize("kind", OWN_FORMS)
def test_what_a_module_reads_itself_is_read(tmp_path, kind, wrapped, recwarn):
    make, change = OWN_FORMS[kind]
    net, copy, x = make(0, True), make(1, False), torch.randn(5, 3)
    state = change((nn.ModuleDict({"module": net}) if wrapped else net).state_dict())
    torch.save({"state_dict": state, "epoch": 3} if wrapped else state, tmp_path / "net.pt")
    nm.load_weights(copy, tmp_path / "net.pt")
    assert torch.equal(net(x), copy(x))
    assert wrapped == any("'state_dict'; names such as 'module." in str(w.message) for w in recwarn)


SCALES = {
    "a tensor": torch.tensor(2.5, dtype=torch.float64),
    "text": "three",
    "a dict of tensors": {"scale": torch.tensor([0.5, 4.0]), "steps": (1, None, {2: 0.1})},
}


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_extra_state_is_saved_and_loaded(tmp_path, scale):
    net = nn.Sequential(nn.Linear(3, 2), Scaled(scale))
    net[1].steps.fill_(7)
    net[1].mask.logical_not_()
    x = torch.randn(5, 3)
    nm.save_weights(nn.DataParallel(net), tmp_path / "a.safetensors")
    torch.save({"model": renamed(net.state_dict(), "module.")}, tmp_path / "a.pt")
    for name in ("a.safetensors", "a.pt"):
        copy = nn.Sequential(nn.Linear(3, 2), Scaled("other"))
        nm.load_weights(copy, tmp_path / name)
        assert torch.equal(net(x), copy(x))
        assert (copy[1].steps, copy[1].mask.tolist()) == (7, [False, True])
        assert (type(copy[1].scale), str(copy[1].scale)) == (type(scale), str(scale))
    # A file without it is of another model, or of an older form of this one.
    plain = {k: v for k, v in net.state_dict().items() if "extra" not in k}
    safetensors.torch.save_file(plain, tmp_path / "b.safetensors")
    copy = nn.Sequential(nn.Linear(3, 2), Scaled("other"))
    with pytest.raises(nm.CheckpointError, match="Missing.*1._extra_state.*strict=False"):
        nm.load_weights(copy, tmp_path / "b.safetensors")
    assert copy[1].steps == 3
    with pytest.warns(UserWarning, match="1 names, such as '1._extra_state', are not in the file"):
        nm.load_weights(copy, tmp_path / "b.safetensors", strict=False)
    assert (copy[1].steps, copy[1].scale) == (7, "other")


@pytest.mark.parametrize("held", [Hostile(), lambda: 3, {"deep": [np.float64(3)]}])
def test_extra_state_that_is_an_object_is_refused_at_saving(tmp_path, held, digits):
    net = nn.Sequential(nn.Linear(3, 2), Scaled(held))
    with pytest.raises(nm.CheckpointError, match="an extra state of the model holds objects"):
        nm.save_weights(net, tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "rest", [pickle.dumps({"1._extra_state": Hostile()}), b"no pickle", b"\x80\x02N."]
)
def test_hostile_extra_state_is_refused(tmp_path, rest, capsys):
    net = nn.Sequential(nn.Linear(3, 2), Scaled("one"))
    metadata = {"format": "pt", "netmargin": base64.b64encode(rest).decode()}
    plain = {k: v for k, v in net.state_dict().items() if "extra" not in k}
    safetensors.torch.save_file(plain, tmp_path / "a.safetensors", metadata=metadata)
    with pytest.raises(nm.CheckpointError, match="damaged or no safetensors file"):
        nm.load_weights(net, tmp_path / "a.safetensors")
    assert "executed" not in capsys.readouterr().out


class EndsHalfway(nn.Module):
    """A module that grows a buffer to the size of the file, and fails then."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.ones(2))
        self.notes = {"read": 0}

    def _load_from_state_dict(self, state, prefix, *_):
        self.seen = state[f"{prefix}seen"] * 2
        self.notes["read"] = 1
        raise KeyError("layout")


FAILING = {
    "a shape at the end": (
        lambda: lazy_net(1, filled=False),
        lambda net: lazy_net(0, filled=True).state_dict() | {"3.bias": torch.ones(3)},
        "size mismatch for 3.bias",
    ),
    "NaN at the end": (
        lambda: lazy_net(1, filled=False),
        lambda net: lazy_net(0, True).state_dict() | {"3.bias": torch.full((2,), torch.nan)},
        "Parameter '3.bias' holds NaN",
    ),
    "beyond half precision": (
        lambda: make_net().half(),
        lambda net: net.state_dict() | {"3.bias": torch.full((2,), 1e6)},
        "Parameter '3.bias' holds NaN or infinite",
    ),
    "a tensor too many": (
        lambda: nn.Sequential(Scaled("one"), nn.Linear(3, 2)),
        lambda net: {**net.state_dict(), "0._extra_state": "two", "9.bias": torch.ones(2)},
        "Unexpected key.*9.bias.*strict=False",
    ),
    "an error of its own": (
        lambda: nn.Sequential(nn.Linear(3, 2), EndsHalfway()),
        lambda net: {"1.seen": torch.ones(3), **nn.Sequential(nn.Linear(3, 2)).state_dict()},
        r"KeyError\('layout'\)",
    ),
    "integers for weights": (
        lambda: nn.Sequential(nn.Linear(3, 2)),
        lambda net: {"0.weight": torch.ones(2, 3, dtype=torch.int8), "0.bias": torch.ones(2)},
        "0.weight is of type torch.int8 in the file",
    ),
    "tied in the model only": (
        Tied,
        lambda net: net.state_dict() | {"third.weight": torch.ones(3, 3)},
        "weight is tied to another tensor in the model, not in the file",
    ),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_failed_load_leaves_the_module_as_it_was(tmp_path, kind):
    make, state_of, sentence = FAILING[kind]
    torch.manual_seed(0)
    values = make().state_dict()
    torch.manual_seed(0)
    net = make()
    held = list(net.parameters())
    before = [type(m) for m in net.modules()], [type(p) for p in held], str(net)
    torch.save(state_of(net), tmp_path / "net.pt")
    with pytest.raises(nm.CheckpointError, match=sentence):
        nm.load_weights(net, tmp_path / "net.pt")
    assert ([type(m) for m in net.modules()], [type(p) for p in held], str(net)) == before
    assert all(p is q for p, q in zip(held, net.parameters(), strict=True))
    for name, value in net.state_dict().items():
        old = values[name]
        lazy = nn.parameter.is_lazy(value)
        assert lazy == nn.parameter.is_lazy(old)
        assert lazy or (old == value if isinstance(value, str) else torch.equal(value, old)), name
    if kind == "an error of its own":
        assert net[1].notes == {"read": 0}
    if lazy_kind := nn.parameter.is_lazy(held[0]):
        good = lazy_net(0, filled=True)
        torch.save(good.state_dict(), tmp_path / "good.pt")
        nm.load_weights(net, tmp_path / "good.pt")
        assert torch.equal(net(torch.ones(2, 3)), good(torch.ones(2, 3)))
    assert lazy_kind == ("at the end" in kind)


def test_what_only_one_of_file_and_model_has_is_left_aside_where_asked(tmp_path):
    net, copy = make_net(), make_net(1)
    kept = copy[3].bias.clone()
    state = {k: v for k, v in net.state_dict().items() if k != "3.bias"}
    torch.save(state | {"step": torch.tensor(3), "best": torch.tensor(0.5)}, tmp_path / "a.pt")
    with pytest.raises(nm.CheckpointError, match="Missing.*3.bias.*Unexpected.*strict=False"):
        nm.load_weights(copy, tmp_path / "a.pt")
    said = "1 names, such as '3.bias', are not in the file .*; 2 names, such as 'step', are left"
    with pytest.warns(UserWarning, match=said):
        nm.load_weights(copy, tmp_path / "a.pt", strict=False)
    assert torch.equal(copy[3].bias, kept)
    assert torch.equal(copy[3].weight, net[3].weight)
    with pytest.raises(nm.CheckpointError, match="belongs to another model, or holds no weights"):
        nm.load_weights(nn.Bilinear(2, 2, 2).requires_grad_(), tmp_path / "a.pt", strict=False)
    with pytest.raises(nm.CheckpointError, match="size mismatch"):
        nm.load_weights(nn.Sequential(nn.Linear(2, 2)), tmp_path / "a.pt", strict=False)


def write_script(path):
    torch.jit.script(nn.Linear(3, 2)).save(path)


def write_export(path):
    torch.export.save(torch.export.export(nn.Linear(3, 2), (torch.ones(1, 3),)), path)


FOREIGN = {
    "net.pt": (write_script, r"is a TorchScript archive: torch.jit.load\(path\).state_dict\(\)"),
    "net.pt2": (write_export, r"is of torch.export: torch.export.load\(path\).state_dict"),
    "net.npz": (lambda path: np.savez(path, w=np.ones(3)), "is numpy's: np.load"),
    "net.onnx": (lambda path: path.write_bytes(b"\x08\x07\x12"), "is an ONNX graph"),
    "whole.pt": (lambda path: torch.save(nn.Linear(3, 2), path), "torch.nn.modules.linear.Linear"),
    "args.pt": (lambda path: torch.save({"args": argparse.Namespace()}, path), "Namespace"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_kinds_are_called_what_they_are(tmp_path, name):
    write, sentence = FOREIGN[name]
    write(tmp_path / name)
    with pytest.raises(nm.CheckpointError, match=sentence):
        nm.load_weights(nn.Linear(3, 2), tmp_path / name)


def test_files_of_half_precision_and_of_shards_of_torch(tmp_path):
    net, copy = make_net().bfloat16(), make_net(1)
    state, parts = net.state_dict(), {}
    for number, name in enumerate(state):
        parts[name] = f"pytorch_model-{number % 2}.bin"
    for shard in set(parts.values()):
        torch.save({n: state[n] for n in state if parts[n] == shard}, tmp_path / shard)
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": parts}))
    nm.load_weights(copy, tmp_path)
    assert copy[0].weight.dtype == torch.float32
    assert all(
        torch.equal(value, state[n].to(value.dtype)) for n, value in copy.state_dict().items()
    )


def test_buffers_beside_the_state_dict(tmp_path):
    """They are no part of files, but older files hold some."""

    def make(value):
        net = nn.Sequential(nn.Linear(3, 2))
        net[0].register_buffer("places", torch.full((2,), value), persistent=False)
        return net

    net, copy = make(1.0), make(2.0)
    nm.load_weights(copy, nm.save_weights(net, tmp_path / "a.safetensors"))
    assert copy[0].places.tolist() == [2, 2]
    assert torch.equal(net[0].weight, copy[0].weight)
    torch.save({**net.state_dict(), "0.places": torch.tensor([5.0, 6.0])}, tmp_path / "old.pt")
    nm.load_weights(copy, tmp_path / "old.pt")
    assert copy[0].places.tolist() == [5, 6]
    torch.save({**net.state_dict(), "0.places": torch.tensor([5.0])}, tmp_path / "old.pt")
    with pytest.raises(nm.CheckpointError, match="0.places has another shape"):
        nm.load_weights(copy, tmp_path / "old.pt")


def test_a_lazy_net_is_saved_once_it_has_weights(tmp_path):
    with pytest.raises(nm.ModelError, match="lazy parameters without a shape"):
        nm.save_weights(lazy_net(0, filled=False), tmp_path / "a.safetensors")
    net, copy = lazy_net(0, filled=True), lazy_net(1, filled=False)
    nm.load_weights(copy, nm.save_weights(net, tmp_path / "a.safetensors"))
    assert torch.equal(net(torch.ones(2, 3)), copy(torch.ones(2, 3)))


def test_a_net_without_numbers_is_refused(tmp_path):
    torch.save(make_net().state_dict(), tmp_path / "net.pt")
    empty = make_net().to("meta")
    with pytest.raises(nm.CheckpointError, match="net.pt: .*'meta' device. Materialize them"):
        nm.load_weights(empty, tmp_path / "net.pt")
    with pytest.raises(nm.ModelError, match="'meta' device"):
        nm.save_weights(empty, tmp_path / "a.safetensors")


def test_a_version_goes_with_saved_weights(tmp_path):
    net, copy = nn.Sequential(Versioned()), nn.Sequential(Versioned())
    nm.load_weights(copy, nm.save_weights(net, tmp_path / "a.safetensors"))
    assert same(net, copy)
    old = {"0.weight": net[0].weight.detach()}  # as others write it: without a version
    safetensors.torch.save_file(old, tmp_path / "old.safetensors")
    nm.load_weights(copy, tmp_path / "old.safetensors")
    assert torch.equal(copy[0].weight, net[0].weight.T)


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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html></html>", "a web page"),
    ],
)
def test_what_is_taken_for_weights_is_called_what_it_is(tmp_path, content, words):
    (tmp_path / "net.pt").write_bytes(content)
    with pytest.raises(nm.CheckpointError, match=words):
        nm.load_weights(nm.models.mlp([2, 2]), tmp_path / "net.pt")
