"""Plumbing and numerics that know neither nets nor theorems."""
