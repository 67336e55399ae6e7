"""Degrees: how a value scales when every parameter tensor p is multiplied by its own c_p > 0.

A value of degree {p: e_p} is multiplied by prod c_p^{e_p}. Sums make sense only where both sides
scale alike, so they do not change a degree: they add a linear constraint on s = log c. The scalings
that satisfy all constraints form a linear space, and every kind of homogeneity is a question about
that space (see analysis.py).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ..core.records import short_repr


@dataclass(frozen=True)
class Degree:
    """Exponents of the parameter tensors, absent ones zero. Multiplying values adds degrees."""

    exponents: Mapping[str, Fraction] = field(default_factory=dict)

    @staticmethod
    def of(parameter: str) -> "Degree":
        return Degree({parameter: Fraction(1)})

    def __add__(self, other: "Degree") -> "Degree":
        names = {**self.exponents, **other.exponents}
        total = {
            n: self.exponents.get(n, Fraction(0)) + other.exponents.get(n, Fraction(0))
            for n in names
        }
        return Degree({n: e for n, e in total.items() if e})

    def __mul__(self, factor: Fraction | int) -> "Degree":
        return Degree({n: e * factor for n, e in self.exponents.items() if e * factor})

    def __sub__(self, other: "Degree") -> "Degree":
        return self + other * -1

    def __bool__(self) -> bool:
        return bool(self.exponents)

    def under(self, scaling: Mapping[str, float | Fraction]) -> Fraction:
        """The exponent of c when every parameter p is multiplied by c^{scaling[p]} (absent ones by
        1).
        """
        return sum(
            (e * Fraction(scaling.get(n, 0)) for n, e in self.exponents.items()), Fraction(0)
        )

    def total(self, names: Iterable[str] | None = None) -> Fraction:
        """The exponent of c when the named parameters (all by default) are multiplied by c."""
        keep = self.exponents if names is None else set(names)
        return sum((e for n, e in self.exponents.items() if n in keep), Fraction(0))


CONSTANT = Degree()
"""Degree of what does not depend on the parameters: data, buffers, numbers."""


class Zero:
    """Degree of a constant that is exactly 0 (or infinite): it scales like whatever it is added
    to.
    """

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Unknown:
    """Degree of a value that no rule covers; `where` and `reason` say which operation hid it."""

    where: str
    reason: str


ZERO = Zero()
AnyDegree = Degree | Zero | Unknown


@dataclass(frozen=True)
class Epsilon:
    """A number that guards a root or a quotient, and so does not scale: neglected where its
    measured effect is small.

    where : path of the module that adds it.
    value : how large it is.
    place : the module for a sentence.
    """

    where: str
    value: float
    place: str

    __repr__ = short_repr

    def __str__(self) -> str:
        return f"{self.value:g} in {self.place}"


@dataclass(frozen=True)
class Constraint:
    """`difference` must have exponent zero under a scaling for the net to be homogeneous under
    it.
    """

    difference: Degree
    where: str
    reason: str
    replacement: str
    bias: str | None = None
    """The parameter whose removal lifts the constraint, when it is an additive bias."""
    epsilon: Epsilon | None = None
    """The small number that alone imposes the constraint; the constraint then counts only if that
    number's effect does.
    """
