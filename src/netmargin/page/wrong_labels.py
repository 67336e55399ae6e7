"""Which training labels are probably wrong: what `label_errors` found, and images to look at."""

from dataclasses import replace

import torch
from torch import Tensor

from ..errors import ArgumentError
from ..label_errors import LabelErrors
from ..nets.labels import ClassNames
from .facts import Facts
from .measured import Measured
from .numbers import percent, plural, significant
from .payload import Card, Certainty, Tag, WrongLabels

SHOWN = 50
"""Labels that are shown, the most suspicious ones: what somebody looks through in a minute."""
_SURE = 0.999
"""The largest probability that is said: written as ">99%"."""


def link_labels(found: LabelErrors, training: Measured | None, names: ClassNames) -> LabelErrors:
    """Return the labels, numbered as on the page. Raises ArgumentError for those of other data."""
    if names.names and found.class_names and names.names != found.class_names:
        found = _renumber(found, found.class_names, names.names)
    if training is not None and not torch.equal(_encode(found.given), training.labels):
        raise ArgumentError(
            f"The label errors are about {found.n} samples, and not about the {training.n} of the"
            " page in their order and with their labels. Give those of the data of the page."
        )
    return found


def _renumber(found: LabelErrors, own: tuple[str, ...], others: tuple[str, ...]) -> LabelErrors:
    """Labels with the numbers that the page gives classes of their names."""
    if not set(own) <= set(others):
        theirs, ours = (
            ", ".join(names[:8]) + ", ..." * (len(names) > 8) for names in (own, others)
        )
        raise ArgumentError(
            f"These label errors number the classes as {theirs}; the page as {ours}. Make them anew"
            " with label_errors(..., class_names=[...])."
        )
    number = torch.tensor([others.index(name) for name in own], device="cpu")
    return replace(
        found,
        given=number[_encode(found.given)],
        suggested=number[_encode(found.suggested)],
        untold=tuple(int(number[max(label, 0)]) for label in found.untold),
        class_names=others,
    )


def _encode(labels: Tensor) -> Tensor:
    """Labels as numbers of classes: those of two classes may be signs."""
    return labels.clamp(min=0)


def write_wrong_labels(facts: Facts) -> WrongLabels | None:
    """Write the section; None where no labels were examined."""
    found = facts.label_errors
    if found is None:
        return None
    worst, takeaway, number = found.order[:SHOWN], found.verdict, "its score"
    if found.count:
        number, among = "how probably it is wrong", round(found.wrong[worst].sum().item())
        takeaway += f" Of the {len(worst):,} below about {among:,} are."
    lines, cards = [], []
    for row in worst.tolist():
        given, other = (facts.names.of(int(of[row])) for of in (found.given, found.suggested))
        score, sure = significant(found.scores[row].item()), "–"
        if found.count:
            sure = percent(min(found.wrong[row].item(), _SURE))
        lines.append((f"{row:,}", given, other, score, sure))
        cards.append(Card(row, f"{given}, rather {other}", sure if found.count else score))
    return WrongLabels(
        takeaway=takeaway,
        data=f"training {facts.noun}s",
        tags=(
            Tag(Certainty.MEASURED, f"scores: what all other {facts.noun}s say of each label"),
            Tag(Certainty.ESTIMATED, "how many are wrong, and how probably each is"),
        ),
        notes=_list_notes(facts, found, worst),
        key=f"the label given, and the one that all other {facts.noun}s suggest; {number}",
        worst=tuple(cards) if facts.training is not None else (),
        lines=tuple(lines),
        count=found.count_at_most,
    )


def _list_notes(facts: Facts, found: LabelErrors, worst: Tensor) -> tuple[str, ...]:
    """What the numbers assume, what the net makes of these labels, and equal samples."""
    basis = found.basis.partition(" (")[0]  # without its ridge
    notes = [
        "The numbers hold where wrong labels are spread over the other classes at random; where"
        f" one class is confused with one other they are too low. Scores rest on {basis}."
    ]
    if facts.training is not None:
        answers = facts.training.answers[worst]
        kept, other = (
            f"{int((answers == _encode(labels[worst])).sum()):,}"
            for labels in (found.given, found.suggested)
        )
        notes.append(
            f"Of the {len(worst):,} below the net answers {kept} as they are labelled and"
            f" {other} as is suggested."
        )
    if groups := found.conflicts:
        first = " and ".join(map(str, groups[0][:2]))
        notes.append(
            f"Equal {facts.noun}s with different labels, such as {first}:"
            f" {plural(len(groups), 'group')}. At least one label of each is wrong."
        )
    return tuple(notes)
