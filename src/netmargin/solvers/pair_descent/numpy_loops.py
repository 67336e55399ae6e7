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
