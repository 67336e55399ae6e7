"""Reads the best net off a restricted problem, also where the search was stopped early."""

import numpy as np

from ..neurons.labels import Signs
from ..neurons.losses import hinge_loss
from ..neurons.sliding import slide_columns
from .restricted_problem import RestrictedProblem

_COST = 10.0
"""The most that a unit of hinge loss costs a first net, in units of the median length of a sample:
ten times what makes a single sample worth a neuron.
"""
_NEURONS = 100
"""Neurons that it begins with, the last ones that were found: they slide in a second or so."""


def extract_net(
    best: RestrictedProblem, *, early: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The net of a search that has ended: directions (k, D), output signs (k,), and weights (k,)
    for t = 1; without neurons where nothing separates the samples.

    A search that is stopped `early`, with nothing but f = 0 to show, has a first net of sliding
    neurons, which makes few errors, and whose margin may be negative.
    """
    used, rows = np.flatnonzero(best.weights), best.rows
    if len(used) or not early:
        return best.U[used], best.s[used], best.weights[used] / (best.t or 1.0)
    Z, lengths = best.Z / rows.target[:, None], np.linalg.norm(best.Z, axis=1)
    cost = min(rows.slack_cost, _COST / float(np.median(lengths[lengths > 0])))
    loss = hinge_loss(Signs(rows.signs[:, None]), cost * rows.target)
    start = best.U[-_NEURONS:], best.s[-_NEURONS:, None] / _NEURONS
    net = slide_columns(Z, loss, activation=best.activation, start=start, deadline=-np.inf)
    return net.W, np.sign(net.A[:, 0]), np.abs(net.A[:, 0])
