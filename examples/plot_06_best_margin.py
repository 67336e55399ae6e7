"""
The best margin of any two-layer net
====================================

How good could a net be? For two classes the largest margin of a two-layer ReLU net of *any* width
is a convex problem over measures of neurons. ``f1_max_margin`` solves it, and proves that no neuron
is missing.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

import netmargin as nm

X, y = nm.datasets.gaussian_xor(40, 2, seed=0)
rng = np.random.default_rng(0)
X = X + torch.as_tensor(rng.uniform(-0.5, 0.5, X.shape))
best = nm.solvers.f1_max_margin(X, y)
print(best)
print(f"margin {best.margin:.6f}, and no net has more than {best.upper_bound:.6f}")

# %%
# The optimum is a real net with few neurons, whose margin ``measure`` finds as well.
net = best.to_network()
print(nm.measure(net, (X, y)).normalized_margin)

# %%
# Its decision, beside that of the best classifier in the space of the infinitely wide net with
# fixed random directions, which is smooth.
fixed = nm.solvers.f2_max_margin(X, y)
grid = np.linspace(-2.2, 2.2, 161)
points = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
figure, axes = plt.subplots(1, 2, figsize=(8, 4))
learned = best.decision_function(points)
smooth = fixed.decision_function(nm.kernels.arc_cosine(points, X))
for axis, values, title in (
    (axes[0], learned, f"learned directions, margin {best.margin:.3f}"),
    (axes[1], smooth, f"fixed directions, margin {fixed.margin:.3f}"),
):
    values = values.reshape(161, 161)
    axis.contourf(grid, grid, np.sign(values), cmap="RdBu", alpha=0.35)
    axis.contour(grid, grid, values, [0], colors="k")
    axis.scatter(*np.asarray(X).T, c=np.asarray(y), cmap="RdBu", edgecolor="k", s=25)
    axis.set(title=title, xticks=[], yticks=[])
figure.tight_layout()
