"""
Margins of your own model
=========================

One call measures the margins of any classifier written in PyTorch: how far ahead the right class
is, divided by the power of the weights' size by which the scores grow.
"""

# %%
# Some data and a model. Yours go here: inputs, class numbers, and any ``torch.nn.Module`` that
# returns one score per class.
import matplotlib.pyplot as plt
import torch

import netmargin as nm

X, y = nm.datasets.digits(limit=500)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10, bias=False)
)
history = nm.train(model, (X, y), until=nm.LogLossBelow(log10=-10), progress=False)

# %%
# How do the scores grow with the weights? Here with the square of their norm (order 2), each layer
# contributing one.
print(nm.analyse(model, X))

# %%
# The report holds the margin of every sample and every normalization that applies, and explains
# itself.
report = nm.measure(model, (X, y))
print(report)

# %%
# The samples with the smallest margins are those that the net finds hardest.
figure, axes = plt.subplots(1, 5, figsize=(8, 2))
for axis, index in zip(axes, report.q.argsort()[:5], strict=True):
    axis.imshow(X[index].reshape(8, 8), cmap="gray_r")
    axis.set(title=f"{y[index]}: {report.q[index]:.1f}", xticks=[], yticks=[])
figure.suptitle("Smallest margins")
figure.tight_layout()
