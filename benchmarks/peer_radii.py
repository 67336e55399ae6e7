"""Certified radii by peers; run by `radii_peers` in an environment of theirs, without netmargin.

python peer_radii.py NET.npz prints one line of JSON for each method that can be imported there: its
name, the radii, and CPU seconds for all images.
"""

import json
import sys
import time

import numpy as np
import torch
from torch import nn

BISECTIONS = 10
"""Of radii between 0 and twice the attacked one: to 0.2% of it."""
ITERATIONS = 20
"""Of alpha-CROWN's optimizer, its default."""


def read_net(file):
    """The layers of a net as float64 arrays."""
    layers = sum(name[0] == "W" for name in file)
    return [file[f"W{i}"] for i in range(layers)], [file[f"b{i}"] for i in range(layers)]


def list_gaps(y, classes):
    """For each image the combinations of scores that must stay positive, (N, C - 1, C)."""
    gaps = np.zeros((len(y), classes - 1, classes))
    for n, label in enumerate(y):
        rivals = [j for j in range(classes) if j != label]
        gaps[n, :, label] = 1.0
        gaps[n, np.arange(classes - 1), rivals] = -1.0
    return gaps


def certify_by_lirpa(file, method):
    """Bisect the radius at which auto_LiRPA's bounds of all gaps are positive (float32)."""
    from auto_LiRPA import BoundedModule, BoundedTensor
    from auto_LiRPA.perturbations import PerturbationLpNorm

    layers = []
    for weight, bias in zip(*read_net(file)):  # noqa: B905  (Python 3.9)
        layer = nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.data = torch.tensor(weight, dtype=torch.float32)
        layer.bias.data = torch.tensor(bias, dtype=torch.float32)
        layers += [layer, nn.ReLU()]
    net, X = nn.Sequential(*layers[:-1]), torch.tensor(file["X"], dtype=torch.float32)
    gaps = torch.tensor(list_gaps(file["y"], 10), dtype=torch.float32)
    options = {"optimize_bound_args": {"iteration": ITERATIONS}}
    low, high = np.zeros(len(X)), 2 * file["upper"]
    for n in range(len(X)):
        for _ in range(BISECTIONS):
            middle = (low[n] + high[n]) / 2
            # A new one each time: what alpha-CROWN keeps of one radius does not fit another.
            bounded = BoundedModule(net, X[:1], bound_opts=options)
            ball = BoundedTensor(X[n : n + 1], PerturbationLpNorm(norm=2, eps=float(middle)))
            bounds = bounded.compute_bounds((ball,), C=gaps[n : n + 1], method=method)[0]
            low[n], high[n] = (middle, high[n]) if (bounds > 0).all() else (low[n], middle)
    return low


def certify_by_eclipse(file, method):
    """Gaps over the Lipschitz constants that eclipse-nn finds for each pair of classes."""
    from eclipse_nn.LipConstEstimator import LipConstEstimator

    weights, biases = read_net(file)
    a = file["X"]
    for weight, bias in zip(weights[:-1], biases[:-1]):  # noqa: B905
        a = np.maximum(a @ weight.T + bias, 0)
    scores = a @ weights[-1].T + biases[-1]
    inner, constants = [torch.tensor(w) for w in weights[:-1]], {}
    radii = np.full(len(scores), np.inf)
    for n, label in enumerate(file["y"]):
        for rival in set(range(scores.shape[1])) - {int(label)}:
            pair = (min(rival, label), max(rival, label))
            if pair not in constants:
                row = torch.tensor(weights[-1][pair[0]] - weights[-1][pair[1]])[None]
                constants[pair] = float(LipConstEstimator(weights=[*inner, row]).estimate(method))
            radii[n] = min(radii[n], (scores[n, label] - scores[n, rival]) / constants[pair])
    return radii


PEERS = {
    "auto_LiRPA, CROWN": ("auto_LiRPA", certify_by_lirpa, "CROWN"),
    "auto_LiRPA, alpha-CROWN": ("auto_LiRPA", certify_by_lirpa, "CROWN-Optimized"),
    "eclipse-nn, ECLipsE-Fast": ("eclipse_nn", certify_by_eclipse, "ECLipsE_Fast"),
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    with np.load(sys.argv[1]) as opened:
        file = dict(opened)
    for name, (library, certify, method) in PEERS.items():
        try:
            __import__(library)
        except ImportError:
            continue
        started = time.process_time()
        found = certify(file, method)
        print(json.dumps([name, list(found), time.process_time() - started]), flush=True)
