"""Mutations: small wrong changes of the source, each of which some test has to notice."""
