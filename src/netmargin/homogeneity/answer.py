"""What can be said about the homogeneity of a net."""

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from ..errors import NotHomogeneousError
from ..records import short_repr
from .scaling import ScalingCheck

if TYPE_CHECKING:
    from .analysis import Question

Exponent = int | Fraction


class Kind(StrEnum):
    """How much of a net is homogeneous. Members are sentences."""

    HOMOGENEOUS = "homogeneous: scaling all parameters by c multiplies the outputs by c^order"
    MULTI_HOMOGENEOUS = "multi-homogeneous: each layer can be scaled on its own, with its own exponent"
    PARTIAL = "partially homogeneous: only in the parameters of the listed groups"
    NONE = "not homogeneous in any layer"
    UNKNOWN = "unknown: neither the rules nor the numerical check settle it"


class Evidence(StrEnum):
    """Where an answer comes from."""

    DERIVED = "derived from the operations of the forward pass, and confirmed numerically"
    NUMERICAL = "observed numerically at a few points only: some operation could not be followed"
    CONTRADICTED = "the derivation and the numerical check disagree"


@dataclass(frozen=True)
class Blocker:
    """Why a net is not homogeneous in all its parameters: the module, the reason, and what to use instead."""

    module: str
    reason: str
    replacement: str
    bias: str | None = None

    __repr__ = short_repr

    def __str__(self) -> str:
        return f"{self.module or 'the model itself'}: {self.reason}. Instead: {self.replacement}"


@dataclass(frozen=True)
class Homogeneity:
    """How the outputs of a net scale with its parameters (Lyu and Li 2019, (A2), Section 4.4; two-homogeneity 2024, 3.4).

    order : L with Phi(c theta) = c^L Phi(theta) over the parameters of `groups`; None where there is none.
    groups : layer -> exponent. A layer's weight and, where it scales alike, its bias form one group; layers that can only
        be scaled together are one group, named 'a + b'. Exponent 0 means scale-invariant (weights feeding a normalization).
    members : layer -> names of its parameters.
    blockers : what prevents homogeneity in all parameters.
    quasi : parameter -> weight w_p > 0, such that scaling every p by c^{w_p} multiplies the outputs by c
        (quasi-homogeneity: covers biases in every layer), or None.
    notes : what the answer neglects.
    """

    kind: Kind
    order: Exponent | None
    groups: dict[str, Exponent]
    members: dict[str, tuple[str, ...]]
    blockers: tuple[Blocker, ...]
    evidence: Evidence
    quasi: dict[str, Exponent] | None = None
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Biases that `ignoring_biases` left out."""
    _question: "Question | None" = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return short_repr(self, "kind", "order", "groups", "blockers", "ignored", "evidence")

    def check(self, *, seed: int = 1) -> ScalingCheck:
        """Scale the parameters in float64 at a fresh generic point (by `seed`) and compare with the claimed exponents."""
        if self._question is None or self.order is None:
            raise NotHomogeneousError(f"There is no exponent to check: the net is {self.kind}")
        return self._question.check(self, seed=seed)

    def ignoring_biases(self) -> "Homogeneity":
        """The homogeneity of the same net without the biases that block it, as Lyu and Li (2019, J.1) measure such nets.

        Raises NotHomogeneousError if something other than a bias is in the way.
        """
        if self.kind in (Kind.HOMOGENEOUS, Kind.MULTI_HOMOGENEOUS):
            return self
        others = [b for b in self.blockers if b.bias is None]
        if others or self._question is None or self.evidence is not Evidence.DERIVED:
            raise NotHomogeneousError(
                "The net has no homogeneity order: "
                + ("\n  ".join(map(str, others)) or f"it is {self.kind}")
                + "\nUse a partial margin (`partial_normalized_margin`) or replace these modules."
            )
        return self._question.without({b.bias for b in self.blockers if b.bias is not None})

    def summary(self) -> str:
        """A page of text: kind, order, exponents, blockers, notes."""
        lines = [f"{self.kind}", f"order {self.order}" if self.order is not None else "no order", f"{self.evidence}"]
        lines += [f"  {exponent!s:>5}  {name}: {', '.join(self.members[name])}" for name, exponent in self.groups.items()]
        lines += [f"  blocked by {blocker}" for blocker in self.blockers]
        if self.quasi and self.blockers:
            weights = ", ".join(f"{weight} ({name})" for name, weight in self.quasi.items())
            lines.append(f"  quasi-homogeneous: multiply each parameter by c to the power {weights}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def to_dict(self) -> dict:
        """The same as JSON-ready values."""
        return {
            "kind": self.kind.name.lower(),
            "order": None if self.order is None else float(self.order),
            "groups": {name: float(exponent) for name, exponent in self.groups.items()},
            "members": {name: list(names) for name, names in self.members.items()},
            "blockers": [{"module": b.module, "reason": b.reason, "replacement": b.replacement} for b in self.blockers],
            "evidence": self.evidence.name.lower(),
            "quasi": None if self.quasi is None else {name: float(weight) for name, weight in self.quasi.items()},
            "notes": list(self.notes),
        }
