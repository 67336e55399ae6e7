"""Weights in files that other people's training wrote."""

import pickle

import pytest
import torch
from torch import nn

import netmargin as nm


def net(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


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
    torch.save(wrap(net().state_dict()), tmp_path / "file.pt")
    loaded = net(seed=1)
    nm.load_weights(loaded, tmp_path / "file.pt")
    assert all(
        torch.equal(a, b)
        for a, b in zip(loaded.state_dict().values(), net().state_dict().values(), strict=True)
    )
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
    torch.save(wrap(net().state_dict()), tmp_path / "file.pt")
    model = net(seed=1)
    with pytest.raises(nm.CheckpointError) as refused:
        nm.load_weights(model, tmp_path / "file.pt")
    assert all(sentence in str(refused.value) for sentence in sentences), str(refused.value)
    assert all(
        torch.equal(a, b)
        for a, b in zip(model.state_dict().values(), net(1).state_dict().values(), strict=True)
    )


@pytest.mark.parametrize("where", ["alone", "beside the weights"])
def test_objects_that_run_code_stay_refused(tmp_path, where, capsys):
    state = {"state_dict": net().state_dict()} | (
        {"hyper": Hostile()} if where == "beside the weights" else {"state_dict": Hostile()}
    )
    torch.save(state, tmp_path / "file.pt")
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(state))
    for name in ("file.pt", "plain.pkl"):
        with pytest.raises(nm.CheckpointError, match="Refused|not a PyTorch file"):
            nm.load_weights(net(), tmp_path / name)
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
