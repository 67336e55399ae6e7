"""What the inputs of a page are: images, texts or rows of a table, and in which units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..core.arguments import check_instance
from ..errors import ArgumentError
from ..margins.boundaries import Embedding
from ..nets.images import as_images
from .numbers import ends_of_range, percent, plural, significant

_UNIT_SPREAD = (0.5, 2.0)
"""Standard deviations of inputs between these are those of standardized columns."""
_LEAST_LENGTH, _MOST_CHANNELS = 16, 16
"""Numbers of a signal of one dimension, and channels: shorter ones are read off as numbers."""
_PAIRS = 1000
"""Pairs of tokens whose distance is measured: the median of so many is known to a few percent."""
_SNIPPET = 160
"""Characters of a text on its card, three lines of it."""


@dataclass(frozen=True)
class Inputs:
    """How the inputs of a page are shown, and what they are called.

    The noun is "image", "signal", "text" or "sample". `low` and `high` are the smallest and the
    largest value of images; `spread` of others is the root mean square of the standard deviations
    of the columns, NaN of tokens and texts, `standardized` whether each is near 1; `token_step` the
    median distance of two tokens. `notes` say what was changed to show them.
    """

    noun: str
    unit: str
    size: int
    low: float = 0.0
    high: float = 1.0
    spread: float = math.nan
    token_step: float = math.nan
    standardized: bool = False
    feature_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def per_input(self) -> float:
        """What a distance of 1 is as a change of every input, as a share of range or spread."""
        scale = self.high - self.low if self.noun == "image" else self.spread
        return 1 / (math.sqrt(self.size) * scale) if scale > 0 and self.size else math.nan

    def describe_change(self, distance: float) -> str:
        """What a change of this length is in single inputs and in all of them, or ""."""
        if self.token_step > 0:
            steps = distance / self.token_step
            part = percent(steps) if steps < 1 else f"{significant(steps)} times the length"
            return f"{part} of the step from one token to another"
        share = distance * self.per_input
        if not math.isfinite(share):
            return ""
        one = distance * self.per_input * math.sqrt(self.size)
        if self.noun == "image":
            each = f"each of them by {significant(100 * share)}%"
            if one < 1:
                part = f"{significant(100 * one)}% of its range"
                return f"one pixel value changed by {part}, or {each}"
            few = plural(round(one**2), "pixel value")  # k of them make a length of sqrt(k) ranges
            return f"{few} changed by the whole range, or {each}"
        of = "standard deviations" if self.standardized else "times the typical standard deviation"
        each = f"each of them by {significant(share)}"
        return f"one input changed by {significant(one)} {of}, or {each}"


def describe_inputs(
    parts: Sequence[Tensor], texts: Any, feature_names: Any, tokens: tuple[str, Embedding] | None
) -> Inputs:
    """What the inputs of all splits are; `tokens` is the layer that distances are in, by name."""
    X = parts[0]
    size = X[0].numel()
    if feature_names is not None:
        feature_names = _check_feature_names(feature_names, size)
    if texts is not None or tokens is not None:
        noun = "text" if texts is not None else "sample"
        if tokens is None:
            return Inputs(noun, "L2", size)
        where = f"L2, in the output of {tokens[0] or 'the embedding'}"
        return Inputs(noun, where, size, token_step=_measure_token_step(tokens[1]))
    if feature_names is None and as_images(X) is not None:
        low = min(part.min().item() for part in parts)
        high = max(part.max().item() for part in parts)
        unit = f"L2; pixel values {write_range(low, high)}"
        return Inputs("image", unit, size, low, high, notes=_describe_images(X, low, high))
    deviations = parts[-1].double().reshape(len(parts[-1]), -1).std(0, correction=0)
    standardized = bool(((deviations > _UNIT_SPREAD[0]) & (deviations < _UNIT_SPREAD[1])).all())
    spread = deviations.square().mean().sqrt().item()
    unit = "L2; standardized inputs" if standardized else "L2, in the units of the inputs"
    signals = feature_names is None and _are_signals(X)
    drawn = "Each signal is drawn from its least to its largest value, all channels in one picture."
    return Inputs(
        "signal" if signals else "sample",
        unit,
        size,
        notes=(drawn,) * signals,
        spread=spread,
        standardized=standardized,
        feature_names=feature_names,
    )


def _measure_token_step(layer: Embedding) -> float:
    """The median distance between the vectors of two tokens; NaN of a bag, which mixes several."""
    if isinstance(layer, nn.EmbeddingBag):
        return math.nan
    vectors = layer.weight.detach().double()
    source = torch.Generator().manual_seed(0)
    pairs = torch.randint(len(vectors), (2, _PAIRS), generator=source, device="cpu")
    first, second = pairs[:, pairs[0] != pairs[1]].to(vectors.device)
    return float((vectors[first] - vectors[second]).norm(dim=1).median().item())


def _are_signals(X: Tensor) -> bool:
    """Whether inputs (n, L) or (n, channels, L) are drawn as curves.

    Vectors are where neighbours differ by less than other entries do: columns of a table do not.
    """
    if not X.is_floating_point() or X.shape[-1] < _LEAST_LENGTH or X.ndim not in (2, 3):
        return False
    if X.ndim == 3:
        return X.shape[1] <= _MOST_CHANNELS
    rows = X.double()
    return bool(rows.diff(dim=1).square().mean() < rows.var(dim=1, correction=0).mean())


def snippets(
    X: Tensor, rows: Sequence[int], inputs: Inputs, texts: Sequence[str] | None
) -> list[Any]:
    """Cards without images: a text cut short, or the inputs farthest from their means."""
    if texts is not None:
        return [_shorten(texts[row]) for row in rows]
    if not X.is_floating_point() or X[0].numel() < 1:
        return [_shorten(" ".join(str(v) for v in X[row].reshape(-1).tolist())) for row in rows]
    flat = X.double().reshape(len(X), -1)
    mean, deviation = flat.mean(0), flat.std(0, correction=0)
    scores = torch.where(deviation > 0, (flat[list(rows)] - mean) / deviation, 0.0)
    far = scores.abs().topk(min(3, scores.shape[1]), dim=1).indices
    names = inputs.feature_names or tuple(f"x{index}" for index in range(flat.shape[1]))
    return [
        ", ".join(
            f"{names[j]} {own[j].item():+.1f}".replace("-", "−") + " sd" for j in chosen.tolist()
        )
        for own, chosen in zip(scores, far, strict=True)
    ]


def check_texts(texts: Any, sizes: Sequence[int]) -> list[list[str]] | None:
    """The texts of each split, one for each sample, or None. Raises ArgumentError."""
    if texts is None:
        return None
    parts = [texts] if len(sizes) == 1 else texts
    fits = isinstance(parts, Sequence) and len(parts) == len(sizes)
    fits = fits and all(
        hasattr(part, "__len__") and not isinstance(part, str) and len(part) == size
        for part, size in zip(parts, sizes, strict=True)
    )
    if not fits:
        wanted = " and ".join(f"a list of {plural(size, 'text')}" for size in sizes)
        raise ArgumentError(
            f"texts must hold one text for each sample, here {wanted}"
            + ", as a pair (training, held-out)" * (len(sizes) > 1)
        )
    return [list(map(str, part)) for part in parts]


def _check_feature_names(names: Any, size: int) -> tuple[str, ...]:
    """The names of the columns. Raises ArgumentError."""
    names = names.tolist() if hasattr(names, "tolist") else names
    check_instance("feature_names", names, (list, tuple), 'a list such as ["age", "height"]')
    if len(names) != size:
        raise ArgumentError(
            f"feature_names has {len(names)} names, and a sample {size} inputs. Give one name for"
            " each, in the order of the columns."
        )
    return tuple(map(str, names))


def _describe_images(X: Tensor, low: float, high: float) -> tuple[str, ...]:
    """What was changed to show images, in sentences."""
    notes = []
    if not (low >= 0 and high <= 1 and high > 0.5):
        notes.append(f"Their values, {write_range(low, high)}, are shown from dark to light.")
    if X.ndim == 4 and X.shape[1] not in (1, 3):
        kept = "first channel" if X.shape[1] < 3 else "first three channels"
        notes.append(f"Of {X.shape[1]} channels the {kept} are shown.")
    return tuple(notes)


def write_range(low: float, high: float) -> str:
    """A range of values in words."""
    return " to ".join(ends_of_range(low, high)).replace("-", "−")


def _shorten(text: str) -> str:
    """A text of at most three lines of a card."""
    text = " ".join(text.split())
    return text if len(text) <= _SNIPPET else text[: _SNIPPET - 1].rsplit(" ", 1)[0] + "…"
