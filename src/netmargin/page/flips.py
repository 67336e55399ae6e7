"""What flips look like: examined samples, the nearest inputs found that flip them, differences."""

import torch
from torch import Tensor

from ..nets.images import as_images
from ..nets.model import in_mode, scores
from .facts import Facts, LinkedRadii
from .measured import Measured
from .numbers import distance, percent, significant
from .payload import Flip
from .sprites import draw_picture

_PLACES = ((0.0, "the smallest"), (0.5, "the middle one"), (1.0, "the largest"))
"""Flips that are shown: the ends and the middle of what was found."""
_INPUTS = 4
"""Inputs of a table that are shown of each: what changes most, as much as a card holds."""


def write_flips(facts: Facts, linked: LinkedRadii, split: Measured | None) -> tuple[Flip, ...]:
    """Show some of the flips that were found; none where their inputs are not known."""
    flips = linked.report.flips
    if flips is None or split is None or linked.rows is None or facts.inputs is None:
        return ()
    if facts.model is None or not split.X.is_floating_point():
        return ()
    upper = torch.as_tensor(linked.report.upper, device="cpu")[: len(flips)]
    # Samples that are wrong without any change have no flip to look at.
    found = torch.nonzero((upper > 0) & upper.isfinite())[:, 0]
    ordered = found[torch.argsort(upper[found], stable=True)].tolist()
    chosen: dict[int, str] = {}
    for share, title in _PLACES if ordered else ():
        chosen.setdefault(ordered[round(share * (len(ordered) - 1))], title)
    return tuple(
        _describe_flip(facts, split, int(linked.rows[k]), torch.from_numpy(flips[k]), title)
        for k, title in chosen.items()
    )


def _describe_flip(facts: Facts, split: Measured, row: int, flip: Tensor, title: str) -> Flip:
    """One sample before and after the change."""
    before, label = split.X[row].double(), int(split.labels[row])
    size = torch.linalg.vector_norm(flip - before).item()
    answers = facts.names.of(label), facts.names.of(_find_answer(facts, flip, label))
    name = f"{split.title.lower()} {facts.noun} {row}".strip()
    images = facts.noun == "image"
    return Flip(
        name,
        f"{distance(size)}, {title}",
        answers,
        pictures=_draw(facts, before, flip, answers) if images else (),
        inputs=() if images else _list_inputs(facts, before, flip),
    )


def _find_answer(facts: Facts, flip: Tensor, label: int) -> int:
    """The class that wins: at the boundary the label ties with it, up to rounding."""
    assert facts.model is not None
    first = next(facts.model.parameters(), flip)
    with in_mode(facts.model, training=False), torch.no_grad():
        values = scores(facts.model, flip[None].to(first.device, first.dtype))[0]
    if len(values) == 1:
        return 1 - label
    values[label] = -torch.inf
    return int(values.argmax())


def _draw(
    facts: Facts, before: Tensor, flip: Tensor, answers: tuple[str, str]
) -> tuple[tuple[str, str], ...]:
    """The pictures before and after, and that of the difference, whose grey is no change."""
    assert facts.inputs is not None
    images = as_images(torch.stack([before, flip]))
    if images is None:  # a change without a box may leave the range that makes a vector an image
        return ()
    low, high = facts.inputs.low, facts.inputs.high
    change = images[1] - images[0]
    largest = change.abs().max().item()
    most = percent(largest / (high - low)) if high > low else significant(largest)
    return (
        (draw_picture(images[0], low, high), f"before: “{answers[0]}”"),
        (draw_picture(images[1], low, high), f"after: “{answers[1]}”"),
        (draw_picture(change, -largest, largest), f"difference, up to {most} of the range"),
    )


def _list_inputs(facts: Facts, before: Tensor, flip: Tensor) -> tuple[tuple[str, str, str], ...]:
    """The inputs that change most, as numbers before and after."""
    assert facts.inputs is not None
    flat, changed = before.reshape(-1), flip.reshape(-1)
    names = facts.inputs.feature_names or tuple(f"x{index}" for index in range(len(flat)))
    most = (changed - flat).abs().topk(min(_INPUTS, len(flat))).indices.tolist()
    return tuple(
        (names[j], significant(flat[j].item(), 3), significant(changed[j].item(), 3)) for j in most
    )
