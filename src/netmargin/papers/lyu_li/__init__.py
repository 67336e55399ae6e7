"""Lyu and Li 2019, *Gradient Descent Maximizes the Margin of Homogeneous Neural Networks*,
Appendices I and J.
"""
