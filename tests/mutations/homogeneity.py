"""Mutations of the homogeneity analysis."""

from .mutation import Mutation

TESTS = ["tests/test_homogeneity.py"]
MUTATIONS: list[Mutation] = []
