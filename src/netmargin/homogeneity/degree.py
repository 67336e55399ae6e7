"""Degrees: how a value scales when every parameter tensor p is multiplied by its own c_p > 0.

A value of degree {p: e_p} is multiplied by prod c_p^{e_p}. Sums ask both sides to scale alike: they
add a linear constraint on s = log c. The scalings that satisfy all constraints form a linear space,
and every kind of homogeneity is a question about that space (see derivation.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ..core.saved_records import Record
from .sentences import Exponent, tidy


@dataclass(frozen=True)
class Degree(Record):
    """The exponents of the parameter tensors in a value, absent ones zero."""

    exponents: Mapping[str, Exponent] = field(default_factory=dict)

    @staticmethod
    def of(parameter: str) -> "Degree":
        """The degree of one parameter tensor itself: exponent 1 in its own name."""
        return Degree({parameter: 1})

    def __add__(self, other: "Degree") -> "Degree":
        total = dict(self.exponents)
        for name, exponent in other.exponents.items():
            total[name] = total.get(name, 0) + exponent
        return Degree({n: e for n, e in total.items() if e})

    def __mul__(self, factor: Exponent) -> "Degree":
        return Degree({n: e * factor for n, e in self.exponents.items() if factor})

    def __sub__(self, other: "Degree") -> "Degree":
        return self + other * -1

    def __bool__(self) -> bool:
        return bool(self.exponents)

    def under(self, scaling: Mapping[str, Exponent]) -> Exponent:
        """The exponent of c when every parameter p of a scaling is multiplied by c^{scaling[p]}."""
        return sum(e * scaling[n] for n, e in self.exponents.items() if n in scaling)


CONSTANT = Degree()
"""The degree of what does not depend on the parameters: data, buffers, numbers."""


class Zero:
    """The degree of an exact 0 or infinity, which scales like whatever it is added to."""

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True)
class Unknown:
    """The degree of a value that no rule covers."""

    where: str  # the path of a module, "" for the model itself
    reason: str


ZERO = Zero()  # the only instance, compared with `is`
AnyDegree = Degree | Zero | Unknown


def add_degrees(*degrees: AnyDegree) -> AnyDegree:
    """The degree of a product of values; exact zeros absorb all others, then unknowns do."""
    if any(d is ZERO for d in degrees):
        return ZERO
    total = CONSTANT
    for degree in degrees:
        if isinstance(degree, Unknown):
            return degree
        assert isinstance(degree, Degree)
        total = total + degree
    return total


def scale_degree(degree: AnyDegree, factor: float | Fraction) -> AnyDegree:
    """The degree of a power of a value, for use in rules of new operations.

    If v is multiplied by c^e, then v^factor is multiplied by c^(factor e). Exact zeros and unknown
    degrees stay what they are. `degree` comes from `trace.degree(value)`; `factor`, a float or a
    fractions.Fraction, is rounded to a fraction of denominator at most 10^6.

    Examples
    --------
    >>> from netmargin.homogeneity import rule, scale_degree
    >>> @rule("mylib::cube")
    ... def cube(trace, value):
    ...     return scale_degree(trace.degree(value), 3)

    Beyond the papers.
    """
    if not isinstance(degree, Degree):
        return degree
    # A float such as 1/3 stands for the fraction that it rounds.
    return degree * tidy(Fraction(factor).limit_denominator(10**6))


@dataclass(frozen=True)
class Epsilon(Record):
    """A small number that guards a root or a quotient, and so does not scale with the parameters.

    It is neglected where its measured effect on the outputs is below 1%.
    """

    where: str  #: Path of the module that adds it, "" for the model itself
    value: float  #: Its size, in the units of what it is added to
    place: str  #: Path and type, for a sentence

    def __str__(self) -> str:
        return f"{self.value:g} in {self.place}"


@dataclass(frozen=True)
class Constraint:
    """A condition on scalings: the net is homogeneous only where `difference` has exponent 0."""

    difference: Degree
    where: str  # the path of the module that imposes it
    reason: str
    replacement: str
    bias: str | None = None  # the parameter without which it does not hold
    epsilon: Epsilon | None = None  # that imposes it, and is neglected while it is named here
