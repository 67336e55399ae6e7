"""
A page about a net, in one file
===============================

``nm.page`` writes everything about a net into one file for the browser: the images nearest to the
boundary, proved radii and what flips look like, labels that may be wrong, how far training has
come.
"""

# %%
# What is slow is computed beforehand, and given to the page as records.

import torch

import netmargin as nm

data, heldout = nm.datasets.digits(limit=400), nm.datasets.digits("test")
torch.manual_seed(0)
model = nm.models.mlp([64, 32, 10])
history = nm.train(model, data, until=nm.LogLossBelow(log10=-4), progress=False)
rows = nm.input_margins(model, heldout).distances.argsort()[6::12]  # 30 of 359, evenly by distance
radii = nm.robustness(model, (heldout[0][rows], heldout[1][rows]), box=(0, 1), progress=False)
labels = nm.label_errors(data)

# %%
# The file needs nothing else: send it by mail, put it beside the weights.
written = nm.page(
    {"digits 64-32-10": model},
    data,
    heldout,
    records=[history, radii, labels],
    out="runs/digits.html",
)
print(written.path, f"{written.bytes / 1000:.0f} kB")

# %%
# .. raw:: html
#
#     <p><a href="../digits.html">Open the page that these lines wrote</a>.</p>
