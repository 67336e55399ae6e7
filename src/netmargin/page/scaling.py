"""A section of a page: which parts of the net can be scaled freely: its homogeneity."""

from ..homogeneity import Evidence, Homogeneity, Kind
from ..margins import normalizing_homogeneity
from .facts import Facts
from .numbers import plural, quoted
from .payload import Scaling

_NAMED = 3
"""Layers that the sentence names."""


def write_scaling(facts: Facts) -> Scaling | None:
    """Write section 7; None without a net and its analysis."""
    found = facts.homogeneity
    if found is None:
        return None
    warning = ""
    if found.evidence is Evidence.CONTRADICTED:
        warning = f"Do not rely on the exponents below: {found.evidence}."
    elif found.evidence is Evidence.NUMERICAL:
        warning = f"These exponents are {found.evidence}."
    return Scaling(takeaway=_describe(found), warning=warning, layers=found.summary())


def _describe(found: Homogeneity) -> str:
    """What doubling the weights does, and to which of them."""
    whole = normalizing_homogeneity(found)
    if whole.whole and whole.order is not None:
        later = "All but the biases of later layers, once these are 0"
        which = later if whole.ignored else "All of them"
        return (
            f"{which}: doubling these weights multiplies every score by"
            f" {float(2**whole.order):,.4g} and changes no answer."
        )
    places = plural(len(found.blockers), "place")
    free = [quoted(name) for name, exponent in found.groups.items() if exponent]
    if found.kind is not Kind.PARTIAL or not free:
        return (
            "No layer can be scaled freely; errors and distances do not need it. What ties the"
            f" weights to their size: {places}."
        )
    named = " and ".join(free) if len(free) <= _NAMED else f"{len(free)} layers"
    return f"Only {named} can be scaled freely. What ties the rest to its size: {places}."
