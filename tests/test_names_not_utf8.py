"""Names of files that are not UTF-8: of classes, nets and folders, wherever they are shown."""

import json
import os
import subprocess
import sys

import pytest
import torch

import netmargin as nm

BAD = os.fsdecode(b"ch\xeane")  # in Latin-1, with a circumflex
SHOWN = r"ch\udceane"
NAMES = ["chat", BAD]


@pytest.fixture
def folder(tmp_path):
    try:
        (tmp_path / BAD).mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    return tmp_path / BAD


@pytest.fixture(scope="module")
def data():
    generator = torch.Generator().manual_seed(0)
    return torch.rand(40, 1, 8, 8, generator=generator), torch.arange(40) % 2


def make_net(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2, bias=False))


def read(path):
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("given", ["classes", "nets"])
def test_pages_show_such_names_escaped(folder, data, given):
    two = {BAD: make_net(), "b": make_net(1)}
    net, names = (two, None) if given == "nets" else (make_net(), NAMES)
    page = nm.page(net, data, out=folder / "page.html", class_names=names)
    assert "udceane" in read(folder / "page.html")
    assert "srcdoc" in page._repr_html_()


REPORTS = {
    "measure": lambda data: nm.measure(make_net(), data, class_names=NAMES),
    "input_margins": lambda data: nm.input_margins(make_net(), data, class_names=NAMES),
    "compare": lambda data: nm.compare({BAD: make_net(), "b": make_net(1)}, data),
    "label_errors": lambda data: nm.label_errors(data, class_names=NAMES),
}


@pytest.mark.slow_cases("compare", "label_errors")
@pytest.mark.parametrize("kind", REPORTS)
def test_reports_are_utf8_everywhere(folder, data, kind):
    report = REPORTS[kind](data)
    again = nm.load(report.save(folder / "report.pt"))
    said = [report.summary(), report._repr_html_(), repr(report), again.summary()]
    if kind != "measure":  # which names no class
        said.append(report.frame().to_csv())
        assert SHOWN in said[-1]
    assert all(text.encode().decode() == text for text in said)
    if kind == "label_errors":
        report.write_csv(folder / "labels.csv")
        assert SHOWN in read(folder / "labels.csv")
        nm.figures.draw_label_errors(report, data[0], folder=folder)


def test_runs_and_weights_lie_in_such_folders(folder, data):
    net, copies = make_net(), [make_net(1), make_net(2)]
    nm.train(net, data, until=nm.Epochs(1), checkpoint_dir=folder / "run", progress=False)
    nm.train(net, data, until=nm.Epochs(2), checkpoint_dir=folder / "run", progress=False)
    assert len(nm.History.load(folder / "run" / "history.jsonl")) == 3
    nm.load_weights(copies[0], folder / "run" / "checkpoint.pt")
    nm.load_weights(copies[1], nm.save_weights(net, folder / "net.safetensors"))
    assert all(torch.equal(net[1].weight, copy[1].weight) for copy in copies)
    with pytest.raises(nm.CheckpointError, match="Cannot read .*No such file"):
        nm.load_weights(net, folder / "none.safetensors")
    watch = nm.Watch(net, data, folder=folder / "watch")
    watch.finish()
    nm.load_weights(copies[0], folder / "watch")


@pytest.mark.nightly
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_command_line_takes_and_shows_such_names(folder, encoding):
    def run(*words):
        command = [sys.executable, "-m", "netmargin", *map(os.fsencode, words)]
        environment = os.environ | {"PYTHONIOENCODING": encoding}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert "Traceback" not in done.stderr
        return done

    saved = (f"{folder}/run/model.safetensors", "--factory", "digits-mlp", "--data", "digits")
    run_it = ("train", "digits-mlp", "--limit", "30", "--epochs", "1", "--out", f"{folder}/run")
    assert f"{SHOWN}/run/ (history.jsonl" in run(*run_it).stdout
    page = run("page", f"{folder}/run", "--out", f"{folder}/page.html", "--json")
    assert json.loads(page.stdout)["path"] == f"{folder}/page.html"
    radii = run(
        "robustness", *saved, "--limit", "3", "--certified-only", "--out", f"{folder}/radii"
    )
    assert SHOWN in radii.stdout
    assert radii.returncode == 0
    missing = run("measure", f"{folder}/none.pt", *saved[1:])
    assert missing.returncode == 1
    assert f"{SHOWN}/none.pt: No such file" in missing.stderr
