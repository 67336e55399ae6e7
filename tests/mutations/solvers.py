"""Mutations of the solvers and provers."""

from .mutation import Mutation

TESTS = ["tests/test_solvers.py"]
MUTATIONS: list[Mutation] = []
