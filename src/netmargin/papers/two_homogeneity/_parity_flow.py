"""The flow of Theorem 4.1 on parities: nets (1) of normalized ReLUs, all of whose weights move."""

import numpy as np
from torch import Tensor

from ..wei_2018._separation import kernel_errors
from ._instances import MovingFeatures, run_mirror_flow
from ._normalized_nets import NormalizedNet, NormalizedReLU

WIDTH, TIME = 200, 200.0
"""Neurons and time of the summed loss: 500, or five times as long, move margins by 10% at most."""
Pair = tuple[Tensor, Tensor]


def flow_on_parity(train: Pair, test: Pair, *, seed: int) -> tuple[float, np.ndarray]:
    """The margin over |a|^2 + |b|^2 at TIME by the mirror flow (Lemma 3.2); wrong test inputs."""
    (X, y), (T, t) = train, test
    net = NormalizedNet(NormalizedReLU(X.shape[1], WIDTH, seed=seed), WIDTH, seed=seed + 1)
    features = MovingFeatures(net, X, y)
    none, times = np.zeros(WIDTH), [TIME * len(y)]
    run = run_mirror_flow(features, features.u, times, none)
    u, V = run["u"][-1], run["V"][-1]
    tested = MovingFeatures(net, T, t).at(V)[0] @ u
    return float((run["z"][-1] @ u).min() / (2 * u.sum())), tested <= 0


def flow_and_kernels(train: Pair, test: Pair, *, seed: int) -> tuple[float, list[float]]:
    """Test errors of the flow, and of the tangent kernel at each scale."""
    return float(flow_on_parity(train, test, seed=seed)[1].mean()), kernel_errors(train, test)
