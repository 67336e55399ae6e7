"""Section 10 of a page, about its numbers: what they are, what was sampled, how it was made."""

import platform
from collections.abc import Mapping
from typing import Any

import torch

from ..nets.images import as_images
from ..version import __version__
from .change import describe_box
from .facts import Facts
from .numbers import count
from .sampling import describe_shown
from .sprites import LARGEST_IMAGE

_SCORE_MARGIN = (
    "Score of the right class minus the highest other score (with one output: the score, with the"
    " sign of the label). Positive exactly when the answer is right."
)
_DISTANCE = (
    "The score margin divided by how fast it can change with the {noun} (its gradient): exact for a"
    " linear net, a first-order estimate elsewhere."
)

_NUMBERS = {
    "Margin score z": (
        "The mean of the score margins over their standard deviation. Larger is better; it compares"
        " nets on the same data."
    ),
    "Margin-weighted error": (
        "The sum of the sizes of the negative score margins over that of all: the error, where each"
        " {noun} counts by the size of its margin. Smaller is better."
    ),
    "Nearest quarter": (
        "The estimated distance that a quarter of the {noun}s do not exceed (the 25% quantile). It"
        " compares only nets of one kind, trained in one way, that fit these data."
    ),
    "Exponent, order": (
        "A part with exponent k multiplies the scores by 2 to the power k when its weights are"
        " doubled; the order is that of all weights together."
    ),
    "Normalized margin": (
        "The smallest score margin of the training {noun}s, divided by the size (L2 norm) of the"
        " weights to the power of the order. It means something once no training {noun} is wrong."
    ),
}
"""Numbers of whole splits and of the net, and what they are."""


def list_terms(
    facts: Facts, shown: Mapping[str, int], sections: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    """The terms that are on the page in their order, each with what it means.

    `shown` says how many samples of each split are embedded; `sections` are those of the page.
    """
    terms = []
    named = _find_numbers(sections)
    if facts.splits:
        terms.append(("Score margin", _SCORE_MARGIN))
        if facts.has_distances:
            change = sections["change"]
            calibrated = change is not None and bool(change.calibration)
            terms.append(("Estimated distance", _describe_distance(facts, calibrated)))
        terms.append(
            (
                "Rival",
                "The class whose boundary is nearest"
                if facts.has_distances
                else "The class with the next highest score",
            )
        )
        terms[-1] = (
            "Rival",
            f"{terms[-1][1]}; for a wrong {facts.noun} often the class that the net answered.",
        )
        terms.append((f"{facts.noun.capitalize()}s on this page", _describe_samples(facts, shown)))
    terms += [(term, text.format(noun=facts.noun)) for term, text in named.items()]
    if facts.radii:
        terms.append(("Proved radius", _describe_proof(facts)))
    if facts.certificate is not None:
        terms.append(
            (
                "Share, support vector",
                f"The part of one {facts.noun} in all multipliers of the max-margin problem with"
                " which the gradients of the score margins rebuild the parameters best, in float64."
                f" {facts.noun.capitalize()}s with a share are support vectors: they carry the"
                " decision. The gap is what of the parameters is not rebuilt, relative to their"
                " norm.",
            )
        )
    if facts.heldout is not None:
        of_z = ", of z by the jackknife" * ("Margin score z" in named)
        terms.append(("Intervals", f"95%: of the error by Clopper and Pearson{of_z}."))
    terms.append(
        (
            "Made by",
            f"{facts.call} with {_describe_versions()}. Nothing on this page was loaded from a"
            " network.",
        )
    )
    return tuple(terms)


def _find_numbers(sections: Mapping[str, Any]) -> dict[str, str]:
    """The numbers of whole splits and of the net that some section shows, and what they are."""
    overview, compared = sections.get("overview"), sections["comparison"]
    tiles = {tile.title for tile in overview.tiles} if overview else set()
    training, scaling = sections["training"], sections["scaling"]
    heldout = compared is not None and compared.heldout
    shown = {
        "Margin score z": heldout or "Margin score z" in tiles,
        "Margin-weighted error": heldout or "Margin-weighted error" in tiles,
        "Nearest quarter": compared is not None
        or any(title.startswith("Nearest quarter") for title in tiles),
        "Exponent, order": scaling is not None,
        "Normalized margin": compared is not None
        or any("normalized margin" in part.takeaway for part in (training, scaling) if part),
    }
    return {term: _NUMBERS[term] for term, is_shown in shown.items() if is_shown}


def _describe_distance(facts: Facts, calibrated: bool) -> str:
    """What the estimated distance is, here."""
    text = _DISTANCE.format(noun=facts.noun)
    split = facts.splits[0]
    found = split.report.input_margins
    if not split.X.is_floating_point():
        text += " Tokens have no distance: it is measured in the output of the first embedding."
    if found is not None and bool(torch.isfinite(found.headroom).any()):
        text += " Only the ten classes with the highest scores are looked at as rivals."
    if calibrated:
        text += " On this net it is checked against found flips, above."
    return text


def _describe_samples(facts: Facts, shown: Mapping[str, int]) -> str:
    """What was sampled, and how images were changed."""
    assert facts.inputs is not None  # where there are splits
    sentences = [describe_shown(split, shown[split.key], facts.noun) for split in facts.splits]
    sentences = [sentence for sentence in sentences if sentence]
    if not sentences:
        each = " and ".join(f"{count(split.n)} {facts.phrase(split)}" for split in facts.splits)
        sentences = [f"All {each}."]
    if facts.noun == "image":
        sentences.append(_describe_colours(facts))
    return " ".join([*sentences, *facts.inputs.notes])


def _describe_colours(facts: Facts) -> str:
    """How images are stored."""
    X = facts.splits[0].X
    images = as_images(X[:1])
    assert images is not None  # the noun says so
    small = ", shrunk to 64 pixels" if max(images.shape[1:3]) > LARGEST_IMAGE else ""
    if X.ndim == 4 and X.shape[1] >= 3:
        return f"Stored in colour as WebP of quality 80{small}."
    return f"Stored in 16 grey levels{small}."


def _describe_proof(facts: Facts) -> str:
    """What proved radii rest on."""
    if all(linked.report.no_lower for linked in facts.radii):
        return f"None: {facts.radii[0].report.no_lower}"
    return (
        f"No change below it flips the answer{describe_box(facts.radii[0].report)}, proved in"
        " float64 with all rounding accounted for: by the score margin over Lipschitz constants of"
        " the net, or by bounds of the whole ball."
    )


def _describe_versions() -> str:
    """The versions of what computed the page."""
    return f"netmargin {__version__}, torch {torch.__version__}, Python {platform.python_version()}"
