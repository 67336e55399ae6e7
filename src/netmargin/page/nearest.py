"""A section of a page: the samples nearest to the boundary, and the rows of gallery and table."""

import math
from typing import Any

import torch
from torch import Tensor

from ..margins.mistakes import is_at_chance
from ..nets.images import as_images
from .facts import Facts
from .inputs import snippets
from .measured import Measured
from .numbers import one_digit, plain, round_down
from .payload import Columns, Images, Nearest, Split
from .sampling import choose_shown
from .sprites import draw_curves, make_sprites
from .wrong_labels import SHOWN


def write_nearest(facts: Facts) -> Nearest:
    """Write section 2."""
    return Nearest(
        takeaway={split.key: _describe_near(facts, split) for split in facts.splits},
        below={split.key: _limit_counted(split) for split in facts.splits},
    )


def _find_threshold(split: Measured) -> float:
    """The distance below which a right sample counts as near: a quarter of the median."""
    return one_digit(split.median / 4)


def _limit_counted(split: Measured) -> float | None:
    """The distance below which lie the samples that the sentence counts; None without any."""
    limit = _find_threshold(split)
    if not math.isfinite(limit) or bool(split.wrong.all()):
        return None
    return limit if bool((split.wrong | (split.distances < limit)).any()) else None


def _describe_near(facts: Facts, split: Measured) -> str:
    """How many samples lie on the wrong side, and how many just on the right one."""
    wrong, limit = int(split.wrong.sum()), _find_threshold(split)
    counts = f"On the wrong side: {wrong:,}."
    if math.isfinite(limit):
        near = f"{int((~split.wrong & (split.distances < limit)).sum()):,}"
        where = "boundary" if facts.has_distances else "next answer"
        counts += f" Right, but within {plain(limit)} of the {where}: {near}."
    if is_at_chance(split.labels, split.wrong):
        return f"{counts} Compare labels and classes before you look at single ones."
    return (
        f"{counts} Look at these {facts.noun}s first: hard ones lie near the boundary, mislabelled"
        " ones often far on its wrong side."
    )


def make_splits(facts: Facts) -> tuple[tuple[Split, ...], Images | None, dict[str, int]]:
    """The rows of all splits, their images, and how many samples of each split are shown."""
    splits, pictures, shown, cells = [], [], {}, 0
    for index, split in enumerate(facts.splits):
        weights = facts.weights() if split.key == "training" else None
        linked = [r.rows for r in facts.radii[:1] if r.rows is not None and r.split == split.key]
        if split.key == "training" and facts.label_errors is not None:
            linked.insert(0, facts.label_errors.order[:SHOWN])
        elsewhere = _answer_elsewhere(facts, split)
        if elsewhere is not None:
            linked.insert(0, torch.nonzero(elsewhere >= 0)[:, 0])
        chosen = choose_shown(split, weights, linked)
        shown[split.key] = len(chosen)
        columns = _make_columns(facts, split, weights)
        if elsewhere is not None:
            columns["o"] = [None if answer < 0 else answer for answer in elsewhere.tolist()]
        if facts.noun in ("image", "signal"):
            X = split.X[chosen]
            drawn = draw_curves(X) if facts.noun == "signal" else as_images(X)
            assert drawn is not None  # `describe_inputs` has looked
            pictures.append(drawn)
            columns["image"] = _spread(range(cells, cells + len(chosen)), chosen, split.n)
            cells += len(chosen)
        else:
            assert facts.inputs is not None  # where there are splits
            texts = facts.texts[index] if facts.texts else None
            lines = snippets(split.X, chosen.tolist(), facts.inputs, texts)
            columns["text"] = _spread(lines, chosen, split.n)
        splits.append(Split(split.key, split.title, f"{facts.noun}s", split.n, columns))
    images = None
    if pictures:
        assert facts.inputs is not None
        images = make_sprites(pictures, facts.inputs.low, facts.inputs.high)
    return tuple(splits), images, shown


def _make_columns(facts: Facts, split: Measured, weights: Tensor | None) -> Columns:
    """The columns of every sample of a split."""
    columns: Columns = {
        "y": split.labels.tolist(),
        "p": split.answers.tolist(),
        "r": split.rivals.tolist(),
        "d": split.distances.tolist(),
        "q": split.report.q.tolist(),
    }
    for linked in facts.radii[:1]:
        if linked.split != split.key or linked.rows is None:
            continue
        examined = linked.rows[: linked.report.examined]
        if not linked.report.no_lower:
            proved = map(round_down, linked.report.lower.tolist())
            columns["lower"] = _spread(proved, examined, split.n)
        if linked.report.attacks:
            columns["upper"] = _spread(linked.report.upper.tolist(), examined, split.n)
    if weights is not None:
        columns["w"] = weights.tolist()
    if split.key == "training" and (found := facts.label_errors) is not None:
        suggested = found.suggested.clamp(min=0)  # signs are classes 0 and 1
        columns |= {"s": suggested.tolist(), "f": found.scores.tolist()}
        if found.count:  # else nothing can be told of single ones
            columns["e"] = found.wrong.tolist()
    return columns


def _answer_elsewhere(facts: Facts, split: Measured) -> Tensor | None:
    """The answer of the first other net that gives another one, -1 where all agree, (N,)."""
    if facts.comparison is None:
        return None
    first = split is facts.splits[0]
    reports = facts.comparison.reports if first else facts.comparison.training
    found = torch.full((split.n,), -1, device="cpu")
    for report in reports[:0:-1]:
        if report.n != split.n:  # of a record about other samples
            return None
        answers = report.answers
        found = torch.where(answers == split.answers, found, answers)
    return found if bool((found >= 0).any()) else None


def _spread(values: Any, rows: Tensor, n: int) -> list[Any]:
    """A column of n rows with values at some of them, and None elsewhere."""
    column: list[Any] = [None] * n
    for row, value in zip(rows.tolist(), values, strict=False):
        column[row] = value
    return column
