"""One pass over data that scores every batch, for all that is measured of margins."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from ..core.caller import warn_caller
from ..core.memory import advise_on_memory
from ..core.progress import Progress
from ..homogeneity import Homogeneity, Kind, analyse
from ..nets.arrays import Arrays
from ..nets.data import batches
from ..nets.forward_faults import SAMPLES, find_faults
from ..nets.input_slopes import doubt_slopes
from ..nets.labels import ClassNames, Labels
from ..nets.model import in_mode
from ..nets.named_scores import reading_of
from ..nets.probabilities import Doubt, doubt_scores, doubt_signs, has_free_sign
from ..nets.row_order import warn_of_dropped_rows
from ..nets.shared import Sameness, is_own_batch, join_shares, require_same, writes_for_all
from ..nets.stored_scale import doubt_scale
from .of_outputs import doubt_digits, margins, require_finite_margins

Found = TypeVar("Found")
Opened = TypeVar("Opened")


class ScoredBatch(NamedTuple):
    """A batch as the net scored it."""

    point: Tensor  # what the scores may be differentiated in
    outputs: Tensor  # the scores, (N, C)
    targets: Tensor  # encoded labels, on their device
    hard: Tensor  # margins, (N,)
    soft: Tensor
    classes: Tensor


def pass_over(
    model: nn.Module,
    samples: Arrays | Iterable[Any],
    batch_size: int,
    names: ClassNames,
    *,
    score: Callable[[Any], tuple[Tensor, Tensor]],
    begin: Callable[[Any, Tensor], Opened],
    compute: Callable[[ScoredBatch], Found],
    faults: str | None = None,
    slopes: bool = False,
    progress: str = "",
) -> tuple[list[Found], Opened, Doubt]:
    """What `compute` finds in every batch, what `begin` finds in the first, and doubts about it.

    `score` maps inputs to a point and the scores of it; `faults` of the net, where they are known,
    are not warned of; `slopes` says whether scores are differentiated in the inputs. The net is in
    evaluation mode, without gradients. Of processes that share samples, all return the whole.
    """
    total = math.ceil(len(samples) / batch_size) if isinstance(samples, Arrays) else None

    def work() -> tuple[list[tuple[int, Found]], Opened, Doubt, list[Any], dict[str, bytes]]:
        labels: Labels | None = None
        parts: list[tuple[int, Found]] = []
        alone: list[tuple[Tensor, Tensor]] = []  # scores and signs of a net with one output
        measured, same = 0, Sameness(model)
        shown = bool(progress) and writes_for_all()
        with in_mode(model, training=False), torch.no_grad(), Progress(shown, progress) as display:
            for index, (x, y) in enumerate(batches(samples, batch_size, model)):
                same.add(x, y)
                # The first batch is scored by every process: the net is examined on it, and the
                # number of outputs says which labels there may be.
                if labels is not None and not is_own_batch(index):
                    labels.encode(y)  # checked together with those of the other batches
                    measured += len(y)
                    continue
                left = None if total is None else total - index
                display.draw(index, left, f"batch {index + 1}" + (f" of {total}" if total else ""))
                with advise_on_memory(len(x)):
                    point, graph = score(x)
                    outputs = graph.detach()
                    # After the forward pass, whose errors name their cause better.
                    if labels is None:
                        few = x
                        if isinstance(samples, Arrays):  # also where batches hold one sample
                            few = next(batches(samples, SAMPLES, model))[0]
                        doubt = doubt_scores(model, x, outputs)
                        scaled = doubt_scale(model, samples, x)
                        first = begin(x, outputs)
                        names.require_number(outputs.shape[1])
                        labels = Labels(outputs.shape[1])
                    targets = labels.encode(y).to(outputs.device)
                    hard, soft = margins(outputs, targets)
                    require_finite_margins(soft, outputs, targets, measured=measured)
                    if not measured:
                        faint = doubt_digits(hard, outputs.dtype)
                        doubt = _doubt_net(model, few, doubt, faults, slopes, scaled, faint)
                    measured += len(soft)
                    if is_own_batch(index):
                        classes = targets.cpu()
                        if labels.outputs == 1:
                            alone.append((outputs[:, 0].cpu(), classes))
                            classes = (classes > 0).long()
                        batch = ScoredBatch(point, graph, targets, hard.cpu(), soft, classes)
                        parts.append((index, compute(batch)))
        warn_of_dropped_rows(samples, measured)
        return parts, first, doubt, alone, same.describe()

    def ask(question: Callable[[nn.Module, Any], Any]) -> Any:
        with in_mode(model, training=False):
            return question(model, next(batches(samples, SAMPLES, model))[0])

    shares = join_shares(work)
    require_same([digests for *_, digests in shares])
    parts = sorted((part for own, *_ in shares for part in own), key=lambda part: part[0])
    _, first, doubt, *_ = shares[0]
    if alone := [part for *_, own, _ in shares for part in own]:
        new = doubt_signs(
            *map(torch.cat, zip(*alone, strict=True)),
            free=lambda: ask(has_free_sign),
            homogeneous=lambda: (
                (first if isinstance(first, Homogeneity) else ask(analyse)).kind is not Kind.NONE
            ),
            settled=reading_of(model).as_log_odds is not None,
        )
        if new.text and faults is None:
            warn_caller(new.text)
        texts = filter(None, (doubt.text, new.text))
        doubt = Doubt(" ".join(texts), doubt.saturated or new.saturated)
    return [found for _, found in parts], first, doubt


def _doubt_net(
    model: nn.Module,
    x: Any,
    doubt: Doubt,
    faults: str | None,
    slopes: bool,
    scaled: str,
    faint: str,
) -> Doubt:
    """Doubts about the scores of a net with its faults, of which it warns if they are new."""
    new = []
    if faults is None:
        faults = find_faults(model, x)
        new = [faults, doubt.text if doubt.saturated else "", faint]
    masked = doubt_slopes(model, x) if slopes and not faults and x.is_floating_point() else ""
    for said in filter(None, (*new, masked, scaled)):
        warn_caller(said)
    return doubt._replace(text=" ".join(filter(None, (faults, doubt.text, masked, scaled, faint))))
