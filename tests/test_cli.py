"""The command line as a person or a script would call it."""

import argparse
import dataclasses
import importlib
import inspect
import json
import operator
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import netmargin as nm
from netmargin.cli import inputs, main
from netmargin.cli.inputs import load_data
from netmargin.cli.parser import VERBS
from netmargin.cli.printing import in_shell_words
from netmargin.nets.data import open_data
from netmargin.training import fingerprint
from netmargin.training.checkpoint import FORMAT
from tests.words import words_of

FACTORY = """
import torch
def make_model():
    return torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1, bias=False))
def not_a_model():
    return 3
def a_class():
    return torch.nn.Linear
def needs(width):
    return torch.nn.Linear(2, width)
def fails():
    return {}["no key"]
"""
FACTORY_ALONE = "--factory mynets:make_model"
OWN = f"{FACTORY_ALONE} --data points.npz"
MODULES = {
    "mynets": FACTORY,
    "broken": "def f(:\n",
    "leaves": "import sys\nsys.exit(3)\n",
    "needy": "import no_such_library\n",
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a user's model factory and data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, code in MODULES.items():
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(code)
    generator = np.random.default_rng(0)
    X = generator.normal(size=(30, 2))
    np.savez(tmp_path / "points.npz", X=X, y=np.sign(X[:, 0]))
    words = np.where(X[:, 0] > 0, "high", "low")
    np.savez(tmp_path / "words.npz", X=X, y=words)
    np.savez(tmp_path / "keys.npz", images=X, labels=words)
    np.savez(tmp_path / "objects.npz", X=X, y=words.astype(object))
    (tmp_path / "answers.csv").write_text("number,answer\n1,2\n")
    (tmp_path / "semicolons.csv").write_text("number;label\n1;2\n")
    torch.save(make_own_model(tmp_path).state_dict(), tmp_path / "net.pt")
    return tmp_path


def run(command: str) -> int:
    """Call the command line as a shell does, but for quotes."""
    return main(command.split())


def make_own_model(folder) -> torch.nn.Module:
    sys.path.insert(0, str(folder))
    torch.manual_seed(0)
    return importlib.import_module("mynets").make_model()


def test_train_measure_and_resume_a_recipe(tmp_path, capsys):
    command = f"train digits-mlp --limit 300 --out {tmp_path / 'run'} --quiet"
    assert run(f"{command} --epochs 3 --json") == 0
    first = json.loads(capsys.readouterr().out)
    assert first["message"] == "ran 3 epochs"
    assert run(f"{command} --epochs 5") == 0
    assert "ran 5 epochs" in capsys.readouterr().out
    names = {p.name for p in (tmp_path / "run").iterdir()}
    pictures = {
        f"{stem}.{end}" for stem in ("loss", "margins", "histogram") for end in ("png", "pdf")
    }
    assert (
        names
        == {".lock", "history.jsonl", "checkpoint.pt", "model.safetensors", "summary.json"}
        | pictures
    )
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["epochs"] == 5
    for weights in ("model.safetensors", "checkpoint.pt"):
        saved = f"{tmp_path / 'run' / weights} --factory digits-mlp --limit 300"
        assert run(f"measure {saved} --input-margins --json") == 0
        measured = json.loads(capsys.readouterr().out)
        assert measured["normalized_margin"] == summary["final"]["normalized_margin"]
        assert measured["homogeneity"]["groups"] == {"0": 1.0, "2": 1.0}
        assert measured["margins"]["global"]["value"] == measured["normalized_margin"]
        assert measured["margins"]["input"]["25%"] > 0


@pytest.mark.slow
def test_your_own_model_and_data(own, capsys):
    assert run(f"train {OWN} --until-log10-loss -3 --quiet") == 0
    assert "log10-loss fell below -3" in capsys.readouterr().out
    folder = own / "runs" / "mynets.make_model"
    assert run(f"measure {folder / 'model.safetensors'} {OWN}") == 0
    assert "0 of 30, 0.00%" in capsys.readouterr().out
    assert run("analyse --factory mynets:make_model --shape 2") == 0
    assert "order 2 " in words_of(capsys.readouterr().out)


@pytest.mark.slow
def test_certify(tmp_path, capsys):
    torch.manual_seed(0)
    net, data = nm.models.mlp([64, 256, 10]), nm.datasets.digits(limit=10)
    nm.maximize_margin(net, data, temperatures=(0.1,), iterations=20, progress=False)
    torch.save(net.state_dict(), tmp_path / "net.pt")
    command = (
        f"certify {tmp_path / 'net.pt'} --factory digits-mlp --data digits --limit 10 --radius 1e-3"
    )
    assert run(f"{command} --out {tmp_path}/out --json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads((tmp_path / "out/certificate.json").read_text()) | {
        "seconds": shown["seconds"]
    }
    assert 0 <= shown["relative_radius_epsilon"] <= shown["relative_epsilon"] < 1
    assert shown["relative_epsilon"] == pytest.approx(nm.certify(net, data).relative_epsilon)
    assert {p.name for p in (tmp_path / "out").iterdir()} > {
        "trade_off.png",
        "support.png",
        "support.pdf",
    }
    assert run(command) == 0
    assert "the heaviest" in capsys.readouterr().out
    torch.save(nm.models.mlp([64, 256, 10]).state_dict(), tmp_path / "net.pt")
    assert run(command) == 1
    assert "margin that is not positive" in capsys.readouterr().err


@pytest.mark.slow_cases("interpolate")
@pytest.mark.parametrize(
    ("problem", "solver", "labels"),
    [
        ("f1", "f1_max_margin", "y"),
        ("f2", "f2_max_margin", "y"),
        ("ntk", "ntk_max_margin", "y"),
        ("linear", "linear_max_margin", "y"),
        ("interpolate", "min_norm_interpolation", "values"),
    ],
)
def test_solve_is_the_solver_of_that_name(own, capsys, problem, solver, labels):
    held = np.load("points.npz")
    y = held["y"] if labels == "y" else held["X"][:, 0]
    np.savez("given.npz", X=held["X"], y=y)
    solve = getattr(nm.solvers, solver)
    solution = solve(held["X"], y, bias=False)
    assert run(f"solve {problem} --data given.npz --no-bias --json --out out/s.pt") == 0
    shown = json.loads(capsys.readouterr().out)
    assert nm.load("out/s.pt").bracket == solution.bracket
    assert shown["certified"] == solution.certified
    assert shown["dual"] == pytest.approx(solution.dual.tolist(), abs=1e-9)
    assert run(f"solve {problem} --data given.npz") == 0  # with the solver's own default of bias
    rows = words_of(solve(held["X"], y).summary())
    assert words_of(capsys.readouterr().out)[:60] == rows[:60]


def test_files_of_weights_are_compared_and_shown(own, capsys):
    """What the command line says of files is what Python says of the nets and the data."""
    nets, samples = {}, np.load(own / "points.npz")
    data = samples["X"].astype("float32"), samples["y"]
    for name, steps in {"old.pt": 1, "new.pt": 60}.items():
        nets[name] = net = make_own_model(own)
        optimizer = torch.optim.Adam(net.parameters(), 0.1)
        for _ in range(steps):
            margins = torch.from_numpy(data[1]) * net(torch.from_numpy(data[0]))[:, 0]
            optimizer.zero_grad()
            torch.nn.functional.softplus(-margins).mean().backward()
            optimizer.step()
        torch.save(net.state_dict(), own / name)
    assert run(f"compare old.pt new.pt {OWN} --heldout") == 0
    said = capsys.readouterr().out
    summary = nm.compare(nets, heldout=data, progress=False).summary()
    assert words_of(said) == words_of(in_shell_words(summary))
    assert run(f"measure new.pt {OWN} --full") == 0
    assert "HOW FAR OPTIMIZATION" in capsys.readouterr().out
    assert run(f"page new.pt {FACTORY_ALONE} --heldout points.npz --compare old.pt") == 0
    shown = (own / "page.html").read_text()
    assert "new.pt: " in shown
    assert "30 held-out samples" in shown
    assert run("labels --data points.npz --out found/list.csv") == 0
    found = nm.label_errors(data)
    assert capsys.readouterr().out.strip().endswith(found.summary())
    rows = (own / "found" / "list.csv").read_text().splitlines()
    assert len(rows) == 31
    assert rows[1].startswith(str(found.order[0].item()))
    for words, message in {
        f"compare new.pt {OWN}": "two files or more",
        f"page new.pt {OWN} --compare ./new.pt": "on the page already",
        f"page new.pt {FACTORY_ALONE} --heldout points.npz --labels": "name them by --data",
        "page new.pt --data points.npz": "Say which model",
    }.items():
        assert run(words) == 2
        assert message in words_of(capsys.readouterr().err)


def test_a_table_is_read_as_arrays_are(own, capsys):
    held = np.load("points.npz")
    table = pd.DataFrame(held["X"], columns=["a", "b"])
    table.assign(y=held["y"]).to_csv("points.csv")  # with its index, which is no input
    for command in ("labels", "solve linear", f"measure net.pt {FACTORY_ALONE} --heldout"):
        said = []
        for file in ("points.npz", "points.csv"):
            assert run(f"{command} --data {file}") == 0
            said.append(capsys.readouterr().out)
        assert said[0] == said[1]
    words = np.load("words.npz")["y"]
    words = np.where(words == words[0], "None", "NA")  # which pandas reads as missing
    table.assign(label=words, patient=np.arange(30) // 2).to_csv("words.csv", index=False)
    assert run("labels --data words.csv --groups patient --json") == 0
    shown = capsys.readouterr()
    assert "labels in 'label', 2 other columns: a, b\n" in shown.err
    found = nm.label_errors((table, words), groups=np.arange(30) // 2)
    assert json.loads(shown.out)["copies"] == found.copies
    table.assign(Label=words, patient=np.arange(30) // 2).to_csv("capital.csv", index=False)
    assert run("labels --data capital.csv --groups patient --json") == 0
    assert capsys.readouterr().out == shown.out
    table.assign(label=[*words[:-1], ""]).to_csv("empty.csv", index=False)
    assert run("labels --data empty.csv") == 1
    assert "y holds nan in place of a value for sample 29, 1 in all" in capsys.readouterr().err
    assert json.loads(shown.out)["share"] == pytest.approx(found.share, rel=1e-4)
    assert run("labels --data words.csv --groups pupil") == 2
    assert "words.csv has no 'pupil'" in capsys.readouterr().err


def test_a_net_trained_on_a_table_of_words_is_certified_and_shown(own, capsys):
    held = np.load("words.npz")
    pd.DataFrame(held["X"]).assign(y=held["y"]).to_csv("words.csv", index=False)
    named = f"{FACTORY_ALONE} --data words.csv"
    assert run(f"train {named} --until-log10-loss -2 --out run --quiet") == 0
    for file in ("words.csv", "words.npz"):  # both are what the net was trained on
        assert (
            run(f"certify run/model.safetensors {FACTORY_ALONE} --norm layers --data {file}") == 0
        )
        assert "certificate is about" not in capsys.readouterr().err
    assert run(f"certify run/model.safetensors {named} --norm layers --limit 20") == 0
    assert "20 of 30 samples, and the net was trained on all" in capsys.readouterr().err
    assert run(f"page run/model.safetensors {named} --radii 3 --labels --out page.html") == 0


def test_a_part_of_a_file_keeps_its_types(own):
    for words in ("points.npz", "words.npz", "tokens.npz"):
        np.savez("tokens.npz", X=np.arange(60).reshape(30, 2), y=np.arange(30) // 15)
        (X, y), (some, few) = (load_data(words, "train", limit) for limit in (None, 6))
        rows = [int(np.flatnonzero((x == X).all(1))[0]) for x in some]
        assert rows == sorted(rows)
        assert (y[rows] == few).all()
        assert some.dtype == X.dtype
        assert np.unique(few, return_counts=True)[1].tolist() == [3, 3]


@pytest.mark.parametrize("shape", [(12,), (3, 4)])
def test_rows_of_a_part_of_a_file_are_those_of_the_file(shape, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = np.repeat([0, 1], [40, 20])
    X = np.random.default_rng(0).normal(size=(60, *shape)) + 5 * y.reshape(60, *[1] * len(shape))
    y[3] = 1
    np.savez("part.npz", X=X, y=y)
    assert run("labels --data part.npz --limit 30 --out list.csv") == 0
    printed = capsys.readouterr()
    assert "part.npz: answers number the 30 samples taken of 60, from 0" in printed.err
    table = pd.read_csv("list.csv")
    assert table["row"][0] == 3  # the worst
    assert sorted(table["row"]) == [*range(16), *range(40, 54)]


def test_solve_without_an_answer(own, capsys, monkeypatch):
    held = np.load("points.npz")
    found = nm.solvers.f1_max_margin(held["X"], held["y"])
    lost = dataclasses.replace(found, margin=0.0, certified=False, status=nm.Status.TIME_LIMIT)
    monkeypatch.setattr(nm.solvers, "f1_max_margin", lambda X, y: lost)
    assert run("solve f1 --data points.npz") == 1
    assert "no answer was found: stopped at the time limit" in capsys.readouterr().err
    assert run("solve linear --data points.npz --time-limit 60") == 0
    np.savez("mixed.npz", X=np.ones((2, 2)), y=[1, -1])
    assert run("solve linear --data mixed.npz") == 0  # a proof that there is none is an answer
    assert "not separable" in words_of(capsys.readouterr().out)


@pytest.mark.slow
def test_biases_everywhere(tmp_path, capsys):
    assert run(f"train digits-mlp --bias all --limit 50 --epochs 1 --out {tmp_path} --quiet") == 0
    assert run("analyse digits-mlp --bias all --json") == 0
    answer = json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))
    assert answer["kind"] == "partial"
    assert [b["module"] for b in answer["blockers"]] == ["2"]


FAILURES = {  # exit code 1: the work failed
    "measure absent.pt --factory digits-mlp": "No such file",
    "train --factory mynets:absent --data digits": "Check the name of the function",
    "train --factory no.such:module --data digits": "Run from the folder that holds its package",
    "analyse --factory mynets.py:absent --shape 2": "by its name, package.module, and no path",
    "analyse --factory ./mynets.py:absent --shape 2": "by its name, package.module, and no path",
    "analyse --factory needy:f --shape 2": "Install what it imports",
    "analyse --factory mynets:not_a_model --shape 2": "returned no model: .*; got int",
    "analyse --factory mynets:a_class --shape 2": "got the class Linear. Write Linear",
    "analyse --factory mynets:needs --shape 2": "'width'. A factory takes no arguments",
    "analyse --factory mynets:fails --shape 2": r"mynets.py, line \d+: KeyError: 'no key'",
    "analyse --factory broken:f --shape 2": "broken.py, line 1: SyntaxError",
    "analyse --factory leaves:f --shape 2": "leaves.py, line 2: SystemExit: 3",
    f"train {FACTORY_ALONE} --data mynets.py": "Cannot read arrays.*only .npz and .csv files",
    "labels --data answers.csv": r"no column is called labels or .* are number, answer\. .* where y",
    "labels --data semicolons.csv": "one column: those of a table are separated by commas",
    "labels --data keys.npz": r"Cannot read arrays.*it holds images, labels\. numpy.savez",
    "labels --data objects.npz": r"Cannot read arrays.*asarray\(y, str\)",
    f"measure net.pt {FACTORY_ALONE} --data words.npz --class-names low,middle": "none of the cl",
    "analyse digits-mlp --shape 3": "could not process a batch",
    "train digits-mlp --limit 20 --out mynets.py/x": "Cannot write",
    "verify lyu-li/euler --markdown mynets.py/x": "Cannot write",
    "reproduce chizat-bach/fig2a --out mynets.py/x": "Cannot write",
}
WRONG_USAGE = {  # exit code 2
    "": "required: VERB",
    "mesure": 'Did you mean "measure"',
    "train digit-mlp": 'no recipe. Did you mean "digits-mlp". The recipes are digits-mlp, digits-relu2',
    "train digits-mlp --data digit": 'Did you mean "digits". The data sets are digits, mnist',
    "train digits-mlp --loss crossentropy": 'Did you mean "cross-entropy"',
    "verify lyu-li/eular": 'Did you mean "lyu-li/euler". The ids are lyu-li/gd-mono.*--list WORDS',
    "verify lyu-lee": 'Did you mean "lyu-li". The ids begin with chizat-bach, lyu-li, two-hom.*, wei',
    "verify chizat-bach/fig1": "It is a figure: `netmargin reproduce chizat-bach/fig1`",
    "verify --list C.888": "There is no claim 'C.888'",
    "reproduce lyu-li/euler": "claims are for `netmargin verify`",
    "reproduce --list lyu-lee": 'Did you mean "lyu-li"',
    "reproduce chizat-bach/fig9": r'Did you mean "chizat-bach/fig\d\w?". The ids are chizat-bach/fig1',
    "reproduce": "Which figure",
    "reproduce chizat-bach --scale deep": "None of these figures has the scale deep",
    "train": "Say which model",
    "train --factory mynets:make_model": "Say which data",
    "labels --data absent.npz": "'absent.npz' is no file. The data sets are digits",
    "train digits-mlp --epochs many": "invalid positive int value: 'many'",
    "train digits-mlp --epochs -3": "invalid positive int value: '-3'",
    "train digits-mlp --constant-lr 0": "invalid positive float value: '0'",
    "verify lyu-li/euler --seed -1": "invalid whole number from 0 on value: '-1'",
    "train digits-mlp --limit 5000": "limit must lie between 1 and 1438",
    "solve f2 --data points.npz --out .": "is a folder; give the name of a file",
    "analyse digits-mlp --shape a,b": "--shape takes positive whole numbers",
    "train digits-mlp --out .": "would lie among your own files",
    "verify lyu-li/euler --markdown .": "is a folder; give the name of a file",
    "verify lyu-li/euler --markdown /dev/null": "no ordinary file",
    "train digits-mlp --out mynets.py": "is a file. Name a folder",
    f"compare net.pt net.pt {OWN} --heldout points.npz": "usage: netmargin compare.*--data names it",
    f"page net.pt net.pt {OWN}": "usage: netmargin page.*--compare NET",
    f"measure net.pt {OWN} --all": "unrecognized arguments: --all",
}


@pytest.mark.parametrize(("arguments", "message"), FAILURES.items())
def test_failures_exit_with_1_and_say_why(own, capsys, arguments, message):
    assert run(arguments) == 1
    said = capsys.readouterr().err
    assert re.search(message, said)
    assert "Traceback" not in said


@pytest.mark.parametrize(("arguments", "message"), WRONG_USAGE.items())
def test_wrong_usage_exits_with_2_and_says_what_is_right(own, capsys, arguments, message):
    try:
        code = run(arguments)
    except SystemExit as end:  # by which argparse ends
        code = end.code
    assert code == 2
    assert re.search(message, capsys.readouterr().err, re.DOTALL)


def test_every_verb_takes_labels_that_are_text_and_names_of_classes(own, capsys):
    data = f"{FACTORY_ALONE} --data words.npz"
    assert run(f"measure net.pt {data}") == 0
    said = capsys.readouterr()
    assert "note: The labels are text, and the classes are numbered 0 'high'" in said.err
    assert "give --class-names in theirs" in words_of(said.err)
    numbers = "--class-names low,high"
    torch.save(make_own_model(own).state_dict(), "other.pt")
    torch.manual_seed(1)
    for command in (
        f"measure net.pt {data} {numbers}",
        f"compare net.pt other.pt {data} {numbers}",
        f"labels --data words.npz {numbers}",
        f"page net.pt {data} --heldout words.npz --radii 2 --labels {numbers}",
    ):
        assert run(command) == 0
        assert "The labels are text" not in capsys.readouterr().err
    assert '"high"' in (own / "page.html").read_text()


def test_advice_is_given_in_the_words_of_a_shell(own, capsys):
    net = make_own_model(own)
    net.load_state_dict(torch.load(own / "net.pt"))
    X = np.load(own / "points.npz")["X"]
    answers = np.sign(net(torch.tensor(X, dtype=torch.float32)).detach().numpy().ravel())
    answers[:5] *= -1  # a net that is above chance, and wrong somewhere
    np.savez(own / "points.npz", X=X, y=answers)
    assert run(f"measure net.pt {OWN} --heldout") == 0
    said = words_of(capsys.readouterr().out)
    assert "not measured: --input-margins" in said
    assert "netmargin page; other nets: netmargin compare" in said
    assert "--full: every margin" in said
    assert "nm." not in said
    assert run(f"robustness net.pt {OWN} --certified-only --quiet") == 0
    assert capsys.readouterr().out.startswith("net.pt\n")  # which is wrong somewhere


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_shows_the_examples_of_its_verb(capsys, verb):
    with pytest.raises(SystemExit) as end:
        run(f"{verb} --help")
    assert end.value.code == 0
    shown = set(re.findall(r"^  netmargin (\w+)", capsys.readouterr().out, re.MULTILINE))
    assert shown == ({verb} if verb else set(VERBS))


@pytest.mark.parametrize("arguments", ["--version", "train --help"])
def test_help_and_version_exit_with_0(capsys, arguments):
    with pytest.raises(SystemExit) as end:
        run(arguments)
    assert end.value.code == 0
    assert re.search(r"examples:|netmargin \d+\.\d+", capsys.readouterr().out)


def _keys(value) -> set[str]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set(value if isinstance(value, dict) else ()).union(*map(_keys, parts))


@pytest.mark.slow_cases("train")
@pytest.mark.parametrize(
    "arguments",
    [
        "analyse digits-mlp --bias all",
        "train digits-mlp --limit 30 --epochs 1 --quiet",
        "verify lyu-li/euler --quick",
        "verify --list",
        "reproduce chizat-bach/fig2a --jobs 1 --quiet",
        "reproduce --list",
        f"measure net.pt {OWN} --heldout",
        f"compare net.pt other.pt {OWN}",
        "labels --data points.npz",
        f"robustness net.pt {OWN} --certified-only --quiet",
    ],
)
def test_json_of_every_verb(own, capsys, arguments):
    """Standard output is JSON and nothing else, without NaN, and no key holds a space."""
    for name in ("net", "other"):
        torch.save(make_own_model(own).state_dict(), own / f"{name}.pt")
    assert run(f"{arguments} --json") == 0
    shown = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert not any(" " in key for key in _keys(shown))


WAITING = """
import importlib, sys, time
def waits(*_, **__):
    print("ready", file=sys.stderr, flush=True)
    for _ in range(1000):  # a signal just before a long sleep would be heard after it only
        time.sleep(0.1)
"""
START_UP = WAITING + "waits()  # the import of torch\n"
COMMAND = """
import sys
sys.argv[0] = "netmargin"
module, function = sys.argv[1:3]
del sys.argv[1:3]
from waiting import waits
if module:
    import importlib
    owner = importlib.import_module("netmargin." + module)
    *path, last = function.split(".")
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, waits)
from netmargin.cli import main
sys.exit(main())
"""
BUSY = {  # the command, and what it is busy with when Ctrl-C comes
    "start-up": ("--version", "", ""),
    "a factory": ("analyse --factory waiting:waits --shape 2", "", ""),
    "certify": (f"certify net.pt {OWN}", "kkt.certification", "Problem"),
}


def environment_for(folder) -> dict[str, str]:
    source = Path(nm.__file__).parent.parent
    return os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{source}", "OMP_NUM_THREADS": "1"}


@pytest.mark.slow_cases("certify")
@pytest.mark.nightly_cases("a factory")
@pytest.mark.parametrize("name", BUSY)
def test_ctrl_c_exits_with_130_without_a_traceback(own, name):
    """A process of its own gets the signal that a terminal sends."""
    arguments, module, function = BUSY[name]
    (own / "waiting.py").write_text(WAITING)
    (own / "command.py").write_text(COMMAND)
    if name == "start-up":
        (own / "torch.py").write_text(START_UP)
    torch.save(make_own_model(own).state_dict(), own / "net.pt")
    command = [sys.executable, "command.py", module, function, *arguments.split()]
    with subprocess.Popen(
        command, cwd=own, env=environment_for(own), text=True, stderr=subprocess.PIPE
    ) as process:
        said = ""
        while "ready" not in said and (line := process.stderr.readline()):
            said += line
        process.send_signal(signal.SIGINT)
        said += process.stderr.read()
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("verb", VERBS)
def test_no_option_of_a_verb_is_without_effect(verb):
    """Its own file, or the one that all share, reads each."""
    parser = argparse.ArgumentParser()
    VERBS[verb].add_arguments(parser)
    taken = {action.dest for action in parser._actions} - {"help"}
    text = inspect.getsource(VERBS[verb]) + inspect.getsource(inputs)
    read = re.findall(r'options\.(\w+)|getattr\(options, "(\w+)"', text)
    # The solvers take these two by name.
    assert taken <= {"bias", "time_limit"} | {name for names in read for name in names}


INTERRUPTED = {  # the same in this process, where it takes no start
    "robustness": (
        f"robustness net.pt {OWN} --certified-only",
        "radii.batch_radii",
        "certified_radii",
    ),
    "verify": ("verify lyu-li/euler", "papers.ledger.claim", "Claim.examine"),
    "measure": (f"measure net.pt {OWN}", "margins", "measure"),
}


@pytest.mark.parametrize("name", INTERRUPTED)
def test_an_interruption_of_every_verb_exits_with_130(own, capsys, monkeypatch, name):
    arguments, module, function = INTERRUPTED[name]
    torch.save(make_own_model(own).state_dict(), own / "net.pt")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    owner = importlib.import_module(f"netmargin.{module}")
    *path, last = function.split(".")
    monkeypatch.setattr(operator.attrgetter(path[0])(owner) if path else owner, last, interrupt)
    assert run(arguments) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.slow
def test_output_on_a_full_disk_exits_with_1(own):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "netmargin", "verify", "--list"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment_for(own)
        )
    assert done.returncode == 1
    assert "Cannot read or write the output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


CLOSED = {  # as cron jobs, services and readers that have gone leave them
    "stdout": ">&-",
    "stderr": "2>&-",
    "all": "<&- >&- 2>&-",
    "a full disk for stderr": "2>/dev/full",
    "a reader of stderr that has gone": "2> >(true)",
}


@pytest.mark.slow
# "all" closes both streams; files on a full disk are tested in `test_output_on_a_full_disk_exits_with_1`.
@pytest.mark.nightly_cases("stdout", "stderr", "a reader of stderr", "a full disk for stderr")
@pytest.mark.parametrize("name", CLOSED)
def test_work_without_a_standard_output_is_done(own, name):
    """Notes, progress and results go nowhere; files are written, and the exit code is 0."""
    command = f"-m netmargin train {OWN} --limit 20 --epochs 2 --out run {CLOSED[name]}"
    done = subprocess.run(
        ["bash", "-c", f"sleep 0.1; exec {sys.executable} {command}"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment_for(own),
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert len(nm.History.load("run/history.jsonl")) == 3
    assert Path("run/summary.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "note"),
    [
        ("--limit 60", "about 60 of 120 samples, and the net was trained on all of them"),
        ("", ""),
        (
            "--data few.npz --limit 10",
            "about 10 of 30 samples, and the run beside the weights was trained on others",
        ),
    ],
)
def test_certify_says_what_samples_it_is_about(own, capsys, options, note):
    net = make_own_model(own)
    X = torch.randn(120, 2, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        y = torch.where(net(X)[:, 0] > 0, 1, -1)
    np.savez(own / "all.npz", X=X.numpy(), y=y.numpy())
    np.savez(own / "few.npz", X=X[:30].numpy(), y=y[:30].numpy())
    torch.save(net.state_dict(), own / "net.pt")
    settings = {"data": fingerprint(open_data((X, y)))}
    checkpoint = {
        "netmargin_format": FORMAT,
        "model": net.state_dict(),
        "settings": settings,
        "lr": {},
    }
    torch.save(checkpoint, own / "checkpoint.pt")
    assert run(f"certify net.pt {FACTORY_ALONE} --data all.npz {options} --json") == 0
    shown = capsys.readouterr()
    assert note in shown.err
    assert bool(note) == ("note:" in shown.err)
    assert (note or "the 120 samples given") in json.loads(shown.out)["about"]


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    epoch, calls = nm.training.run.Run.epoch, []

    def interrupted(run, show):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        epoch(run, show)

    monkeypatch.setattr(nm.training.run.Run, "epoch", interrupted)
    command = f"train digits-mlp --limit 100 --epochs 6 --out {tmp_path} --quiet"
    assert run(command) == 130
    assert "interrupted after epoch 3; saved in" in capsys.readouterr().err
    assert torch.load(tmp_path / "checkpoint.pt")["epoch"] == 3
    assert run(command) == 0
    assert "ran 6 epochs" in capsys.readouterr().out


def test_labels_of_a_table_of_whole_numbers_are_judged(tmp_path, capsys):
    rows = [f"{40 * (i % 2) + i % 7},{i % 5},{'yes' if i % 2 else 'None'}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,label", *rows, "1,2,yes"]))
    assert main(["labels", "--data", str(tmp_path / "t.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 61
