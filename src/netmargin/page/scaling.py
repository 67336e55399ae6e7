"""A section of a page: which parts of the net can be scaled freely: its homogeneity as a tree."""

from dataclasses import replace
from itertools import groupby

from torch import nn

from ..homogeneity import Evidence, Homogeneity, Kind
from ..margins import normalizing_homogeneity
from .facts import Facts
from .numbers import plural, quoted
from .payload import Certainty, Node, Scaling, Tag

_NAMED = 3
"""Layers that the sentence names."""


def write_scaling(facts: Facts) -> Scaling | None:
    """Write section 7; None without a net and its analysis."""
    if facts.model is None or facts.homogeneity is None:
        return None
    found = facts.homogeneity
    # Biases that margins leave out are shown as blockers, and the rest with its exponents.
    shown = replace(normalizing_homogeneity(found), blockers=found.blockers)
    root = fold(_build(facts.model, "", "", shown))
    derived = found.evidence is Evidence.DERIVED
    tags = [Tag(Certainty.PROVED, "followed through every operation")] if derived else []
    if found.order is not None:
        tags.append(Tag(Certainty.MEASURED, "confirmed by scaling in float64"))
    warning = ""
    if found.evidence is Evidence.CONTRADICTED:
        warning = f"Do not rely on the exponents below: {found.evidence}."
    elif found.evidence is Evidence.NUMERICAL:
        warning = f"These exponents are {found.evidence}."
    return Scaling(
        takeaway=_describe(found),
        tags=tuple(tags),
        warning=warning,
        fine=not (warning or found.blockers),
        root=_open_to_first_blocker(root),
    )


def describe_order(facts: Facts) -> str:
    """The order, or that there is none, for the navigation."""
    assert facts.homogeneity is not None  # where there is the section
    whole = normalizing_homogeneity(facts.homogeneity)
    if whole.whole and whole.order is not None:
        return f"order {whole.order}"
    return "in part" if facts.homogeneity.kind is Kind.PARTIAL else "none"


def _describe(found: Homogeneity) -> str:
    """What doubling the weights does, and to which of them."""
    whole = normalizing_homogeneity(found)
    if whole.whole and whole.order is not None:
        later = "All but the biases of later layers, once these are 0"
        which = later if whole.ignored else "All of them"
        return (
            f"{which}: doubling these weights multiplies every score by"
            f" {float(2**whole.order):,.4g} and changes no answer. The normalized margin applies."
        )
    places = plural(len(found.blockers), "place")
    free = [quoted(name) for name, exponent in found.groups.items() if exponent]
    if found.kind is not Kind.PARTIAL or not free:
        return (
            "No layer can be scaled freely, so there is no normalized margin; errors and distances"
            f" need none. What ties the weights to their size: {places}."
        )
    named = " and ".join(free) if len(free) <= _NAMED else f"{len(free)} layers"
    return f"Only {named} can be scaled freely. What ties the rest to its size: {places}."


def _build(module: nn.Module, name: str, path: str, found: Homogeneity) -> Node:
    """The tree below a module, every one of them a node."""
    children = tuple(
        _build(child, own, f"{path}.{own}" if path else own, found)
        for own, child in module.named_children()
    )
    here = [blocker for blocker in found.blockers if blocker.module == path]
    below = sum(
        blocker.module != path and blocker.module.startswith(f"{path}." if path else "")
        for blocker in found.blockers
    )
    reasons = [
        "its bias scales differently from the signal it is added to" if b.bias else b.reason
        for b in here
    ]
    blocked = "; ".join(dict.fromkeys(reasons))
    if below:
        blocked += ("; " if blocked else "") + f"{plural(below, 'place')} below"
    exponent = _exponent(module, path, found)
    return Node(
        name=name,
        kind=_describe_module(module),
        exponent=exponent,
        blocked=blocked,
        instead="; ".join(dict.fromkeys(b.replacement for b in here)),
        open=False,
        quiet=not (exponent or blocked) and all(child.quiet for child in children),
        children=children,
    )


def _describe_module(module: nn.Module) -> str:
    """Its class, and whether it has the bias that it could have."""
    kind = type(module).__name__
    if isinstance(getattr(module, "weight", None), nn.Parameter) and hasattr(module, "bias"):
        return f"{kind} with bias" if module.bias is not None else f"{kind}, no bias"
    return kind


def _exponent(module: nn.Module, path: str, found: Homogeneity) -> str:
    """The exponents of a module's own parameters; of the whole net its order."""
    if not path and found.whole and found.order is not None:
        without = " without the later biases" if found.ignored else ""
        return f"order {found.order}{without}"
    groups = {
        name: exponent for group, exponent in found.groups.items() for name in found.members[group]
    }
    own = {
        name: groups.get(f"{path}.{name}" if path else name)
        for name, _ in module.named_parameters(recurse=False)
    }
    known = {name: exponent for name, exponent in own.items() if exponent is not None}
    if not known:
        return "no exponent of its own" if own else ""
    if len(known) == len(own) and len(set(known.values())) == 1:
        return f"exponent {next(iter(known.values()))}"
    return ", ".join(f"{name} exponent {exponent}" for name, exponent in known.items())


def fold(node: Node) -> Node:
    """Join what repeats: equal siblings in a row, and siblings in a row with nothing to say."""
    children = [fold(child) for child in node.children]
    joined: list[Node] = []
    for _, group in groupby(children, key=lambda child: child.quiet or _signature(child)):
        own = list(group)
        if len(own) == 1:
            joined.append(own[0])
        elif own[0].quiet:
            kinds = ", ".join(dict.fromkeys(child.kind for child in own))
            joined.append(Node(_names(own), kinds, "", "", "", False, True))
        else:
            kind = f"{len(own)} times {own[0].kind}"
            joined.append(replace(own[0], name=_names(own), kind=kind))
    if node.quiet:
        joined = []  # nothing below a grey line is worth a click
    return replace(node, children=tuple(joined))


def _signature(node: Node) -> tuple:
    """All that is shown of a node but its name."""
    below = tuple((child.name, _signature(child)) for child in node.children)
    return node.kind, node.exponent, node.blocked, node.instead, below


def _names(nodes: list[Node]) -> str:
    """The names of nodes in a row, such as 3–5."""
    return f"{nodes[0].name}–{nodes[-1].name}"


def _open_to_first_blocker(node: Node) -> Node:
    """Unfold the way to the first blocker; without one the first level."""
    if not node.blocked:
        return replace(node, open=True)
    children = list(node.children)
    first = next((i for i, child in enumerate(children) if child.blocked), None)
    if first is not None:
        children[first] = _open_to_first_blocker(children[first])
    return replace(node, open=True, children=tuple(children))
