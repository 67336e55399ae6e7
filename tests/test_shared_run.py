"""Several processes that share the samples of a call: the results are those of one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import netmargin as nm
from netmargin.nets.shared import digest_of, is_own_batch, processes_sharing
from tests import shared_run

ROOT = Path(__file__).parents[1]


def start(names: str, folder: Path, processes: int = 2) -> list[subprocess.Popen]:
    """Start the processes of a run of some functions, one after the other."""
    folder.mkdir(exist_ok=True)
    (folder / "meeting").unlink(missing_ok=True)
    return [
        subprocess.Popen(
            [sys.executable, "-m", "tests.shared_run", names, str(folder)],
            cwd=ROOT,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(processes)}
            | {"OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]


def results(names: str, folder: Path, processes: int = 2) -> dict[str, list[dict]]:
    """What the processes of a run returned, by the names of its functions."""
    for process in start(names, folder, processes):
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    return {
        name: [torch.load(folder / f"{name}-{rank}.pt") for rank in range(processes)]
        for name in names.split(",")
    }


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """What two processes measure, and the errors that they are told, of one start."""
    return results("measuring,failing", tmp_path_factory.mktemp("together"))


def test_without_torchrun_nothing_is_split(monkeypatch):
    with nm.split_samples():
        assert processes_sharing() == 1
        assert is_own_batch(1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(nm.ArgumentError, match=r"2 processes.*init_process_group"):
        nm.split_samples().__enter__()


def test_digests_tell_values_shapes_and_types_apart():
    plain = torch.arange(6.0)
    others = [plain + 1e-6, plain.reshape(2, 3), plain.double(), plain[:5], torch.tensor(1.0)]
    others += [plain.bfloat16(), plain > 2, torch.empty(0), torch.empty(0, 2)]
    assert digest_of(plain) == digest_of(torch.arange(12.0)[:6].clone())
    assert len({digest_of(t) for t in [plain, *others]}) == 1 + len(others)


@pytest.mark.slow
def test_measure_is_that_of_one_process(together):
    net, (X, y) = shared_run.make_net(), shared_run.make_data()
    one = {
        "pair": shared_run.measured(net, (X, y)),
        "loader": shared_run.measured(net, shared_run.make_loader((X, y))),
        "few": shared_run.measured(net, (X[:50], y[:50])),
    }
    one["synchronized"] = shared_run.measured(shared_run.make_normalized(), (X, y))
    distances = nm.measure(net, (X, y), input_margins=True).input_margins.distances
    for rank, found in enumerate(together["measuring"]):
        for name, expected in one.items():
            assert torch.equal(found[name]["q"], expected["q"])
            assert torch.equal(found[name]["labels"], expected["labels"])
            assert found[name]["log_loss"] == expected["log_loss"]
        assert torch.equal(found["boundaries"], distances)
        assert found["watched"] == (2 if rank == 0 else 0)
        assert {row["margin"] for row in found["figure"]} == {float(one["pair"]["q"].min())}


@pytest.mark.nightly
def test_certificates_and_radii_are_those_of_one_process(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = shared_run.proving(tmp_path / "one")
    for found in results("proving", tmp_path / "two")["proving"]:
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
def test_processes_that_differ_and_errors_of_one_are_said_in_all(together):
    first, second = together["failing"]
    assert first == second
    for name, sentence in {
        "model": "ModelError: The model of process 1 is not that of process 0: parameter '0.weigh",
        "data": "DataError: Process 1 has other data than process 0",
        "batches": "DataError: Process 1 has other data than process 0, or batches of another siz",
        "share": "DataError: Process 1 has other data than process 0",
        "overflow": "NonFiniteOutputError: The model's outputs are NaN or infinite on sample 300.",
        "labels": "DataError: A net with one output takes labels",
        "training": "ArgumentError: train does not split samples",
        "sharded": "ModelError: Sharded: of parameter '0.weight' every process holds a part",
        "wrapped": "ModelError: Sharded: the model is a FullyShardedDataParallel. Give every",
    }.items():
        assert first[name].startswith(sentence), (name, first[name])


@pytest.mark.nightly
def test_a_process_that_ends_is_said_in_the_others(tmp_path):
    first, second = start("lost", tmp_path)
    _, said = first.communicate(timeout=120)
    assert second.wait(timeout=120) == 3
    assert "LostProcessError: Another process of this run has ended" in said
