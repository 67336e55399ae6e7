"""
From the kernel regime to the best margin
=========================================

A wide two-layer net that starts with large weights first behaves as its tangent kernel, a linear
model of its gradients at the start, and in the end finds the best margin of any width (Chizat and
Bach 2020).
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

import netmargin as nm

X, y = nm.datasets.gaussian_xor(40, 2, seed=0)
X = X + 0.6 * torch.rand(X.shape, generator=torch.Generator().manual_seed(0)) - 0.3
best = nm.solvers.f1_max_margin(X, y)

# %%
# Many nets are trained at once, in one tensor program: here three initializations of one width.
snapshots = [0, 100, 300, 1000, 2000, 4000]
runs = nm.twolayer.train_both_layers(
    X,
    y,
    width=400,
    steps=4000,
    seeds=range(3),
    scale=10.0,
    paired=True,
    rate=0.002,
    snapshots=snapshots,
)
print(runs)

# %%
# The normalized margin along the way, and the best possible one. The classifier of the tangent
# kernel, where the runs are early on, has a smaller margin than it could have.
figure, axis = plt.subplots(figsize=(6, 3))
axis.plot(runs.times, runs.margins, color="C0")
axis.axhline(best.margin, color="k", linestyle=":", label="best of any width, proved")
axis.set(xlabel="steps", ylabel="margin", xscale="symlog", ylim=(0, None))
axis.legend()
figure.tight_layout()

# %%
# The decision of the first run over time: smooth at first, then piecewise linear with few pieces.
grid = np.linspace(-1.8, 1.8, 121)
points = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2))
for axis, snapshot in zip(axes, (runs.snapshots[k] for k in (1, 2, -1)), strict=True):
    values = snapshot.measures[0].decision_function(points).reshape(121, 121)
    axis.contourf(grid, grid, np.sign(values), cmap="RdBu", alpha=0.35)
    axis.contour(grid, grid, values, [0], colors="k")
    axis.scatter(*np.asarray(X).T, c=np.asarray(y), cmap="RdBu", edgecolor="k", s=18)
    axis.set(title=f"after {snapshot.time:,} steps", xticks=[], yticks=[])
figure.tight_layout()
