"""Section 5 of a page, which training samples carry the decision: the multipliers."""

import math

import torch

from .facts import Facts
from .nearest import caption
from .numbers import count, distance, percent, significant
from .payload import Certainty, Columns, Support, SupportSample, Tag

_SHOWN = 24
"""Support vectors with a picture: two rows of a screen."""
_CLOSE, _ON_ITS_WAY, _PROVISIONAL = 0.05, 0.3, 0.1
"""Relative epsilons: at 0.05 the weights rebuild 99.9% of the parameters (cosine), at 0.3 they
rebuild 95%.
"""
_DEEP = -10.0
"""log10 of a loss that training goes on to at least: before, margins are far from their end."""
_POINTS = 300
"""Points of the curve."""


def write_support(facts: Facts) -> Support | None:
    """Write section 5; None without a certificate that has multipliers."""
    certificate, weights = facts.certificate, facts.weights()
    if certificate is None or weights is None:
        return None
    order = torch.argsort(weights, descending=True, stable=True)[: int((weights > 0).sum())]
    cumulative = torch.cumsum(weights[order], 0)
    half = min(int((cumulative < 0.5).sum()) + 1, len(order))
    gap, noun = certificate.relative_epsilon, facts.noun
    return Support(
        takeaway=_describe(facts, len(order), half, gap),
        data=f"training {noun}s",
        tags=(
            Tag(Certainty.MEASURED, "shares: those that explain the weights best"),
            *_tag_bound(certificate.epsilon_lower / certificate.norm),
        ),
        gauge=min(max(gap, 0.0), 1.0),
        gauge_text=significant(gap),
        definition=(
            f"Training draws the boundary by few {noun}s: in the end the weights are a sum of what"
            f" each of these {noun}s asks for. They are the support vectors, each with its share of"
            " the sum. The gap is the part of the weights that the sum does not explain. What it is"
            f" good for: these are the {noun}s that the net depends on, so their labels matter"
            " most; with a small gap the others could be left out."
        ),
        rebuilt=(
            "A support vector machine ends at 0, a net of this kind comes closer the longer it"
            f" trains. Here the sum leaves {percent(gap)} of the length of the weights unexplained."
        ),
        next_step="" if gap < _CLOSE else _write_next_step(facts),
        curve=_draw_curve(cumulative, certificate.samples),
        half=half,
        count=len(order),
        heaviest=_list_heaviest(facts, order[:_SHOWN].tolist(), weights),
    )


def _write_next_step(facts: Facts) -> str:
    """What brings the net closer: the margin itself maximized, or training that goes on."""
    if facts.command is None:
        return "nm.maximize_margin(model, data)" if facts.ascends else ""
    last = 0.0 if facts.history is None else facts.history.rows[-1]["log10_mean_loss"]
    # Twice as deep takes about as many epochs again.
    return facts.command.train_below(min(2 * last, _DEEP)) if math.isfinite(last) else ""


def _tag_bound(least: float) -> tuple[Tag, ...]:
    """What is proved of all other shares; nothing where the bound is 0, or too small to write."""
    shown = distance(least, down=True)
    if not shown.strip("0."):
        return ()
    return (Tag(Certainty.PROVED, f"no other shares bring the gap below {shown}"),)


def _describe(facts: Facts, support: int, half: int, gap: float) -> str:
    """How many samples have a share, and how far the net is from where shares are exact."""
    assert facts.certificate is not None
    noun, n = facts.noun, facts.certificate.samples
    have = "is the support vector: it carries" if support == 1 else "are support vectors and carry"
    who = f"{count(support)} of {count(n)} training {noun}s {have} the decision"
    carry = f"; {count(half)} of them {'has' if half == 1 else 'have'} half of all shares" * (
        support > 1
    )
    where = (
        "is close to"
        if gap < _CLOSE
        else "is on its way to"
        if gap < _ON_ITS_WAY
        else "is still far from"
    )
    provisional = ", so read these shares as provisional" * (gap > _PROVISIONAL)
    return f"{who}{carry}. The net {where} a point of largest margin{provisional}."


def _draw_curve(cumulative: torch.Tensor, n: int) -> Columns:
    """The share of the weight of the heaviest samples, in percent, up to all n of them."""
    k = torch.arange(1, len(cumulative) + 1)
    if len(k) > _POINTS:
        k = torch.unique(torch.linspace(1, len(cumulative), _POINTS).round().long())
    shares = 100 * cumulative[k - 1] / cumulative[-1]
    return {"k": [0, *k.tolist(), n], "share": [0.0, *shares.tolist(), 100.0]}


def _list_heaviest(
    facts: Facts, rows: list[int], weights: torch.Tensor
) -> tuple[SupportSample, ...]:
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
        text = caption(facts, label, rivals[row] if rivals[row] >= 0 else 1 - label)
        share = weights[row].item()
        found.append(SupportSample(row, share / largest, percent(share, 1), text))
    return tuple(found)
