"""Gradient flow and the gradient descent of the theorems, integrated to a stated accuracy."""

from .gradient_descent import gradient_descent
from .gradient_flow import Trajectory, gradient_flow
from .theory_rate import SmoothnessBounds

__all__ = ["SmoothnessBounds", "Trajectory", "gradient_descent", "gradient_flow"]
