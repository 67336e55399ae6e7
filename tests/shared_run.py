"""One process of a distributed run: `python -m tests.shared_run FUNCTION,... FOLDER`, with RANK
and WORLD_SIZE in its environment.

The processes find each other by a file in the folder. What a function returns is written to the
folder, one file for each rank.
"""

import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from matplotlib.figure import Figure as Drawing
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

import netmargin as nm
from netmargin.kkt import constraint_search
from netmargin.nets.shared import alone
from netmargin.papers.gallery.figure import figure
from tests.process_end import end_process

N = 530


def make_net(*, seed: int = 0, dtype=torch.float64) -> torch.nn.Module:
    """A small net with fresh weights."""
    torch.manual_seed(seed)
    return nm.models.mlp([5, 20, 3]).to(dtype)


def make_normalized() -> torch.nn.Module:
    """A net with batch statistics, in training mode."""
    torch.manual_seed(2)
    layers = torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3)
    return torch.nn.Sequential(*layers).double()


def make_data(n: int = N, *, outputs: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples, with labels of a teacher net."""
    torch.manual_seed(1)
    X = torch.randn(n, 5, dtype=torch.float64)
    return X, nm.models.mlp([5, 6, outputs]).double()(X).argmax(1)


def make_separating() -> torch.nn.Module:
    """A net that classifies all samples correctly."""
    torch.manual_seed(3)
    net = nm.models.mlp([5, 40, 3], bias="none").double()
    with alone():
        nm.train(net, make_data(180), until=nm.LogLossBelow(log10=-3), progress=False)
    return net


def make_loader(data, size: int = 70):
    """The data in batches."""
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*data), batch_size=size)


def measured(net, data, **options) -> dict:
    """What `measure` says, as plain values."""
    report = nm.measure(net, data, **options)
    return {"q": report.q, "labels": report.labels, "log_loss": report.log_loss}


def measuring(folder: Path) -> dict:
    """Everything that is measured together."""
    net, (X, y) = make_net(), make_data()
    found = {
        "pair": measured(torch.nn.parallel.DistributedDataParallel(net), (X, y)),
        "loader": measured(net, make_loader((X, y))),
        "few": measured(net, (X[:50], y[:50])),
        "boundaries": nm.measure(net, (X, y), input_margins=True).input_margins.distances,
    }
    synchronized = torch.nn.SyncBatchNorm.convert_sync_batchnorm(make_normalized())
    found["synchronized"] = measured(synchronized, (X, y))
    watch = nm.Watch(net, (X, y), folder=folder / "watch")
    watch.step()
    return found | {"watched": len(watch.history), "figure": reproduced(folder / "figures")}


def reproduced(folder: Path) -> list[dict]:
    """The rows of a figure whose runs measure a net."""
    known = figure("chizat-bach/fig4")

    def compute(run, settings):
        return {"margin": nm.measure(make_net(), make_data()).q_min}

    changed = replace(known, compute=compute, draw=lambda *_: Drawing(), check=lambda *_: [])
    with mock.patch.object(sys.modules[known.check.__module__], "FIGURE", changed):
        # One process: the runs are computed in this one, where samples are split otherwise.
        return nm.papers.reproduce(known.id, out=folder, jobs=1, progress=False).rows


def certified(net, data) -> dict:
    """What `certify` says, as plain values."""
    # Few constraints at first, so that others are searched for among the samples of all processes.
    with mock.patch.object(constraint_search, "_INITIAL_CONSTRAINTS", 60):
        found = nm.certify(net, data, tol=1e-9)
    names = ("epsilon", "epsilon_lower", "delta", "norm", "q_min", "alignment", "loss_delta")
    numbers = {name: getattr(found, name) for name in names}
    return numbers | {"completeness": str(found.completeness)}


def robust(net, data, **options) -> dict:
    """What `robustness` says, as plain values."""
    found = nm.robustness(net, data, progress=False, **options)
    return {"lower": torch.tensor(found.lower), "upper": torch.tensor(found.upper)}


def proving(_: Path) -> dict:
    """Everything that is proved together, of a net that is right."""
    net, (X, y) = make_separating(), make_data(180)
    return {
        "distances": nm.input_margins(net, (X, y), batch_size=40, progress=False).distances,
        "certificate": certified(net, (X, y)),
        "few": certified(net, (X[:50], y[:50])),
        "radii": robust(net, (X[:30], y[:30]), batch_size=7),
    }


def failing(_: Path) -> dict:
    """The errors of calls that one process, or each of them, cannot answer."""
    rank, (X, y) = dist.get_rank(), make_data()
    broken = X.clone()
    broken[300] = 1e308
    one_off = X.clone()
    one_off[450, 2] += rank * 1e-12
    calls = {
        "model": lambda: nm.measure(make_net(seed=rank), (X, y)),
        "data": lambda: nm.measure(make_net(), (one_off, y)),
        "batches": lambda: nm.measure(make_net(), (X, y), batch_size=100 + rank),
        "share": lambda: nm.measure(make_net(), make_loader((X[rank::2], y[rank::2]))),
        "overflow": lambda: nm.measure(make_net(), (broken, y)),
        "labels": lambda: nm.measure(
            nm.models.mlp([5, 4, 1]).double(), (X, torch.arange(N).clamp(199, 200) - 200)
        ),
        "training": lambda: nm.train(make_net(), (X, y), progress=False),
        "sharded": lambda: nm.measure(fully_shard(make_net()), (X, y)),
        "wrapped": lambda: nm.measure(
            FullyShardedDataParallel(make_net(), device_id=torch.device("cpu")), (X, y)
        ),
    }
    torch.manual_seed(0)
    found = {}
    for name, call in calls.items():
        try:
            call()
        except nm.NetmarginError as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def lost(folder: Path) -> None:
    """A call in which one process has ended."""
    if dist.get_rank() == 1:
        os._exit(3)
    nm.measure(make_net(), make_data())


FUNCTIONS = {f.__name__: f for f in (measuring, proving, failing, lost)}

if __name__ == "__main__":
    names, folder = sys.argv[1], Path(sys.argv[2])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=100),
    )
    with nm.split_samples():
        for name in names.split(","):
            torch.save(FUNCTIONS[name](folder), folder / f"{name}-{rank}.pt")
    end_process()
