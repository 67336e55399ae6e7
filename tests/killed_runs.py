"""Run as a script: `killed_runs.py FOLDER COUNT`. Kills training runs at random moments and resumes each.

One process imports everything and forks the runs (with one thread each), because importing torch takes longer than they do.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

import netmargin as nm


def run(folder: Path, epochs: int = 60) -> None:
    torch.manual_seed(0)
    model = nm.models.mlp([64, 24, 10])
    data = nm.datasets.digits(limit=300)
    nm.train(model, data, until=nm.Epochs(epochs), checkpoint_dir=folder, checkpoint_seconds=0.02, progress=False)
    torch.save(list(model.parameters()), folder / "final.pt")


def start(folder: Path) -> int:
    child = os.fork()
    if child == 0:
        run(folder)
        os._exit(0)
    return child


def finish(folder: Path) -> tuple[bytes, list]:
    _, status = os.waitpid(start(folder), 0)
    assert status == 0, f"run in {folder} failed"
    return (folder / "history.jsonl").read_bytes(), torch.load(folder / "final.pt")


def main() -> None:
    root, count = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    run(root / "first", epochs=1)  # whatever is imported late is imported before the forks
    began = time.monotonic()
    history, weights = finish(root / "whole")
    duration = time.monotonic() - began
    draw, same, early = random.Random(0), 0, 0
    for index in range(count):
        folder = root / str(index)
        child = start(folder)
        time.sleep(draw.uniform(0.2, 0.95) * duration)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        early += os.WIFSIGNALED(status) and (folder / "checkpoint.pt").exists()
        resumed_history, resumed_weights = finish(folder)
        same += resumed_history == history and all(torch.equal(a, b) for a, b in zip(resumed_weights, weights, strict=True))
    print(f"{same} of {count} identical; {early} were killed after their first checkpoint; a whole run takes {duration:.2f} s")
    assert early >= count // 4  # the moments are drawn for an idle machine


if __name__ == "__main__":
    main()
