"""Pricing: the best neuron for given dual weights, searched and proved."""
