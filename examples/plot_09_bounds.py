"""
Generalization bounds, and when they say something
==================================================

A large margin bounds the error on new samples. Each bound returns its terms, names its hypotheses,
and says whether it is vacuous, which with few samples all are.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import netmargin as nm

X, y = nm.datasets.gaussian_xor(60, 2, seed=0)
best = nm.solvers.f1_max_margin(X, y)
margins = np.asarray(y) * best.decision_function(X)  # of a net with norm at most 1
radius = float(np.linalg.norm(X, axis=1).max())
bound = nm.bounds.two_layer_bound(margins, X, radius=radius)
print(bound)

# %%
# With more samples of the same kind, its main term falls as one over the square root of their
# number. Where it crosses 1 it begins to say something.
sizes = np.array([60, 600, 6_000, 60_000, 600_000, 6_000_000])
values = [
    nm.bounds.two_layer_bound(
        np.resize(margins, min(n, 60_000)), np.resize(X, (min(n, 60_000), 2)), radius=radius
    ).value
    for n in sizes
]
figure, axis = plt.subplots(figsize=(6, 3))
axis.loglog(sizes, values, "o-")
axis.axhline(1, color="k", linestyle=":", label="vacuous above")
axis.set(xlabel="samples", ylabel="bound of the error")
axis.legend()
figure.tight_layout()
