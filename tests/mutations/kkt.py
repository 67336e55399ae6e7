"""Mutations of certificates: epsilon, its lower bound, delta, and the bound of Lemma C.8."""

from .mutation import Mutation

TESTS = ["tests/test_certificates.py"]
MUTATIONS = [
    Mutation(
        file="kkt/certification.py",
        old="below = length - 2 * worst * inner + worst**2 * square",
        new="below = length - 2 * worst * inner + worst * square",
        why="tau instead of tau squared in the length of the dual vector",
    ),
]
