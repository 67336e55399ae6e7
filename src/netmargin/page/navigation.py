"""The header of a page: what the net is, and the links to its sections with their verdicts."""

from collections.abc import Mapping
from typing import Any

from .facts import Facts
from .numbers import count, plural
from .payload import Link
from .progress import describe_loss
from .scaling import describe_order

_NOT = "not computed"


def describe_net(facts: Facts) -> str:
    """One line of architecture and data."""
    parts = []
    if facts.model is not None:
        layers = sum(
            any(True for _ in module.parameters(recurse=False)) for module in facts.model.modules()
        )
        weights = sum(p.numel() for p in facts.model.parameters())
        kind = type(facts.model).__name__
        start = "" if kind == facts.title else f"{kind}, "
        parts.append(f"{start}{plural(layers, 'layer')}, {plural(weights, 'parameter')}")
    known = [
        f"{count(split.n)} {'training' if split.key == 'training' else 'held-out'}"
        for split in reversed(facts.splits)
    ]
    if known:
        parts.append(f"{' and '.join(known)} {facts.noun}s")
    return "; ".join(parts)


def list_links(facts: Facts, sections: Mapping[str, Any]) -> tuple[Link, ...]:
    """The links in the order of the sections; several nets are compared first."""
    links = []
    if facts.splits:
        title = {"image": "Images", "text": "Texts"}.get(facts.noun, "Samples")
        links = [Link("images", title, "nearest first"), Link("classes", "Classes", "")]
    change, support = sections["change"], sections["support"]
    nouns = f"{facts.noun}s"
    examined = f"{count(facts.radii[0].report.examined)} {nouns}" if change else _NOT
    links.append(Link("change", "Change", examined))
    carry = f"{count(support.count)} {nouns}" if support else _NOT
    links.append(Link("support", f"Carrying {nouns}", carry))
    links.append(
        Link("training", "Training", describe_loss(facts) if sections["training"] else _NOT)
    )
    if sections["scaling"] is not None and facts.homogeneity is not None:
        links.append(Link("scaling", "Scaling", describe_order(facts.homogeneity)))
    compared = sections["comparison"]
    verdict = plural(len(compared.nets), "net") if compared else _NOT
    where = 0 if compared else len(links)
    links.insert(where, Link("compare", "Compare", verdict))
    links.append(Link("about", "About", ""))
    return tuple(links)
