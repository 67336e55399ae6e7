"""The command line as a person or a script would call it."""

import json
import sys

import numpy as np
import pytest
import torch

import netmargin as nm
from netmargin.cli import main

FACTORY = """
import torch
def make_model():
    return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1, bias=False))
def not_a_model():
    return 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a user's model factory and data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "mynets", raising=False)
    (tmp_path / "mynets.py").write_text(FACTORY)
    generator = np.random.default_rng(0)
    X = generator.normal(size=(30, 2))
    np.savez(tmp_path / "points.npz", X=X, y=np.sign(X[:, 0]))
    return tmp_path


def test_train_measure_and_resume_a_recipe(tmp_path, capsys):
    command = ["train", "digits-mlp", "--limit", "300", "--out", str(tmp_path / "run"), "--quiet"]
    assert main([*command, "--epochs", "3", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["status"] == "ran 3 epochs"
    assert main([*command, "--epochs", "5"]) == 0
    assert "ran 5 epochs" in capsys.readouterr().out
    names = {p.name for p in (tmp_path / "run").iterdir()}
    pictures = {f"{stem}.{end}" for stem in ("loss", "margins", "histogram") for end in ("png", "pdf")}
    assert names == {".lock", "history.jsonl", "checkpoint.pt", "model.pt", "summary.json"} | pictures
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["epochs"] == 5
    for weights in ("model.pt", "checkpoint.pt"):
        assert main(["measure", str(tmp_path / "run" / weights), "--factory", "digits-mlp", "--limit", "300", "--json"]) == 0
        measured = json.loads(capsys.readouterr().out)
        assert measured["normalized_margin"] == summary["final"]["normalized_margin"]
        assert measured["homogeneity"]["groups"] == {"0": 1.0, "2": 1.0}


def test_your_own_model_and_data(own, capsys):
    assert main(["train", "--factory", "mynets:make_model", "--data", "points.npz", "--until-log10-loss", "-3", "--quiet"]) == 0
    assert "log10-loss fell below -3" in capsys.readouterr().out
    folder = own / "runs" / "mynets.make_model"
    assert main(["measure", str(folder / "model.pt"), "--factory", "mynets:make_model", "--data", "points.npz"]) == 0
    assert "100.00% correct" in capsys.readouterr().out
    assert main(["analyse", "--factory", "mynets:make_model", "--shape", "2"]) == 0
    assert "order 2" in capsys.readouterr().out


def test_certify(tmp_path, capsys):
    torch.manual_seed(0)
    net, data = nm.models.mlp([64, 256, 10]), nm.datasets.digits(limit=60)
    nm.maximize_margin(net, data, temperatures=(0.1,), iterations=20, progress=False)
    torch.save(net.state_dict(), tmp_path / "net.pt")
    command = [
        "certify",
        str(tmp_path / "net.pt"),
        "--factory",
        "digits-mlp",
        "--data",
        "digits",
        "--limit",
        "60",
        "--radius",
        "1e-3",
    ]
    assert main([*command, "--out", str(tmp_path / "out"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads((tmp_path / "out/certificate.json").read_text()) | {"seconds": shown["seconds"]}
    assert 0 <= shown["relative_radius_epsilon"] <= shown["relative_epsilon"] < 1
    assert shown["relative_epsilon"] == pytest.approx(nm.certify(net, data).relative_epsilon)
    assert {p.name for p in (tmp_path / "out").iterdir()} > {"trade_off.png", "support.png", "support.pdf"}
    assert main(command) == 0
    assert "heaviest support samples" in capsys.readouterr().out
    torch.save(nm.models.mlp([64, 256, 10]).state_dict(), tmp_path / "net.pt")
    assert main(command) == 1
    assert "margin that is not positive" in capsys.readouterr().err


@pytest.mark.parametrize("problem", ["f1", "f2", "ntk", "linear"])
def test_solve(own, capsys, problem):
    assert main(["solve", problem, "--data", "points.npz", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert 0 < result["margin"] <= result["upper_bound"]
    assert result["certified"]
    assert sum(result["dual"]) == pytest.approx(1.0)
    assert main(["solve", problem, "--data", "points.npz", "--bias", "--out", "solution.npz"]) == 0
    assert "certified            True" in capsys.readouterr().out
    assert np.load("solution.npz")["dual"].sum() == pytest.approx(1.0)


def test_solve_soft_and_interpolation(own, capsys):
    assert main(["solve", "f1", "--soft", "2", "--data", "points.npz", "--json"]) == 0
    soft = json.loads(capsys.readouterr().out)
    assert soft["lower_bound"] == pytest.approx(soft["objective"], rel=1e-5)
    assert main(["solve", "interpolate", "--data", "points.npz", "--json", "--time-limit", "30"]) == 0
    through = json.loads(capsys.readouterr().out)
    assert through["lower_bound"] <= through["norm"]
    assert through["residual"] < 1e-9
    assert main(["solve", "f2", "--soft", "2", "--data", "points.npz"]) == 1
    assert "--soft is for f1" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["clusters", "gaussian-xor", "hypercube", "teacher", "parity", "alternating", "digits"])
def test_data_show_then_bounds(own, capsys, name):
    assert main(["data", "show", name, "--n", "40", "--d", "3", "--k", "2", "--units", "2", "--out", "shown"]) == 0
    assert "40 samples of shape" in capsys.readouterr().out
    assert (own / "shown" / "data.png").stat().st_size > 5000
    if name in ("hypercube", "alternating"):
        assert main(["bounds", "--data", "shown/points.npz", "--time-limit", "5", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert len(found["bounds"]) == 2
        assert all(b["value"] == pytest.approx(sum(b["terms"].values())) and b["vacuous"] for b in found["bounds"])
        distance, upper = found["interclass_distance"]["1"]
        assert 0 < distance <= upper * (1 + 1e-9)
        assert main(["bounds", "--data", "shown/points.npz", "--time-limit", "5", "--radius", "9"]) == 0
        assert "complexity, 4 Rad / gamma" in capsys.readouterr().out


def test_bounds_of_inseparable_data(own, capsys):
    np.savez(own / "same.npz", X=np.ones((4, 2)), y=[1, -1, 1, -1])
    assert main(["bounds", "--data", "same.npz"]) == 0
    assert "No net and no kernel predictor separates" in capsys.readouterr().out
    assert main(["bounds", "--data", "same.npz", "--delta", "2"]) == 1
    assert "--delta must be below 1" in capsys.readouterr().err


def test_biases_everywhere(tmp_path, capsys):
    assert main(["train", "digits-mlp", "--bias", "all", "--limit", "50", "--epochs", "1", "--out", str(tmp_path), "--quiet"]) == 0
    assert main(["analyse", "digits-mlp", "--bias", "all", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))
    assert answer["kind"] == "partial"
    assert [b["module"] for b in answer["blockers"]] == ["2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["measure", "absent.pt", "--factory", "digits-mlp"], "No such file"),
        (["train", "no-such-recipe"], "is no recipe"),
        (["train"], "Say which model"),
        (["train", "--factory", "mynets:make_model"], "Say which data"),
        (["train", "--factory", "mynets:absent", "--data", "digits"], "Cannot find the model factory"),
        (["train", "--factory", "no.such:module", "--data", "digits"], "Cannot find the model factory"),
        (["train", "--factory", "mynets:not_a_model", "--data", "digits"], "returned int"),
        (["train", "--factory", "mynets:make_model", "--data", "absent.npz"], "Cannot read arrays X and y"),
        (["solve", "f1", "--data", "absent.npz"], "Cannot read arrays X and y"),
        (["solve", "f1", "--data", "mynets.py"], "Cannot read arrays X and y"),
        (["solve", "f2", "--data", "points.npz", "--time-limit", "3"], "is for f1"),
        (["analyse", "digits-mlp", "--shape", "a,b"], "--shape takes positive whole numbers"),
        (["analyse", "digits-mlp", "--shape", "3"], "could not process a batch"),
        (["train", "digits-mlp", "--limit", "5000"], "limit must lie between"),
    ],
)
def test_failures_exit_with_1_and_say_why(own, capsys, arguments, message):
    assert main(arguments) == 1
    assert message in capsys.readouterr().err


def test_wrong_usage_exits_with_2(capsys):
    for arguments in ([], ["train", "digits-mlp", "--epochs", "many"], ["train", "digits-mlp", "--constant-lr", "0"], ["fly"]):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 2
    with pytest.raises(SystemExit) as end:
        main(["train", "--help"])
    assert end.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    epoch, calls = nm.training.run.Run.epoch, []

    def interrupted(run, show):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        epoch(run, show)

    monkeypatch.setattr(nm.training.run.Run, "epoch", interrupted)
    command = ["train", "digits-mlp", "--limit", "100", "--epochs", "6", "--out", str(tmp_path), "--quiet"]
    assert main(command) == 1
    assert "interrupted after epoch 3; saved in" in capsys.readouterr().err
    assert torch.load(tmp_path / "checkpoint.pt")["history_bytes"] > 0
    assert main(command) == 0
    assert "ran 6 epochs" in capsys.readouterr().out
