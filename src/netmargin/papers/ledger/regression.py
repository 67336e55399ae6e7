"""Exponents by linear regression, with their confidence intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Fit:
    """A slope, and half the length of its 95% confidence interval."""

    value: float
    error: float

    def off(self, claimed: float) -> float:
        """How far the ends of the interval are from a claimed slope at most."""
        return abs(self.value - claimed) + self.error


def slope(x: Any, y: Any) -> Fit:
    """Fit the slope of y against x, three points at least, by least squares."""
    fit = stats.linregress(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    return Fit(float(fit.slope), float(stats.t.ppf(0.975, len(x) - 2) * fit.stderr))
