"""
Training past underflow
=======================

After 100% accuracy the loss goes on falling, soon below what floats can hold, and the normalized
margin goes on rising. In the log domain training goes on as long as you like.
"""

# %%
# ``nm.train`` measures the loss relative to itself, and its rate grows as the loss falls. It undoes
# epochs that went too far, keeps checkpoints, and resumes bit for bit after a kill.
import matplotlib.pyplot as plt
import torch

import netmargin as nm

X, y = nm.datasets.digits(limit=50)
torch.manual_seed(0)
model = nm.models.mlp([64, 32, 10])
history = nm.train(
    model, (X, y), until=nm.LogLossBelow(log10=-80), lr=nm.LossBasedLR(), progress=False
)
print(history.message, "in", history.rows[-1]["epoch"], "epochs")

# %%
# Where float32 would have lost the loss, and its gradient with it, the margin still rises.
rows = [row for row in history.rows if row["accuracy"] == 1]
loss = [row["log10_mean_loss"] for row in rows]
figure, axis = plt.subplots(figsize=(6, 3.2))
axis.plot(loss, [row["normalized_margin"] for row in rows])
axis.axvline(-45, color="0.5", linestyle=":", label="float32 ends here")
axis.set(xlabel="log10 of the mean loss", ylabel="normalized margin")
axis.set(xlim=(0, -80), ylim=(0, None))
axis.legend()
figure.tight_layout()

# %%
# In a loop of your own, :class:`netmargin.RelativeLoss` takes the place of
# ``torch.nn.CrossEntropyLoss``. This linear net on three points leaves float64 behind as well,
# which ends at 1e-308, and finds the largest margin, 3 / sqrt(2).
points = torch.tensor([[2.0, 1.0], [-1.0, -2.0], [1.0, 3.0]])
labels = torch.tensor([1, 0, 1])
linear = torch.nn.Linear(2, 1, bias=False)
criterion = nm.RelativeLoss()
optimizer = torch.optim.SGD(linear.parameters(), lr=2.0)
for _ in range(500):
    optimizer.zero_grad()
    criterion(linear(points), labels).backward()
    optimizer.step()
    criterion.rescale()
print(f"the loss of the own loop is 1e{criterion.log_loss / 2.3026:.0f}")
print(nm.measure(linear, (points, labels)).normalized_margin, 3 / 2**0.5)
