"""Training past underflow: SGD on the loss relative to itself, epoch by epoch, with undo."""

import copy
import os
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path

from torch import nn

from ..core.accepted_models import check_model
from ..core.arguments import (
    check_choice,
    check_count,
    check_flag,
    check_instance,
    check_number,
    check_seed,
)
from ..core.batches import Arrays, Data, open_data
from ..core.denormals import flush_denormals
from ..core.progress import Progress, describe
from ..core.threads import fitting_threads
from ..errors import DataError, Interrupted
from ..losses import Loss, as_loss
from .history import History
from .learning_rate import LearningRate, as_learning_rate
from .randomness import own_randomness
from .run import Run
from .run_files import RunFiles, describe_settings
from .stopping import Epochs, StoppingRule, as_stopping_rules


def train(
    model: nn.Module,
    data: Data,
    *,
    until: StoppingRule | Sequence[StoppingRule] = Epochs(100),
    lr: LearningRate | float | None = None,
    loss: Loss | str | nn.Module | None = None,
    batch_size: int | None = 100,
    seed: int = 0,
    checkpoint_dir: str | Path | None = None,
    checkpoint_seconds: float = 5.0,
    resume: str = "auto",
    progress: bool = True,
) -> History:
    """Minimize the mean training loss by SGD, in log domain: losses of 1e-800 and far below are
    ordinary.

    Each epoch takes one step per batch on exp(log L_B - F), where F is the log of the last mean
    training loss; then the loss of the whole training set and all margins are measured. Same seed,
    same machine: same result bit for bit, interrupted or not. This holds for data that draw from
    the global generators of torch, numpy and Python, which belong to the run and are given back
    afterwards, from generators that the data or the model hold, and in worker processes that end
    with each pass. Where something else changes from pass to pass, a warning says so before
    training begins.

    Parameters
    ----------
    model : changed in place; it keeps its device and dtype, and its mode afterwards. A model in
        training mode is trained with each part in its own mode; one in evaluation mode is switched
        to training. Frozen parameters stay, but count in the norms.
    data : a pair (X, y), shuffled anew each epoch, or a re-iterable of (x, y) batches such as a
        DataLoader.
    until : a stopping rule, or several (the first one reached ends the run).
    lr : `LossBasedLR()` (the default), or another rule; a number is a constant rate.
    loss : cross-entropy (logistic for one output) by default; a `Loss`, its name, or
        torch.nn.CrossEntropyLoss().
    batch_size : samples per step when data is a pair; None for full batch.
    seed : of the global generators, and so of shuffling and dropout.
    checkpoint_dir : folder for history.jsonl and checkpoint.pt; None keeps nothing on disk.
    checkpoint_seconds : least time between two checkpoints; a killed run repeats at most that.
    resume : "auto" goes on with the run that the folder holds, "never" refuses to touch it.
    progress : show a live line with loss, margin and time left.

    Raises
    ------
    DataError, ModelError : as `measure`; also when the labels hold one class only.
    ArgumentError : any other argument that cannot be used.
    DivergenceError : a loss or parameters that are not finite, with a rule that cannot undo; the
        model is put back.
    CheckpointError : files that cannot be read or written, or belong to another run or model.
        Interrupted (a KeyboardInterrupt) : on Ctrl-C, after the last accepted epoch was restored
        and saved.

    Examples
    --------
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
    rules, rate, chosen = (
        as_stopping_rules(until),
        copy.deepcopy(as_learning_rate(lr)),
        as_loss(loss),
    )
    batch_size, seed = check_count("batch_size", batch_size, optional=True), check_seed(seed)
    check_instance(
        "checkpoint_dir",
        checkpoint_dir,
        (str, os.PathLike),
        'a folder such as "runs/mine"',
        optional=True,
    )
    checkpoint_seconds = check_number(
        "checkpoint_seconds", checkpoint_seconds, at_least=0, infinite=True
    )
    check_choice("resume", resume, ("auto", "never"))
    progress = check_flag("progress", progress)
    model = check_model(model)
    data = _several_passes(open_data(data))
    settings = describe_settings(
        model, data, loss=chosen.name, lr=repr(rate), batch_size=batch_size, seed=seed
    )
    files = (
        RunFiles(checkpoint_dir, settings, every_seconds=checkpoint_seconds)
        if checkpoint_dir is not None
        else None
    )
    alone = files.alone() if files else nullcontext()
    with (
        alone,
        ExitStack() as threads,
        own_randomness(seed),
        flush_denormals(),
        Progress(progress, type(model).__name__) as display,
    ):
        run = Run(model, data, rate, chosen, batch_size, files)
        threads.enter_context(fitting_threads(run.work()))
        run.begin(files.read(resume) if files else None)
        try:
            while True:
                reasons = [reason for rule in rules if (reason := rule.reached(run.history.rows))]
                if reasons or run.stalled:
                    run.history.status = reasons[0] if reasons else run.stalled
                    break
                left = [
                    e for rule in rules if (e := rule.epochs_left(run.history.rows)) is not None
                ]
                run.epoch(partial(display.show, run.history.rows[-1], min(left, default=None)))
        except KeyboardInterrupt:
            run.rewind()
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


def _several_passes(data):
    if not isinstance(data, Arrays) and iter(data) is data:
        raise DataError(
            "Training reads the data once per epoch, and a generator can be read only once. Pass"
            " (X, y) or a DataLoader."
        )
    return data
