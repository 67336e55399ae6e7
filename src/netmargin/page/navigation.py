"""The links to the sections of a page with what each found, and what was not asked for."""

from collections.abc import Callable, Mapping
from typing import Any

from .facts import Facts
from .numbers import plural
from .payload import Link

_ABSENT = {
    "heldout": "errors on held-out data (heldout, --heldout)",
    "labels": "wrong labels (nm.label_errors, --labels)",
    "change": "how much change it can stand (nm.robustness, --radii)",
    "support": "support vectors (nm.certify, --certificate)",
    "training": "the course of training (nm.train or nm.Watch)",
    "comparison": "other nets (nm.compare, --compare)",
}
"""Parts that are not computed unasked, and what adds them in Python and on the command line."""


def describe_net(facts: Facts) -> str:
    """One line of architecture and data, and of the output that was read among several."""
    parts = [f"{split.n:,} {facts.phrase(split)}" for split in facts.splits]
    if facts.model is not None:
        weights = sum(p.numel() for p in facts.model.parameters())
        name = [type(facts.model).__name__] * (type(facts.model).__name__ != facts.title)
        parts = [*name, plural(weights, "parameter"), *parts]
    if facts.homogeneity is not None and facts.homogeneity.scores_from:
        parts.append(f"scores: {facts.homogeneity.scores_from}")
    return ", ".join(parts)


def list_links(facts: Facts, sections: Mapping[str, Any]) -> tuple[Link, ...]:
    """The links in the order of the sections."""
    samples = {"image": "Images", "text": "Texts", "signal": "Signals"}.get(facts.noun, "Samples")
    found: dict[str, tuple[str, str, Callable[[Any], str]]] = {
        "comparison": ("compare", "Compare", lambda part: plural(len(part.nets), "net")),
        "nearest": ("images", samples, lambda _: "nearest first"),
        "classes": ("classes", "Classes", lambda _: ""),
        "labels": ("labels", "Labels", lambda part: f"at most {part.count:,} wrong"),
        "change": ("change", "Change", lambda part: f"{len(part.nets[0].upper):,} examined"),
        "support": ("support", "Support vectors", lambda part: plural(part.count, facts.noun)),
        "training": ("training", "Training", lambda part: f"loss {part.loss}"),
        "scaling": ("scaling", "Scaling", lambda _: ""),
    }
    links = [
        Link(id, title, say(sections[name]))
        for name, (id, title, say) in found.items()
        if sections.get(name) is not None
    ]
    return (*links, Link("about", "About", ""))


def list_absent(facts: Facts, sections: Mapping[str, Any]) -> str:
    """One line on what was not asked for; "" for records alone, which stand for themselves."""
    has = {**sections, "heldout": facts.heldout}
    absent = [how for name, how in _ABSENT.items() if has.get(name) is None]
    if not facts.splits or not absent:
        return ""
    return f"Not on this page, since not asked for: {', '.join(absent)}."
