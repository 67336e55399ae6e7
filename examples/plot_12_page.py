"""
A page about a net, in one file
===============================

``nm.page`` writes everything about a net into one file for the browser: the images nearest to the
boundary, proved radii, which samples carry the decision, how far training has come.
"""

# %%
# What is slow is computed beforehand, and given to the page as records.

import torch

import netmargin as nm

data, heldout = nm.datasets.digits(limit=400), nm.datasets.digits("test")
torch.manual_seed(0)
model = nm.models.mlp([64, 32, 10])
history = nm.train(model, data, until=nm.LogLossBelow(log10=-4), progress=False)
radii = nm.robustness(model, (heldout[0][:30], heldout[1][:30]), progress=False)

# %%
# The file needs nothing else: send it by mail, put it beside the weights.
written = nm.page(
    {"digits 64-32-10": model}, data, heldout, records=[history, radii], out="runs/digits.html"
)
print(written.path, f"{written.bytes / 1000:.0f} kB")

# %%
# .. raw:: html
#
#     <p><a href="../digits.html">Open the page that these lines wrote</a>.</p>
