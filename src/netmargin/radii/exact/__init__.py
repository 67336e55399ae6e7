"""Exact L2 radii of chains of linear layers and kinks: search, tree and proof."""
