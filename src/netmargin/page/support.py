"""A section of a page: which training samples carry the decision: the multipliers."""

import torch

from .facts import Facts
from .numbers import distance, percent, significant
from .payload import Card, Certainty, Support, Tag

_SHOWN = 24
"""Support vectors with a picture: two rows of a screen."""
_CLOSE, _ON_ITS_WAY, _PROVISIONAL = 0.05, 0.3, 0.1
"""Relative epsilons: at 0.05 the weights rebuild 99.9% of the parameters (cosine), at 0.3 95%."""


def write_support(facts: Facts) -> Support | None:
    """Write section 5; None without a certificate that has multipliers."""
    certificate, weights = facts.certificate, facts.weights()
    if certificate is None or weights is None:
        return None
    order = torch.argsort(weights, descending=True, stable=True)[: int((weights > 0).sum())]
    cumulative = torch.cumsum(weights[order], 0)
    half = min(int((cumulative < 0.5).sum()) + 1, len(order))
    gap, noun = certificate.relative_epsilon, facts.noun
    # Nothing is said where the bound is 0, or too small to write.
    least = distance(certificate.epsilon_lower / certificate.norm, down=True)
    bound = [Tag(Certainty.PROVED, f"no other shares bring the gap below {least}")]
    return Support(
        takeaway=_describe(facts, len(order), half, gap),
        data=f"training {noun}s",
        tags=(
            Tag(Certainty.MEASURED, "shares: those that explain the weights best"),
            *bound * bool(least.strip("0.")),
        ),
        gauge=min(max(gap, 0.0), 1.0),
        gauge_text=significant(gap),
        rebuilt=f"Here {percent(gap)} of the length of the weights is left unexplained.",
        next_step="nm.maximize_margin(model, data)" * (gap >= _CLOSE and facts.ascends),
        count=len(order),
        heaviest=_list_heaviest(facts, order[:_SHOWN].tolist(), weights),
    )


def _describe(facts: Facts, support: int, half: int, gap: float) -> str:
    """How many samples have a share, and how far the net is from where shares are exact."""
    assert facts.certificate is not None
    who = (
        f"Of {facts.certificate.samples:,} training {facts.noun}s {support:,} carry the"
        f" decision (support vectors), and {half:,} of them half of it."
    )
    where = "on its way to"
    if gap < _CLOSE:
        where = "close to"
    elif gap > _ON_ITS_WAY:
        where = "still far from"
    provisional = ": read these shares as provisional" * (gap > _PROVISIONAL)
    return f"{who} The net is {where} a point of largest margin{provisional}."


def _list_heaviest(facts: Facts, rows: list[int], weights: torch.Tensor) -> tuple[Card, ...]:
    """The heaviest samples, each with the rival of its largest multiplier."""
    assert facts.certificate is not None
    training = facts.training
    if training is None:  # without its samples nothing can be shown of them
        return ()
    rivals: dict[int, int] = {}
    for row, rival in facts.certificate.constraints.tolist():  # largest multipliers first
        rivals.setdefault(row, rival)
    largest = weights[rows[0]].item()
    found = []
    for row in rows:
        label = int(training.labels[row])
        # A net with one output has one constraint for each sample, without a class.
        other = rivals[row] if rivals[row] >= 0 else 1 - label
        text = f"{facts.names.of(label)} vs {facts.names.of(other)}"
        share = weights[row].item()
        found.append(Card(row, text, percent(share, 1), share / largest))
    return tuple(found)
