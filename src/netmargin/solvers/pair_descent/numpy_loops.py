"""Loops of `steps` over all samples as operations on whole arrays, for where there is no numba."""

import numpy as np


def find_first(slacks, low, high, gains):
    d = np.minimum(np.maximum(slacks, low), high)
    return int(np.argmax(d * (2 * slacks - d)))


def find_second(slacks, low, high, signs, row, i, first, least_curvature, gains):
    q = signs[i] * (signs * row)
    rest = slacks - first * q
    d = np.minimum(np.maximum(rest, low), high)
    gains = d * (2 * rest - d) / np.maximum(1 - q * q, least_curvature)
    gains[i] = -1.0
    return int(np.argmax(gains))


def move_slacks(slacks, signs, s, row, t, other):
    slacks -= signs * (s * row + t * other)


def scale_back(a, g, caps, low, high, slacks, lengths):
    a[:], g[:] = np.where(high > 0, -low / lengths, caps), slacks * lengths


def sum_gap(a, g, caps, hard):
    outputs = 1.0 - g
    excess = 0.0 if hard else float(caps @ np.maximum(g, 0.0))
    return float(a.sum()), float(a @ outputs), excess, float(outputs.min())


def copy_part(K, chosen, part):
    for row, i in zip(part, chosen, strict=True):
        row[:] = K[i].take(chosen)
