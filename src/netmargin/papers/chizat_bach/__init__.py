"""Chizat and Bach 2020, *Implicit Bias of Gradient Descent for Wide Two-layer Neural Networks
Trained with the Logistic Loss*, Section 7.
"""
