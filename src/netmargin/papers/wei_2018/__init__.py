"""Wei, Lee, Liu, Ma 2018, *On the Margin Theory of Feedforward Neural Networks*, Section 5, and the
perturbed flow of its Section 4.
"""

from ._functionals import Functional, Regularity, regularized_logistic
from ._narrow import NarrowSolution, narrow_max_margin
from ._perturbation_schedule import Schedule, perturbation_schedule
from ._perturbed_flow import PerturbedFlow, perturbed_flow

__all__ = [
    "Functional",
    "NarrowSolution",
    "PerturbedFlow",
    "Regularity",
    "Schedule",
    "narrow_max_margin",
    "perturbation_schedule",
    "perturbed_flow",
    "regularized_logistic",
]
