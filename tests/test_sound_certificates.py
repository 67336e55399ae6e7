"""Certificates against brute force over all constraints: nets made so that a wrong bound shows."""
