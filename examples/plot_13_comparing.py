"""
Which of my nets is better?
===========================

Not the one with the larger normalized margin: that number follows training, and does not compare
nets. ``compare`` takes held-out labels, and says which differences of errors and margins are real.
"""

# %%
import matplotlib.pyplot as plt
import torch

import netmargin as nm

data = nm.datasets.digits(limit=400)
X_test, y_test = nm.datasets.digits("test")
nets = {}
for width in (4, 16, 128):
    torch.manual_seed(0)
    nets[f"{width} units"] = nm.models.mlp([64, width, 10])
    nm.train(nets[f"{width} units"], data, until=nm.Epochs(60), progress=False)
comparison = nm.compare(nets, heldout=(X_test, y_test))
print(comparison)

# %%
# The mean margin over the standard deviation needs fewer labels than counting errors does, to tell
# two nets apart. The normalized margin of the training samples ranks them in another order:
rows = {name: nm.measure(net, (X_test, y_test)) for name, net in nets.items()}
for name, net in nets.items():
    trained = nm.measure(net, data)
    print(
        f"{name:10} errors {rows[name].error:6.1%}   z {rows[name].z:.2f}   "
        f"normalized margin {trained.normalized_margin:.4f}"
    )

# %%
figure, axis = plt.subplots(figsize=(6, 3))
for name, report in rows.items():
    axis.hist((report.q / report.q.std()).numpy(), bins=40, histtype="step", label=name)
axis.axvline(0, color="k", linestyle=":")
axis.set(xlabel="margin of test images, in standard deviations", ylabel="images")
axis.legend()
figure.tight_layout()
