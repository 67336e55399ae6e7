"""Section 7 of a page, which parts of the net can be scaled freely: its homogeneity as a tree."""

from dataclasses import replace
from itertools import groupby

from torch import nn

from ..homogeneity import Evidence, Homogeneity, Kind
from ..margins import normalizing_homogeneity
from .facts import Facts
from .numbers import count
from .payload import Certainty, Node, Scaling, Tag

_WHY = (
    "Larger weights give larger scores and change no decision, so a margin counts only after the"
    " size of the weights is divided out."
)
_NAMED = 3
"""Layers that the sentence names."""
_ONE_TO_TEN = (
    "none",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)


def write_scaling(facts: Facts) -> Scaling | None:
    """Write section 7; None without a net and its analysis."""
    if facts.model is None or facts.homogeneity is None:
        return None
    found = facts.homogeneity
    # Biases that margins leave out are shown as blockers, and the rest with its exponents.
    root = fold(
        _build(
            facts.model, "", "", replace(normalizing_homogeneity(found), blockers=found.blockers)
        )
    )
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
        why=_WHY,
        takeaway=_describe(found),
        tags=tuple(tags),
        warning=warning,
        fine=not (warning or found.blockers),
        root=_open_to_first_blocker(root),
    )


def describe_order(found: Homogeneity) -> str:
    """The order, or that there is none, for the navigation."""
    whole = normalizing_homogeneity(found)
    if whole.whole and whole.order is not None:
        return f"order {whole.order}"
    return "in part" if found.kind is Kind.PARTIAL else "none"


def _describe(found: Homogeneity) -> str:
    """What doubling the weights does, and to which of them."""
    whole = normalizing_homogeneity(found)
    if whole.whole and whole.order is not None:
        factor = float(2**whole.order)
        times = count(int(factor)) if factor == int(factor) else f"{factor:.3g}"
        if whole.ignored:
            return (
                "All but the biases of later layers: doubling the other weights multiplies every"
                f" score by {times}, once these biases are 0. The normalized margin leaves them"
                " out."
            )
        return (
            f"All of them: doubling all weights multiplies every score by {times} and changes no"
            " answer. The normalized margin applies to the whole net, and nothing is to be done."
        )
    places = len(found.blockers)
    number = _ONE_TO_TEN[places] if places < len(_ONE_TO_TEN) else count(places)
    ties = "place ties" if places == 1 else "places tie"
    tie = f"{number.capitalize()} {ties} the rest to its size."
    free = [name for name, exponent in found.groups.items() if exponent]
    if found.kind is Kind.PARTIAL and free:
        named = " and ".join(f"“{name}”" for name in free)
        if len(free) > _NAMED:
            named = f"{len(free)} layers"
        return f"Only {named} can be scaled freely." + f" {tie}" * bool(places)
    return (
        "No layer can be scaled freely, so there is no normalized margin; errors and distances need"
        " none." + f" {tie}" * bool(places)
    )


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
        blocked += ("; " if blocked else "") + f"{below} place{'s' * (below != 1)} below"
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
