"""
Kernels of nets
===============

A net that hardly moves from where it started is a kernel machine. The kernels of infinitely wide
two-layer nets come in closed form, and the tangent kernel of your own net from its gradients.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch

import netmargin as nm

X, y = nm.datasets.gaussian_xor(40, 3, seed=1)
X = np.asarray(X)

# %%
# The tangent kernel of a wide net at random weights is close to that of the infinitely wide one,
# and the difference falls with the width.
limit = nm.kernels.ntk(X, bias=False)
widths, errors = [64, 256, 1024, 4096], []
for width in widths:
    torch.manual_seed(0)
    net = nm.models.mlp([3, width, 1], bias="none").double()
    with torch.no_grad():
        net[0].weight.copy_(torch.nn.functional.normalize(torch.randn(width, 3).double(), dim=1))
        net[2].weight.copy_(torch.randn(1, width).sign().double())
    found = nm.kernels.empirical_ntk(net, X) / width
    errors.append(np.linalg.norm(found - limit) / np.linalg.norm(limit))
figure, axis = plt.subplots(figsize=(5, 3))
axis.loglog(widths, errors, "o-", label="distance to the limit")
axis.loglog(widths, errors[0] * (np.array(widths) / 64) ** -0.5, "k:", label="slope -1/2")
axis.set(xlabel="width", ylabel="relative distance of kernels")
axis.legend()
figure.tight_layout()

# %%
# The largest margin with such a kernel, with a proved bound and without the intercept that
# scikit-learn's ``SVC`` always fits:
solution = nm.solvers.ntk_max_margin(X, y)
print(solution)
print("samples with dual weight:", int((np.asarray(solution.dual) > 1e-6).sum()), "of", len(X))

# %%
# Any kernel will do, here that of one net:
print(nm.solvers.kernel_max_margin(found, y).margin)
