"""Mutations of certified radii: Lipschitz constants, radii, what is certified at all, and attacks."""

from .mutation import Mutation

TESTS = ["tests/test_robustness.py"]
MUTATIONS = [
    Mutation(
        file="l2_robustness/lipschitz.py",
        old="windows = [k if d > 1 else math.ceil(k / s)",
        new="windows = [k if d > 1 else k // s",
        why="windows of a max-pool that an input lies in counted as k // s",
    ),
]
