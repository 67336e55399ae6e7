"""Every figure at smoke scale, with its finding; sweeps that are killed go on; the gallery."""

import csv
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import netmargin as nm
from netmargin.cli import main
from netmargin.papers import SCALES, list_figures, reproduce
from netmargin.papers.gallery import runs
from netmargin.papers.gallery.figure import Check, figure
from netmargin.papers.gallery.reproduction import describe_status
from netmargin.papers.gallery.runs import plan_run
from netmargin.papers.gallery.sweep import sweep
from netmargin.papers.lyu_li import _training as training
from tests.gallery_page import write_gallery
from tests.test_reproducing_together import worker_of


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Shared, so that what one test computes the others read."""
    return tmp_path_factory.mktemp("reproduce")


@pytest.mark.nightly_cases(
    "chizat-bach/fig1",
    "chizat-bach/fig2",
    "lyu-li/fig1",
    "lyu-li/fig3",
    "lyu-li/fig4",
    "lyu-li/fig5",
    "lyu-li/fig6",
    "lyu-li/fig7",
    "lyu-li/fig8",
    "wei-2018/fig2",
    "wei-2018/fig3",
    "wei-2018/table1",
    "wei-2019/fig2",
    "wei-2019/fig3",
    "wei-2019/fig4",
    "wei-2019/fig5",
    "chizat-bach/fig3",
)
@pytest.mark.slow  # one is drawn in the quick run, by `test_nothing_is_computed_twice`
@pytest.mark.parametrize("id", list_figures())
def test_figures_at_smoke_scale(out, id):
    result = reproduce(id, out=out, jobs=1, progress=False)
    assert result.holds, result.summary()
    assert (result.folder / "figure.png").stat().st_size > 5000
    assert (result.folder / "figure.pdf").exists()
    numbers = json.loads((result.folder / "numbers.json").read_text())
    assert len(numbers["rows"]) == len(figure(id).runs(figure(id).scales["smoke"]))
    with (result.folder / "numbers.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(numbers["rows"])
    assert describe_status(id, "smoke", out) == "holds"


def test_the_committed_gallery():
    """Every figure on the page exists and holds but for one finding, and its picture is small."""
    docs = Path(__file__).parents[1] / "docs"
    page = (docs / "gallery.md").read_text()
    shown = re.findall(r"^## (\S+): ", page, re.MULTILINE)
    assert shown
    assert set(shown) <= set(list_figures())
    # The paper's attack takes minutes an image: 20 of them do not tell the nets apart.
    missed = re.findall(r"\*\*not reproduced:\*\* (.*?) by the paper's attack alone", page)
    assert missed == ["training set, 20 images, median radius"]
    assert page.count("not reproduced") == len(missed)
    assert "--scale smoke" not in page
    assert all(
        (docs / picture).stat().st_size < 150_000
        for picture in re.findall(r"\((gallery/[^)]+)\)", page)
    )


@pytest.mark.parametrize("id", list_figures())
def test_figures_say_what_they_are(id):
    known = figure(id)
    assert known.id == id
    assert known.title
    assert known.finding
    assert list(known.scales) == list(known.minutes)
    assert [scale for scale in known.scales if scale in SCALES] == list(SCALES)
    assert known.minutes["smoke"] <= 20 / 60
    assert known.minutes["laptop"] <= 10
    for settings in known.scales.values():
        assert json.loads(json.dumps(dict(settings))) == dict(settings)  # flat, of JSON values
        assert len(known.runs(settings)) > 0


def test_nothing_is_computed_twice(out, monkeypatch):
    first = reproduce("chizat-bach/fig4", out=out, jobs=1, progress=False)
    files = {file: file.stat().st_mtime_ns for file in (first.folder / "runs").iterdir()}
    again = reproduce("chizat-bach/fig4", out=out, jobs=1, progress=False)
    assert again.rows == first.rows
    assert files == {file: file.stat().st_mtime_ns for file in (first.folder / "runs").iterdir()}


@pytest.mark.slow
def test_figures_share_their_runs(out, tmp_path):
    """What figure 1 of Lyu and Li trained, and nothing else, is all that figure 3 draws."""
    reproduce("lyu-li/fig1", out=out, jobs=1, progress=False)
    trained = figure("lyu-li/fig1")
    runs, settings = Path(trained.runs_of) / "smoke/runs", trained.scales["smoke"]
    (tmp_path / runs).mkdir(parents=True)
    assert describe_status("lyu-li/fig3", "smoke", tmp_path) == "-"
    for run in trained.runs(settings):
        name = plan_run(trained, settings, run, runs).file
        shutil.copy(out / name, tmp_path / name)
    assert describe_status("lyu-li/fig3", "smoke", tmp_path) == "computed"


@pytest.mark.slow
def test_a_killed_training_run_goes_on(tmp_path, monkeypatch):
    """It ends with the same rows, looks and nets, wherever it was broken off."""
    run = {"net": "cnn", "rate": training.LOSS_BASED, "bias": training.WITHOUT_BIAS, "seed": 0}
    settings = training.SCALES["smoke"] | {"cnn_levels": [-1, -2]}
    whole = training.train_net(run, settings, tmp_path / "whole")
    save, left = training.checkpoint.save, [2]

    def fail_at_the_second_level(path, state):
        left[0] -= path.name.startswith("level")
        if not left[0]:
            raise KeyboardInterrupt
        save(path, state)

    with monkeypatch.context() as broken:
        broken.setattr(training.checkpoint, "save", fail_at_the_second_level)
        with pytest.raises(KeyboardInterrupt):
            training.train_net(run, settings, tmp_path / "broken")
    resumed = training.train_net(run, settings, tmp_path / "broken")
    for result in (whole, resumed):
        for timed in (result, *result["looks"]):
            assert timed.pop("seconds") > 0
    assert resumed == whole
    states = [
        torch.load(tmp_path / name / "level-2.pt", weights_only=True)
        for name in ("whole", "broken")
    ]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_the_cnn_has_the_size_of_the_paper_and_begins_by_he_s_rule():
    torch.manual_seed(0)
    net = nm.models.mnist_cnn(bias="all")
    weights = [p for p in net.parameters() if p.dim() > 1]
    shapes = [(32, 1, 5, 5), (64, 32, 3, 3), (1024, 3136), (10, 1024)]
    assert [tuple(p.shape) for p in weights] == shapes
    for p in weights:  # to five standard deviations of the estimate
        expected = (2 / p[0].numel()) ** 0.5
        assert p.std().item() == pytest.approx(expected, rel=5 / (2 * p.numel()) ** 0.5)
    biases = [p for p in net.parameters() if p.dim() == 1]
    assert [len(p) for p in biases] == [32, 64, 1024, 10]
    assert not any(p.any() for p in biases)
    homogeneous = nm.models.mnist_cnn()  # the bias of the first layer alone
    assert sum(p.numel() for p in homogeneous.parameters()) == 3_240_768
    assert homogeneous(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


@pytest.mark.slow
def test_the_full_vgg_takes_a_step():
    net = training.make_net(
        {"net": "vgg", "bias": training.WITHOUT_BIAS, "seed": 0}, training.SCALES["paper"]
    )
    assert sum(p.numel() for p in net.parameters()) > 14_000_000
    random = torch.Generator().manual_seed(0)
    data = (torch.rand(4, 3, 32, 32, generator=random), torch.arange(4))
    history = nm.train(
        net, data, until=nm.Epochs(1), lr=nm.ConstantLR(1e-3), batch_size=2, progress=False
    )
    assert history.rows[1]["log10_mean_loss"] < history.rows[0]["log10_mean_loss"]


def options(id: str, out: Path, *more: str, jobs: int = 1) -> list[str]:
    """The arguments of a command that reproduces a figure."""
    return ["reproduce", id, *more, "--out", str(out), "--jobs", str(jobs), "--quiet"]


def start(id: str, out: Path, jobs: int, **given) -> subprocess.Popen:
    """That command in a process of its own."""
    command = [sys.executable, "-m", "netmargin", *options(id, out, jobs=jobs)]
    return subprocess.Popen(command, text=True, **given)


def changed(monkeypatch, id, **attributes):
    """Put something else in the place of a figure."""
    known = figure(id)
    module = sys.modules[known.check.__module__]
    monkeypatch.setattr(module, "FIGURE", replace(known, **attributes))


def wait_for_runs(process: subprocess.Popen, runs: Path, number: int) -> None:
    """Wait until a sweep has kept so many runs, or has ended; however busy the machine is."""
    while process.poll() is None and len(list(runs.glob("*.json"))) < number:
        time.sleep(0.02)


@pytest.mark.nightly
def test_a_killed_sweep_goes_on(tmp_path):
    """kill -9 in the middle: done runs are kept, and the rows are those of a whole sweep."""
    runs, process = (
        tmp_path / "chizat-bach/fig2c/smoke/runs",
        start("chizat-bach/fig2c", tmp_path, 1),
    )
    wait_for_runs(process, runs, 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {file.name: file.read_bytes() for file in runs.glob("*.json")}
    assert len(kept) >= 2
    if len(kept) == 12:  # all were done before the signal came: one must be left to go on with
        (runs / f"{kept.popitem()[0]}").unlink()
    assert describe_status("chizat-bach/fig2c", "smoke", tmp_path) == f"{len(kept)} of 12 runs"
    result = reproduce("chizat-bach/fig2c", out=tmp_path, jobs=2, progress=False)
    assert all((runs / name).read_bytes() == content for name, content in kept.items())
    assert [(row["d"], row["seed"]) for row in result.rows] == [
        (d, seed) for d in (4, 12) for seed in range(6)
    ]


@pytest.mark.slow
def test_a_finding_that_is_not_there(out, monkeypatch, capsys):
    check = lambda settings, rows: [Check("pigs fly", False)]  # noqa: E731
    changed(monkeypatch, "chizat-bach/fig4", check=check)
    command = options("chizat-bach/fig4", out)
    assert main([*command, "--check"]) == 1
    assert "not reproduced: chizat-bach/fig4" in capsys.readouterr().err
    assert main(command) == 0
    assert "NO   pigs fly" in capsys.readouterr().out
    assert describe_status("chizat-bach/fig4", "smoke", out) == "DOES NOT HOLD"
    monkeypatch.undo()
    reproduce("chizat-bach/fig4", out=out, jobs=1, progress=False)


@pytest.mark.slow
def test_list_and_gallery(out, tmp_path, capsys):
    reproduce("chizat-bach/fig4", out=out, jobs=1, progress=False)
    assert main(["reproduce", "--list", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert all(id in shown for id in list_figures())
    assert "smoke: holds" in shown
    page = tmp_path / "gallery.md"
    assert "chizat-bach/fig4" in write_gallery(page, out)
    assert "## chizat-bach/fig4" in page.read_text()
    assert (tmp_path / "gallery/chizat-bach-fig4.png").exists()


def test_bad_input(tmp_path, capsys):
    with pytest.raises(nm.ArgumentError, match="no figure 'chizat-bach/fig9'"):
        reproduce("chizat-bach/fig9", out=tmp_path)
    with pytest.raises(nm.ArgumentError, match="scale must be .smoke., .laptop. or .paper."):
        reproduce("chizat-bach/fig4", "huge", out=tmp_path)
    with pytest.raises(nm.ArgumentError, match="jobs"):
        reproduce("chizat-bach/fig4", out=tmp_path, jobs=0)
    assert main(["reproduce", "chizat-bach/fig9"]) == 2
    assert "There is no figure" in capsys.readouterr().err
    assert main(["reproduce"]) == 2
    assert "Which figure?" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(options("chizat-bach/fig4", tmp_path / "file/x")) == 1
    assert "Cannot write" in capsys.readouterr().err


def test_one_figure_without_data_does_not_stop_the_others(tmp_path, monkeypatch, capsys):
    def without_data(run, settings):
        raise nm.DataError("no files")

    changed(monkeypatch, "chizat-bach/fig2a", compute=without_data)
    assert main(options("chizat-bach/fig2a", tmp_path, "chizat-bach/fig4")) == 1
    shown = capsys.readouterr()
    assert "chizat-bach/fig2a: no files" in shown.err
    assert "not done: chizat-bach/fig2a" in shown.err
    assert "chizat-bach/fig4 at smoke scale" in shown.out


@pytest.mark.nightly
def test_ctrl_c_keeps_no_halves(tmp_path):
    """A sweep takes no interrupted training for a result, and goes on past a damaged file."""
    process = start(
        "chizat-bach/fig2c", tmp_path, 2, stderr=subprocess.PIPE, start_new_session=True
    )
    runs = tmp_path / "chizat-bach/fig2c/smoke/runs"
    wait_for_runs(process, runs, 1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    shown = process.communicate()[1]
    assert process.returncode == 130
    assert "The same command goes on" in shown
    kept = {file.name: json.loads(file.read_text()) for file in runs.glob("*.json")}
    next(iter(runs.glob("*.json"))).write_text('{"both')
    rows = reproduce("chizat-bach/fig2c", out=tmp_path, jobs=1, progress=False).rows
    assert len(rows) == 12
    final = {file.name: json.loads(file.read_text()) for file in runs.glob("*.json")}
    assert all(final[name]["both_layers"] == row["both_layers"] for name, row in kept.items())


def test_interrupted_sweeps_say_so(tmp_path, monkeypatch):
    def interrupted(run, settings):
        raise KeyboardInterrupt

    changed(monkeypatch, "chizat-bach/fig4", compute=interrupted)
    with pytest.raises(nm.Interrupted, match="0 of 1 runs are done .* The same command goes on"):
        reproduce("chizat-bach/fig4", out=tmp_path, jobs=1, progress=False)
    assert not list(tmp_path.rglob("*.json"))


def test_runs_belong_to_what_they_depend_on(tmp_path, monkeypatch):
    """To settings, constants and helpers; not to thresholds or the number of runs."""
    known, settings = figure("lyu-li/fig7"), training.SCALES["laptop"]
    run = known.runs(settings)[0]
    key = lambda settings: plan_run(known, settings, run, tmp_path).file.name  # noqa: E731
    assert key(settings) == key(
        {**settings, "slightly": 0.5, "vgg_seeds": 7, "vgg_width": 64, "cnn_seeds": 1}
    )
    assert key(settings) != key({**settings, "cnn_rate": 0.2})
    for id, constant, value in (
        ("wei-2018/table1", "_DECAY_DROPS", {}),
        ("lyu-li/fig7", "_LOOKS", 3),
    ):
        known, settings = figure(id), figure(id).scales["smoke"]
        first = known, settings, known.runs(settings)[0], tmp_path
        before = plan_run(*first).file
        with monkeypatch.context() as other:
            other.setitem(known.compute.__globals__, constant, value)
            assert plan_run(*first).file != before


@pytest.mark.parametrize("id", list_figures())
def test_runs_do_not_depend_on_where_the_library_is(id):
    assert str(Path(nm.__file__).parent) not in runs._definition(figure(id).compute, [])


def test_code_that_is_laid_out_anew_keeps_its_runs(tmp_path, monkeypatch):
    """Spaces and docstrings are not what a run is computed from; a number is."""
    known = figure("chizat-bach/fig4")
    run, settings = known.runs(known.scales["smoke"])[0], known.scales["smoke"]
    original, keys = inspect.getsource, []

    def forget():
        runs._parse_module.cache_clear()
        runs._read_syntax.cache_clear()

    for old, new in (
        ("$", ""),
        ('"""([A-Z])', '"""Now \\1'),
        (" = ", " =  "),
        (r" 1\b(?!\.)", " 1.5"),
    ):
        change = lambda module, old=old, new=new: re.sub(old, new, original(module))  # noqa: E731
        monkeypatch.setattr("netmargin.papers.gallery.runs.inspect.getsource", change)
        forget()
        keys.append(plan_run(known, settings, run, tmp_path).file.name)
    monkeypatch.undo()
    forget()
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_two_commands_at_once_compute_a_run_once(tmp_path, monkeypatch):
    computed = []

    def slow(run, settings):
        computed.append(run)
        time.sleep(0.3)
        return {"found": 1}

    changed(monkeypatch, "chizat-bach/fig4", compute=slow)
    found = []
    take = lambda: found.append(  # noqa: E731
        list(sweep(["chizat-bach/fig4"], "smoke", out=tmp_path, jobs=1, progress=False))
    )
    both = [threading.Thread(target=take) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len(computed) == 1
    assert found == [[("chizat-bach/fig4", None)]] * 2


@pytest.mark.nightly
def test_a_run_whose_process_is_killed(tmp_path):
    """As when memory runs out: the command says so, and keeps the other runs."""
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = start("chizat-bach/fig2c", tmp_path, 2, **pipes)
    wait_for_runs(process, tmp_path / "chizat-bach/fig2c/smoke/runs", 1)
    os.kill(worker_of(process.pid), signal.SIGKILL)
    shown = process.communicate()
    assert process.returncode == 1
    assert "a process was killed" in shown[1]
    assert "the same command goes on" in shown[1]
    assert "Traceback" not in shown[1]


@pytest.mark.slow
def test_results_of_other_settings_are_not_shown(tmp_path, monkeypatch):
    """Neither in the list nor in the gallery; entries of figures that are not at hand stay."""
    page = tmp_path / "gallery.md"
    for id in ("chizat-bach/fig2a", "wei-2018/fig1"):
        reproduce(id, out=tmp_path / "out", jobs=1, progress=False)
    assert write_gallery(page, tmp_path / "out") == ["chizat-bach/fig2a", "wei-2018/fig1"]
    before = page.read_text()
    smoke = figure("wei-2018/fig1").scales["smoke"]
    scales = figure("wei-2018/fig1").scales | {"smoke": smoke | {"seed": 5}}
    changed(monkeypatch, "wei-2018/fig1", scales=scales, finding="other")
    assert write_gallery(page, tmp_path / "out") == ["chizat-bach/fig2a"]
    assert page.read_text() == before
    assert describe_status("wei-2018/fig1", "smoke", tmp_path / "out") == "-"
    (tmp_path / "out/chizat-bach/fig2a/smoke/numbers.json").write_text("{")
    assert write_gallery(page, tmp_path / "out") == []
    assert page.read_text() == before
    assert describe_status("chizat-bach/fig2a", "smoke", tmp_path / "out") == "computed"


def test_numbers_that_are_not_finite_are_refused(tmp_path, monkeypatch):
    compute = lambda run, settings: {"found": float("nan")}  # noqa: E731
    changed(monkeypatch, "chizat-bach/fig4", compute=compute)
    with pytest.raises(nm.DataError, match="not finite"):
        reproduce("chizat-bach/fig4", out=tmp_path, jobs=1, progress=False)
