"""Training past underflow: SGD on the loss relative to itself, epoch by epoch, with undo."""

import copy
import math
from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from .. import logspace
from ..batches import Arrays, Data, Labels, batches, open_data, scores
from ..errors import DataError, DivergenceError, Interrupted
from ..homogeneity import analyse
from ..losses import CrossEntropy, Loss
from ..margins import MarginReport, NonFiniteOutputError, countable, in_mode, measure
from .checkpoint import put_weights
from .history import History
from .learning_rate import LearningRate, LossBasedLR
from .progress import Progress, describe
from .relative_loss import descend, initial_log_scale
from .run_files import RunFiles, describe_settings
from .stopping import Epochs, StoppingRule


def train(
    model: nn.Module,
    data: Data,
    *,
    until: StoppingRule | Sequence[StoppingRule] = Epochs(100),
    lr: LearningRate | None = None,
    loss: Loss | None = None,
    batch_size: int | None = 100,
    seed: int = 0,
    checkpoint_dir: str | Path | None = None,
    checkpoint_seconds: float = 5.0,
    resume: str = "auto",
    progress: bool = True,
) -> History:
    """Minimize the mean training loss by SGD, in log domain: losses of 1e-800 and far below are ordinary.

    Each epoch takes one step per batch on exp(log L_B - F), where F is the log of the last mean training loss; then the loss of
    the whole training set and all margins are measured. Same seed, same machine: same result bit for bit, interrupted or not.

    Parameters
    ----------
    model : changed in place; it keeps its device, dtype and mode.
    data : a pair (X, y), shuffled anew each epoch, or a re-iterable of (x, y) batches such as a DataLoader.
    until : a stopping rule, or several (the first one reached ends the run).
    lr : `LossBasedLR()` (the default) or `ConstantLR(rate)`.
    loss : cross-entropy (logistic for one output) by default.
    batch_size : samples per step when data is a pair; None for full batch.
    seed : of shuffling and dropout.
    checkpoint_dir : folder for history.jsonl and checkpoint.pt; None keeps nothing on disk.
    checkpoint_seconds : least time between two checkpoints; a killed run repeats at most that.
    resume : "auto" goes on with the run that the folder holds, "never" refuses to touch it.
    progress : show a live line with loss, margin and time left.

    Raises
    ------
    DataError, ModelError : as `measure`; also when the labels hold one class only.
    DivergenceError : a loss or parameters that are not finite, with a rule that cannot undo; the model is put back.
    CheckpointError : files that cannot be read or written, or belong to another run or model.
    Interrupted (a KeyboardInterrupt) : on Ctrl-C, after the last accepted epoch was restored and saved.

    >>> import torch, netmargin as nm
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Linear(2, 1, bias=False)
    >>> data = (torch.tensor([[2.0, 1.0], [-1.0, -2.0]]), torch.tensor([1, -1]))
    >>> history = nm.train(net, data, until=nm.LogLossBelow(log10=-1000), progress=False)
    >>> history.status
    'log10-loss fell below -1000'
    >>> round(history.rows[-1]["normalized_margin"], 2), round(3 / 2**0.5, 2)     # on its way to the largest margin
    (2.11, 2.12)

    Source: Lyu and Li 2019, Appendix K.
    """
    rules = list(until) if isinstance(until, Sequence) else [until]
    lr, loss, data = copy.deepcopy(lr or LossBasedLR()), loss or CrossEntropy(), _several_passes(open_data(data))
    settings = describe_settings(model, data, loss=loss.name, lr=repr(lr), batch_size=batch_size, seed=seed)
    files = RunFiles(checkpoint_dir, settings, every_seconds=checkpoint_seconds) if checkpoint_dir is not None else None
    with _own_randomness(seed), flushed_denormals(), Progress(progress, type(model).__name__) as display:
        run = _Run(model, data, lr, loss, batch_size, files)
        run.begin(files.read(resume) if files else None)
        try:
            while True:
                reasons = [reason for rule in rules if (reason := rule.reached(run.history.rows))]
                if reasons or run.stalled:
                    run.history.status = reasons[0] if reasons else run.stalled
                    break
                left = [e for rule in rules if (e := rule.epochs_left(run.history.rows)) is not None]
                run.epoch(partial(display.show, run.history.rows[-1], min(left, default=None)))
        except KeyboardInterrupt:
            run.undo()
            run.save(now=True)
            where = (
                f"saved in {files.folder}; the same call goes on from there"
                if files
                else "nothing is on disk: no checkpoint_dir was given"
            )
            run.history.status = f"interrupted after epoch {run.history.rows[-1]['epoch']}; {where}"
            display.say(run.history.status)
            raise Interrupted(run.history.status, run.history) from None
        run.save(now=True)
        display.say(f"{describe(run.history.rows[-1])}: {run.history.status}")
    return run.history


