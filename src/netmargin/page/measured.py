"""What a page measures of a net on one split of the data: answers, margins, distances."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ArgumentError, DataError, ModelError
from ..homogeneity import Homogeneity, analyse
from ..margins import MarginReport, measure
from ..nets.arrays import Arrays
from ..nets.data import Data, batches, read_model_and_data
from ..nets.model import in_mode, scores
from ..nets.named_inputs import as_one_tensor, tensors_of
from ..nets.probabilities import doubt_scores

AT_ONCE = 100
"""Samples of a pass, as of `input_margins`: backward passes take more memory than scores."""


@dataclass(frozen=True)
class Measured:
    """A net on the samples of one split; `key` is "heldout" or "training", `title` what they are:
    "Held-out", "Training", or "" for data alone, of which nothing is known.

    Inputs are on the CPU. Of each sample there are the class that the net answers (never the label
    of a sample that counts as wrong) and the rival, the class whose boundary is nearest.
    `no_distance` says why there are no distances, or is "".
    """

    key: str
    title: str
    X: Tensor
    report: MarginReport
    answers: Tensor
    rivals: Tensor
    no_distance: str

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.report.n

    @property
    def labels(self) -> Tensor:
        """The class of each sample, int64, shape (N,)."""
        return self.report.labels

    @cached_property
    def wrong(self) -> Tensor:
        """Whether each sample is wrong, shape (N,); ties count as wrong."""
        return self.report.q <= 0

    @cached_property
    def distances(self) -> Tensor:
        """Estimated distances, float64, shape (N,); score margins where there are none."""
        found = self.report.input_margins
        return self.report.q if found is None else found.distances

    @property
    def median(self) -> float:
        """The median distance of the samples that are right; NaN where none is."""
        right = self.distances[~self.wrong]
        # Of two in the middle the lower one: it may be that the other is infinite.
        return right.median().item() if len(right) else math.nan


def open_split(name: str, model: Any, data: Data) -> tuple[nn.Module, Arrays]:
    """A net and all samples of a split; errors begin with the name of the argument."""
    if isinstance(data, Iterator):
        raise DataError(
            f"{name} is a {type(data).__name__}, which can be read only once, and a page reads it"
            " several times. Give a pair (X, y), or a DataLoader."
        )
    try:
        net, samples = read_model_and_data(model, data)
    except DataError as error:
        raise DataError(f"{name}: {str(error).removeprefix('the data: ')}") from error
    if samples.X.is_floating_point():
        net, X = as_one_tensor(net, samples.X)
        return net, Arrays(X, samples.y)
    return net, samples


def analyse_net(model: nn.Module, samples: Arrays) -> Homogeneity:
    """Analyse a net in evaluation mode, on some of its samples."""
    with in_mode(model, training=False):
        x, _ = next(batches(samples, 20, model))  # `analyse` itself looks at a few
        scores(model, x)  # whose errors name their cause better
        return analyse(model, x)


def measure_split(
    key: str, title: str, model: nn.Module, samples: Arrays, options: Any
) -> Measured:
    """Measure a net on a split, by the options of the page; `no_distance` may say why not all."""
    measured = partial(
        measure,
        model,
        samples,
        heldout={"Held-out": True, "Training": False}.get(title),
        batch_size=AT_ONCE,
        class_names=options.class_names,
        within=options.within,
        groups=options.groups,
    )
    try:
        report = measured(input_margins=not _has_probabilities(model, samples))
        why = report.warning if report.saturated else ""
    # Nets without gradients in their inputs have no distances, and everything else on the page.
    except (ModelError, DataError, ArgumentError) as error:
        report, why = measured(), str(error)
    if why:
        report = replace(report, input_margins=None)
    found = report.input_margins
    # Where there are no distances, the rival is the next best answer.
    rivals = report.others if found is None else found.rivals
    shown = tensors_of(samples.X)[0]  # of inputs by name the first
    return Measured(key, title, shown.detach().cpu(), report, report.answers, rivals, why)


def _has_probabilities(model: nn.Module, samples: Arrays) -> bool:
    """Whether the scores are seen to be probabilities, of which no distances are shown."""
    with in_mode(model, training=False), torch.no_grad():
        x, _ = next(batches(samples, AT_ONCE, model))
        return doubt_scores(model, x, scores(model, x)).saturated
