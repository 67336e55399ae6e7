"""Mutations of guarantees: theorems and bounds."""

from .mutation import Mutation

TESTS = ["tests/test_bounds.py", "tests/test_ledger.py", "tests/test_twolayer.py", "tests/test_perturbed_flow.py"]
MUTATIONS: list[Mutation] = []
