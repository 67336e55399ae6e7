"""The words of an answer: kinds of homogeneity, where an answer comes from, what blocks it."""

from dataclasses import dataclass
from enum import StrEnum

from ..core.saved_records import Record

STORED_STATISTICS = "subtracts stored running statistics, which do not scale with the parameters"
"""The reason of blockers that normalize with statistics that are held fixed."""


class Kind(StrEnum):
    """The kinds of homogeneity of a net; the members are sentences."""

    HOMOGENEOUS = "homogeneous: scaling all parameters by c multiplies the outputs by c^order"
    MULTI_HOMOGENEOUS = (
        "multi-homogeneous: each layer can be scaled on its own, with its own exponent"
    )
    PARTIAL = "partially homogeneous: only in the parameters of the listed groups"
    NONE = "not homogeneous in any layer"
    UNKNOWN = "unknown: neither the rules nor the numerical check settle it"


class Evidence(StrEnum):
    """Where an answer about homogeneity comes from; the members are sentences."""

    DERIVED = "derived from the operations of the forward pass, and confirmed numerically"
    NUMERICAL = (
        "observed numerically, at factors from 1e-3 to 1e3 only: some operation could not be"
        " followed"
    )
    CONTRADICTED = "the numerical check does not confirm the derivation"


@dataclass(frozen=True)
class Blocker(Record):
    """A module that keeps a net from being homogeneous in all its parameters."""

    module: str  #: Its path; "" is the model itself
    reason: str  #: What it does, in words
    replacement: str  #: What to use instead
    bias: str | None = None  #: The name of the parameter, where an additive bias is the reason

    def __str__(self) -> str:
        return f"{self.module or 'the model itself'}: {self.reason}. Instead: {self.replacement}"
