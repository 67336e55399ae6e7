"""Run as a script: `killed_runs.py FOLDER KILLS KIND...`. Kills training runs at random moments and
resumes each.

One process imports everything and forks the runs (with one thread each), because importing torch
takes longer than they do.
"""

import contextlib
import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
)

import netmargin as nm
from netmargin.training import LearningRate


class Transformed(Dataset):
    """The digits, each changed by a function when it is read."""

    def __init__(self, data, change):
        self.X, self.y, self.change = data[0].float(), data[1], change

    def __len__(self):
        return len(self.X)

    def __getitem__(self, index):
        return self.change(self.X[index]), self.y[index]


class Noisy(Transformed):
    """Draws from generators of its own."""

    def __init__(self, data):
        super().__init__(data, None)
        self.normal, self.sign = np.random.default_rng(5), np.random.RandomState(6)
        self.other = np.random.Generator(np.random.MT19937(7))
        self.philox = np.random.Generator(np.random.Philox(8))
        self.sfc = np.random.Generator(np.random.SFC64(9))

    def __getitem__(self, index):
        noise = self.normal.normal() + self.other.normal() + self.philox.normal()
        noise += self.sfc.normal() * self.sign.choice([-1, 1])
        return self.X[index] + 0.1 * noise, self.y[index]


class Counting:
    """Batches whose order depends on how often they were read, which nothing saves."""

    def __init__(self, data):
        self.data, self.passes = data, 0

    def __iter__(self):
        self.passes += 1
        order = torch.randperm(
            len(self.data[0]), generator=torch.Generator().manual_seed(self.passes)
        )
        return ((self.data[0][part], self.data[1][part]) for part in order.split(50))


class SavedCounting(Counting):
    """The same, with what a resume needs."""

    def state_dict(self):
        return {"passes": self.passes}

    def load_state_dict(self, state):
        self.passes = state["passes"]


class Stream(IterableDataset):
    """An iterable data set that shuffles by a generator of its own."""

    def __init__(self, data):
        self.X, self.y, self.generator = data[0].float(), data[1], random.Random(3)

    def __iter__(self):
        order = self.generator.sample(range(len(self.X)), len(self.X))
        return ((self.X[index], self.y[index]) for index in order)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def loader(data, change=None, **options):
    plain = TensorDataset(data[0].float(), data[1])
    if not {"shuffle", "sampler", "batch_sampler"} & set(options):
        options["shuffle"] = True
    if "batch_sampler" not in options:
        options["batch_size"] = 50
    return DataLoader(plain if change is None else Transformed(data, change), **options)


RESTORED = {
    "arrays": lambda d: d,
    "loader": lambda d: loader(d),
    "generator of the loader": lambda d: loader(d, generator=seeded(5)),
    "generator of the sampler": lambda d: loader(
        d, sampler=RandomSampler(d[0], generator=seeded(5))
    ),
    "generator of the batch sampler": lambda d: loader(
        d, batch_sampler=BatchSampler(RandomSampler(d[0], generator=seeded(5)), 50, False)
    ),
    "numpy's global generator": lambda d: loader(
        d, lambda x: x + 0.1 * np.random.standard_normal()
    ),
    "Python's global generator": lambda d: loader(d, lambda x: x * random.uniform(0.9, 1.1)),
    "generators of the data set": lambda d: DataLoader(
        Subset(Noisy(d), range(len(d[0]))), batch_size=50, shuffle=True
    ),
    "worker processes": lambda d: loader(
        d, lambda x: x + 0.1 * np.random.standard_normal(), num_workers=2
    ),
    "iterable data set": lambda d: DataLoader(Stream(d), batch_size=50),
    "iterable of one's own with state_dict": SavedCounting,
}
TOLD = {
    "iterable of one's own": Counting,
    "persistent workers": lambda d: loader(d, num_workers=1, persistent_workers=True),
}
KINDS = RESTORED | TOLD


def rate_for(kind: str) -> LearningRate:
    """A search for the rate, but where the loss is noisy: it would reject most epochs there."""
    return (
        nm.LossBasedLR()
        if kind in ("arrays", "loader", "generator of the loader")
        else nm.ConstantLR(0.05)
    )


def run(folder: Path, kind: str, epochs: int) -> None:
    torch.manual_seed(0)
    model = nm.models.mlp([64, 24, 10])
    data = KINDS[kind](nm.datasets.digits(limit=300))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nm.train(
            model,
            data,
            until=nm.Epochs(epochs),
            lr=rate_for(kind),
            checkpoint_dir=folder,
            checkpoint_seconds=0.02,
            progress=False,
        )
    if any("not bit for bit" in str(w.message) for w in caught):
        (folder / "told").touch()
    torch.save(list(model.parameters()), folder / "final.pt")


def start(folder: Path, kind: str) -> int:
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            run(folder, kind, epochs=10 if "workers" in kind or "processes" in kind else 50)
        finally:
            os._exit(0 if (folder / "final.pt").exists() else 1)
    return child


def finish(folder: Path, kind: str) -> tuple[bytes, list]:
    _, status = os.waitpid(start(folder, kind), 0)
    assert status == 0, f"run in {folder} failed"
    return (folder / "history.jsonl").read_bytes(), torch.load(folder / "final.pt")


def main() -> None:
    root, kills, kinds = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(KINDS)
    torch.set_num_threads(1)
    draw, early, good = random.Random(0), 0, 0
    for kind in kinds:
        folder = root / kind.replace(" ", "-").replace("'", "")
        # Whatever is imported late is imported before the forks.
        run(folder / "first", kind, epochs=1)
        began = time.monotonic()
        history, weights = finish(folder / "whole", kind)
        duration, same = time.monotonic() - began, 0
        for index in range(kills):
            part = folder / str(index)
            child = start(part, kind)
            time.sleep(draw.uniform(0.2, 0.95) * duration)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            with contextlib.suppress(ProcessLookupError):  # its workers hold our output open
                os.killpg(child, signal.SIGKILL)
            early += os.WIFSIGNALED(status) and (part / "checkpoint.pt").exists()
            resumed_history, resumed_weights = finish(part, kind)
            same += resumed_history == history and all(
                torch.equal(a, b) for a, b in zip(resumed_weights, weights, strict=True)
            )
        told = (folder / "whole" / "told").exists()
        good += kills if told else same
        print(
            f"{kind}: {same} of {kills} identical; {'told beforehand' if told else 'promised'};"
            f" {duration:.1f} s a run"
        )
    count = kills * len(kinds)
    print(
        f"{good} of {count} identical or told beforehand; {early} were killed after their first"
        " checkpoint"
    )
    assert early >= count // 4  # the moments are drawn for an idle machine


if __name__ == "__main__":
    main()
