"""Certificates: how far a net is from a Karush-Kuhn-Tucker point of the max-margin problem."""

from .certificate import KKTCertificate
from .certify import certify

__all__ = ["KKTCertificate", "certify"]
