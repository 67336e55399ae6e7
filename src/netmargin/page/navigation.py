"""The header of a page: what the net is, and the links to its sections with their verdicts."""

from collections.abc import Mapping
from typing import Any

from .facts import Facts
from .numbers import count, plural
from .payload import Link
from .progress import describe_loss
from .scaling import describe_order


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


def list_links(facts: Facts, sections: Mapping[str, Any], missing: bool) -> tuple[Link, ...]:
    """The links in the order of the sections; several nets are compared first.

    Parts that are not on the page lead to where it says what they need, if there is such a place.
    """
    noun, compared = facts.noun, sections["comparison"]
    change, support = sections["change"], sections["support"]
    links = []
    if facts.splits:
        title = {"image": "Images", "text": "Texts"}.get(noun, "Samples")
        links = [Link("images", title, "nearest first"), Link("classes", "Classes", "")]
    labels = sections["labels"]
    examined = change and f"{count(facts.radii[0].report.examined)} examined"
    doubtful = labels and (
        f"at most {count(labels.count)} wrong" if labels.count else "none found wrong"
    )
    links += [
        _link_part("labels", "Labels", doubtful),
        _link_part("change", "Change", examined),
        _link_part("support", "Support vectors", support and plural(support.count, noun)),
        _link_part("training", "Training", sections["training"] and describe_loss(facts)),
    ]
    if sections["scaling"] is not None and facts.homogeneity is not None:
        links.append(Link("scaling", "Scaling", describe_order(facts.homogeneity)))
    comparison = _link_part("compare", "Compare", compared and plural(len(compared.nets), "net"))
    links.insert(0 if compared else len(links), comparison)
    links.append(Link("about", "About", ""))
    return tuple(link for link in links if link.id != "missing" or missing)


def _link_part(id: str, title: str, verdict: str | None) -> Link:
    """The link to a part, or to where it says what it needs."""
    return Link("missing", title, "not computed") if verdict is None else Link(id, title, verdict)
