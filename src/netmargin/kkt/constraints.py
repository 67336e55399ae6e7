"""The constraints s_nj >= 1 of the max-margin problem: values, gradients, slopes in a direction.

Everything is computed by a float64 copy of the net, in batches.
"""

import functools
import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from ..margins import score_gaps
from ..nets.advice import explain_forward_errors
from ..nets.gates import Gates
from ..nets.gradients import Gradients, SampleGradients, StoredGradients
from ..nets.model import call_net, call_with, scores
from ..nets.named_inputs import map_floating
from ..nets.net_on_samples import NetOnSamples
from ..nets.score_outputs import zero_absent
from ..nets.shared import is_own_batch, join_shares
from .constraint_subset import ConstraintSubset
from .rounding import change
from .slopes import Slopes, Vector, value_and_slope

BATCH = 64
"""Float64 samples per pass where nobody says how many, twice as many in float32: few enough for the
activations of an image net to stay in cache.
"""


class _CountedGradients(SampleGradients):
    """Gradients that tell how many were computed."""

    tick: Callable[[int], None] = staticmethod(lambda samples: None)

    def __call__(self, x: Any, weights: Tensor) -> Gradients:
        found = super().__call__(x, weights)
        self.tick(len(x))
        return found


class Constraints:
    """All gaps s_nj, or y_n Phi for one output, as functions of parameters `names` of a net."""

    def __init__(
        self, scored: NetOnSamples, names: tuple[str, ...], batch_size: int = BATCH
    ) -> None:
        self.scored, self.twin, self.names = scored, scored.twin, names
        self.batch_size = batch_size
        self._parameters = dict(self.twin.named_parameters())
        self.outputs, self._y = scored.outputs, scored.y
        with torch.no_grad():
            self._gradients = _CountedGradients(
                self.twin, names, scored.first_inputs(1), batch_size / BATCH
            )

    def report_to(self, tick: Callable[[int], None]) -> None:
        """Call `tick` with the number of samples after each batch of gradients or slopes."""
        self._gradients.tick = tick

    @property
    def count(self) -> int:
        """The number of constraints: n (C - 1) for C classes, less those of absent classes."""
        return len(self.scored) * max(self.outputs - 1, 1) - int(self.absent.sum())

    @cached_property
    def absent(self) -> Tensor:
        """How many scores of each sample are minus infinity, (N,); 0 where sums may overflow."""
        sums = self.term_sizes()
        with torch.no_grad():
            given = self.scored.batches(self.batch_size)
            found = [(scores(self.twin, x) == -math.inf).sum(1) for x, _ in given]
        return torch.cat(found).where(sums > 0, 0)

    @property
    def _tensors(self) -> Vector:
        """The parameters and buffers of the net by name."""
        return self._parameters | dict(self.twin.named_buffers())

    @property
    def point(self) -> Vector:
        """A copy of the parameters at which the net is."""
        return {n: self._parameters[n].detach().clone() for n in self.names}

    def move_to(self, point: Vector) -> None:
        """Put the net at other parameters."""
        with torch.no_grad():
            for name, value in point.items():
                self._parameters[name].copy_(value)

    def nearest(
        self, source: torch.Generator | None = None, samples: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The smallest s of each sample, and the size of its scores, changed at random, (N,)."""
        point = {n: change(p.detach(), source) for n, p in self._tensors.items()}
        found = []
        with torch.no_grad():
            for x, y in self.scored.batches(self.batch_size, samples):
                outputs = self._scores_at(point, change(x, source))
                sizes = zero_absent(outputs).abs().amax(1)
                found.append((score_gaps(outputs, y).amin(1), sizes))
        return torch.cat([s for s, _ in found]), torch.cat([size for _, size in found])

    def term_sizes(self) -> Tensor:
        """Scores of absolute weights on absolute inputs, which do not cancel, (N,); 0: unknown."""
        point = {}
        for name, p in self._tensors.items():
            if p.is_floating_point():
                # Batch norms subtract their means; infinite numbers are masks.
                size = -p.abs() if name.rpartition(".")[2] == "running_mean" else p.abs()
                point[name] = torch.where(p.isinf(), p, size).detach()
        found = []
        with torch.no_grad():
            for x, _ in self.scored.batches(self.batch_size):
                outputs = self._scores_at(point, map_floating(torch.abs, x))
                found.append(zero_absent(outputs).abs().amax(1))
        return torch.cat(found).nan_to_num(nan=0.0, posinf=0.0)

    def _scores_at(self, point: Vector, x: Any) -> Tensor:
        """The scores of a batch at other parameters and buffers, (N, C)."""
        outputs = call_with(self.twin, point, x)
        return outputs[:, None] if outputs.ndim == 1 else outputs

    def slopes(
        self,
        direction: Vector,
        dtype: torch.dtype = torch.float64,
        source: torch.Generator | None = None,
        samples: Tensor | None = None,
    ) -> Iterator[Slopes]:
        """Yield s and <grad s, direction> in batches, computed in `dtype`.

        float32 is good enough to choose constraints by. `source` changes all numbers at random. Of
        processes that share samples each has its own batches; all have those of given `samples`.
        """

        def cast(vector: Vector) -> Vector:
            return {
                n: change(p.detach().to(dtype), source) if p.is_floating_point() else p
                for n, p in vector.items()
            }

        point, moved = cast({n: self._parameters[n] for n in direction}), cast(direction)
        fixed = cast({n: p for n, p in self._tensors.items() if n not in direction})
        size = self.batch_size * 8 // dtype.itemsize
        for number, (x, y) in enumerate(self.scored.batches(size, samples)):
            if samples is None and not is_own_batch(number):
                continue
            start = number * size
            x = change(map_floating(lambda part: part.to(dtype), x), source)

            def outputs(free: Vector, x: Any = x) -> Tensor:
                return self._scores_at(free | fixed, x)

            with explain_forward_errors(x):
                value, slope = value_and_slope(outputs, point, moved)
            # The slope of a difference is the difference of slopes; at j = y_n there is no
            # constraint.
            self._gradients.tick(len(x))
            yield Slopes(
                slice(start, start + len(x)),
                score_gaps(value, y),
                score_gaps(slope, y).nan_to_num(posinf=0.0),
                zero_absent(value).abs().amax(1, keepdim=True),
                slope.abs().amax(1, keepdim=True),
            )

    def best(self, parts: Iterator[tuple[slice, Tensor]], count: int) -> ConstraintSubset:
        """Find the `count` constraints of largest finite merit, from merits (N, C) in batches."""
        best: ConstraintSubset | None = None
        for part, merit in parts:
            finite = torch.isfinite(merit)
            samples, classes = torch.nonzero(finite, as_tuple=True)
            found = ConstraintSubset(
                samples + part.start, classes if self.outputs > 1 else classes - 1, merit[finite]
            ).best(count)
            best = found if best is None else best.union(found).best(count)
        if best is None:  # a process without samples
            none = torch.empty(0, dtype=torch.int64, device=self._y.device)
            return ConstraintSubset(none, none, none.double())
        return best

    def smallest(self, samples: Tensor, count: int) -> ConstraintSubset:
        """Find the `count` constraints of smallest s among those of some samples."""
        samples = samples.to(self._y.device)
        parts = self.scored.batches(self.batch_size, samples)
        with torch.no_grad():
            gaps = torch.cat([score_gaps(scores(self.twin, x), y) for x, y in parts])
        found = self.best(iter([(slice(0, len(samples)), -gaps)]), count)
        return ConstraintSubset(samples[found.samples], found.classes, found.merit)

    def preactivations(self, samples: Tensor) -> list[Tensor]:
        """Compute the inputs of every ReLU on some samples, one tensor per ReLU."""
        with torch.no_grad(), Gates() as gates:
            call_net(self.twin, self.scored.inputs(samples))
        return list(gates.inputs)

    def _weights(self, chosen: ConstraintSubset) -> Tensor:
        """Compute the weights (K, C) with which each constraint sums the outputs of its sample."""
        if self.outputs == 1:
            return self._y[chosen.samples][:, None]
        weights = torch.zeros(len(chosen), self.outputs, dtype=torch.float64, device=self._y.device)
        weights.scatter_(1, self._y[chosen.samples][:, None], 1.0)
        return weights.scatter_(1, chosen.classes[:, None], -1.0)

    def values_of(self, chosen: ConstraintSubset) -> Tensor:
        """Compute s of some constraints, shape (K,), at the present point."""
        with torch.no_grad():
            given = self.scored.batches(self.batch_size, chosen.samples)
            parts = [scores(self.twin, x) for x, _ in given]
            return (zero_absent(torch.cat(parts)) * self._weights(chosen)).sum(1)

    def gradients(self, chosen: ConstraintSubset) -> "StoredGradients":
        """The gradients of some constraints, stored if they fit, and else computed when needed."""
        x = self.scored.inputs(chosen.samples)
        return StoredGradients(self._gradients, x, self._weights(chosen))

    def weighted_gradient(self, chosen: ConstraintSubset, multipliers: Tensor) -> Vector:
        """Compute sum_k multipliers_k grad s_k, by backward passes."""
        used = torch.nonzero(multipliers)[:, 0]
        cotangents = (multipliers[:, None] * self._weights(chosen))[used].split(self.batch_size)
        given = self.scored.batches(self.batch_size, chosen.samples[used])
        return self._pull_back(
            (scores(self.twin, x), w) for (x, _), w in zip(given, cotangents, strict=True)
        )

    def loss_gradient(self, weigh: Any) -> Vector:
        """The sum of weigh(gaps) grad s; each process weighs the gaps of its own batches."""

        def parts() -> Any:
            for number, (x, y) in enumerate(self.scored.batches(self.batch_size)):
                if not is_own_batch(number):
                    continue
                outputs = scores(self.twin, x)
                weights = weigh(score_gaps(outputs.detach(), y))
                if self.outputs == 1:
                    yield outputs, weights * y[:, None]
                else:
                    yield outputs, (-weights).scatter(1, y[:, None], weights.sum(1, keepdim=True))

        shares = join_shares(lambda: self._pull_back(parts()))
        return {n: functools.reduce(torch.add, [share[n] for share in shares]) for n in self.names}

    def _pull_back(self, parts: Any) -> Vector:
        """Sum the gradients of outputs times cotangents, given in pairs, over batches."""
        free = [self._parameters[n] for n in self.names]
        total = {n: torch.zeros_like(self._parameters[n]) for n in self.names}
        for outputs, cotangent in parts:
            found = torch.autograd.grad(outputs, free, cotangent, allow_unused=True)
            for name, gradient in zip(self.names, found, strict=True):
                if gradient is not None:
                    total[name] += gradient
        return total
