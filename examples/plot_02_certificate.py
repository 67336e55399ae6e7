"""
A certificate: is my net at a max-margin point?
===============================================

At a KKT point of the max-margin problem no small change of the weights gains margin, to first
order. Gradient flow leads a net whose scores scale with its weights in the direction of one (Lyu
and Li 2019). ``certify`` says how far a net is from it, with a proof over all constraints: that the
score of each sample's class exceeds that of each other class by 1.
"""

# %%
# Training with gradient steps comes close to a KKT point slowly. ``maximize_margin`` ascends the
# margin itself; squared ReLUs are smooth, and end close.
import matplotlib.pyplot as plt
import torch

import netmargin as nm

X, y = nm.datasets.digits(limit=200)
torch.manual_seed(0)
trained = nm.models.mlp([64, 32, 10], power=2)
nm.train(trained, (X, y), until=nm.LogLossBelow(log10=-10), progress=False)
before = nm.certify(trained, (X, y), tol=1e-3)

ascended = nm.models.mlp([64, 32, 10], power=2)
ascended.load_state_dict(trained.state_dict())
nm.maximize_margin(ascended, (X, y), multiplier_steps=8, progress=False)
after = nm.certify(ascended, (X, y), tol=1e-3)

# %%
# The relative epsilon is the sine of the angle between the weights and the nearest sum of gradients
# of constraints, with multipliers >= 0: 0 at a KKT point, 1 at the worst.
print("trained ", before)
print("ascended", after)

# %%
# All about the second one, in words:
print(after.summary())

# %%
# Training on would get there as well. How far it has come shows in both numbers together.
figure, axis = plt.subplots(figsize=(6, 2.2))
names = ["trained to a loss of 1e-10", "after maximize_margin"]
axis.barh(names, [before.relative_epsilon, after.relative_epsilon], color=["0.6", "C0"])
axis.set(xlabel="relative epsilon (0 at a KKT point)", xscale="log")
figure.tight_layout()