class _Run:
    """The state of a training run between epochs, and how one epoch changes it."""

    def __init__(self, model: nn.Module, data, lr: LearningRate, loss: Loss, batch_size: int | None, files: RunFiles | None):
        self.model, self.data, self.lr, self.loss, self.files = model, data, lr, loss, files
        full = len(data) if isinstance(data, Arrays) else 1
        self.batch_size = batch_size or full
        self.history = History()
        self.stalled = ""

    def begin(self, saved: dict | None) -> None:
        """Start anew, or from a saved state."""
        with in_mode(self.model, training=False):
            x, _ = next(batches(self.data, self.batch_size, self.model))
            with torch.no_grad():
                self.outputs = scores(self.model, x[:1]).shape[1]
            self.homogeneity = countable(analyse(self.model, x))
        _check_classes(self.data, self.outputs)
        if saved is None:
            report = self._measure()
            self.log_scale = initial_log_scale(self._log_mean(report), max(self.outputs, 2))
            self.log_loss = self._log_mean(report)
            self.gradient_samples = 0
            self.history = self.files.start() if self.files else History()
            self._keep(report, epoch=0, attempts=0, rate=None)
            self.save(now=True)
            return
        assert self.files is not None  # where a saved state comes from
        put_weights(self.model, saved["model"], self.files.checkpoint)
        self.history = self.files.go_on(saved)
        self.lr.load_state_dict(saved["lr"])
        self.log_scale, self.log_loss = saved["log_scale"], saved["log_loss"]
        self.gradient_samples = saved["gradient_samples"]
        _set_random_state(saved["random"])
        self.kept = self._state()

    def epoch(self, show) -> None:
        """Try until the rule accepts."""
        attempts = 0
        while True:
            attempts += 1
            show(attempts)
            rate = self.lr.relative_rate(self.log_scale)
            self._pass(rate)
            report = self._measure_or_none()
            after = self._log_mean(report) if report is not None else math.inf
            if self.lr.accept(self.log_loss, after):
                if report is None:
                    self.undo()
                    self.save(now=True)
                    raise DivergenceError(
                        f"Epoch {self.history.rows[-1]['epoch'] + 1} ended with parameters or outputs that are not finite; the model was put "
                        f"back to the epoch before. Use LossBasedLR, or a smaller rate than {self.lr!r}."
                    )
                break
            self.undo()
            if self.lr.exhausted:
                self.stalled = f"stalled: no step lowers the loss any more, down to a relative rate of {rate:.1g}"
                return
        self.log_scale = self.log_loss = after
        self._keep(report, epoch=self.history.rows[-1]["epoch"] + 1, attempts=attempts, rate=rate)
        self.save()

    def undo(self) -> None:
        """Put parameters and buffers back to the last accepted epoch."""
        with torch.no_grad():
            for name, tensor in self._tensors().items():
                tensor.copy_(self.kept["model"][name])

    def save(self, *, now: bool = False) -> None:
        """Write the state after the last accepted epoch, if it is time."""
        if self.files:
            self.files.save(self.kept, now=now)

    def _pass(self, rate: float) -> None:
        labels = Labels(self.outputs)
        with in_mode(self.model, training=True):
            for x, y in batches(self.data, self.batch_size, self.model, shuffle=True):
                descend(self.model, x, labels.encode(y), loss=self.loss, log_scale=self.log_scale, rate=rate)
                self.gradient_samples += len(x)
        self.model.zero_grad()

    def _measure(self) -> MarginReport:
        return measure(self.model, self.data, loss=self.loss, homogeneity=self.homogeneity)

    def _measure_or_none(self) -> MarginReport | None:
        if not all(bool(torch.isfinite(t).all()) for t in self._tensors().values()):
            return None
        try:
            return self._measure()
        except NonFiniteOutputError:
            return None

    def _log_mean(self, report: MarginReport) -> float:
        return logspace.log_mean(report.log_loss, report.n)

    def _keep(self, report: MarginReport, *, epoch: int, attempts: int, rate: float | None) -> None:
        """The epoch counts: write its row, and remember everything that a resumed run needs."""
        head = {"epoch": epoch, "attempts": attempts, "gradient_samples": self.gradient_samples, "relative_rate": rate}
        self.history.rows.append(head | report.to_dict())
        if self.files:
            self.files.append(self.history.rows[-1])
        self.kept = self._state()

    def _tensors(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor in self.model.state_dict().items() if isinstance(tensor, Tensor)}

    def _state(self) -> dict:
        return {
            "model": {name: tensor.clone() for name, tensor in self._tensors().items()},
            "lr": self.lr.state_dict(),
            "log_scale": self.log_scale,
            "log_loss": self.log_loss,
            "gradient_samples": self.gradient_samples,
            "random": _random_state(),
        }


def _several_passes(data):
    if not isinstance(data, Arrays) and iter(data) is data:
        raise DataError(
            "Training reads the data once per epoch, and a generator can be read only once. Pass (X, y) or a DataLoader."
        )
    return data


def _check_classes(data, outputs: int) -> None:
    if not isinstance(data, Arrays):
        return
    found = torch.unique(Labels(outputs).encode(data.y))
    if len(found) == 1:
        raise DataError(
            f"All {len(data)} labels are {data.y[0].item()}: every net that always says so is right, and no margin is at stake. "
            "Train on samples of at least two classes."
        )


@contextmanager
def _own_randomness(seed: int):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _random_state() -> dict:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def _set_random_state(state: dict) -> None:
    torch.set_rng_state(state["cpu"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])


@contextmanager
def flushed_denormals():
    """Treat denormal floats as 0 (they slow steps down 2-3x deep in training), and restore the setting afterwards."""
    smallest = torch.tensor([5e-324], dtype=torch.float64)
    was_on = bool((smallest * 1.0 == 0).item())
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(was_on)
