"""A run of Lightning with a monitor: `python -m tests.integrations.lightning_run FOLDER RANKS`."""

import sys
from pathlib import Path

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import netmargin as nm
from tests.integrations.nets import picture_net, pictures
from tests.process_end import end_process

BATCH = 20


class Classifier(pl.LightningModule):
    """A net within a module, as most users of Lightning write it."""

    def __init__(self, net: torch.nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def make_module(seed: int = 0, *, plain: bool = False) -> Classifier:
    """A module with fresh weights; a plain one has no dropout and no BatchNorm."""
    torch.manual_seed(seed)
    return Classifier(nm.models.mlp([64, 16, 10]) if plain else picture_net())


def fit(module, folder, monitor, *, epochs, n=60, shuffle=True, ckpt_path=None, **options):
    """Train, with a checkpoint after every epoch; return the trainer."""
    trainer = pl.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=CSVLogger(folder),
        callbacks=[monitor, ModelCheckpoint(dirpath=folder, filename="{epoch}", save_top_k=-1)],
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    pl.seed_everything(1, verbose=False)
    dataset, sampler = TensorDataset(*pictures(n)), None
    if trainer.world_size > 1:  # Lightning's own would shuffle
        sampler = DistributedSampler(
            dataset, trainer.world_size, trainer.global_rank, shuffle=shuffle
        )
    loader = DataLoader(dataset, BATCH // trainer.world_size, shuffle=shuffle, sampler=sampler)
    trainer.fit(module, loader, ckpt_path=ckpt_path)
    return trainer


def run(folder: Path, processes: int) -> None:
    """Train in so many processes, and look after every epoch."""
    watched = nm.callbacks.LightningMarginMonitor(pictures(40), folder=folder / "margins")
    strategy = {"strategy": "ddp" if processes > 1 else "auto", "devices": processes}
    strategy["use_distributed_sampler"] = False
    fit(make_module(plain=True), folder, watched, epochs=3, shuffle=False, **strategy)


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
    end_process()
