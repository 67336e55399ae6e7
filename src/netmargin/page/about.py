"""The last section of a page: what its numbers are, what was sampled, how it was made."""

import platform

import torch

from ..version import __version__
from .facts import Facts
from .payload import Training

_MEANINGS = {
    "Score margin": (
        "Score of the right class minus the highest other score (with one output: the score, with"
        " the sign of the label). Positive exactly when the answer is right."
    ),
    "Estimated distance": (
        "The score margin divided by how fast it can change with the {noun} (its gradient): exact"
        " for a linear net, a first-order estimate elsewhere."
    ),
    "Rival": "The class whose boundary is nearest; without distances, with the next highest score.",
    "Intervals": (
        "95%: of errors by Clopper and Pearson, of differences by the jackknife or by swaps of the"
        " two nets, whichever is wider."
    ),
    "Exponent, order": (
        "A part with exponent k multiplies the scores by 2 to the power k when its weights are"
        " doubled; the order is that of all weights together."
    ),
    "Normalized margin": (
        "The smallest score margin of the training {noun}s, divided by the size (L2 norm) of the"
        " weights to the power of the order. It means something once no training {noun} is wrong."
    ),
    "Proved radius": (
        "No change below it flips the answer, proved in float64 with all rounding accounted for: by"
        " the score margin over Lipschitz constants of the net, or by bounds of the whole ball."
    ),
    "Share, support vector": (
        "The part of one {noun} in all multipliers of the max-margin problem with which the"
        " gradients of the score margins rebuild the parameters best. Those with a share are"
        " support vectors; the gap is what of the parameters is not rebuilt."
    ),
}


def list_terms(
    facts: Facts, shown: dict[str, int], training: Training | None
) -> tuple[tuple[str, str], ...]:
    """The terms of the page and their meanings; `shown` counts embedded samples by split."""
    splits = bool(facts.splits)
    known = {
        "Score margin": splits,
        "Estimated distance": splits and facts.has_distances,
        "Rival": splits,
        "Intervals": facts.heldout is not None,
        "Exponent, order": facts.homogeneity is not None,
        "Normalized margin": training is not None and training.has_margin,
        "Proved radius": any(not linked.report.no_lower for linked in facts.radii),
        "Share, support vector": facts.certificate is not None,
    }
    terms = {
        term: _MEANINGS[term].format(noun=facts.noun) for term, is_on in known.items() if is_on
    }
    found = facts.splits[0].report.input_margins if splits else None
    if found is not None and bool(torch.isfinite(found.headroom).any()):
        terms["Rival"] += " Only the ten classes with the highest scores are tried."
    if facts.inputs is not None and splits:
        said = [
            " and ".join(f"{shown[s.key]:,} of {s.n:,} {facts.phrase(s)}" for s in facts.splits)
            + "."
        ]
        if any(shown[s.key] < s.n for s in facts.splits):
            said.append(
                "Those embedded are the nearest half, support vectors and the wrong ones, then a"
                " random sample. Charts, counts and table use all."
            )
        small = "Pictures have 16 grey levels or are WebP, of 64 pixels at most."
        said += [small] * (facts.noun == "image")
        terms[f"{facts.noun.capitalize()}s on this page"] = " ".join([*said, *facts.inputs.notes])
    terms["Made by"] = (
        f"{facts.call} with netmargin {__version__}, torch {torch.__version__}, Python"
        f" {platform.python_version()}. Nothing on this page was loaded from a network."
    )
    return tuple(terms.items())
