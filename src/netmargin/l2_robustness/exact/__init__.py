"""Exact L2 radii of chains of dense layers: bounds, search and proof."""
