"""Several processes that share the samples of a call: the results are those of one process."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

import netmargin as nm
from netmargin.nets.processes import is_own_batch, processes_sharing, sum_over_processes
from netmargin.nets.sameness import digest_of
from tests import shared_run

ROOT = Path(__file__).parents[1]


def start(name: str, folder: Path, processes: int = 2) -> list[subprocess.Popen]:
    """Start the processes of a run."""
    folder.mkdir(exist_ok=True)
    (folder / "meeting").unlink(missing_ok=True)
    return [
        subprocess.Popen(
            [sys.executable, "-m", "tests.shared_run", name, str(folder)],
            cwd=ROOT,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(processes)}
            | {"OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]


def results(name: str, folder: Path, processes: int = 2) -> list[dict]:
    """What the processes of a run returned."""
    for process in start(name, folder, processes):
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    return [torch.load(folder / f"{name}-{rank}.pt") for rank in range(processes)]


def difference(one: dict, two: dict) -> float:
    """The largest relative difference of two dicts of weights."""
    return max(float((one[name] - two[name]).abs().max() / two[name].abs().max()) for name in one)


def test_without_torchrun_nothing_is_split(monkeypatch):
    with nm.split_samples():
        assert processes_sharing() == 1
        assert is_own_batch(1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(nm.ArgumentError, match=r"2 processes.*init_process_group"):
        nm.split_samples().__enter__()


@contextmanager
def group_of_one(backend: str):
    """A group whose only process is this one."""
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def test_a_backend_for_other_devices_is_said():
    with (
        group_of_one("cuda:gloo"),
        pytest.raises(nm.ArgumentError, match=r"'cuda:gloo'. Call init_process_group\(.gloo"),
    ):
        sum_over_processes(torch.zeros(1))


def test_synchronized_statistics_are_measured_and_not_trained_on_a_cpu():
    plain, data = shared_run.make_normalized(), shared_run.make_data(40)
    net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(shared_run.make_normalized())
    assert torch.equal(nm.measure(net, data).q, nm.measure(plain, data).q)
    assert net[1].training
    with (
        group_of_one("gloo"),
        pytest.raises(nm.ModelError, match=r"runs on GPUs only. Call model.eval\(\)"),
    ):
        nm.train(net, data, progress=False)


def test_digests_tell_values_shapes_and_types_apart():
    plain = torch.arange(6.0)
    others = [plain + 1e-6, plain.reshape(2, 3), plain.double(), plain[:5], torch.tensor(1.0)]
    others += [plain.bfloat16(), plain > 2, torch.empty(0), torch.empty(0, 2)]
    assert digest_of(plain) == digest_of(torch.arange(12.0)[:6].clone())
    assert len({digest_of(t) for t in [plain, *others]}) == 1 + len(others)


@pytest.mark.slow
def test_measure_is_that_of_one_process(tmp_path):
    net, (X, y) = shared_run.make_net(), shared_run.make_data()
    one = {
        "pair": shared_run.measured(net, (X, y)),
        "loader": shared_run.measured(net, shared_run.make_loader((X, y))),
        "few": shared_run.measured(net, (X[:50], y[:50])),
    }
    one["synchronized"] = shared_run.measured(shared_run.make_normalized(), (X, y))
    distances = nm.measure(net, (X, y), input_margins=True).input_margins.distances
    for rank, found in enumerate(results("measuring", tmp_path)):
        for name, expected in one.items():
            assert torch.equal(found[name]["q"], expected["q"])
            assert torch.equal(found[name]["labels"], expected["labels"])
            assert found[name]["log_loss"] == expected["log_loss"]
        assert torch.equal(found["boundaries"], distances)
        assert found["watched"] == (2 if rank == 0 else 0)
        assert {row["margin"] for row in found["figure"]} == {float(one["pair"]["q"].min())}


@pytest.mark.slow
def test_certificates_and_radii_are_those_of_one_process(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = shared_run.proving(tmp_path / "one")
    for found in results("proving", tmp_path / "two"):
        assert torch.equal(found["distances"], one["distances"])
        for bound in ("lower", "upper"):
            assert torch.equal(found["radii"][bound], one["radii"][bound])
        for kind in ("certificate", "few"):
            expected = one[kind]
            assert expected["completeness"] == found[kind]["completeness"]
            for name, value in expected.items():
                if name == "completeness":
                    continue
                assert found[kind][name] == pytest.approx(value, rel=1e-9, abs=1e-9), name


@pytest.mark.slow
def test_processes_that_differ_and_errors_of_one_are_said_in_all(tmp_path):
    first, second = results("failing", tmp_path)
    assert first == second
    for name, sentence in {
        "model": "ModelError: The model of process 1 is not that of process 0: parameter '0.weigh",
        "data": "DataError: Process 1 has other data than process 0",
        "batches": "DataError: Process 1 has other data than process 0, or batches of another siz",
        "share": "DataError: Process 1 has other data than process 0",
        "overflow": "NonFiniteOutputError: The model's outputs are NaN or infinite on sample 300.",
        "labels": "DataError: A net with one output takes labels",
        "dropout": "ModelError: The model draws random numbers in training",
        "batchnorm": "ModelError: '1' is a BatchNorm1d in training mode",
        "syncbatchnorm": "ModelError: '1' is a SyncBatchNorm in training mode",
        "buffers": "ModelError: Training changes the buffer '1.running_mean'",
        "training": "DataError: The batches of two processes differ in training",
        "folder": "CheckpointError: ",
        "sharded": "ModelError: Sharded: of parameter '0.weight' every process holds a part",
        "wrapped": "ModelError: Sharded: the model is a FullyShardedDataParallel. Give every",
    }.items():
        assert first[name].startswith(sentence), (name, first[name])


@pytest.mark.slow
def test_training_is_that_of_one_process(tmp_path):
    one = {
        "float64": shared_run.trained(),
        "float32": shared_run.trained(epochs=20, dtype=torch.float32),
        "one each": shared_run.trained(epochs=1, batch_size=1),
        "constant": shared_run.trained(epochs=20, lr=0.01),
    }
    first, second = results("training", tmp_path)
    for name, expected in one.items():
        bound = 1e-3 if name == "float32" else 1e-6
        assert difference(first[name]["weights"], expected["weights"]) < bound, name
        assert difference(first[name]["weights"], second[name]["weights"]) == 0
        assert first[name]["rows"] == second[name]["rows"]
        assert len(first[name]["rows"]) == len(expected["rows"])
    assert nm.History.load(tmp_path / "run" / "history.jsonl").rows == first["float64"]["rows"]


@pytest.mark.slow
def test_a_killed_process_ends_the_others_and_the_run_goes_on(tmp_path):
    whole = results("long", tmp_path / "whole")[0]
    draw = random.Random(0)
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        running = start("long", folder)
        history = folder / "run" / "history.jsonl"
        while not (history.exists() and history.read_text().count("\n") > 2):
            time.sleep(0.02)
        time.sleep(draw.random() * 0.3)
        victim = attempt % 2
        running[victim].send_signal(signal.SIGKILL)
        said = [process.communicate(timeout=120)[1] for process in running]
        assert running[victim].returncode == -signal.SIGKILL  # it was not over yet
        assert "Another process of this run has ended" in said[1 - victim]
        if victim == 1:
            assert "The last accepted epoch is saved in" in said[0]
        # The same number of processes repeats the run bit for bit; one process up to rounding.
        processes = 2 - attempt % 2
        for resumed in results("long", folder, processes):
            if processes == 2:
                assert resumed["rows"] == whole["rows"]
            assert len(resumed["rows"]) == 31
            assert difference(resumed["weights"], whole["weights"]) < 1e-6


def rows_on_disk(folder: Path) -> int:
    """How many epochs the history of a run holds."""
    history = folder / "run" / "history.jsonl"
    return history.read_text().count("\n") if history.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["agent", "second"])
def test_sigterm_saves_the_run_which_goes_on_with_any_number_of_processes(victim, tmp_path):
    whole = shared_run.trained(epochs=30)
    agent = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "-m", "tests.shared_run", "unsaved"),
            str(tmp_path),
        ],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    while rows_on_disk(tmp_path) < 4:
        assert agent.poll() is None
        time.sleep(0.02)
    second = int((tmp_path / "process-1").read_text())
    os.kill(agent.pid if victim == "agent" else second, signal.SIGTERM)
    _, said = agent.communicate(timeout=60)
    assert agent.returncode not in (0, None)
    assert re.search(r"(ended by SIGTERM after epoch|The last accepted epoch is saved in)", said)
    # Nothing that was accepted is lost, though no checkpoint was due.
    rows = rows_on_disk(tmp_path)
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert 3 <= saved["epoch"] == rows - 1 < 30
    for resumed in results("unsaved", tmp_path, 1 if victim == "agent" else 2):
        assert difference(resumed["weights"], whole["weights"]) < 1e-6
        assert len(resumed["rows"]) == 31
