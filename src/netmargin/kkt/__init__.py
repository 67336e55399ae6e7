"""Certificates: how far a net is from a Karush-Kuhn-Tucker point of the max-margin problem."""

from ..core.public import guard
from .certificate import Completeness, KKTCertificate
from .certification import certify
from .svm import TangentSVM, tangent_svm

__all__ = ["Completeness", "KKTCertificate", "TangentSVM", "certify", "tangent_svm"]
guard(globals())
