"""Certified radii against points that are misclassified: nets made so that a wrong bound shows."""
