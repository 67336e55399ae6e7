"""Several figures at once: every run once, whatever fails, whoever is killed."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import netmargin as nm
from netmargin.papers.gallery.figure import figure
from netmargin.papers.gallery.sweep import sweep

IDS = ["lyu-li/fig8", "lyu-li/table1", "chizat-bach/fig4", "lyu-li/fig3"]
"""fig3 draws runs that table1 has as well."""


class Sweeps:
    """The computations of figures, replaced by ones that note their runs."""

    def __init__(self, monkeypatch, fails=lambda id: None):
        self.computed: list[str] = []
        self.fails = fails
        for id in IDS:
            known = figure(id)
            name = id.replace("-", "_").replace("/", ".")
            module = importlib.import_module(f"netmargin.papers.{name}")
            compute = self.train if id in ("lyu-li/table1", "lyu-li/fig3") else self.noting(id)
            changed = known.__class__(**(vars(known) | {"compute": compute}))
            monkeypatch.setattr(module, "FIGURE", changed)

    def noting(self, id):
        def compute(run, settings, *folder):
            if error := self.fails(id):
                raise error
            self.computed.append(id)
            return {"found": 1}

        return compute

    def train(self, run, settings, folder):
        return self.noting("lyu-li/table1")(run, settings, folder)


def together(out, ids=IDS):
    return list(sweep(ids, "smoke", out=out, jobs=1, progress=False))


def planned(id):
    known = figure(id)
    return known.runs(known.scales["smoke"])


def test_runs_that_figures_share_are_computed_once(tmp_path, monkeypatch):
    sweeps = Sweeps(monkeypatch)
    found = together(tmp_path)
    assert sorted(found) == sorted((id, None) for id in IDS)
    trained = {json.dumps(run) for id in ("lyu-li/table1", "lyu-li/fig3") for run in planned(id)}
    assert sweeps.computed.count("lyu-li/table1") == len(trained)
    assert sweeps.computed.count("lyu-li/fig8") == len(planned("lyu-li/fig8"))
    # Again: all is there, and every figure is named at once.
    before = len(sweeps.computed)
    assert together(tmp_path) == [(id, None) for id in IDS]
    assert len(sweeps.computed) == before


def test_a_run_that_fails_fails_its_figures_and_no_others(tmp_path, monkeypatch):
    lost = nm.DataError("no images")
    sweeps = Sweeps(monkeypatch, lambda id: lost if id == "lyu-li/table1" else None)
    found = dict(together(tmp_path))
    trained = dict.fromkeys(["lyu-li/table1", "lyu-li/fig3"], lost)
    assert found == dict.fromkeys(IDS, None) | trained
    assert set(sweeps.computed) == {"lyu-li/fig8", "chizat-bach/fig4"}


def test_ctrl_c_says_how_many_runs_are_kept(tmp_path, monkeypatch):
    sweeps = Sweeps(monkeypatch)
    sweeps.fails = lambda id: KeyboardInterrupt() if len(sweeps.computed) == 2 else None
    with pytest.raises(nm.Interrupted, match=r"2 of \d+ runs are done and kept in .*goes on"):
        together(tmp_path)
    assert len(list(tmp_path.glob("**/runs/*.json"))) == 2
    sweeps.fails = lambda id: None
    together(tmp_path)
    assert len(list(tmp_path.glob("**/runs/*.json"))) == len(sweeps.computed)


@pytest.mark.nightly
def test_a_process_that_is_killed_costs_its_run_and_no_figure(tmp_path):
    ids = ["chizat-bach/fig2c", "wei-2018/fig1"]
    command = [*(sys.executable, "-m", "netmargin", "reproduce"), *ids]
    command += ["--out", str(tmp_path), "--jobs", "2", "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    runs = tmp_path / "chizat-bach/fig2c/smoke/runs"
    while not list(runs.glob("*.json")):
        assert process.poll() is None
        time.sleep(0.02)
    kept = {file: file.stat().st_mtime_ns for file in runs.glob("*.json")}
    os.kill(worker_of(process.pid), signal.SIGKILL)
    out, said = process.communicate()
    assert process.returncode == 0, said
    assert "a process was killed" in said
    assert "one figure after the other" in said
    assert all(f"{id} at smoke scale" in out for id in ids)
    assert all(file.stat().st_mtime_ns == written for file, written in kept.items())


def worker_of(process: int) -> int:
    """A process of joblib that computes for another one."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    named = {child: Path(f"/proc/{child}/cmdline").read_text() for child in children}
    return next(
        int(child) for child, name in named.items() if "loky" in name and "tracker" not in name
    )
