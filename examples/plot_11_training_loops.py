"""
Margins in the training loop that you have
==========================================

A watch measures the margins while your own loop, Lightning or Hugging Face's Trainer trains.
Nothing else about the run changes.
"""

# %%
# A loop of your own calls ``watch.step()`` after every epoch.
import logging
import tempfile
import warnings

import matplotlib.pyplot as plt
import torch
from torch.utils.data import DataLoader, TensorDataset

import netmargin as nm

X, y = nm.datasets.digits(limit=500)
loader = DataLoader(TensorDataset(X, y), batch_size=50, shuffle=True)
torch.manual_seed(0)
net = nm.models.mlp([64, 64, 10])
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
watch = nm.Watch(net, (X[:100], y[:100]))
for _ in range(30):
    for inputs, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
    watch.step()
print(watch.history)

# %%
# In Lightning it is a callback; its values go to all loggers of the trainer as well.
import lightning.pytorch as pl

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nm.models.mlp([64, 64, 10])

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)


monitor = nm.callbacks.LightningMarginMonitor((X[:100], y[:100]))
with tempfile.TemporaryDirectory() as folder:
    trainer = pl.Trainer(
        max_epochs=30,
        callbacks=[monitor],
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), loader)
print(monitor.watch.history)

# %%
# Both are histories as ``nm.train`` writes them. Margins count once all samples are right.
figure, axis = plt.subplots(figsize=(6, 3))
for name, history in (("Adam, own loop", watch.history), ("SGD, Lightning", monitor.watch.history)):
    axis.plot(history.column("epoch"), history.column("normalized_margin"), label=name)
axis.axhline(0, color="0.7")
axis.set(xlabel="epoch", ylabel="normalized margin of 100 samples", ylim=(-0.02, None))
axis.legend()
figure.tight_layout()
