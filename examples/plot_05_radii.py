"""
Radii: how far must an input move to be misclassified?
======================================================

Between the certified radius, inside which no change flips the answer, and the attacked one, at
which a change was found that does, lies the truth. For dense ReLU nets both meet.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

import netmargin as nm

X, y = nm.datasets.digits(limit=1000)
X_test, y_test = nm.datasets.digits("test")
torch.manual_seed(0)
model = nm.models.mlp([64, 32, 10])
nm.train(model, (X, y), until=nm.LogLossBelow(log10=-4), progress=False)
radii = nm.robustness(model, (X_test[:30], y_test[:30]), progress=False)
print(radii)

# %%
# Sample by sample, from the nearest to the boundary to the farthest:
order = np.argsort(radii.upper)
figure, axis = plt.subplots(figsize=(6, 3))
axis.plot(radii.upper[order], "o", color="C1", label="a misclassified input was found")
axis.plot(radii.lower[order], "_", color="C0", markersize=9, label="proved: none is nearer")
axis.set(xlabel="test images, by radius", ylabel="Euclidean distance", ylim=(0, None))
axis.legend()
figure.tight_layout()

# %%
# The sizes are those of the inputs: here pixels lie between 0 and 1. Multiplying all weights
# changes no decision, and no radius.
