"""
Support vectors: which training samples does the net rest on?
=============================================================

At a max-margin point a net is carried by a few of its training samples, as a support vector machine
is. ``certify`` finds them with their multipliers.
"""

# %%
import matplotlib.pyplot as plt
import torch

import netmargin as nm

X, y = nm.datasets.digits(limit=300)
torch.manual_seed(0)
model = nm.models.mlp([64, 32, 10], power=2)
nm.maximize_margin(model, (X, y), multiplier_steps=8, progress=False)
certificate = nm.certify(model, (X, y), tol=1e-2)
print(certificate)

# %%
# Each constraint says that a sample's own class beats one other class. Few constraints have a
# multiplier, and few samples carry most of the weight.
shares = torch.zeros(len(X), dtype=torch.float64).index_add(
    0, certificate.constraints[:, 0], certificate.multipliers
)
shares = shares.sort(descending=True).values / shares.sum()
half = int((shares.cumsum(0) < 0.5).sum()) + 1
print(f"{int((shares > 0).sum())} of {len(X)} samples carry weight, and {half} of them half of it")

# %%
# The heaviest ones are the ambiguous digits.
figure, axes = plt.subplots(2, 5, figsize=(8, 3.6))
for axis, index in zip(axes.flat, certificate.support[:10], strict=True):
    axis.imshow(X[index].reshape(8, 8), cmap="gray_r")
    axis.set(title=f"a {y[index]}", xticks=[], yticks=[])
figure.tight_layout()
