"""The state of a training run between epochs, and how one epoch changes it."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from torch import Tensor, nn

from ..core import logspace
from ..core.caller import warn_caller
from ..core.denormals import flush_denormals
from ..core.memory import advise_on_memory
from ..errors import DataError, DivergenceError, NonFiniteOutputError, OutOfMemoryError
from ..homogeneity import Homogeneity, analyse
from ..losses import Loss
from ..margins import make_report, measure, measure_margins
from ..nets.arrays import Arrays
from ..nets.counted_weights import require_trained_weights
from ..nets.data import batches
from ..nets.equal_samples import warn_of_contradictions
from ..nets.forward_faults import find_faults
from ..nets.labels import Labels
from ..nets.model import device_and_dtype, in_mode, require_differentiable
from ..nets.named_scores import settle_scores
from ..nets.row_order import in_order
from ..nets.whole_tensors import are_finite
from .history import History
from .learning_rate import LearningRate
from .module_state import copy_state, put_state, restore_state
from .randomness import Randomness
from .relative_loss import descend, initial_log_scale, relative_loss_and_slope
from .run_files import RunFiles
from .whole_batch import WholeBatch, is_same_in_training

Found = TypeVar("Found")

_MEASURED_AT_ONCE = 200
"""Samples per pass when margins are measured, as many as `measure` takes by default."""


class Run:
    """A model in training: its data, rule, history, and the state after its last accepted epoch."""

    def __init__(
        self,
        model: nn.Module,
        data: Any,
        lr: LearningRate,
        loss: Loss,
        batch_size: int | None,
        files: RunFiles | None,
        shuffle: bool,
    ) -> None:
        self.model, self.data, self.lr, self.loss, self.files = model, data, lr, loss, files
        # A re-iterable of batches has its own batch size.
        full = len(data) if isinstance(data, Arrays) else 1
        self.batch_size = full if batch_size is None else batch_size
        # The same samples, which a loader that shuffles gives in the order of its data set here.
        self.measured = data if isinstance(data, Arrays) else in_order(data)
        self.measured_at_once, self.shuffle = _MEASURED_AT_ONCE, shuffle
        self.whole: WholeBatch | None = None
        self.history = History()
        self.randomness = Randomness(data, model)
        self.gradient_samples = 0
        self.stalled = ""

    def first_inputs(self) -> Any:
        """The inputs of the first batch. Raises what the model and its data raise."""
        # Before the first state is kept: nothing may be drawn from what the caller holds.
        with self.randomness.undisturbed():
            x, _ = next(batches(self.measured, self.batch_size, self.model))
        return x

    def begin(self, first: Any, saved: dict[str, Any] | None) -> None:
        """Start anew, or from a saved state, with the inputs of the first batch."""
        with in_mode(self.model, training=False):
            require_trained_weights(self.model, "nothing to train")
            self.outputs = require_differentiable(self.model, first)
            self.homogeneity = analyse_and_warn(self.model, first)
        self.place = device_and_dtype(self.model)
        if isinstance(self.data, Arrays):
            self.data = self.measured = _encode_labels(self.data, self.outputs)
            if not self.shuffle and self.batch_size >= len(self.data):
                # Measuring passes are those of steps, for a net that is the same in both modes.
                ((x, y),) = self._batches(self.data, self.batch_size)
                with self.randomness.undisturbed():
                    if is_same_in_training(self.model, x):
                        self.whole = WholeBatch(self.model, x, y, self.loss)
        if saved is None:
            self._begin_anew()
            return
        assert self.files is not None  # where a saved state comes from
        put_state(self.model, saved["model"], self.files.checkpoint)
        self.history.rows = self.files.history.read(saved["epoch"] + 1)
        self.files.history.begin(self.history.rows)
        self.lr.load_state_dict(saved["lr"])
        self.log_scale, self.log_loss = saved["log_scale"], saved["log_loss"]
        self.gradient_samples = saved["gradient_samples"]
        self.randomness.restore(saved["random"])
        self.kept = self._copy_state()

    def _begin_anew(self) -> None:
        if isinstance(self.measured, Arrays):  # one more pass over a loader may cost much
            warn_of_contradictions(self.model, self.measured)
        net, known = settle_scores(self.model), self.homogeneity
        report = self._measure_by(
            lambda n: measure(net, self.measured, loss=self.loss, homogeneity=known, batch_size=n)
        )
        if report.saturated:
            warn_caller(report.warning)
        # `measure` has read the data once: what has changed since changes from pass to pass.
        if self.files:
            self.randomness.warn_of_unrestored()
            self.files.history.begin([])
        self.log_loss = logspace.log_mean(report.log_loss, report.n)
        self.log_scale = initial_log_scale(self.loss, self.log_loss, max(self.outputs, 2))
        if report.log_loss < self.loss.log_threshold:  # the loss proves separation
            self.lr.begin(self.log_loss, self._find_polyak_step)
        self._keep(report.q, report.log_loss, attempts=0, rate=None)
        self.save(now=True)

    def epoch(self, show: Any) -> None:
        """Train for one epoch, as often as its rule wants, calling `show` with each attempt."""
        attempts = 0
        while True:
            attempts += 1
            show(attempts)
            rate = self.lr.relative_rate(self.log_scale)
            self._step_through_batches(rate)
            found = self._measure_or_none()
            # An infinite loss lets a rule refuse the epoch like any other that went too far.
            after = math.inf if found is None else logspace.log_mean(found[1], len(found[0]))
            accepted = self.lr.accept(self.log_loss, after)
            if accepted and found is not None:
                break
            if accepted or self.lr.exhausted or not self.whole:
                self.undo()
            if accepted:
                self.save(now=True)
                raise DivergenceError(
                    f"Epoch {len(self.history)} ended with parameters or outputs that are not"
                    " finite; the model was put back to the epoch before. Use LossBasedLR, or a"
                    f" smaller rate than {self.lr!r}."
                )
            if self.lr.exhausted:
                self.stalled = (
                    f"stalled: no step lowers the loss, down to a relative rate of {rate:.1g}"
                )
                return
        # The next epoch's steps are relative to the loss that this one reached.
        self.log_scale = self.log_loss = after
        self._keep(*found, attempts=attempts, rate=rate)
        self.save()

    def undo(self) -> None:
        """Put all that the model holds back to the last accepted epoch."""
        restore_state(self.model, self.kept["model"])

    def rewind(self) -> None:
        """Put everything back to the last accepted epoch, also on disk, and save it."""
        self.undo()
        del self.history.rows[self.kept["epoch"] + 1 :]
        if self.files:
            self.files.history.begin(self.history.rows)
        self.save(now=True)

    def save(self, *, now: bool = False) -> None:
        """Write the state after the last accepted epoch, if it is time or `now`."""
        if self.files:
            self.files.save(self.kept, now=now)

    def _step_through_batches(self, rate: float) -> None:
        """Take one step per batch, over all batches once."""
        shrinkage = self.lr.shrinkage
        if self.whole:
            self.gradient_samples += self.whole.step(
                log_scale=self.log_scale, rate=rate, shrinkage=shrinkage
            )
            return
        step = partial(descend, rate=rate, shrinkage=shrinkage)
        # A net in training mode keeps parts that its owner set to evaluation, such as a frozen
        # BatchNorm.
        mode = nullcontext() if self.model.training else in_mode(self.model, training=True)
        with mode, flush_denormals():
            self._call_on_batches(step, shuffle=self.shuffle)

    def _find_polyak_step(self) -> float:
        """The smallest R_B / |grad R_B|^2, R_B the relative loss, over batches; or infinity."""
        with in_mode(self.model, training=False):  # BatchNorm's statistics stay as they are
            found = self._call_on_batches(relative_loss_and_slope, shuffle=False)
        steps = (value / square for value, square in found if value > 0 and 0 < square < math.inf)
        return min(steps, default=math.inf)

    def _call_on_batches(self, function: Callable[..., Any], *, shuffle: bool) -> list[Any]:
        """What a function that differentiates returns on each batch."""
        found = []
        for x, y in self._batches(self.data, self.batch_size, shuffle=shuffle):
            with advise_on_memory(len(x)):
                found.append(function(self.model, x, y, loss=self.loss, log_scale=self.log_scale))
            self.gradient_samples += len(x)
        return found

    def _batches(self, data: Any, size: int, *, shuffle: bool = False) -> Iterator[Any]:
        """Batches of inputs where the net is, and encoded labels; nothing is checked twice."""
        labels = Labels(self.outputs)
        for x, y in batches(data, size, self.model, shuffle=shuffle, place=self.place):
            yield x, y if isinstance(data, Arrays) else labels.encode(y)

    def _measure_by(self, work: Callable[[int], Found]) -> Found:
        """What `work` finds in a pass over all samples, given how many it may take at once."""
        # Where memory does not suffice for so many samples at once, half as many are tried, down to
        # the batch size of training: a step takes more memory than a measurement.
        while True:
            try:
                return work(self.measured_at_once)
            except OutOfMemoryError:
                own_batches = not isinstance(self.data, Arrays)
                if own_batches or self.measured_at_once <= self.batch_size:
                    raise
            # After the handler, whose exception still held the memory of the pass.
            self.measured_at_once = max(self.measured_at_once // 2, self.batch_size)

    def _measure_or_none(self) -> tuple[Tensor, float] | None:
        """Margins and log-loss, or None where parameters or outputs are not finite."""
        try:
            if self.whole:
                return self.whole.measure() if self.whole.is_finite() else None
            if not all(map(are_finite, chain(self.model.parameters(), self.model.buffers()))):
                return None
            given = partial(self._batches, self.measured)
            return self._measure_by(lambda n: measure_margins(self.model, given(n), self.loss))
        except NonFiniteOutputError:
            return None

    def _keep(self, q: Tensor, log_loss: float, *, attempts: int, rate: float | None) -> None:
        """Accept an epoch: write its row, and remember everything that a resumed run needs."""
        head = {
            "epoch": len(self.history),
            "attempts": attempts,
            "gradient_samples": self.gradient_samples,
            "relative_rate": rate,
        }
        report = make_report(self.model, self.homogeneity, self.loss, q, log_loss)
        self.history.rows.append(head | report.to_dict())
        # On disk first: a checkpoint must not refer to a row that a crash could still lose. An
        # interruption in between finds `kept` as it was, and `rewind` cuts the rest.
        if self.files:
            self.files.history.append(self.history.rows[-1])
        self.kept = self._copy_state()
        if self.whole:
            self.whole.accept()

    def _copy_state(self) -> dict[str, Any]:
        """A copy of everything that a resumed run needs."""
        return {
            "epoch": len(self.history) - 1,
            "model": copy_state(self.model),
            "lr": self.lr.state_dict(),
            "log_scale": self.log_scale,
            "log_loss": self.log_loss,
            "gradient_samples": self.gradient_samples,
            "random": self.files and self.randomness.state(),  # which a file alone needs
        }


def analyse_and_warn(model: nn.Module, x: Any) -> Homogeneity:
    """The analysis of a net in evaluation mode, with a warning of its faults."""
    # Training may go on with them; the reader of its history must know what is in it.
    if faults := find_faults(model, x):
        warn_caller(f"{faults} That is in the margins of this history.")
    return replace(analyse(model, x), warning=faults)


def _encode_labels(data: Arrays, outputs: int) -> Arrays:
    """The data with labels as the loss takes them. Raises DataError where all are the same."""
    y = Labels(outputs).encode(data.y)
    if bool((y == y[0]).all()):
        raise DataError(
            f"All {len(data)} labels are {data.y[0].item()}: every net that always says so is"
            " right, and no margin is at stake. Train on samples of at least two classes."
        )
    return replace(data, y=y)
